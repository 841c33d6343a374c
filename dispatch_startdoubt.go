package xxljob

// Starts and takes of this node of which it is in doubt whether they took effect.

import (
	"sync"
	"sync/atomic"
	"time"
)

// doubts are the starts and takes whose calls ended with an error, and may have
// taken effect all the same; and the takes that had none, on their way to the
// executors. The former are kept for as long as one of them may turn up.
// It is safe for concurrent use.
type doubts struct {
	mu     sync.Mutex
	starts map[int64]bool // guarded by mu: by token
	takes  map[int64]bool // guarded by mu: by run
	latest time.Time      // guarded by mu: the last error
	// receiving are runs of calls without an error that are not yet with their executors.
	receiving map[int64]int // guarded by mu

	until atomic.Int64 // until when to look for orphans, in Unix nanoseconds
	lease wake         // of the loop that looks

	cutShort atomic.Bool // a start may have taken effect that Stop cut short
}

func newDoubts(lease wake) *doubts {
	return &doubts{lease: lease, starts: map[int64]bool{}, takes: map[int64]bool{}, receiving: map[int64]int{}}
}

// doubtsKept is how long they are kept after the last error: until the last of them
// has turned up, been looked for, and seen for long enough to be settled.
const doubtsKept = 2*doubtLasts + 2*orphansEvery

// maxDoubts bounds them.
const maxDoubts = 100_000

func (d *doubts) start(batch []attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropOld()
	for _, a := range batch {
		d.starts[a.start.Token] = true
	}
}

func (d *doubts) take(ids []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropOld()
	for _, id := range ids {
		d.takes[id] = true
	}
}

// received notes that runs, taken or parts of a broadcast, are on their way to their
// executors, or with delta -1 that they are there.
func (d *doubts) received(runs []Run, delta int) {
	if len(runs) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range runs {
		if d.receiving[r.ID] += delta; d.receiving[r.ID] == 0 {
			delete(d.receiving, r.ID)
		}
	}
}

func (d *doubts) underWay(runID int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.receiving[runID] > 0
}

// dropOld is called with mu held. A commit may hang for as long as the server does: so
// none goes while there are errors.
func (d *doubts) dropOld() {
	if time.Since(d.latest) > doubtsKept || len(d.starts)+len(d.takes) > maxDoubts {
		clear(d.starts)
		clear(d.takes)
	}
	d.latest = time.Now()
}

// about reports whether a run that is under way by the store may not have been
// received here.
func (d *doubts) about(r Run, incarnation string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takes[r.ID] || d.starts[r.Token] && r.Owner == incarnation
}

// lookNow makes the lease loop look for orphans.
func (d *doubts) lookNow() {
	d.lookLater()
	d.lease.poke()
}

// lookLater makes it look when it next comes by.
func (d *doubts) lookLater() { d.until.Store(time.Now().Add(doubtLasts).UnixNano()) }

// any reports whether there may be orphans.
func (d *doubts) any() bool {
	return time.Now().UnixNano() < d.until.Load()
}

// orphansEvery is how often a node looks for orphans without a reason: a database
// may fail over between two calls, and nobody has noticed.
const orphansEvery = time.Minute
