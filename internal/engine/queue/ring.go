package queue

import (
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/timering"
)

// The ring that holds planned runs until their time: ours (package timering), or one of the user's
// (Config.Ring), which is called here and nowhere else.

// guardedRing is the ring that is in use: ours, or the user's. Whoever uses it holds the lock of the Queue.
type guardedRing struct {
	ours   *timering.Ring // nil where users is in use
	users  core.TimeRing  // of the user's, which may panic
	times  dueTimes       // of users
	panics *guard.Log
	failed func(method string, err error)
	all    func(yield func(at time.Time, runID int64)) // what is to be on it
}

func newGuardedRing(cfg *core.Config, panics *guard.Log, all func(yield func(at time.Time, runID int64))) *guardedRing {
	r := &guardedRing{panics: panics, all: all, failed: func(method string, err error) {
		cfg.Logger.Error("xxljob: Config.Ring failed and was replaced by the ring of NewTimeRing", "node", cfg.Node, "method", method, "error", err)
	}}
	switch ring := cfg.Ring.(type) {
	case nil:
		r.ours = &timering.Ring{}
	case *timering.Ring:
		r.ours = ring
	default:
		r.users, r.times = ring, newDueTimes()
	}
	return r
}

// push puts a held run on the ring.
func (r *guardedRing) push(at time.Time, runID int64) {
	if r.ours != nil {
		r.ours.Push(at, runID)
		return
	}
	r.times.add(at.UnixMilli())
	r.try("Push", func(ring core.TimeRing) { ring.Push(at, runID) })
}

// pop takes off the ring what is due. It is never less than what is due on ours,
// should that have taken the place of the user's.
func (r *guardedRing) pop(now time.Time) (ids []int64) {
	if r.ours == nil {
		r.times.popUpTo(now.UnixMilli())
		if r.try("Pop", func(ring core.TimeRing) { ids = ring.Pop(now) }) {
			return ids
		}
	}
	return r.ours.Pop(now)
}

// lookAgain has a ring of the user's asked again soon, where it is late with something.
func (r *guardedRing) lookAgain(now time.Time) {
	if r.ours != nil {
		return
	}
	if _, _, armed := r.times.next(); !armed && r.isLeft() {
		r.times.add(now.Add(core.LockedPause).UnixMilli())
	}
}

// next is when the ring has something due, and how much, at most.
func (r *guardedRing) next() (at time.Time, n int, ok bool) {
	var ms int64
	if r.ours != nil {
		ms, n, ok = r.ours.Next()
	} else {
		ms, n, ok = r.times.next()
	}
	return time.UnixMilli(ms), n, ok
}

// isLeft reports whether a ring of the user's has entries; false where ours has taken its place.
func (r *guardedRing) isLeft() bool {
	n := 0
	return r.try("Len", func(ring core.TimeRing) { n = ring.Len() }) && n > 0
}

// try calls the user's ring. One that panics may have lost entries, and may have left
// a lock of its own locked: it is not called again. Ours takes its place, with all that
// is held and has not come up.
func (r *guardedRing) try(method string, f func(core.TimeRing)) bool {
	users := r.users
	err := r.panics.Call("TimeRing."+method, func() error { f(users); return nil })
	if err == nil {
		return true
	}
	r.failed(method, err)
	r.ours, r.users, r.times = &timering.Ring{}, nil, dueTimes{}
	r.all(r.ours.Push)
	return false
}

// When a ring of the user's has something due.

// dueTimes are the distinct milliseconds at which it has something due, and how much, at most: it need
// not tell when its next entry is.
type dueTimes struct {
	counts map[int64]int
	heap   timering.Heap[struct{}]
}

func newDueTimes() dueTimes { return dueTimes{counts: map[int64]int{}} }

func (a *dueTimes) add(ms int64) {
	if a.counts[ms]++; a.counts[ms] == 1 {
		a.heap.Push(timering.Key{At: ms}, struct{}{})
	}
}

// next is the first of them, and how much is due then.
func (a *dueTimes) next() (ms int64, n int, ok bool) {
	if len(a.heap) == 0 {
		return 0, 0, false
	}
	return a.heap.At(), a.counts[a.heap.At()], true
}

func (a *dueTimes) popUpTo(ms int64) {
	for len(a.heap) > 0 && a.heap.At() <= ms {
		delete(a.counts, a.heap.At())
		a.heap.Pop()
	}
}
