package xxljob

// How long before its time a run is marked started.

import (
	"sync"
	"time"
)

// lead is how long before its time a run is marked started: twice what the
// store's answers take, at most maxLead less gather.
type lead struct {
	mu   sync.Mutex
	took time.Duration // guarded by mu: a moving average
}

func (l *lead) sample(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took += (took - l.took) / 8
}

func (l *lead) get() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.took < time.Millisecond/2 {
		return 0 // a store in memory: nothing to make up for
	}
	return min(2*l.took, maxLead-gather)
}

// gather is how much of what is due next goes into one call of the store with what has to be
// started now. Where runs are due all the time, calls are that far apart, however quick they
// are: a transaction costs the server far more than one run more in it. Each is sent at its
// own time, so none comes later by it.
const gather = 10 * time.Millisecond

// window is until when runs are to be taken off the ring, where what is due at the time until
// has to be started now. A store in memory, which has no transactions to save, is asked for
// each run at its time.
func (l *lead) window(until time.Time) time.Time {
	if l.get() == 0 {
		return until
	}
	return until.Add(gather)
}

// pause is how long results gather; zero where they are stored in memory.
func (l *lead) pause() time.Duration { return l.window(time.Time{}).Sub(time.Time{}) / 2 }
