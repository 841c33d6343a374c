package xxljob

// The ring that holds planned runs until their time, which may be the user's.

import (
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

// heldRing is the ring that is in use, with the times at which it has something due.
// Whoever uses it holds the engine's mutex.
type heldRing struct {
	ring   TimeRing
	users  bool // not of our own make: it may panic
	panics *guard.Log
	failed func(method string, err error)
	times  dueTimes
	all    func(yield func(at time.Time, runID int64)) // what is to be on it
}

func newHeldRing(cfg *Config, panics *guard.Log, all func(yield func(at time.Time, runID int64))) *heldRing {
	r := &heldRing{ring: cfg.Ring, users: true, panics: panics, times: newDueTimes(), all: all, failed: func(method string, err error) {
		cfg.Logger.Error("xxljob: Config.Ring failed and was replaced by the ring of NewTimeRing", "node", cfg.Node, "method", method, "error", err)
	}}
	if _, ours := cfg.Ring.(*timeRing); ours || cfg.Ring == nil {
		r.users = false
		if cfg.Ring == nil {
			r.ring = NewTimeRing()
		}
	}
	return r
}

// push puts a held run on the ring.
func (r *heldRing) push(at time.Time, runID int64) {
	r.times.add(at.UnixMilli())
	if !r.users {
		r.ring.Push(at, runID)
		return
	}
	r.try("Push", func(ring TimeRing) { ring.Push(at, runID) })
}

// pop takes off the ring what is due. It is never less than what is due on ours,
// should that have taken the place of the user's.
func (r *heldRing) pop(now time.Time) (ids []int64) {
	r.times.popUpTo(now.UnixMilli())
	if !r.users {
		return r.ring.Pop(now)
	}
	if !r.try("Pop", func(ring TimeRing) { ids = ring.Pop(now) }) {
		r.times.popUpTo(now.UnixMilli())
		return r.ring.Pop(now)
	}
	return ids
}

// lookAgain has a ring of the user's asked again soon, where it is late with something.
func (r *heldRing) lookAgain(now time.Time) {
	if _, _, armed := r.times.next(); !armed && r.len() > 0 {
		r.times.add(now.Add(lockedRetry).UnixMilli())
	}
}

// next is when the ring has something due, and how much, at most.
func (r *heldRing) next() (at time.Time, n int, ok bool) {
	ms, n, ok := r.times.next()
	return time.UnixMilli(ms), n, ok
}

// len is how many entries the ring has.
func (r *heldRing) len() (n int) {
	if r.users && r.try("Len", func(ring TimeRing) { n = ring.Len() }) {
		return n
	}
	return r.ring.Len()
}

// try calls the user's ring. One that panics may have lost entries, and may have left
// a lock of its own locked: it is not called again. Ours takes its place, with all that
// is held and has not come up.
func (r *heldRing) try(method string, f func(TimeRing)) bool {
	users := r.ring
	err := r.panics.Call("TimeRing."+method, func() error { f(users); return nil })
	if err == nil {
		return true
	}
	r.failed(method, err)
	r.ring, r.users = NewTimeRing(), false
	r.all(func(at time.Time, runID int64) {
		r.ring.Push(at, runID)
		r.times.add(at.UnixMilli())
	})
	return false
}
