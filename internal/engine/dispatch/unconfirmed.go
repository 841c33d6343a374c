package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Starts and takes of this node that may still take effect, although their calls have failed.

// unconfirmed are the starts and takes whose calls ended with an error, and may have
// taken effect all the same; and the runs of calls without one that are still to be
// launched. The former are kept for as long as one of them may turn up.
// It is safe for concurrent use.
type unconfirmed struct {
	mu     sync.Mutex
	starts map[int64]bool // guarded by mu: by token
	takes  map[int64]bool // guarded by mu: by run
	latest time.Time      // guarded by mu: the last error
	// onTheWay are runs of calls without an error that are not flights yet, with how often each.
	onTheWay map[int64]int // guarded by mu

	until atomic.Int64 // until when to look for orphans, in Unix nanoseconds
	lease loop.Wake    // of the loop that looks

	stopInterrupted atomic.Bool // a start may have taken effect that Stop cut short
}

func newUnconfirmed(lease loop.Wake) *unconfirmed {
	return &unconfirmed{lease: lease, starts: map[int64]bool{}, takes: map[int64]bool{}, onTheWay: map[int64]int{}}
}

// unconfirmedKept is how long they are kept after the last error: until the last of them
// has turned up, been looked for, and seen for long enough to be settled.
const unconfirmedKept = 2*core.DoubtLasts + 2*orphansEvery

// maxUnconfirmed bounds them.
const maxUnconfirmed = 100_000

// addStarts and addTakes note those of a call that has ended with an error.
func (u *unconfirmed) addStarts(batch []queue.Attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropOld()
	for _, a := range batch {
		u.starts[a.Start.Token] = true
	}
}

func (u *unconfirmed) addTakes(ids []int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropOld()
	for _, id := range ids {
		u.takes[id] = true
	}
}

// launching notes that runs, taken or parts of a broadcast, are about to be
// launched, or with delta -1 that they are flights now.
func (u *unconfirmed) launching(runs []store.Run, delta int) {
	if len(runs) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range runs {
		if u.onTheWay[r.ID] += delta; u.onTheWay[r.ID] == 0 {
			delete(u.onTheWay, r.ID)
		}
	}
}

// isLaunching reports whether a run is about to be launched.
func (u *unconfirmed) isLaunching(runID int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.onTheWay[runID] > 0
}

// dropOld is called with mu held. A commit may hang for as long as the server does: so
// none goes while there are errors.
func (u *unconfirmed) dropOld() {
	if time.Since(u.latest) > unconfirmedKept || len(u.starts)+len(u.takes) > maxUnconfirmed {
		clear(u.starts)
		clear(u.takes)
	}
	u.latest = time.Now()
}

// concerns reports whether a run that is under way by the store may not have been
// launched here.
func (u *unconfirmed) concerns(r store.Run, incarnation string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.takes[r.ID] || u.starts[r.Token] && r.Owner == incarnation
}

// lookNow makes the lease loop look for orphans.
func (u *unconfirmed) lookNow() {
	u.lookLater()
	u.lease.Poke()
}

// lookLater makes it look when it next comes by.
func (u *unconfirmed) lookLater() { u.until.Store(time.Now().Add(core.DoubtLasts).UnixNano()) }

// mayTurnUp reports whether there may be orphans.
func (u *unconfirmed) mayTurnUp() bool {
	return time.Now().UnixNano() < u.until.Load()
}
