package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Runs whose remote executor may or may not have them: the call had an error, or the
// node that made it is gone. Unknown is neither a failure nor a success: it is ended by
// a reply, a callback, or evidence that the run is lost. Input: flights, from
// send.go, and runs of nodes that are gone, from recover.go. Output: accepted runs,
// to mark.go, or lost ones, to finish.go.

const (
	// resendFor is how long a run is sent again.
	resendFor = 5 * time.Minute
	// inDoubtAtMost is how long a run stays in doubt that nothing is heard of, though its
	// address is still registered (docs/xxl-job.md, lost runs: ten minutes).
	inDoubtAtMost = 10 * time.Minute
)

// inDoubt asks about runs of which nobody knows whether their executor has them.
type inDoubt struct {
	*core.Core
	queue    *queue.Queue
	book     *registry.Addresses
	finisher *finisher
	marker   *dispatchMarker
	list     askedRuns

	most    int         // inDoubtMost, but in tests
	leftOut atomic.Bool // a run was not adopted, since there are too many
	rarely  loop.LogLimiter
}

// inDoubtMost is with how many runs in doubt a node adopts no more of them. The others stay with
// the store as this node's, and come again as orphans, which are looked for until all are adopted.
// Runs that this node has called for are always kept, since nobody else knows what was sent: the
// lanes let through some hundreds in each Config.HTTP.CallTimeout, and most end within
// inDoubtAtMost.
const inDoubtMost = 50_000

// add turns a flight into a run in doubt. What is sent again is what was sent, to the
// same process.
func (d *inDoubt) add(f *queue.Flight, sent wire.TriggerRequest, cause error) {
	d.Logger.Warn("xxljob: run in doubt: the call to its executor failed, and may have arrived", "run", f.Run.Planned.ID, "job", f.Run.Planned.JobID, "error", cause)
	now := time.Now()
	d.list.add(&askedRun{run: f.Whole(), req: sent, serial: f.JobPlace, again: sent.BootID != "", since: now, from: d.Clock.Now(), next: now.Add(askFirst)})
	d.queue.Land(f.Run.Planned.ID, 0)
	d.Life.Wakes.InDoubt.Poke()
}

// adopt takes over a run of a node that is gone, or one that is under way here by the store alone:
// it may have been sent, and is not sent by this node. It is left for later where there is no room.
func (d *inDoubt) adopt(r store.Run) {
	if d.isFull() {
		d.leftOut.Store(true)
		if d.rarely.Allow("too many") {
			d.Logger.Warn("xxljob: more runs are in doubt than this node asks about at a time; the others have to wait", "most", d.most)
		}
		return
	}
	now := time.Now()
	d.list.add(&askedRun{run: r, since: now, from: d.Clock.Now(), next: now})
	d.Life.Wakes.InDoubt.Poke()
}

// loop has questions asked about runs in doubt until ctx ends: a few addresses at a time,
// each by a goroutine of its own, so that one that hangs holds up no other.
func (d *inDoubt) loop(ctx context.Context) {
	for {
		wait := time.Second // where others may have taken the runs over
		if d.Leases.Trusted(time.Now()) {
			for key, runs := range d.list.take(time.Now()) {
				d.Life.Loops.Work.Run(func(ctx context.Context) {
					d.askAbout(ctx, runs)
					d.list.asked(key)
					d.Life.Wakes.InDoubt.Poke()
				})
			}
			wait = d.list.wait(time.Now())
		}
		if !loop.Sleep(ctx, wait, d.Life.Wakes.InDoubt) {
			return
		}
	}
}

// askAbout asks about some runs in doubt of one address, one after the other. Where it does
// not answer, or takes its time, the others are left for another time.
func (d *inDoubt) askAbout(ctx context.Context, runs []*askedRun) {
	exec, err := d.book.CalledAt(ctx, runs[0].run)
	began := time.Now()
	defer tellShared(d.Core, d.book, runs[0].run)
	for _, o := range runs {
		if ctx.Err() != nil {
			return
		}
		if err == nil && time.Since(began) > askPatience {
			d.list.later(o, 0)
			continue
		}
		done, failed := d.askOne(ctx, exec, o, err)
		err = failed
		if done {
			d.list.drop(o)
		} else {
			d.list.later(o, d.pause(o))
		}
	}
}

// askOne asks about one run, where unreachable does not say that its executor cannot be.
// It reports whether there is nothing more to ask, and why the executor did not answer.
func (d *inDoubt) askOne(ctx context.Context, exec wire.Executor, o *askedRun, unreachable error) (done bool, err error) {
	read := time.Now()
	r, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) { return d.Store.Run(ctx, o.run.ID) })
	switch {
	case errs.IsNotFound(err):
		d.queue.Land(o.run.ID, 0)
		return true, unreachable
	case err != nil:
		return false, unreachable
	case !o.is(r):
		d.queue.Saw(&r)
		return d.killLate(ctx, exec, o, r, unreachable), unreachable
	}
	if unreachable != nil {
		return d.endLost(ctx, o, r, answerAbout{}, unreachable), unreachable
	}
	if fresh := d.Leases.Trusted(time.Now()) && time.Since(read) < d.Leases.Times.Window; fresh && r.KillReason == "" && d.mayResend(o) {
		if has, err := d.resend(ctx, exec, o); has || ctx.Err() != nil {
			return has, err
		} else if err != nil {
			return d.endLost(ctx, o, r, answerAbout{}, err), err
		}
	}
	said, err := d.askExecutor(ctx, exec, o, r)
	switch {
	case ctx.Err() != nil, o.justUnavailable(err, time.Now()):
		return false, err
	case err != nil:
	case said.state == wire.RunHeld:
		d.marker.markAsync(nil, &o.run, otherBoot(said.boot, r.BootID), "no answer to the trigger; asked about the run: it has it", "")
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
func (d *inDoubt) killLate(ctx context.Context, exec wire.Executor, o *askedRun, r store.Run, unreachable error) bool {
	if r.State != store.StateKilled || r.KillReason == "" || r.Ended.After(o.from) || time.Since(o.since) >= d.Cfg.Cluster.Dead {
		return true
	}
	if unreachable != nil {
		return false
	}
	err := killAtRemote(ctx, d.Core, d.book, exec, r)
	return err == nil || errors.Is(err, errNotBelieved)
}

// mayResend reports whether the run may be sent again: to the process that was sent it,
// which is there by what was last heard.
func (d *inDoubt) mayResend(o *askedRun) bool {
	return d.list.mayGoAgain(o) && d.isBehindNone(o) && time.Since(o.since) < resendFor && d.book.Memory.Boot(o.run.App, o.run.Address) == o.req.BootID
}

// isBehindNone reports whether no later run of its job was sent to the address by another node: its
// shard is this node's since its start, or the next owner waits for its answer still, for as long as
// one more call may take (recovery.awaitAnswer). Clocks differ a little.
func (d *inDoubt) isBehindNone(o *askedRun) bool {
	if !o.serial.IsJobPlace() || d.Leases.HasSince(o.run.Shard, o.run.Token) {
		return true
	}
	started := max(d.Clock.Now().Sub(o.run.Started), time.Since(o.since))
	return started < calledFor(d.Core)-d.Cfg.HTTP.CallTimeout-loop.CallTimeout/2
}

// resend sends the run again. A refusal does not tell whether the first attempt has
// reached the executor, so there is no other one after it.
func (d *inDoubt) resend(ctx context.Context, exec wire.Executor, o *askedRun) (has bool, err error) {
	if !d.queue.TakePlace(o.serial, o.run.ID) {
		return false, nil // the next one of its job is about to be sent
	}
	defer d.queue.GivePlace(o.serial, o.run.ID)
	if !d.list.mayGoAgain(o) || !d.isBehindNone(o) { // now: its shard may have been given up
		return false, nil
	}
	req := o.req
	// The first call took its time before that, and this one may until it arrives.
	req.AgainAfter = (time.Since(o.since) + 2*d.Cfg.HTTP.CallTimeout).Milliseconds()
	ret, err := exec.Run(ctx, req)
	if err != nil {
		return false, err
	}
	if !ret.OK() {
		d.list.askOnly(o)
		return false, nil
	}
	d.marker.markAsync(nil, &o.run, otherBoot(bootOf(ret), req.BootID), "accepted, asked again: ", ret.Msg)
	return true, nil
}

// askExecutor asks about a run.
func (d *inDoubt) askExecutor(ctx context.Context, exec wire.Executor, o *askedRun, r store.Run) (answerAbout, error) {
	said, err := askAboutRun(ctx, d.Core, exec, r, o.lacks > 0 || d.book.IsShared(r))
	now := time.Now()
	switch {
	case err != nil:
	case said.state == "" && said.busy:
		// Once may be that the trigger has arrived late.
		if tookTurns(ctx, d.Core, r, o.lastIdle, now) {
			o.lackedSince = time.Time{}
			if o.turns++; o.turns > 1 {
				d.book.Memory.Liveness.TookTurns(registry.LivenessKey(r.App, r.Address), now)
			}
		}
		o.lacks, o.lastIdle = 0, time.Time{}
	default:
		errs.SetDefault(&o.lackedSince, now)
		if o.lacks++; o.lacks == 1 {
			o.firstLack = now
		}
		if said.state == "" {
			o.lastIdle = now
		}
	}
	return said, err
}

// endReported ends a run as lost whose result was acknowledged and is not there: the
// store has forgotten it.
func (d *inDoubt) endReported(ctx context.Context, o *askedRun) (done bool, err error) {
	r, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) { return d.Store.Run(ctx, o.run.ID) })
	switch {
	case err != nil && !errs.IsNotFound(err) || !d.Leases.Trusted(time.Now()):
		return false, nil // the executor has answered: it is the store that has not
	case err == nil && o.is(r):
		d.finisher.finishAsync(concluded(r, store.Result{State: store.StateLost, HandleMsg: resultForgotten}))
	case err == nil:
		d.queue.Saw(&r)
	}
	return true, nil
}

// putBackUnsent makes a run planned again that has certainly not reached the process
// that it was started for, which refuses it from now on. Only the owner of its shard can:
// where this node is that no more the run ends as lost, as others do that their executor
// does not have; but one that stops leaves it to the next owner.
func (d *inDoubt) putBackUnsent(ctx context.Context, o *askedRun, r store.Run) (done, mine bool) {
	if _, owned := d.Leases.Epoch(r.Shard); !owned {
		return false, d.Life.Draining.Load()
	}
	v := d.Leases.Verdict(r, store.StatePlanned, "put back: "+r.Address+" was not sent the run")
	settled, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return d.Store.Settle(ctx, []store.Verdict{v}) })
	if err != nil || len(settled) == 0 {
		return false, true // what it is by now, the next look tells
	}
	d.list.drop(o) // before it is started anew
	for _, r := range settled {
		if r.State.Ended() {
			d.finisher.ended([]store.Run{r})
			continue
		}
		d.queue.PlannedAgain(r, false)
	}
	return true, true
}

// endLost ends a run that is lost, and reports whether it is.
func (d *inDoubt) endLost(ctx context.Context, o *askedRun, r store.Run, said answerAbout, err error) bool {
	lost := d.lost(ctx, o, r, said, err)
	if lost == "" || !d.Leases.Trusted(time.Now()) {
		return false
	}
	d.finisher.finishAsync(concluded(r, store.Result{State: store.StateLost, HandleMsg: lost}))
	return true
}

// lost says why a run is lost, "" while it may not be. Its executor did not have it, so
// what may come is the callback of a run that is over; or nobody answers at an address; or
// the job has been busy for too long with runs of which nobody says which they are.
func (d *inDoubt) lost(ctx context.Context, o *askedRun, r store.Run, said answerAbout, err error) string {
	lasts := time.Since(o.since).Round(time.Second)
	unnamed := err == nil && said.state == "" && said.busy // perhaps with this very run
	switch {
	case unnamed && d.Clock.Age(r.Started) >= d.overdue(ctx, o):
		return fmt.Sprintf("lost: no answer to the trigger, and no result within %v, though the job is busy", d.overdue(ctx, o))
	case unnamed:
		return ""
	case !o.lackedSince.IsZero() && time.Since(o.lackedSince) >= d.Cfg.Cluster.Dead && d.believes(o):
		return fmt.Sprintf("lost: no answer to the trigger, the executor did not have the run, and no result within %v", d.Cfg.Cluster.Dead)
	case err != nil && lasts >= d.Cfg.Cluster.Dead && d.unregistered(ctx, o.run):
		return fmt.Sprintf("lost: no answer to the trigger, and the executor is gone: %s", errs.PlainText(errs.Shorten(err.Error(), core.MaxAnswer)))
	case err != nil && lasts >= inDoubtAtMost:
		return fmt.Sprintf("lost: no answer from the executor for %v: %s", lasts, errs.PlainText(errs.Shorten(err.Error(), core.MaxAnswer)))
	}
	return ""
}

// pause is how long it is until the next question about a run: longer each time that it was asked
// about, but for one that is not there, so that there are as many answers as have to be.
func (d *inDoubt) pause(o *askedRun) time.Duration {
	pause := min(askFirst<<min(o.tries, 10), askMost)
	if o.lacks > 0 {
		pause = min(pause, d.Cfg.Cluster.Dead/idleInARow)
	}
	return pause
}

// believes reports whether it is believed that the executor does not have a run: at an address
// that stands for several processes after so many answers in a row.
func (d *inDoubt) believes(o *askedRun) bool {
	return !d.book.IsShared(o.run) || o.lacks >= idleInARow && time.Since(o.firstLack) >= 2*d.Cfg.Cluster.Dead
}

// overdue is how long after its start a run may be in doubt while its job is busy.
func (d *inDoubt) overdue(ctx context.Context, o *askedRun) time.Duration {
	if o.job == nil {
		if jobs, err := d.ReadJobs(ctx, []int64{o.run.JobID}); err == nil {
			o.job = cmp.Or(jobs[o.run.JobID], &store.Job{})
		}
	}
	if o.job == nil {
		return d.Cfg.Limits.Overdue + schedule.MaxPeriod // until the store tells
	}
	return d.Cfg.Limits.Overdue + o.job.Timeout
}

// unregistered reports whether it is certain that the run's address is none of its
// app's any more.
func (d *inDoubt) unregistered(ctx context.Context, r store.Run) bool {
	known, err := d.book.Knows(ctx, r.App, r.Address)
	return err == nil && !known
}

// isFull reports whether no more runs are adopted.
func (d *inDoubt) isFull() bool { return d.count() >= d.most }

// count is how many runs are in doubt.
func (d *inDoubt) count() int {
	d.list.mu.Lock()
	defer d.list.mu.Unlock()
	return len(d.list.runs)
}
