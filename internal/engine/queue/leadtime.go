package queue

import (
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
)

// How long before its time a run is marked started.

// leadTime is how long before its time a run is marked started: twice what the
// store's answers take, at most MaxLead less gather.
type leadTime struct {
	mu     sync.Mutex
	took   time.Duration // guarded by mu: a moving average
	base   time.Duration // guarded by mu: of that, what is not for the number of runs
	perRun time.Duration // guarded by mu: what a run costs among many, a moving average
}

// Sample takes in how long the store took to start so many runs.
func (l *leadTime) Sample(n int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took += (took - l.took) / 8
	l.base += (max(0, took-time.Duration(n)*inMemory) - l.base) / 8
}

// inMemory is what a run in a call costs a store in memory, at most: so many of them do not make it
// look like a database.
const inMemory = 2 * time.Microsecond

func (l *leadTime) get() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.base < time.Millisecond/2 {
		return 0 // a store in memory: nothing to make up for
	}
	return min(2*l.took, core.MaxLead-gather)
}

// Started takes in how long it took to start so many runs, from the ring to their executors.
func (l *leadTime) Started(n int, took time.Duration) {
	if n < HerdLeast {
		return // what one more among many costs is not seen by few
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.perRun += (took/time.Duration(n) - l.perRun) / 8
}

// HerdLeast is from how many runs on their number tells how long their start takes.
const HerdLeast = 100

// forMany is the lead where so many runs are due at one time: they take their time one after the
// other, and the last of them is to be late by less.
func (l *leadTime) forMany(n int) time.Duration {
	first := l.get()
	if n < HerdLeast {
		return first
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(first+time.Duration(n)*l.perRun, core.MaxLead)
}

// gather is how much of what is due next goes into one call of the store with what has to be
// started now. Where runs are due all the time, calls are that far apart, however quick they
// are: a transaction costs the server far more than one run more in it. Each is sent at its
// own time, so none comes later by it.
const gather = 10 * time.Millisecond

// window is until when runs are to be taken off the ring, where what is due at the time until
// has to be started now. A store in memory, which has no transactions to save, is asked for
// each run at its time.
func (l *leadTime) window(now, until time.Time) time.Time {
	if l.get() == 0 {
		return until
	}
	return core.Sooner(until.Add(gather), now.Add(core.MaxLead))
}

// Pause is how long results gather; zero where they are stored in memory.
func (l *leadTime) Pause() time.Duration {
	if l.get() == 0 {
		return 0
	}
	return gather / 2
}
