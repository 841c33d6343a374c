package xxljob

// Runs whose remote executor may or may not have them: the call had an error, or the
// node that made it is gone. Unknown is neither a failure nor a success: it is ended by
// a reply, a callback, or evidence that the run is lost. Input: flights, from
// dispatch.go, and runs of nodes that are gone, from lost.go. Output: dispatched runs,
// to dispatch.go, or lost ones.

import (
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
	idle  time.Time           // when the executor first said that the job is idle
	tries int
	next  time.Time // when to ask again
}

// leaveOpen turns a flight into an open run. What is sent again is what was sent, to the
// same process.
func (s *scheduler) leaveOpen(f *flight, sent wire.TriggerRequest, cause error) {
	s.log.Warn("xxljob: not known whether the executor has the run", "run", f.run.ID, "job", f.run.JobID, "err", cause)
	now := time.Now()
	s.open.add(&openRun{run: f.run, req: sent, again: sent.BootID != "", since: now, from: s.clock.now(), next: now.Add(openFirst)})
	s.landed(f.run.ID)
	s.openWake.poke()
}

// adoptOpen takes over a run of a node that is gone: it may have been sent, and is not
// sent by this one.
func (s *scheduler) adoptOpen(r Run) {
	now := time.Now()
	s.open.add(&openRun{run: r, since: now, from: s.clock.now(), next: now})
	s.openWake.poke()
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
					s.openWake.poke()
				})
			}
			wait = s.open.wait(time.Now())
		}
		if !sleep(ctx, wait, s.openWake) {
			return
		}
	}
}

// askAbout asks about some open runs of one address, one after the other. Where it does
// not answer, or takes its time, the others are left for another time.
func (s *scheduler) askAbout(ctx context.Context, runs []*openRun) {
	exec, err := s.calledAt(ctx, runs[0].run)
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
			s.open.drop(o.run.ID)
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
		s.landed(o.run.ID)
		return true, unreachable
	case err != nil:
		return false, unreachable
	case !o.is(r):
		s.landed(r.ID)
		s.notMine(r)
		return s.killLate(ctx, exec, o, r, unreachable), unreachable
	}
	has := false
	if err = unreachable; err == nil {
		fresh := s.leases.trusted(time.Now()) && time.Since(read) < s.leases.window
		if fresh && r.KillReason == "" && s.mayResend(o) {
			has, err = s.resend(ctx, exec, o)
		}
		if err == nil && !has {
			has, err = s.isBusy(ctx, exec, o)
		}
	}
	if ctx.Err() != nil || has {
		return has, err
	}
	if lost := s.lost(ctx, o, err); lost != "" && s.leases.trusted(time.Now()) {
		s.finishLater(Result{RunID: o.run.ID, State: StateLost, HandleMsg: lost})
		return true, err
	}
	return false, err
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
		s.dispatchedLater(o.run, "accepted, asked again: "+ret.Msg)
	}
	return o.again, nil
}

// isBusy asks whether the job is busy: that is as good as accepted.
func (s *scheduler) isBusy(ctx context.Context, exec wire.Executor, o *openRun) (has bool, err error) {
	ret, err := exec.IdleBeat(ctx, wire.IdleBeatRequest{JobID: o.run.JobID})
	switch {
	case err != nil:
		return false, err
	case ret.Unauthorized():
		return false, refusedBy(o.run.Address, ret.Msg)
	case !ret.OK():
		s.dispatchedLater(o.run, "no answer to the trigger; idle beat: "+ret.Msg)
		return true, nil
	}
	if o.idle.IsZero() {
		o.idle = time.Now()
	}
	return false, nil
}

// lost says why a run is lost, "" while it may not be. The job was idle, so what may
// come is the callback of a run that is over; or nobody answers at an address.
func (s *scheduler) lost(ctx context.Context, o *openRun, err error) string {
	open := time.Since(o.since).Round(time.Second)
	switch {
	case !o.idle.IsZero() && time.Since(o.idle) >= s.cfg.Dead:
		return fmt.Sprintf("lost: no answer to the trigger, the job was idle, and no result within %v", s.cfg.Dead)
	case err != nil && open >= s.cfg.Dead && s.unregistered(ctx, o.run):
		return fmt.Sprintf("lost: no answer to the trigger, and the executor is gone: %s", plainText(shorten(err.Error(), maxAnswer)))
	case err != nil && open >= openAtMost:
		return fmt.Sprintf("lost: no answer from the executor for %v: %s", open, plainText(shorten(err.Error(), maxAnswer)))
	}
	return ""
}

// unregistered reports whether it is certain that the run's address is none of its
// app's any more.
func (s *scheduler) unregistered(ctx context.Context, r Run) bool {
	known, err := s.book.knows(ctx, r.App, r.Address)
	return err == nil && !known
}
