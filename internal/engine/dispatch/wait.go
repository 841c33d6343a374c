package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/inside"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Those who wait for the end of a run. Input: calls of Wait. Output: runs that have
// ended, and refusals of handlers that would wait for themselves.

// waiter lets callers wait for the end of a run.
type waiter struct {
	*core.Core
	queue      *queue.Queue
	book       *registry.Addresses
	strategies *router.Strategies
}

// wait registers before it reads, so that an end in between is not missed.
func (w *waiter) wait(ctx context.Context, runID int64) (store.Run, error) {
	if ctx == nil {
		return store.Run{}, errs.ErrNoContext
	}
	if w.Life.Stopped() {
		return store.Run{}, errs.In(fmt.Sprintf("wait for run %d", runID), errs.ErrStopped)
	}
	told := w.queue.Waiters.Add(runID)
	defer func() { w.queue.Waiters.Drop(runID, told) }()
	look := time.NewTicker(core.WatchPoll)
	defer look.Stop()
	over := w.Life.Over
	var last store.Run // as it was read last
	for {
		run, err := w.Store.Run(ctx, runID)
		if err != nil && ctx.Err() != nil {
			return last, w.gaveUp(ctx, runID, &last)
		}
		if err != nil || run.State.Ended() {
			return run, errs.Missing("wait", fmt.Sprintf("run %d", runID), err)
		}
		if err := w.waitsForItself(ctx, run); err != nil {
			return run, err
		}
		last = run
		w.Life.Wakes.Watch.Poke()
		tick := look.C
		if poll, _ := w.Store.Poll(); w.Life.Running() && poll == 0 {
			tick = nil // the watch loop hears of every end
		}
		select {
		case ended := <-told:
			if ended.State.Ended() {
				ended.JobName, ended.JobKey, ended.Secret = run.JobName, run.JobKey, run.Secret // who has stored the end was not told them
				return ended, nil
			}
			told = w.queue.Waiters.Add(runID) // its record is gone: the store says so
		case <-tick:
		case <-over:
			over = nil // from here on look oneself: the run may be another node's
		case <-ctx.Done():
			return run, w.gaveUp(ctx, runID, &run)
		}
	}
}

// gaveUp is the error of a wait whose context has ended; run is as it was read last, if it was.
func (w *waiter) gaveUp(ctx context.Context, runID int64, run *store.Run) error {
	switch {
	case w.Life.WasStarted():
		return ctx.Err()
	case run.ID == 0:
		return fmt.Errorf("xxljob: wait for run %d, which the store has not told of: this scheduler was not started: %w", runID, ctx.Err())
	}
	return fmt.Errorf("xxljob: wait for run %d, which is %s: this scheduler was not started, and no other has ended the run: %w", runID, run.State, ctx.Err())
}

// Handlers that would wait for themselves: their runs cannot end before those that they wait for
// have, and those not before the handlers.

// waitsForItself refuses a handler of this node that waits for its own run, or for one
// that is certain to be queued behind it.
func (w *waiter) waitsForItself(ctx context.Context, run store.Run) error {
	caller, ok := inside.From(ctx)
	if !ok || caller.JobID != run.JobID {
		return nil
	}
	own := w.caller(caller)
	if own == nil {
		return nil
	}
	if run.ID == caller.RunID {
		return errs.In(fmt.Sprintf("wait for run %d, which is the caller's own", run.ID), errs.ErrWaitsForItself)
	}
	sibling := run.TriggerID == own.Run.Planned.TriggerID() // parts of one broadcast do not queue behind each other
	if run.State != store.StatePlanned || sibling {
		return nil
	}
	job, err := w.Store.Job(ctx, run.JobID)
	switch {
	case errs.IsNotFound(err):
		return nil // its planned runs are cancelled
	case err != nil:
		return errs.In(fmt.Sprintf("wait for run %d", run.ID), err)
	case !blockrule.OneByOne(job.Block, job.MaxPerExecutor) || !w.comesTo(ctx, own.Run.Address, &run, &job):
		return nil
	}
	return errs.In(fmt.Sprintf("wait for run %d, which is queued behind the caller's own, %d, of job %d %q, whose runs follow each other there",
		run.ID, caller.RunID, job.ID, errs.Shorten(job.Name, 40)), errs.ErrWaitsForItself)
}

// caller is the flight of a run whose handler asks, nil where it is another scheduler's: one of
// the same process may have a run of the same id.
func (w *waiter) caller(r inside.Run) *queue.Flight {
	own := w.queue.InFlight.Of(r.RunID)
	if own == nil || any(own.Exec) != r.Executor {
		return nil
	}
	return own
}

// stoppedFromInside refuses to stop for a handler of this node, which that would wait for.
func (w *waiter) stoppedFromInside(ctx context.Context) error {
	if r, ok := inside.From(ctx); ok && w.caller(r) != nil {
		return errs.In(fmt.Sprintf("stop, which waits for the handler of run %d that has called it: let another goroutine call it", r.RunID), errs.ErrWaitsForItself)
	}
	return nil
}

// comesTo reports whether it is certain that a planned run goes to the address of a node,
// whichever node sends it, as long as its app has the addresses that it has now, and by
// NEAREST as long as its shard has the owner that it has now. Where the addresses cannot be
// read nothing is certain.
func (w *waiter) comesTo(ctx context.Context, address string, run *store.Run, job *store.Job) bool {
	if w.strategies.ByName[job.Route] == nil || w.Cfg.Routers[job.Route] != nil || core.Unscheduled(job) && run.Type.ScheduleBorn() {
		return false // it is refused, or cancelled, when it comes up, or may be
	}
	addrs, err := w.book.Possible(ctx, job, run.Addresses)
	if err != nil || !slices.Contains(addrs, address) {
		return false
	}
	switch {
	case job.Route == route.Busyover:
		return false
	case len(addrs) == 1:
		return true
	case run.Sharding != store.Sharding{}:
		return false
	}
	switch job.Route {
	case route.First, route.Last, route.Failover, route.ConsistentHash:
		// Their choice stays the same when others of the addresses are left out.
		chosen, err := w.strategies.ByName[job.Route].Route(ctx, job.ID, addrs)
		return err == nil && chosen[0] == address
	case route.Nearest:
		_, owned := w.Leases.Epoch(run.Shard)
		return owned && address == store.LocalAddress(w.Leases.Incarnation)
	case route.ShardingBroadcast:
		return !slices.ContainsFunc(addrs, store.IsRemote) // an executor elsewhere has a queue of its own
	}
	return false
}
