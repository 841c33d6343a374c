package xxljob

// The ends that somebody asks for: Kill, and Stop when the time of the handlers is over.
// What a request does depends on where the run is:
//
//   - planned: the store cancels it, and that is all. Whoever holds it finds that out when
//     it is to be started.
//   - started at this node: one that was not handed to its executor yet is kept from it and
//     recorded as killed. Otherwise its executor is asked, and records it by its result.
//   - at another node: the store keeps the request with the run, and that node finds it in
//     its inbox (handover.go), where it is a run of its own: the case above.
//   - at a remote executor: it is asked from here, and the run is recorded as killed when it
//     has agreed. One that another node is about to send has the request in its row: that
//     node kills it once it has been accepted (killUnwanted).

import (
	"context"
	"fmt"

	"github.com/xxljob/xxljob/wire"
)

func (s *scheduler) Kill(ctx context.Context, runID int64) error {
	if ctx == nil {
		return errNoContext
	}
	if err := s.setShards(ctx); err != nil {
		return err
	}
	run, err := s.store.Kill(ctx, runID, wire.StopKill)
	if err != nil {
		return absent("kill", fmt.Sprintf("run %d", runID), err)
	}
	switch {
	case run.State == StateCancelled:
		s.engine.notify(run)
	case run.State.Ended():
	case run.Address == LocalAddress(s.incarnation):
		s.killHere(ctx, run)
	case isRemote(run.Address):
		err = s.killRemote(ctx, run)
	}
	return about(fmt.Sprintf("kill run %d", runID), err)
}

// killAll kills every run of this process, at the end of Stop's grace.
func (s *scheduler) killAll(ctx context.Context, reason string) {
	for _, f := range s.engine.inFlight() {
		if f.remote {
			continue // it goes on without this node
		}
		run := f.run // the flight's own is never written to: it may land at this moment
		run.KillReason = reason
		s.killHere(ctx, run)
	}
}

// killHere kills a run of this process: before it is sent, or at its executor.
func (s *scheduler) killHere(ctx context.Context, r Run) {
	f := s.engine.flight(r.ID)
	if f == nil {
		return
	}
	if s.engine.intercept(f) {
		s.finisher.finishAsync(s.finisher.resultAt(f, Result{State: StateKilled, HandleMsg: killReason(r)}))
		return
	}
	if s.engine.kill(f, killReason(r)) {
		s.killAt(ctx, f, killReason(r))
	}
}

// killAt asks the executor to kill a run that it has accepted. One of ours answers at once.
// Others may hang, so they are asked by a goroutine of the work loops, or by whoever calls
// when these have ended.
func (s *scheduler) killAt(ctx context.Context, f *flight, reason string) {
	ask := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		req := wire.KillRequest{JobID: f.run.JobID, LogID: f.run.ID, LogDateTime: f.run.Created.UnixMilli(), Reason: reason}
		if ret, err := f.exec.Kill(ctx, req); err != nil || !ret.OK() {
			s.log.Warn("xxljob: could not kill a run", "run", f.run.ID, "job", f.run.JobID, "answer", ret.Msg, "error", err)
		}
	}
	if f.lane == laneNone || !s.life.work.try(ask) {
		ask(ctx)
	}
}

// killRemote kills a run at a remote executor, or keeps it from being sent there.
func (s *scheduler) killRemote(ctx context.Context, r Run) error {
	if f := s.engine.flight(r.ID); f != nil && s.engine.intercept(f) {
		s.finisher.finishAsync(s.finisher.resultAt(f, Result{State: StateKilled, HandleMsg: r.KillReason}))
		return nil
	}
	return s.killElsewhere(ctx, r)
}

// killElsewhere kills a run at its remote executor, and records it as killed: an
// executor of another maker kills whatever runs of the job, and what it reports of that
// comes too late then (XXL-JOB section 4.6).
func (s *scheduler) killElsewhere(ctx context.Context, r Run) error {
	exec, err := s.book.calledAt(ctx, r)
	if err != nil {
		return err
	}
	err = killAtRemote(ctx, exec, r)
	switch {
	case r.State.Ended():
		return err
	case err != nil && s.hasEnded(ctx, r.ID):
		return nil // some refuse to kill what they do not have any more
	case err != nil:
		return err
	}
	return s.finisher.finish(ctx, []Result{concluded(r, Result{State: StateKilled, HandleMsg: killReason(r)})})
}

// hasEnded reports whether it is certain that a run is over.
func (s *scheduler) hasEnded(ctx context.Context, runID int64) bool {
	r, err := call(ctx, func(ctx context.Context) (Run, error) { return s.store.Run(ctx, runID) })
	return err == nil && r.State.Ended()
}

// killUnwanted kills at their executors what somebody wanted to be killed while it was
// on its way there. Of the others, which had ended before they were marked, that may be
// one too: a result that was quicker than the answer to its trigger needs nothing.
func (s *scheduler) killUnwanted(changed []Run, others []int64) {
	for _, r := range changed {
		if r.KillReason != "" {
			s.life.work.run(func(ctx context.Context) { s.killLogged(ctx, r) })
		}
	}
	if len(others) == 0 {
		return
	}
	s.life.work.run(func(ctx context.Context) {
		retry := backoff{log: s.log, what: "reading runs that ended on their way"}
		read := func(ctx context.Context) ([]Run, error) { return s.store.RunsByID(ctx, others) }
		runs, _ := callUntil(ctx, &retry, read, read) // none where ctx has ended
		for _, r := range runs {
			if isRemote(r.Address) && r.State == StateKilled && r.KillReason != "" {
				s.killLogged(ctx, r)
			}
		}
	})
}

func (s *scheduler) killLogged(ctx context.Context, r Run) {
	if err := s.killElsewhere(ctx, r); err != nil {
		s.log.Warn("xxljob: could not kill a run", "run", r.ID, "job", r.JobID, "error", err)
	}
}

// killAtRemote asks an executor to kill a run.
func killAtRemote(ctx context.Context, exec wire.Executor, r Run) error {
	ret, err := exec.Kill(ctx, wire.KillRequest{JobID: r.JobID, LogID: r.ID, LogDateTime: r.Created.UnixMilli(), Reason: killReason(r)})
	if err == nil && !ret.OK() {
		err = refusedBy(r.Address, ret.Msg)
	}
	return err
}

func killReason(r Run) string {
	reason := r.KillReason
	setDefault(&reason, wire.StopKill)
	return reason
}
