package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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
