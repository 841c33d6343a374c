package executor

// Handlers: how they are registered, what middleware puts around them, and what they say of
// the next attempt by the error that they return.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Handler does the work of a job. The run succeeds when it returns nil, and
// fails when it returns an error, panics or ends its goroutine. ctx is cancelled when
// the run is killed, covered by a later one, over its timeout or the executor
// shuts down; context.Cause tells which. It should then return soon.
//
// A handler runs concurrently with itself for different jobs. The goroutine that has called it
// may call others afterwards: one that locks its thread unlocks it before it returns.
type Handler func(ctx context.Context, t *Task) error

// HandlerOption adds to a handler in Handle.
type HandlerOption func(*handler)

// OnInit makes a handler call f once, before its first run, with the context of that
// run. An error or a panic fails the run, and f is called again for the next one.
func OnInit(f func(ctx context.Context) error) HandlerOption {
	return func(h *handler) { h.init = f }
}

// OnDestroy makes Stop call f once, after all handlers have ended, if the handler has
// ever been run or its OnInit has succeeded. A panic in f is logged.
func OnDestroy(f func()) HandlerOption {
	return func(h *handler) { h.destroy = f }
}

// handler is a registered Handler.
type handler struct {
	name    string
	fn      Handler
	call    Handler // the middleware, init where it has to be, and fn: set by wrap
	init    func(ctx context.Context) error
	destroy func()

	// turn holds one token: who has it may call init. A channel, so that
	// those who wait can be cancelled.
	turn   chan struct{}
	inited atomic.Bool
}

// Handle registers a handler under a name. It is valid at any time, also while runs
// are executed. It returns an error when the name is empty or taken, when the
// handler is nil, when a middleware panics or makes no handler of it, and after Stop
// (ErrStopped).
func (e *Executor) Handle(name string, fn Handler, opts ...HandlerOption) error {
	var faults []error
	if strings.TrimSpace(name) == "" {
		faults = append(faults, errors.New("xxljob: executor: handler without a name"))
	}
	if fn == nil {
		faults = append(faults, fmt.Errorf("xxljob: executor: handler %q is nil", name))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	h := &handler{name: name, fn: fn, turn: make(chan struct{}, 1)}
	for _, o := range opts {
		o(h)
	}
	if err := h.wrap(e.cfg.Middleware); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return fmt.Errorf("handler %q: %w", name, ErrStopped)
	}
	if e.handlers[name] != nil {
		return fmt.Errorf("xxljob: executor: handler %q is registered already", name)
	}
	e.handlers[name] = h
	e.order = append(e.order, h)
	return nil
}

// ready calls init unless it has succeeded before.
func (h *handler) ready(ctx context.Context) error {
	if h.inited.Load() {
		return nil
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	if h.inited.Load() {
		return nil
	}
	if h.init != nil {
		if err := h.init(ctx); err != nil {
			return fmt.Errorf("init of handler %q: %w", h.name, err)
		}
	}
	h.inited.Store(true)
	return nil
}

// checkMiddleware refuses entries that are nil.
func (c Config) checkMiddleware() error {
	var faults []error
	for i, m := range c.Middleware {
		if m == nil {
			faults = append(faults, fmt.Errorf("xxljob: executor: Config.Middleware[%d] is nil", i))
		}
	}
	return errors.Join(faults...)
}

// wrap puts the middleware around the handler, outermost first. Each is called once, here; one
// that panics or makes no handler is an error.
func (h *handler) wrap(middleware []func(Handler) Handler) error {
	h.call = func(ctx context.Context, t *Task) error {
		if err := h.ready(ctx); err != nil {
			return err
		}
		return h.fn(ctx, t)
	}
	for i := len(middleware) - 1; i >= 0; i-- {
		err := protect(func() error {
			if h.call = middleware[i](h.call); h.call == nil {
				return errors.New("it made no handler")
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("xxljob: executor: handler %q: middleware %d of %d, the outermost first: %w", h.name, i+1, len(middleware), err)
		}
	}
	return nil
}

// JSON makes a handler out of a function with a typed parameter, decoded from
// Task.Param. An empty parameter is the zero T. One that is not valid JSON for T
// fails the run for good (see Permanent), with a text that names what was wrong, and h
// is not called. A nil h makes a nil Handler, which Handle refuses.
func JSON[T any](h func(ctx context.Context, t *Task, p T) error) Handler {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, t *Task) error {
		var p T
		if strings.TrimSpace(t.Param) != "" {
			if err := json.Unmarshal([]byte(t.Param), &p); err != nil {
				return Permanent(fmt.Errorf("param %s is not JSON for %T: %w", excerpt(t.Param), p, err))
			}
		}
		return h(ctx, t, p)
	}
}

// excerpt quotes the beginning of a parameter.
func excerpt(s string) string {
	const most = 100
	if len(s) > most {
		return fmt.Sprintf("%.*q...", most, s)
	}
	return fmt.Sprintf("%q", s)
}

// Causes a handler's context is cancelled with; context.Cause(ctx) returns
// them. By then the run's result is recorded, and what the handler returns
// does not matter any more.
var (
	// ErrKilled says that the admin stopped the run.
	ErrKilled = errors.New("xxljob: executor: run killed")
	// ErrTimeout says that the run took longer than its timeout.
	ErrTimeout = errors.New("xxljob: executor: run timed out")
	// ErrCovered says that a later run of a COVER_EARLY job took its place.
	ErrCovered = errors.New("xxljob: executor: run covered by a later one")
	// ErrShutdown says that the executor, or the scheduler in whose process it is, stopped
	// before the handler returned.
	ErrShutdown = errors.New("xxljob: executor: shut down")
)

// ErrInHandler is returned by Stop when one of the executor's own handlers has called it with its
// context: Stop waits for handlers. Nothing is stopped. A handler that is to end the process has
// another goroutine call Stop.
var ErrInHandler = errors.New("xxljob: executor: Stop waits for the handler that has called it")

// ErrStopped is returned by Handle after Stop.
var ErrStopped = errors.New("xxljob: executor: stopped")

var errGoexit = errors.New("job handler ended its goroutine without returning")

type permanent struct{ err error }

func (f *permanent) Error() string { return f.err.Error() }
func (f *permanent) Unwrap() error { return f.err }

// Permanent marks an error as final: the run fails, and an admin that understands
// wire.CallbackRequest.NoRetry does not try again. Other admins see an ordinary
// failure. The text is that of err; Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// IsPermanent reports whether err, or an error it wraps, was marked by Permanent.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanent](err)
	return ok
}

type retryAfter struct {
	error
	in time.Duration
}

func (r *retryAfter) Unwrap() error { return r.error }

// RetryAfter marks an error with how long after the run's end it is to be tried again: an
// admin that understands wire.CallbackRequest.RetryIn goes by that instead of the job's own
// pause, where it tries again at all. Less than a millisecond is one. The text is that of
// err, which errors.Is and errors.As still find; RetryAfter(d, nil) is nil. Of several marks
// the outermost counts; with Permanent there is no further attempt.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfter{err, atLeastMilli(d)}
}

type snooze struct{ in time.Duration }

func (s *snooze) Error() string { return fmt.Sprintf("snoozed for %v", s.in) }

// Snooze returns the error of a handler that has nothing to do yet, and wants to be called
// again so long after the run's end: an admin that understands wire.CallbackRequest.SnoozeIn
// takes the run neither for failed nor for done. Others take it for failed. Less than a
// millisecond is one. It comes before RetryAfter and Permanent. The error has a method
// Snoozed() time.Duration, by which middleware may know it.
func Snooze(d time.Duration) error { return &snooze{atLeastMilli(d)} }

// Snoozed is how long the handler wants to wait, for middleware that finds the error by errors.As.
func (s *snooze) Snoozed() time.Duration { return s.in }

func atLeastMilli(d time.Duration) time.Duration {
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// laterOf are the milliseconds that an error's marks say, zero where there is none.
func laterOf(err error) (retryIn, snoozeIn int64) {
	if s, ok := errors.AsType[*snooze](err); ok {
		return 0, s.in.Milliseconds()
	}
	if r, ok := errors.AsType[*retryAfter](err); ok {
		return r.in.Milliseconds(), 0
	}
	return 0, 0
}
