package xxljob

// Runs whose remote executor may or may not have them: the call had an error, or the
// node that made it is gone. Unknown is neither a failure nor a success: it is ended by
// a reply, a callback, or evidence that the run is lost. Input: flights, from
// dispatch.go, and runs of nodes that are gone, from lost.go. Output: dispatched runs,
// to dispatch.go, or lost ones.

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/wire"
)

const (
	// resendFor is how long a run is sent again.
	resendFor = 5 * time.Minute
	// inDoubtAtMost is how long a run stays in doubt that nothing is heard of, though its
	// address is still registered (docs/xxl-job.md, lost runs: ten minutes).
	inDoubtAtMost = 10 * time.Minute
)

// inDoubt asks about runs of which nobody knows whether their executor has them.
type inDoubt struct {
	*shared
	engine   *engine
	book     *addressBook
	finisher *finisher
	acceptor *acceptor
	list     inDoubtList
}

// leaveInDoubt turns a flight into a run in doubt. What is sent again is what was sent, to the
// same process.
func (d *inDoubt) leaveInDoubt(f *flight, sent wire.TriggerRequest, cause error) {
	d.log.Warn("xxljob: run in doubt: the call to its executor failed, and may have arrived", "run", f.run.planned.ID, "job", f.run.planned.JobID, "error", cause)
	now := time.Now()
	d.list.add(&runInDoubt{run: f.whole(), req: sent, again: sent.BootID != "", since: now, from: d.clock.now(), next: now.Add(askFirst)})
	d.engine.land(f.run.planned.ID)
	d.life.wakes.inDoubt.poke()
}

// adoptInDoubt takes over a run of a node that is gone: it may have been sent, and is not
// sent by this one.
func (d *inDoubt) adoptInDoubt(r Run) {
	now := time.Now()
	d.list.add(&runInDoubt{run: r, since: now, from: d.clock.now(), next: now})
	d.life.wakes.inDoubt.poke()
}

// inDoubtLoop has questions asked about runs in doubt until ctx ends: a few addresses at a time,
// each by a goroutine of its own, so that one that hangs holds up no other.
func (d *inDoubt) inDoubtLoop(ctx context.Context) {
	for {
		wait := time.Second // where others may have taken the runs over
		if d.leases.trusted(time.Now()) {
			for key, runs := range d.list.take(time.Now()) {
				d.life.loops.work.run(func(ctx context.Context) {
					d.askAbout(ctx, runs)
					d.list.asked(key)
					d.life.wakes.inDoubt.poke()
				})
			}
			wait = d.list.wait(time.Now())
		}
		if !sleep(ctx, wait, d.life.wakes.inDoubt) {
			return
		}
	}
}

// askAbout asks about some runs in doubt of one address, one after the other. Where it does
// not answer, or takes its time, the others are left for another time.
func (d *inDoubt) askAbout(ctx context.Context, runs []*runInDoubt) {
	exec, err := d.book.calledAt(ctx, runs[0].run)
	began := time.Now()
	for _, o := range runs {
		if ctx.Err() != nil {
			return
		}
		if err == nil && time.Since(began) > askPatience {
			d.list.later(o, false)
			continue
		}
		done, failed := d.askOne(ctx, exec, o, err)
		err = failed
		if done {
			d.list.drop(o)
		} else {
			d.list.later(o, true)
		}
	}
}

// askOne asks about one run, where unreachable does not say that its executor cannot be.
// It reports whether there is nothing more to ask, and why the executor did not answer.
func (d *inDoubt) askOne(ctx context.Context, exec wire.Executor, o *runInDoubt, unreachable error) (done bool, err error) {
	read := time.Now()
	r, err := call(ctx, func(ctx context.Context) (Run, error) { return d.store.Run(ctx, o.run.ID) })
	switch {
	case isNotFound(err):
		d.engine.land(o.run.ID)
		return true, unreachable
	case err != nil:
		return false, unreachable
	case !o.is(r):
		if r.State.Ended() { // otherwise what is here of it is a later start's
			d.engine.land(r.ID)
		}
		d.engine.notMine(r)
		return d.killLate(ctx, exec, o, r, unreachable), unreachable
	}
	if unreachable != nil {
		return d.endLost(ctx, o, r, answerAbout{}, unreachable), unreachable
	}
	if fresh := d.leases.trusted(time.Now()) && time.Since(read) < d.leases.times.window; fresh && r.KillReason == "" && d.mayResend(o) {
		if has, err := d.resend(ctx, exec, o); has || ctx.Err() != nil {
			return has, err
		} else if err != nil {
			return d.endLost(ctx, o, r, answerAbout{}, err), err
		}
	}
	said, err := d.askExecutor(ctx, exec, o, r)
	switch {
	case ctx.Err() != nil:
		return false, err
	case err != nil:
	case said.state == wire.RunHeld:
		d.acceptor.dispatchedAsync(nil, &o.run, "no answer to the trigger; asked about the run: it has it", "")
		return true, nil
	case said.state == wire.RunReported:
		return d.endReported(ctx, o)
	case said.state == wire.RunUnknown && said.boot == r.BootID && r.BootID != "":
		if done, mine := d.putBackUnsent(ctx, o, r); mine {
			return done, nil
		}
	}
	return d.endLost(ctx, o, r, said, err), err
}

// killLate kills a run at its executor that was recorded as killed while its trigger was
// on the way: it may have arrived after the kill. One that was killed later is killed; a
// second time might hit the job's next run, at third-party executors. It reports
// whether there is nothing more to do.
func (d *inDoubt) killLate(ctx context.Context, exec wire.Executor, o *runInDoubt, r Run, unreachable error) bool {
	if r.State != StateKilled || r.KillReason == "" || r.Ended.After(o.from) || time.Since(o.since) >= d.cfg.Cluster.Dead {
		return true
	}
	return unreachable == nil && killAtRemote(ctx, exec, r) == nil
}

// mayResend reports whether the run may be sent again: to the process that was sent it,
// which is there by what was last heard.
func (d *inDoubt) mayResend(o *runInDoubt) bool {
	return o.again && time.Since(o.since) < resendFor && d.book.memory.boot(o.run.App, o.run.Address) == o.req.BootID
}

// resend sends the run again. A refusal does not tell whether the first attempt has
// reached the executor, so there is no other one after it.
func (d *inDoubt) resend(ctx context.Context, exec wire.Executor, o *runInDoubt) (has bool, err error) {
	req := o.req
	// The first call took its time before that, and this one may until it arrives.
	req.AgainAfter = (time.Since(o.since) + 2*d.cfg.HTTP.CallTimeout).Milliseconds()
	ret, err := exec.Run(ctx, req)
	if err != nil {
		return false, err
	}
	if o.again = ret.OK(); o.again {
		d.acceptor.dispatchedAsync(nil, &o.run, "accepted, asked again: ", ret.Msg)
	}
	return o.again, nil
}

// askExecutor asks about a run.
func (d *inDoubt) askExecutor(ctx context.Context, exec wire.Executor, o *runInDoubt, r Run) (answerAbout, error) {
	said, err := askAboutRun(ctx, d.shared, exec, r)
	if err == nil && (said.state != "" || !said.busy) {
		setDefault(&o.idle, time.Now())
	}
	return said, err
}

// endReported ends a run as lost whose result was acknowledged and is not there: the
// store has forgotten it.
func (d *inDoubt) endReported(ctx context.Context, o *runInDoubt) (done bool, err error) {
	r, err := call(ctx, func(ctx context.Context) (Run, error) { return d.store.Run(ctx, o.run.ID) })
	switch {
	case err != nil && !isNotFound(err) || !d.leases.trusted(time.Now()):
		return false, nil // the executor has answered: it is the store that has not
	case err == nil && o.is(r):
		d.finisher.finishAsync(concluded(r, Result{State: StateLost, HandleMsg: resultForgotten}))
	case err == nil:
		d.engine.notMine(r)
	}
	return true, nil
}

// putBackUnsent makes a run planned again that has certainly not reached the process
// that it was started for, which refuses it from now on. Only the owner of its shard can:
// where this node is that no more the run ends as lost, as others do that their executor
// does not have; but one that stops leaves it to the next owner.
func (d *inDoubt) putBackUnsent(ctx context.Context, o *runInDoubt, r Run) (done, mine bool) {
	if _, owned := d.leases.epoch(r.Shard); !owned {
		return false, d.life.draining.Load()
	}
	v := d.leases.verdict(r, StatePlanned, "put back: "+r.Address+" was not sent the run")
	settled, err := call(ctx, func(ctx context.Context) ([]Run, error) { return d.store.Settle(ctx, []Verdict{v}) })
	if err != nil || len(settled) == 0 {
		return false, true // what it is by now, the next look tells
	}
	d.list.drop(o) // before it is started anew
	for _, r := range settled {
		if r.State.Ended() {
			d.finisher.ended([]Run{r})
			continue
		}
		d.engine.plannedAgain(r, false)
	}
	return true, true
}

// endLost ends a run that is lost, and reports whether it is.
func (d *inDoubt) endLost(ctx context.Context, o *runInDoubt, r Run, said answerAbout, err error) bool {
	lost := d.lost(ctx, o, r, said, err)
	if lost == "" || !d.leases.trusted(time.Now()) {
		return false
	}
	d.finisher.finishAsync(concluded(r, Result{State: StateLost, HandleMsg: lost}))
	return true
}

// lost says why a run is lost, "" while it may not be. Its executor did not have it, so
// what may come is the callback of a run that is over; or nobody answers at an address; or
// the job has been busy for too long with runs of which nobody says which they are.
func (d *inDoubt) lost(ctx context.Context, o *runInDoubt, r Run, said answerAbout, err error) string {
	lasts := time.Since(o.since).Round(time.Second)
	unnamed := err == nil && said.state == "" && said.busy // perhaps with this very run
	switch {
	case unnamed && d.clock.now().Sub(r.Started) >= d.overdue(ctx, o):
		return fmt.Sprintf("lost: no answer to the trigger, and no result within %v, though the job is busy", d.overdue(ctx, o))
	case unnamed:
		return ""
	case !o.idle.IsZero() && time.Since(o.idle) >= d.cfg.Cluster.Dead:
		return fmt.Sprintf("lost: no answer to the trigger, the executor did not have the run, and no result within %v", d.cfg.Cluster.Dead)
	case err != nil && lasts >= d.cfg.Cluster.Dead && d.unregistered(ctx, o.run):
		return fmt.Sprintf("lost: no answer to the trigger, and the executor is gone: %s", plainText(shorten(err.Error(), maxAnswer)))
	case err != nil && lasts >= inDoubtAtMost:
		return fmt.Sprintf("lost: no answer from the executor for %v: %s", lasts, plainText(shorten(err.Error(), maxAnswer)))
	}
	return ""
}

// overdue is how long after its start a run may be in doubt while its job is busy.
func (d *inDoubt) overdue(ctx context.Context, o *runInDoubt) time.Duration {
	if o.job == nil {
		if jobs, err := d.readJobs(ctx, []int64{o.run.JobID}); err == nil {
			o.job = cmp.Or(jobs[o.run.JobID], &Job{})
		}
	}
	if o.job == nil {
		return d.cfg.Limits.Overdue + maxPeriod // until the store tells
	}
	return d.cfg.Limits.Overdue + o.job.Timeout
}

// unregistered reports whether it is certain that the run's address is none of its
// app's any more.
func (d *inDoubt) unregistered(ctx context.Context, r Run) bool {
	known, err := d.book.knows(ctx, r.App, r.Address)
	return err == nil && !known
}
