package xxljob

// Started runs whose time has not quite come.

import (
	"sync"
	"time"
)

// earlyFlights are started runs whose time has not quite come: the store's
// answer was quicker than the lead.
type earlyFlights struct {
	mu       sync.Mutex
	ring     timeRing
	dueTimes dueTimes
	flights  map[int64]*flight
}

func newEarlyFlights() *earlyFlights {
	return &earlyFlights{dueTimes: newDueTimes(), flights: map[int64]*flight{}}
}

// add keeps a flight until its time. It reports whether that comes before all others'.
func (e *earlyFlights) add(f *flight) (sooner bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, had := e.dueTimes.next()
	e.flights[f.run.ID] = f
	e.ring.Push(f.run.Scheduled, f.run.ID)
	e.dueTimes.add(f.run.Scheduled.UnixMilli())
	return !had || f.run.Scheduled.UnixMilli() < before
}

func (e *earlyFlights) pop(now time.Time) []*flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.flights) == 0 {
		return nil
	}
	e.dueTimes.popUpTo(now.UnixMilli())
	var due []*flight
	for _, id := range e.ring.Pop(now) {
		due = append(due, e.flights[id])
		delete(e.flights, id)
	}
	return due
}

func (e *earlyFlights) next() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms, ok := e.dueTimes.next()
	return time.UnixMilli(ms), ok
}
