package xxljob

// Started runs whose time has not quite come.

import (
	"sync"
	"time"
)

// earlyFlights are started runs whose time has not quite come: the store's answer was quicker
// than the lead, or they have gone with what was due before them.
type earlyFlights struct {
	mu      sync.Mutex
	flights []earlyFlight // guarded by mu: a binary heap, the earliest first
	popped  []*flight     // of who pops
}

// earlyFlight is one with its time, in milliseconds.
type earlyFlight struct {
	at int64
	f  *flight
}

// add keeps a flight until its time. It reports whether that comes before all others'.
func (e *earlyFlights) add(f *flight) (sooner bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := f.run.planned.at
	e.flights = append(e.flights, earlyFlight{at, f})
	i := len(e.flights) - 1
	for i > 0 && at < e.flights[(i-1)/2].at {
		e.flights[i] = e.flights[(i-1)/2]
		i = (i - 1) / 2
	}
	e.flights[i] = earlyFlight{at, f}
	return i == 0
}

// pop takes those whose time has come, the earliest first. One goroutine at a time pops: what it
// gets is in memory that it gets again, and clears.
func (e *earlyFlights) pop(now time.Time) []*flight {
	due := e.popped[:0]
	ms := now.UnixMilli()
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.flights) > 0 && e.flights[0].at <= ms {
		due = append(due, e.flights[0].f)
		e.dropFirst()
	}
	if len(e.flights) == 0 && cap(e.flights) > spareEntries {
		e.flights = nil // a large herd is over
	}
	if e.popped = due; cap(due) > spareEntries {
		e.popped = nil
	}
	return due
}

// dropFirst takes the first off the heap.
func (e *earlyFlights) dropFirst() {
	h := e.flights
	last := h[len(h)-1]
	h[len(h)-1] = earlyFlight{}
	h = h[:len(h)-1]
	e.flights = h
	if len(h) == 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if child >= len(h) || last.at <= h[child].at {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
}

// next is when the next one is due.
func (e *earlyFlights) next() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.flights) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(e.flights[0].at), true
}
