package xxljob

// Calls of hooks. Input: runs that were started or have ended, from all loops. Output:
// calls, one after the other, in the order in which things have happened here.

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

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

// hookCall is one call of one hook.
type hookCall struct {
	place string
	hook  func(Run)
	run   Run
	since time.Time // when it was to be made
}

// hookQueue calls hooks beside the loops, on one goroutine that is there while calls
// wait. It is safe for concurrent use.
type hookQueue struct {
	log    *slog.Logger
	panics *guard.Log
	hooks  Hooks

	mu      sync.Mutex
	calls   []hookCall    // guarded by mu: the first is being made while somebody is at work
	idle    chan struct{} // guarded by mu: closed when no calls wait; nil when nobody is at work
	dropped int           // guarded by mu: since there was room
}

func (q *hookQueue) started(r Run) { q.call("Hooks.RunStarted", q.hooks.RunStarted, r) }
func (q *hookQueue) ended(r Run)   { q.call("Hooks.RunEnded", q.hooks.RunEnded, r) }

// call has a hook called, soon. It waits only where very many calls wait for a hook that
// may be quick.
func (q *hookQueue) call(place string, hook func(Run), run Run) {
	if hook == nil {
		return
	}
	// The call has its place before the wait: what happens next comes behind it.
	for full := q.add(hookCall{place, hook, run, time.Now()}); full; full = q.full() {
		time.Sleep(hooksPause)
	}
}

// add takes a call, or drops it, and reports whether the caller is to wait for room.
func (q *hookQueue) add(c hookCall) (full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) >= hooksWaiting && !q.mayBeQuick() {
		if q.dropped == 0 {
			q.log.Error("xxljob: a hook is taking too long; further hook calls are dropped until it returns", "hook", q.calls[0].place, "waiting", len(q.calls))
		}
		q.dropped++
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
func (q *hookQueue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls) > hooksWaiting && q.mayBeQuick()
}

// mayBeQuick reports whether the oldest call has not waited for long. mu is held.
func (q *hookQueue) mayBeQuick() bool { return time.Since(q.calls[0].since) < hooksLag }

// work makes the calls until none wait.
func (q *hookQueue) work() {
	for {
		q.mu.Lock()
		c := q.calls[0]
		q.mu.Unlock()
		_ = q.panics.Call(c.place, func() error { c.hook(c.run); return nil })
		if !q.next() {
			return
		}
	}
}

// next is done with the first call; false when there are no more.
func (q *hookQueue) next() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls[0] = hookCall{}
	q.calls = q.calls[1:]
	if q.dropped > 0 && len(q.calls) <= hooksWaiting/2 {
		q.log.Warn("xxljob: hooks are being called again", "dropped", q.dropped)
		q.dropped = 0
	}
	if len(q.calls) == 0 {
		q.calls = nil
		close(q.idle)
		q.idle = nil
		return false
	}
	return true
}

// drain waits until all calls are made, at most for the grace or until shortly after the
// end of ctx. One that does not return is left behind, with those that wait for it.
func (q *hookQueue) drain(ctx context.Context, grace time.Duration) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords/2, cancel) })()
	select {
	case <-idle:
		return
	case <-bound.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == nil {
		return
	}
	q.log.Warn("xxljob: stopped without waiting any longer for a hook that has not returned", "hook", q.calls[0].place, "waiting", len(q.calls), "dropped", q.dropped)
}
