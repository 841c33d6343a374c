package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/wire"
)

// Stop ends the executor. First Config.Admins are told, so that they send no more;
// that takes 3 s at most, whatever ctx says, and runs are still accepted. From then
// on runs are refused, while those accepted before go on, waiting ones included. When
// ctx ends first, everything left is recorded as failed
// (wire.StopShutdown) and handlers are cancelled with ErrShutdown; those
// that ignore it are abandoned after Config.Grace. Then the results are delivered, until
// ctx ends, or with one last attempt when it has ended, and
// the OnDestroy functions run, the last registered first. Last of all the server of
// Config.Addr is closed, which until then has answered requests for logs, kills
// and idle beats.
//
// So Stop returns within about twice Config.Grace after the end of ctx at most, with 3 s
// more for admins and 5 s more for callers that hang, and at once when all of them
// behave. It returns the error of ctx when
// runs had to be cut off, and says how many results were not delivered; those in
// the spool are delivered by the next process, and are not counted.
// Stop may be called again, also concurrently: each call waits for the end, may
// hasten it by its own ctx, and returns the same error. An executor that has
// been stopped cannot be started again.
func (e *Executor) Stop(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	e.deregister()
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
		for _, o := range e.origins { // the call that finishes may have all the time of the world
			o.out.hurryUp()
		}
		<-e.stopped
	}
	return e.stopErr
}

// deregister tells all admins at once that the executor goes, and returns when they
// know or it has taken too long. It is done by the first call.
func (e *Executor) deregister() {
	e.mu.Lock()
	first := !e.leaving
	e.leaving = true
	registrations := e.registrations // not changed after leaving
	e.mu.Unlock()
	if !first {
		<-e.left
		return
	}
	var wg sync.WaitGroup
	for _, r := range registrations {
		wg.Go(r.leave)
	}
	wg.Wait()
	close(e.left)
}

// finish does what remains when no handler runs. It is called once.
func (e *Executor) finish(ctx context.Context) error {
	lost := e.flush(ctx)
	for i := len(e.order) - 1; i >= 0; i-- { // not changed after stopping
		h := e.order[i]
		if h.destroy == nil || !h.inited.Load() {
			continue
		}
		// On a goroutine of its own, since it may end that, as FailNow of a test does.
		if err := guard.Apart(func() error { return protect(func() error { h.destroy(); return nil }) }); err != nil {
			e.cfg.Logger.Error("executor: OnDestroy panicked", "handler", h.name, "error", err)
		}
	}
	err := e.close()
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("xxljob: executor: %d results were not delivered", lost))
	}
	return err
}

// flush delivers what is left to all admins at once, and returns how many results
// are lost.
func (e *Executor) flush(ctx context.Context) int {
	var lost atomic.Int64
	var wg sync.WaitGroup
	for _, o := range e.origins[1:] {
		wg.Go(func() { lost.Add(int64(o.out.flush(ctx, e.cfg.Grace))) })
	}
	lost.Add(int64(e.local.out.flush(ctx, e.cfg.Grace)))
	wg.Wait()
	return int(lost.Load())
}

// close releases what is open: the server, which reads logs, before them.
func (e *Executor) close() error {
	var errs []error
	if e.server != nil { // not changed after leaving
		e.server.close()
	}
	for _, o := range e.origins[1:] {
		errs = append(errs, o.out.close())
	}
	if e.ownTransport {
		e.cfg.Transport.CloseIdle()
	}
	return errors.Join(append(errs, e.closeLogs())...)
}

// closeLogs closes the logs of all origins.
func (e *Executor) closeLogs() error {
	var errs []error
	for _, o := range e.origins {
		errs = append(errs, o.logs.close())
	}
	return errors.Join(errs...)
}

// stopAll ends everything that has not ended, because ctx has.
func (e *Executor) stopAll(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	for _, o := range e.origins {
		for _, j := range o.jobs {
			found = e.stopJob(j, wire.StopShutdown, ErrShutdown) || found
		}
	}
	if found {
		e.cutOff = fmt.Errorf("xxljob: executor: runs were cut off: %w", context.Cause(ctx))
	}
	e.checkIdle()
}

// checkIdle closes idle when it is time to. mu is held.
func (e *Executor) checkIdle() {
	if !e.stopping || e.active > 0 || e.queued > 0 || e.arriving > 0 {
		return
	}
	select {
	case <-e.idle:
	default:
		close(e.idle)
	}
}
