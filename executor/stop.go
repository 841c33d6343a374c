package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/xxljob/xxljob/wire"
)

// Stop ends the executor: from now on runs are refused, while those accepted before go on,
// waiting ones included. When ctx ends first, everything left is recorded as failed
// (wire.StopShutdown) and handlers are cancelled with ErrShutdown; those
// that ignore it are abandoned after Config.Grace. Then the results are delivered, until
// ctx ends, or with one last attempt when it has ended, and
// the OnDestroy functions run, the last registered first.
//
// So Stop returns within about twice Config.Grace after the end of ctx at most, and at
// once when handlers and admin behave. It returns the error of ctx when
// runs had to be cut off, and says how many results were not delivered.
// Stop may be called again, also concurrently: each call waits for the end, may
// hasten it by its own ctx, and returns the same error. An executor that has
// been stopped cannot be started again.
func (e *Executor) Stop(ctx context.Context) error {
	e.mu.Lock()
	e.stopping = true
	e.checkIdle()
	e.mu.Unlock()

	select {
	case <-e.idle:
	case <-ctx.Done():
		e.stopAll(ctx)
		<-e.idle // all handlers return or are abandoned within the grace period
	}

	e.mu.Lock()
	first := !e.finishing
	e.finishing = true
	e.mu.Unlock()
	if first {
		e.stopErr = errors.Join(e.cutOff, e.finish(ctx))
		close(e.stopped)
		return e.stopErr
	}
	select {
	case <-e.stopped:
	case <-ctx.Done():
		e.out.hurryUp() // the call that finishes may have all the time of the world
		<-e.stopped
	}
	return e.stopErr
}

// finish does what remains when no handler runs. It is called once.
func (e *Executor) finish(ctx context.Context) error {
	lost := e.out.flush(ctx, e.cfg.Grace)
	for i := len(e.order) - 1; i >= 0; i-- { // not changed after stopping
		h := e.order[i]
		if h.destroy == nil || !h.inited.Load() {
			continue
		}
		if err := protect(func() error { h.destroy(); return nil }); err != nil {
			e.cfg.Logger.Error("executor: OnDestroy panicked", "handler", h.name, "error", err)
		}
	}
	err := e.logs.close()
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("xxljob: executor: %d results were not delivered", lost))
	}
	return err
}

// stopAll ends everything that has not ended, because ctx has.
func (e *Executor) stopAll(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	for _, j := range e.jobs {
		found = e.stopJob(j, wire.StopShutdown, ErrShutdown) || found
	}
	if found {
		e.cutOff = fmt.Errorf("xxljob: executor: runs were cut off: %w", context.Cause(ctx))
	}
	e.checkIdle()
}

// checkIdle closes idle when it is time to. mu is held.
func (e *Executor) checkIdle() {
	if !e.stopping || e.active > 0 || e.queued > 0 {
		return
	}
	select {
	case <-e.idle:
	default:
		close(e.idle)
	}
}
