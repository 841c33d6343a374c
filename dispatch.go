package xxljob

// What remote executors answer to a trigger. Input: answers, from trigger.go and
// unknown.go. Output: runs that are marked dispatched, in the store; refusals, to
// trigger.go; unknown outcomes, to unknown.go.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// answeredElsewhere acts on a remote executor's answer: it has accepted the run, or
// refused it, or nobody knows.
func (s *scheduler) answeredElsewhere(ctx context.Context, f *flight, ret wire.Return, err error) {
	switch {
	case err == nil && ret.OK():
		s.dispatchedLater(f.run, "accepted: "+ret.Msg)
	case err == nil && ret.Msg == wire.MsgOtherBoot:
		s.sendToLater(ctx, f)
	case err == nil:
		s.refused(ctx, f, ret.Msg)
	case wire.NotSent(err):
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.leaveOpen(f, err)
	}
}

// sendToLater sends a run to the process that has taken the place of the one that was
// registered: that one said so, and has done nothing with it.
func (s *scheduler) sendToLater(ctx context.Context, f *flight) {
	req := s.requestOf(f)
	meant := req.BootID
	s.book.forgetApp(f.run.App)
	if _, err := s.book.knows(ctx, f.run.App, f.run.Address); err != nil {
		s.refused(ctx, f, wire.MsgOtherBoot)
		return
	}
	if req.BootID = s.book.boot(f.run.App, f.run.Address); req.BootID == meant {
		req.BootID = "" // it has not registered yet
	}
	ret, err := f.exec.Run(ctx, req)
	if err == nil && ret.Msg == wire.MsgOtherBoot {
		s.refused(ctx, f, ret.Msg)
		return
	}
	s.answeredElsewhere(ctx, f, ret, err)
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
		for {
			s.dispatching.mu.Lock()
			batch := s.dispatching.list
			if len(batch) > startBatch {
				batch = batch[:startBatch:startBatch]
			}
			s.dispatching.list = s.dispatching.list[len(batch):]
			s.dispatching.mu.Unlock()
			if len(batch) == 0 || s.storeDispatched(ctx, batch) != nil {
				break
			}
			if len(batch) < startBatch {
				break // what has come meanwhile has poked; what is locked has its pause
			}
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
	for _, d := range batch {
		s.landed(d.RunID)
	}
	s.watchWake.poke() // for those who wait for one of them
	return s.killUnwanted(ctx, batch, changed)
}

// dispatchLocked puts off those of a batch that were not changed, for others have their
// rows locked, and returns the rest.
func (s *scheduler) dispatchLocked(batch []Dispatch, changed []Run) (done []Dispatch) {
	there := make(map[int64]bool, len(changed))
	for _, r := range changed {
		there[r.ID] = true
	}
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

// dispatchAgain is the pause before runs are tried again whose rows others have locked.
const dispatchAgain = 200 * time.Millisecond

// killUnwanted kills at their executors what somebody wanted to be killed while it was
// on its way there. A run whose result was quicker than the answer to its trigger is
// over, and nothing is done about it.
func (s *scheduler) killUnwanted(ctx context.Context, batch []Dispatch, changed []Run) error {
	if len(changed) < len(batch) {
		there := make(map[int64]bool, len(changed))
		for _, r := range changed {
			there[r.ID] = true
		}
		var others []int64
		for _, d := range batch {
			if !there[d.RunID] {
				others = append(others, d.RunID)
			}
		}
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.RunsByID(ctx, others) })
		if err != nil {
			return err
		}
		changed = append(changed, runs...)
	}
	for _, r := range changed {
		if _, local := LocalIncarnation(r.Address); local || r.KillReason == "" || r.State != StateDispatched && r.State != StateKilled {
			continue
		}
		s.life.work.run(func(ctx context.Context) {
			if err := s.killElsewhere(ctx, r); err != nil {
				s.log.Warn("xxljob: run not killed", "run", r.ID, "job", r.JobID, "err", err)
			}
		})
	}
	return nil
}

// killElsewhere kills a run at its remote executor, and records it as killed: an
// executor of another maker kills whatever runs of the job, and what it reports of that
// comes too late then (XXL-JOB section 4.6).
func (s *scheduler) killElsewhere(ctx context.Context, r Run) error {
	reason := r.KillReason
	setDefault(&reason, wire.StopKill)
	exec, err := s.calledAt(ctx, r)
	if err != nil {
		return err
	}
	ret, err := exec.Kill(ctx, wire.KillRequest{JobID: r.JobID, LogID: r.ID, Reason: reason})
	switch {
	case err != nil:
		return err
	case !ret.OK():
		return refusedBy(r.Address, ret.Msg)
	}
	return s.finish(ctx, []Result{{RunID: r.ID, State: StateKilled, HandleMsg: reason}})
}
