package xxljob

// The ring of the engine, which may be the user's. All of it is guarded by the engine's
// mutex.

import (
	"time"
)

// pushRing puts a held run on the ring.
func (e *engine) pushRing(at time.Time, runID int64) {
	if !e.ring.users {
		e.ring.Push(at, runID)
		return
	}
	e.tryRing("Push", func(r TimeRing) { r.Push(at, runID) })
}

// popRing takes off the ring what is due. It is never less than what is due on ours,
// should that have taken the place of the user's.
func (e *engine) popRing(now time.Time) (ids []int64) {
	if !e.ring.users {
		return e.ring.Pop(now)
	}
	if !e.tryRing("Pop", func(r TimeRing) { ids = r.Pop(now) }) {
		e.dueTimes.popUpTo(now.UnixMilli())
		return e.ring.Pop(now)
	}
	return ids
}

// lenRing is how many entries the ring has.
func (e *engine) lenRing() (n int) {
	if e.ring.users && e.tryRing("Len", func(r TimeRing) { n = r.Len() }) {
		return n
	}
	return e.ring.Len()
}

// tryRing calls the user's ring. One that panics may have lost entries, and may have left
// a lock of its own locked: it is not called again. Ours takes its place, with all that
// is held and has not come up.
func (e *engine) tryRing(method string, f func(TimeRing)) bool {
	users := e.ring.TimeRing
	err := e.ring.panics.Call("TimeRing."+method, func() error { f(users); return nil })
	if err == nil {
		return true
	}
	e.ring.failed(method, err)
	e.ring.TimeRing, e.ring.users = NewTimeRing(), false
	for id, en := range e.held {
		if !en.due {
			e.ring.Push(en.run.Scheduled, id)
			e.dueTimes.add(en.run.Scheduled.UnixMilli())
		}
	}
	return false
}
