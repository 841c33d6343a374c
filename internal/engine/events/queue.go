package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
)

// Events that wait to be told of. Input: what has happened, from all loops. Output: one
// after the other, in the order in which they have happened here, to events.go.

const (
	// hooksWaiting is how many calls of hooks wait at most, but for those of callers who
	// wait for room themselves.
	hooksWaiting = 20_000
	// hooksLag is how long a call may wait, or take, when there is no room for another.
	// Until then those who have one wait behind it for room, so that hooks which are quick
	// miss nothing in a herd; from then on calls are dropped.
	hooksLag = time.Second
	// hooksPause is how long they wait before they look again.
	hooksPause = time.Millisecond
)

// What is logged of the two queues.
const (
	hooksSlow  = "xxljob: a hook is taking too long; further hook calls are dropped until it returns"
	hooksAgain = "xxljob: hooks are being called again"
	hooksLeft  = "xxljob: stopped without waiting any longer for a hook that has not returned"
	namesSlow  = "xxljob: events wait too long for the names of their jobs; further events are dropped until the store answers"
	namesAgain = "xxljob: events are being told of again"
	namesLeft  = "xxljob: stopped without waiting any longer for the names of jobs"
)

// waitingEvent is something that is to be told of.
type waitingEvent struct {
	core.Event                  // without a Kind it is nothing yet
	look       int64            // a job that may have stopped by itself
	since      time.Time        // monotonic: when it happened
	line       func(key string) // logs the run, where its job's key had to be found out
}

// eventQueue has events told of beside the loops, on one goroutine that is there while some
// wait. It is safe for concurrent use.
type eventQueue struct {
	log  *slog.Logger
	tell func(*waitingEvent)
	lost func() // called, if not nil, for each event that is dropped
	// What is logged when the first of many is dropped, when there is room again, and when
	// what waits is left behind.
	slow, again, left string
	first             func(core.EventKind) slog.Attr // what is logged of the oldest

	mu     sync.Mutex
	calls  []waitingEvent // guarded by mu: the first is being told of while somebody is at work
	idle   chan struct{}  // guarded by mu: closed when no calls wait; nil when nobody is at work
	missed int            // guarded by mu: dropped since there was room
	all    uint64         // guarded by mu: dropped
}

// dropped is how many events were dropped so far.
func (q *eventQueue) dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all
}

// add has an event told of, soon. It waits only where very many wait for a hook that may be
// quick.
func (q *eventQueue) add(e waitingEvent) {
	// It has its place before the wait: what happens next comes behind it.
	e.since = time.Now()
	e.At = e.since.UTC().Round(0)
	for full := q.push(e); full; full = q.full() {
		time.Sleep(hooksPause)
	}
}

// push takes an event, or drops it, and reports whether the caller is to wait for room.
func (q *eventQueue) push(c waitingEvent) (full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) >= hooksWaiting && !q.mayBeQuick() {
		if q.missed == 0 {
			q.log.Error(q.slow, q.first(q.calls[0].Kind), "waiting", len(q.calls))
		}
		q.missed++
		q.all++
		if q.lost != nil {
			q.lost()
		}
		return false
	}
	q.calls = append(q.calls, c)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.work()
	}
	return len(q.calls) > hooksWaiting
}

// full reports whether there is no room, but may be soon.
func (q *eventQueue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls) > hooksWaiting && q.mayBeQuick()
}

// mayBeQuick reports whether the oldest call has not waited for long. mu is held.
func (q *eventQueue) mayBeQuick() bool { return time.Since(q.calls[0].since) < hooksLag }

// work tells of events until none wait.
func (q *eventQueue) work() {
	for {
		q.mu.Lock()
		e := &q.calls[0] // which nobody changes until next
		q.mu.Unlock()
		q.tell(e)
		if !q.next() {
			return
		}
	}
}

// next is done with the first call; false when there are no more.
func (q *eventQueue) next() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls[0] = waitingEvent{}
	q.calls = q.calls[1:]
	if q.missed > 0 && len(q.calls) <= hooksWaiting/2 {
		q.log.Warn(q.again, "dropped", q.missed)
		q.missed = 0
	}
	if len(q.calls) == 0 {
		q.calls = nil
		close(q.idle)
		q.idle = nil
		return false
	}
	return true
}

// drain waits until all calls are made, at most until the end of ctx. One that does not
// return is left behind, with those that wait for it.
func (q *eventQueue) drain(ctx context.Context) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
		return
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == nil {
		return
	}
	q.log.Warn(q.left, q.first(q.calls[0].Kind), "waiting", len(q.calls), "dropped", q.all)
}
