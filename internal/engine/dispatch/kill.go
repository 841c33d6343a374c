package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The ends that somebody asks for: Kill, and Stop when the time of the handlers is over.
// What a request does depends on where the run is:
//
//   - planned: the store cancels it, and that is all. Whoever holds it finds that out when
//     it is to be started.
//   - started at this node: one that was not handed to its executor yet is kept from it and
//     recorded as killed. Otherwise its executor is asked, and records it by its result.
//   - at another node: the store keeps the request with the run, and that node finds it in
//     its inbox (inbox.go), where it is a run of its own: the case above.
//   - at a remote executor: it is asked from here, and the run is recorded as killed when it
//     has agreed. One that another node is about to send has the request in its row: that
//     node kills it once it has been accepted (killUnwanted).

// killer ends runs that somebody wants ended.
type killer struct {
	*core.Core
	queue    *queue.Queue
	bus      *events.Bus
	finisher *finisher
	book     *registry.Addresses
	over     atomic.Bool // Stop waits for handlers no longer: none is called any more
}

// kill kills a run, and what follows it where that is in parts.
func (k *killer) kill(ctx context.Context, runID int64) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	if err := k.SetShards(ctx); err != nil {
		return err
	}
	run, err := k.killOne(ctx, runID)
	if err == nil && run.State == store.StateRefused && run.Sharding == (store.Sharding{}) {
		err = k.killParts(ctx, run)
	}
	return err
}

// killParts kills what follows a broadcast that was refused as a whole: its retry, once it has
// started, is in parts, none of which follows the run by itself as far as the store goes.
func (k *killer) killParts(ctx context.Context, refused store.Run) (err error) {
	tree, err := k.Store.Tree(store.WithShortTexts(ctx, 0), refused.ID)
	if err != nil {
		return errs.Missing("kill what follows", fmt.Sprintf("run %d", refused.ID), err)
	}
	for _, r := range tree {
		if r.ID > refused.ID && !r.State.Ended() {
			_, failed := k.killOne(ctx, r.ID)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// killOne kills one run, and returns it as it then is.
func (k *killer) killOne(ctx context.Context, runID int64) (store.Run, error) {
	run, err := k.Store.Kill(ctx, runID, wire.StopKill)
	if err != nil {
		return store.Run{}, errs.Missing("kill", fmt.Sprintf("run %d", runID), err)
	}
	if store.Actor(ctx) != "" {
		core.LogChange(ctx, k.Logger, "kill", store.ObjectRun, run.ID, run.App, "job", run.JobID)
	}
	switch {
	case run.State == store.StateCancelled:
		k.queue.Saw(&run)
		if run.StoppedJob {
			k.bus.MayHaveStopped(run.JobID)
		}
	case run.State.Ended():
	case run.Address == store.LocalAddress(k.Leases.Incarnation):
		k.killHere(ctx, run)
	case store.IsRemote(run.Address):
		err = k.killRemote(ctx, run)
	}
	return run, errs.In(fmt.Sprintf("kill run %d", runID), err)
}

// killAll kills every run of this process, at the end of Stop's grace. They end as lost, like
// those of a process that dies: nobody has wanted them ended.
func (k *killer) killAll(ctx context.Context) {
	for _, f := range k.queue.InFlight.All() {
		if !f.Remote { // that goes on without this node
			k.cutOff(ctx, f)
		}
	}
}

// cutOff kills a run since this process ends.
func (k *killer) cutOff(ctx context.Context, f *queue.Flight) {
	k.queue.InFlight.CutOff(f)
	run := f.Whole()
	run.KillReason = "the scheduler was stopped"
	k.killHere(ctx, run)
}

// killHere kills a run of this process: before it is sent, or at its executor.
func (k *killer) killHere(ctx context.Context, r store.Run) {
	f := k.queue.InFlight.Of(r.ID)
	if f == nil {
		return
	}
	if k.queue.InFlight.Intercept(f) {
		k.finisher.finishAsync(k.finisher.resultAt(f, store.Result{State: k.queue.InFlight.StateIfKilled(f), HandleMsg: killReason(r)}))
		return
	}
	if k.queue.InFlight.Kill(f, killReason(r)) {
		k.killAt(ctx, f, killReason(r))
	}
}

// killAt asks the executor to kill a run that it has accepted. One of ours answers at once.
// Others may hang, so they are asked by a goroutine of the work loops, or by whoever calls
// when these have ended.
func (k *killer) killAt(ctx context.Context, f *queue.Flight, reason string) {
	ask := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout)
		defer cancel()
		req := wire.KillRequest{JobID: f.Run.Planned.JobID, LogID: f.Run.Planned.ID, LogDateTime: f.Run.Planned.Created, Reason: reason,
			Shutdown: k.queue.InFlight.StateIfKilled(f) == store.StateLost}
		if ret, err := f.Exec.Kill(ctx, req); err != nil || !ret.OK() {
			k.Logger.Warn("xxljob: could not kill a run", "run", f.Run.Planned.ID, "job", f.Run.Planned.JobID, "answer", ret.Msg, "error", err)
		}
	}
	if f.Lane == queue.LaneNone || !k.Life.Loops.Work.Try(ask) {
		ask(ctx)
	}
}

// killRemote kills a run at a remote executor, or keeps it from being sent there.
func (k *killer) killRemote(ctx context.Context, r store.Run) error {
	if f := k.queue.InFlight.Of(r.ID); f != nil && k.queue.InFlight.Intercept(f) {
		k.finisher.finishAsync(k.finisher.resultAt(f, store.Result{State: store.StateKilled, HandleMsg: r.KillReason}))
		return nil
	}
	return k.killElsewhere(ctx, r)
}

// killElsewhere kills a run at its remote executor, and records it as killed: an
// third-party executor kills whatever runs of the job, and what it reports of that
// comes too late then (docs/xxl-job.md, kill).
func (k *killer) killElsewhere(ctx context.Context, r store.Run) error {
	exec, err := k.book.CalledAt(ctx, r)
	if err != nil {
		return err
	}
	err = killAtRemote(ctx, k.Core, k.book, exec, r)
	switch {
	case r.State.Ended():
		return err
	case err != nil && hasEnded(ctx, k.Core, r.ID):
		return nil // some refuse to kill what they do not have any more
	case err != nil:
		return err
	}
	return k.finisher.finish(ctx, []store.Result{concluded(r, store.Result{State: store.StateKilled, HandleMsg: killReason(r)})})
}

// hasEnded reports whether it is certain that a run is over.
func hasEnded(ctx context.Context, c *core.Core, runID int64) bool {
	r, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) { return c.Store.Run(ctx, runID) })
	return err == nil && r.State.Ended()
}

// killUnwanted kills at their executors what somebody wanted to be killed while it was
// on its way there. Of the others, which had ended before they were marked, that may be
// one too: a result that was quicker than the answer to its trigger needs nothing.
func (k *killer) killUnwanted(changed []store.Run, others []int64) {
	for i := range changed {
		if changed[i].KillReason != "" {
			r := changed[i]
			k.Life.Loops.Work.Run(func(ctx context.Context) { k.killLogged(ctx, r) })
		}
	}
	if len(others) == 0 {
		return
	}
	k.Life.Loops.Work.Run(func(ctx context.Context) {
		backoff := loop.Backoff{Log: k.Logger, What: "reading runs that ended on their way"}
		read := func(ctx context.Context) ([]store.Run, error) { return k.Store.RunsByID(ctx, others) }
		runs, _ := loop.CallUntil(ctx, &backoff, read, read) // none where ctx has ended
		for _, r := range runs {
			if store.IsRemote(r.Address) && r.State == store.StateKilled && r.KillReason != "" {
				k.killLogged(ctx, r)
			}
		}
	})
}

func (k *killer) killLogged(ctx context.Context, r store.Run) {
	if err := k.killElsewhere(ctx, r); err != nil {
		k.Logger.Warn("xxljob: could not kill a run", "run", r.ID, "job", r.JobID, "error", err)
	}
}
