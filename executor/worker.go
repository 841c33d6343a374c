package executor

// The goroutines that call handlers. Comes in: runs that may begin, from job.go. Goes out:
// what their handlers returned, to end.go.
//
// A goroutine calls one handler after the other for as long as there are runs that have
// begun, and ends when there are none: a short handler costs no goroutine of its own, and an
// idle executor has none. Whoever takes a run leaves others behind only when another goroutine
// is on its way to them, so that no handler waits for one that takes long.

import (
	"fmt"

	"github.com/xxljob/xxljob/internal/guard"
)

// mostArriving bounds the goroutines that are on their way at once.
const mostArriving = 64

// callSoon hands a run, whose place is taken, to a goroutine. mu is held.
func (e *Executor) callSoon(r *run) {
	e.begun.push(r)
	e.summon()
}

// summon has so many goroutines come as are needed for runs that have begun. There is one at
// least on its way while there are any; how many more depends on whether those that came last
// were needed. mu is held.
//
// They are waited for by Stop, through Executor.arriving and then Executor.active, unless
// their handlers are abandoned.
func (e *Executor) summon() {
	for e.arriving < min(e.begun.n, max(e.rush, 1)) {
		e.arriving++
		go e.work(nil)
	}
}

// arrive returns the first run of a goroutine, nil where there is none any more.
func (e *Executor) arrive() *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arriving--
	if e.begun.n == 0 {
		e.rush = 1
		e.checkIdle()
		return nil
	}
	e.rush = min(2*e.rush, mostArriving)
	return e.take()
}

// take returns the run whose handler is to be called next, nil for none. mu is held.
func (e *Executor) take() *run {
	if e.begun.n == 0 {
		return nil
	}
	r := e.begun.pop()
	e.summon()
	return r
}

// work is the body of a goroutine that calls handlers, that of r first. A handler that ends
// its goroutine (runtime.Goexit, or t.FailNow in a test) ends its run like any other.
func (e *Executor) work(r *run) {
	defer func() {
		if r == nil {
			return
		}
		unlabel()
		if next := e.leave(r, errGoexit); next != nil {
			go e.work(next)
		}
	}()
	if r == nil {
		r = e.arrive()
	}
	for r != nil {
		err := r.call()
		unlabel()
		done := r
		r = nil
		r = e.leave(done, err)
	}
}

// call calls the handler of a run.
func (r *run) call() error {
	return protect(func() error {
		r.openLog()
		r.labels.put()
		return r.handler.call((*runContext)(r), &r.Task)
	})
}

// panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// protect calls a user's function and turns a panic into a *panicError. It is
// the one place where panics are recovered.
func protect(f func() error) error {
	err := guard.Call(f)
	if p, ok := err.(*guard.Panic); ok {
		return &panicError{value: p.Value, stack: p.Stack}
	}
	return err
}
