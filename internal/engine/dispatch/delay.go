package dispatch

import (
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/timering"
)

// delayQueue are started runs whose time has not quite come: the store's answer was quicker
// than the lead, or they have gone with what was due before them.
type delayQueue struct {
	mu      sync.Mutex
	flights timering.Heap[*queue.Flight] // guarded by mu
	popped  []*queue.Flight              // of the goroutine that pops
}

// add keeps a flight until its time. It reports whether that comes before all others'.
func (q *delayQueue) add(f *queue.Flight) (sooner bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.flights.Push(f.Run.Planned.Key(), f)
}

// pop takes those whose time has come, the earliest first. One goroutine at a time pops: what it
// gets is in memory that it gets again, and clears.
func (q *delayQueue) pop(now time.Time) []*queue.Flight {
	due := q.popped[:0]
	ms := now.UnixMilli()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.flights) > 0 && q.flights.At() <= ms {
		due = append(due, q.flights.Pop())
	}
	if len(q.flights) == 0 && cap(q.flights) > timering.SpareCap {
		q.flights = nil // a large herd is over
	}
	if q.popped = due; cap(due) > timering.SpareCap {
		q.popped = nil
	}
	return due
}

// next is when the next one is due.
func (q *delayQueue) next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.flights) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(q.flights.At()), true
}
