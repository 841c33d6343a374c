package xxljob

// Triggers of remote executors and what they answer. Input: flights, from trigger.go,
// and answers, from unknown.go. Output: runs that are marked dispatched, in the store;
// refusals, to trigger.go; unknown outcomes, to unknown.go.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// sendElsewhere calls a remote executor, which holds its place in the lane until the
// answer is there: it has accepted the run, or refused it, or nobody knows.
func (s *scheduler) sendElsewhere(ctx context.Context, f *flight) {
	began := time.Now()
	req := requestOf(f)
	ret, err := f.exec.Run(ctx, req)
	if err == nil && ret.Msg == wire.MsgOtherBoot {
		ret, err = s.sendToLater(ctx, f, &req)
	}
	if s.engine.answered(f, time.Since(began), s.clock.now()) {
		s.startWake.poke()
	}
	switch {
	case err == nil && ret.OK():
		s.dispatchedLater(f.run, "accepted: "+ret.Msg)
	case err == nil:
		s.refused(ctx, f, refusalOf(ret))
	case wire.NotSent(err):
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.leaveOpen(f, req, err)
	}
}

// sendToLater sends a run to the process that has taken the place of the one that was
// registered: that one said so, and has done nothing with it. req is what was sent last.
func (s *scheduler) sendToLater(ctx context.Context, f *flight, req *wire.TriggerRequest) (wire.Return, error) {
	if s.book.boot(f.run.App, f.run.Address) == req.BootID {
		s.book.forgetApp(f.run.App) // otherwise it was read again meanwhile
	}
	known, err := s.book.knows(ctx, f.run.App, f.run.Address)
	if err != nil || !known || !s.leases.trusted(time.Now()) {
		return wire.Failf(wire.MsgOtherBoot), nil
	}
	boot := s.book.boot(f.run.App, f.run.Address)
	if boot == req.BootID {
		boot = "" // it has not registered yet
	}
	if boot != "" && !s.meantFor(ctx, f, boot) {
		return wire.Failf(wire.MsgOtherBoot), nil
	}
	req.BootID = boot
	return f.exec.Run(ctx, *req)
}

// meantFor notes, before a run is sent to another process than it was started for, which
// one that is: it is asked about by whoever owns the run next. It reports whether the run
// is still this node's to send.
func (s *scheduler) meantFor(ctx context.Context, f *flight, boot string) bool {
	epoch, owned := s.leases.epoch(f.run.Shard)
	moved, err := s.moveTo(ctx, Readdress{
		RunID: f.run.ID, Shard: f.run.Shard, Epoch: epoch, Owner: f.run.Owner, Token: f.run.Token,
		Address: f.run.Address, BootID: boot, Msg: f.run.Address + ": the executor was restarted",
	})
	if !owned || err != nil || !moved {
		return false
	}
	f.run.BootID = boot
	return true
}

// dispatching are runs that remote executors have accepted, on their way to the store.
type dispatching struct {
	mu   sync.Mutex
	list []Dispatch // guarded by mu
}

// dispatchedLater hands a run to the dispatch loop.
func (s *scheduler) dispatchedLater(run Run, msg string) {
	d := Dispatch{RunID: run.ID, Owner: run.Owner, Token: run.Token, Msg: run.Address + ": " + plainText(shorten(msg, maxAnswer))}
	s.dispatching.mu.Lock()
	s.dispatching.list = append(s.dispatching.list, d)
	s.dispatching.mu.Unlock()
	s.dispatchWake.poke()
}

// dispatchLoop marks runs dispatched, in batches, until ctx ends.
func (s *scheduler) dispatchLoop(ctx context.Context) {
	for sleep(ctx, forever, s.dispatchWake) {
		for more := true; more; {
			s.dispatching.mu.Lock()
			batch := s.dispatching.list
			if len(batch) > startBatch {
				batch = batch[:startBatch:startBatch]
			}
			s.dispatching.list = s.dispatching.list[len(batch):]
			s.dispatching.mu.Unlock()
			if len(batch) > 0 && s.storeDispatched(ctx, batch) != nil {
				return // ctx has ended
			}
			more = len(batch) == startBatch // what has come meanwhile has poked; what is locked has its pause
		}
	}
}

// storeDispatched tries until the store has answered. From then on a run needs nothing
// of this node: its result comes to any of them.
func (s *scheduler) storeDispatched(ctx context.Context, batch []Dispatch) error {
	retry := backoff{log: s.log, what: "marking runs dispatched"}
	mark := func(ctx context.Context) ([]Run, error) { return s.store.Dispatched(ctx, batch) }
	changed, err := call(ctx, mark)
	for !errors.Is(err, ErrLocked) && retry.failed(ctx, err) {
		if !sleep(ctx, retry.delay()) {
			return err
		}
		changed, err = call(ctx, mark)
	}
	if err != nil {
		batch = s.dispatchLocked(batch, changed)
	}
	var others []int64
	there := idsOf(changed)
	for _, d := range batch {
		s.landedStart(d.RunID, d.Token)
		if !there[d.RunID] {
			others = append(others, d.RunID)
		}
	}
	s.watchWake.poke() // for those who wait for one of them
	s.killUnwanted(changed, others)
	return nil
}

func idsOf(runs []Run) map[int64]bool {
	ids := make(map[int64]bool, len(runs))
	for _, r := range runs {
		ids[r.ID] = true
	}
	return ids
}

// dispatchAgain is the pause before runs are tried again whose rows others have locked.
const dispatchAgain = 200 * time.Millisecond

// dispatchLocked puts off those of a batch that were not changed, for others have their
// rows locked, and returns the rest.
func (s *scheduler) dispatchLocked(batch []Dispatch, changed []Run) (done []Dispatch) {
	there := idsOf(changed)
	s.dispatching.mu.Lock()
	defer s.dispatching.mu.Unlock()
	for _, d := range batch {
		if there[d.RunID] {
			done = append(done, d)
		} else {
			s.dispatching.list = append(s.dispatching.list, d)
		}
	}
	time.AfterFunc(dispatchAgain, s.dispatchWake.poke)
	return done
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
		runs, err := call(ctx, read)
		for retry.failed(ctx, err) && sleep(ctx, retry.delay()) {
			runs, err = call(ctx, read)
		}
		for _, r := range runs {
			if isRemote(r.Address) && r.State == StateKilled && r.KillReason != "" {
				s.killLogged(ctx, r)
			}
		}
	})
}

func (s *scheduler) killLogged(ctx context.Context, r Run) {
	if err := s.killElsewhere(ctx, r); err != nil {
		s.log.Warn("xxljob: run not killed", "run", r.ID, "job", r.JobID, "err", err)
	}
}

// killElsewhere kills a run at its remote executor, and records it as killed: an
// executor of another maker kills whatever runs of the job, and what it reports of that
// comes too late then (XXL-JOB section 4.6).
func (s *scheduler) killElsewhere(ctx context.Context, r Run) error {
	exec, err := s.calledAt(ctx, r)
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
	return s.finish(ctx, []Result{concluded(r, Result{State: StateKilled, HandleMsg: killReason(r)})})
}

// hasEnded reports whether it is certain that a run is over.
func (s *scheduler) hasEnded(ctx context.Context, runID int64) bool {
	r, err := call(ctx, func(ctx context.Context) (Run, error) { return s.store.Run(ctx, runID) })
	return err == nil && r.State.Ended()
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
