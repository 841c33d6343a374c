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
	// openFirst and openMost space the questions about one run.
	openFirst = time.Second
	openMost  = 10 * time.Second
	// resendFor is how long a run is sent again.
	resendFor = 5 * time.Minute
	// openAtMost is how long a run stays open that nothing is heard of, though its
	// address is still registered (XXL-JOB section 4.8: ten minutes).
	openAtMost = 10 * time.Minute
)

// openRun is a run in that state. While its address is being asked it is owned by who
// asks.
type openRun struct {
	run   Run
	req   wire.TriggerRequest // as it was sent
	again bool                // it may be sent again: that process knows ids that it was sent before
	since time.Time           // monotonic
	from  time.Time           // the same moment by the store's clock, or a little earlier
	idle  time.Time           // when the executor first said that the job is idle, or that it does not have the run
	job   *Job                // nil while it was not needed
	tries int
	next  time.Time // when to ask again
}

// leaveOpen turns a flight into an open run. What is sent again is what was sent, to the
// same process.
func (s *scheduler) leaveOpen(f *flight, sent wire.TriggerRequest, cause error) {
	s.log.Warn("xxljob: run in doubt: the call to its executor failed, and may have arrived", "run", f.run.ID, "job", f.run.JobID, "error", cause)
	now := time.Now()
	s.open.add(&openRun{run: f.run, req: sent, again: sent.BootID != "", since: now, from: s.clock.now(), next: now.Add(openFirst)})
	s.engine.land(f.run.ID)
	s.wakes.inDoubt.poke()
}

// adoptOpen takes over a run of a node that is gone: it may have been sent, and is not
// sent by this one.
func (s *scheduler) adoptOpen(r Run) {
	now := time.Now()
	s.open.add(&openRun{run: r, since: now, from: s.clock.now(), next: now})
	s.wakes.inDoubt.poke()
}

// openLoop has questions asked about open runs until ctx ends: a few addresses at a time,
// each by a goroutine of its own, so that one that hangs holds up no other.
func (s *scheduler) openLoop(ctx context.Context) {
	for {
		wait := time.Second // where others may have taken the runs over
		if s.leases.trusted(time.Now()) {
			for key, runs := range s.open.take(time.Now()) {
				s.life.work.run(func(ctx context.Context) {
					s.askAbout(ctx, runs)
					s.open.asked(key)
					s.wakes.inDoubt.poke()
				})
			}
			wait = s.open.wait(time.Now())
		}
		if !sleep(ctx, wait, s.wakes.inDoubt) {
			return
		}
	}
}

// askAbout asks about some open runs of one address, one after the other. Where it does
// not answer, or takes its time, the others are left for another time.
func (s *scheduler) askAbout(ctx context.Context, runs []*openRun) {
	exec, err := s.book.calledAt(ctx, runs[0].run)
	began := time.Now()
	for _, o := range runs {
		if ctx.Err() != nil {
			return
		}
		if err == nil && time.Since(began) > openPatience {
			s.open.later(o, false)
			continue
		}
		done, failed := s.askOne(ctx, exec, o, err)
		err = failed
		if done {
			s.open.drop(o)
		} else {
			s.open.later(o, true)
		}
	}
}

// askOne asks about one run, where unreachable does not say that its executor cannot be.
// It reports whether there is nothing more to ask, and why the executor did not answer.
func (s *scheduler) askOne(ctx context.Context, exec wire.Executor, o *openRun, unreachable error) (done bool, err error) {
	read := time.Now()
	r, err := call(ctx, func(ctx context.Context) (Run, error) { return s.store.Run(ctx, o.run.ID) })
	switch {
	case isNotFound(err):
		s.engine.land(o.run.ID)
		return true, unreachable
	case err != nil:
		return false, unreachable
	case !o.is(r):
		if r.State.Ended() { // otherwise what is here of it is a later start's
			s.engine.land(r.ID)
		}
		s.notMine(r)
		return s.killLate(ctx, exec, o, r, unreachable), unreachable
	}
	if unreachable != nil {
		return s.endLost(ctx, o, r, answerAbout{}, unreachable), unreachable
	}
	if fresh := s.leases.trusted(time.Now()) && time.Since(read) < s.leases.window; fresh && r.KillReason == "" && s.mayResend(o) {
		if has, err := s.resend(ctx, exec, o); has || ctx.Err() != nil {
			return has, err
		} else if err != nil {
			return s.endLost(ctx, o, r, answerAbout{}, err), err
		}
	}
	said, err := s.askExecutor(ctx, exec, o, r)
	switch {
	case ctx.Err() != nil:
		return false, err
	case err != nil:
	case said.state == wire.RunHeld:
		s.dispatchedAsync(o.run, "no answer to the trigger; asked about the run: it has it")
		return true, nil
	case said.state == wire.RunReported:
		return s.endReported(ctx, o)
	case said.state == wire.RunUnknown && said.boot == r.BootID && r.BootID != "":
		if done, mine := s.putBackUnsent(ctx, o, r); mine {
			return done, nil
		}
	}
	return s.endLost(ctx, o, r, said, err), err
}

// is reports whether a run, as it now is, is still the one that is open here: neither
// over nor somebody else's.
func (o *openRun) is(r Run) bool {
	return r.State == StateStarted && r.Owner == o.run.Owner && r.Token == o.run.Token && r.Address == o.run.Address
}

// killLate kills a run at its executor that was recorded as killed while its trigger was
// on the way: it may have arrived after the kill. One that was killed later is killed; a
// second time might hit the job's next run, at executors of other makers. It reports
// whether there is nothing more to do.
func (s *scheduler) killLate(ctx context.Context, exec wire.Executor, o *openRun, r Run, unreachable error) bool {
	if r.State != StateKilled || r.KillReason == "" || r.Ended.After(o.from) || time.Since(o.since) >= s.cfg.Dead {
		return true
	}
	return unreachable == nil && killAtRemote(ctx, exec, r) == nil
}

// mayResend reports whether the run may be sent again: to the process that was sent it,
// which is there by what was last heard.
func (s *scheduler) mayResend(o *openRun) bool {
	return o.again && time.Since(o.since) < resendFor && s.book.boot(o.run.App, o.run.Address) == o.req.BootID
}

// resend sends the run again. A refusal does not tell whether the first attempt has
// reached the executor, so there is no other one after it.
func (s *scheduler) resend(ctx context.Context, exec wire.Executor, o *openRun) (has bool, err error) {
	req := o.req
	// The first call took its time before that, and this one may until it arrives.
	req.AgainAfter = (time.Since(o.since) + 2*s.cfg.CallTimeout).Milliseconds()
	ret, err := exec.Run(ctx, req)
	if err != nil {
		return false, err
	}
	if o.again = ret.OK(); o.again {
		s.dispatchedAsync(o.run, "accepted, asked again: "+ret.Msg)
	}
	return o.again, nil
}

// answerAbout is what an executor has said about an open run: of the run itself, where it
// is one of ours, otherwise of its job.
type answerAbout struct {
	state wire.RunState // empty from executors of other makers
	boot  string        // of the process that says so
	busy  bool          // the job is, with whatever run
}

// askExecutor asks about a run.
func (s *scheduler) askExecutor(ctx context.Context, exec wire.Executor, o *openRun, r Run) (answerAbout, error) {
	// The estimate of the store's time may be late, and this call takes its time.
	ago := s.clock.now().Sub(r.Started) + 2*s.cfg.CallTimeout
	ret, err := exec.IdleBeat(ctx, wire.IdleBeatRequest{
		JobID: r.JobID, LogID: r.ID, LogDateTime: r.Created.UnixMilli(), StartToken: r.Token,
		StartedAgo: max(ago, 1).Milliseconds(), BootID: r.BootID,
	})
	if err == nil && ret.Unauthorized() {
		err = refusedBy(r.Address, ret.Msg)
	}
	if err != nil {
		return answerAbout{}, err
	}
	said := answerAbout{state: ret.RunState, boot: ret.BootID, busy: !ret.OK()}
	if said.state != "" || !said.busy {
		setDefault(&o.idle, time.Now())
	}
	return said, nil
}

// endReported ends a run as lost whose result was acknowledged and is not there: the
// store has forgotten it.
func (s *scheduler) endReported(ctx context.Context, o *openRun) (done bool, err error) {
	r, err := call(ctx, func(ctx context.Context) (Run, error) { return s.store.Run(ctx, o.run.ID) })
	switch {
	case err != nil && !isNotFound(err) || !s.leases.trusted(time.Now()):
		return false, nil // the executor has answered: it is the store that has not
	case err == nil && o.is(r):
		s.finisher.finishAsync(concluded(r, Result{State: StateLost, HandleMsg: resultForgotten}))
	case err == nil:
		s.notMine(r)
	}
	return true, nil
}

// putBackUnsent makes a run planned again that has certainly not reached the process
// that it was started for, which refuses it from now on. Only the owner of its shard can:
// where this node is that no more the run ends as lost, as others do that their executor
// does not have; but one that stops leaves it to the next owner.
func (s *scheduler) putBackUnsent(ctx context.Context, o *openRun, r Run) (done, mine bool) {
	if _, owned := s.leases.epoch(r.Shard); !owned {
		return false, s.life.draining.Load()
	}
	v := s.leases.verdict(r, StatePlanned, "put back: "+r.Address+" was not sent the run")
	settled, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Settle(ctx, []Verdict{v}) })
	if err != nil || len(settled) == 0 {
		return false, true // what it is by now, the next look tells
	}
	s.open.drop(o) // before it is started anew
	for _, r := range settled {
		if r.State.Ended() {
			s.finisher.ended([]Run{r})
			continue
		}
		s.engine.plannedAgain(r, false)
	}
	return true, true
}

// endLost ends a run that is lost, and reports whether it is.
func (s *scheduler) endLost(ctx context.Context, o *openRun, r Run, said answerAbout, err error) bool {
	lost := s.lost(ctx, o, r, said, err)
	if lost == "" || !s.leases.trusted(time.Now()) {
		return false
	}
	s.finisher.finishAsync(concluded(r, Result{State: StateLost, HandleMsg: lost}))
	return true
}

// lost says why a run is lost, "" while it may not be. Its executor did not have it, so
// what may come is the callback of a run that is over; or nobody answers at an address; or
// the job has been busy for too long with runs of which nobody says which they are.
func (s *scheduler) lost(ctx context.Context, o *openRun, r Run, said answerAbout, err error) string {
	open := time.Since(o.since).Round(time.Second)
	unnamed := err == nil && said.state == "" && said.busy // perhaps with this very run
	switch {
	case unnamed && s.clock.now().Sub(r.Started) >= s.overdue(ctx, o):
		return fmt.Sprintf("lost: no answer to the trigger, and no result within %v, though the job is busy", s.overdue(ctx, o))
	case unnamed:
		return ""
	case !o.idle.IsZero() && time.Since(o.idle) >= s.cfg.Dead:
		return fmt.Sprintf("lost: no answer to the trigger, the executor did not have the run, and no result within %v", s.cfg.Dead)
	case err != nil && open >= s.cfg.Dead && s.unregistered(ctx, o.run):
		return fmt.Sprintf("lost: no answer to the trigger, and the executor is gone: %s", plainText(shorten(err.Error(), maxAnswer)))
	case err != nil && open >= openAtMost:
		return fmt.Sprintf("lost: no answer from the executor for %v: %s", open, plainText(shorten(err.Error(), maxAnswer)))
	}
	return ""
}

// overdue is how long after its start a run may be open while its job is busy.
func (s *scheduler) overdue(ctx context.Context, o *openRun) time.Duration {
	if o.job == nil {
		if jobs, err := s.readJobs(ctx, []int64{o.run.JobID}); err == nil {
			o.job = cmp.Or(jobs[o.run.JobID], &Job{})
		}
	}
	if o.job == nil {
		return s.cfg.Overdue + maxPeriod // until the store tells
	}
	return s.cfg.Overdue + o.job.Timeout
}

// unregistered reports whether it is certain that the run's address is none of its
// app's any more.
func (s *scheduler) unregistered(ctx context.Context, r Run) bool {
	known, err := s.book.knows(ctx, r.App, r.Address)
	return err == nil && !known
}
