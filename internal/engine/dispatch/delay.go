package dispatch

import (
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
)

// delayQueue are started runs whose time has not quite come: the store's answer was quicker
// than the lead, or they have gone with what was due before them.
type delayQueue struct {
	mu      sync.Mutex
	flights []delayed       // guarded by mu: a binary heap, the earliest first
	popped  []*queue.Flight // of the goroutine that pops
}

// delayed is one with its place in the order.
type delayed struct {
	lease.RingEntry
	f *queue.Flight
}

// add keeps a flight until its time. It reports whether that comes before all others'.
func (q *delayQueue) add(f *queue.Flight) (sooner bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := delayed{f.Run.Planned.Key(), f}
	q.flights = append(q.flights, d)
	i := len(q.flights) - 1
	for i > 0 && d.Before(q.flights[(i-1)/2].RingEntry) {
		q.flights[i] = q.flights[(i-1)/2]
		i = (i - 1) / 2
	}
	q.flights[i] = d
	return i == 0
}

// pop takes those whose time has come, the earliest first. One goroutine at a time pops: what it
// gets is in memory that it gets again, and clears.
func (q *delayQueue) pop(now time.Time) []*queue.Flight {
	due := q.popped[:0]
	ms := now.UnixMilli()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.flights) > 0 && q.flights[0].At <= ms {
		due = append(due, q.flights[0].f)
		q.dropFirst()
	}
	if len(q.flights) == 0 && cap(q.flights) > queue.SpareEntries {
		q.flights = nil // a large herd is over
	}
	if q.popped = due; cap(due) > queue.SpareEntries {
		q.popped = nil
	}
	return due
}

// dropFirst takes the first off the heap.
func (q *delayQueue) dropFirst() {
	h := q.flights
	last := h[len(h)-1]
	h[len(h)-1] = delayed{}
	h = h[:len(h)-1]
	q.flights = h
	if len(h) == 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].Before(h[child].RingEntry) {
			child++
		}
		if child >= len(h) || !h[child].Before(last.RingEntry) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
}

// next is when the next one is due.
func (q *delayQueue) next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.flights) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(q.flights[0].At), true
}
