package xxljob

// Triggers of remote executors and what they answer. Input: flights, from send.go,
// and answers, from unknown.go. Output: runs that are marked dispatched, in the store;
// refusals, to send.go; unknown outcomes, to unknown.go.

import (
	"context"
	"errors"
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
		ret, err = s.sendToSuccessor(ctx, f, &req)
	}
	s.engine.answered(f, time.Since(began), s.clock.now())
	switch {
	case err == nil && ret.OK():
		s.dispatchedAsync(f.run, "accepted: "+ret.Msg)
	case err == nil:
		s.refused(ctx, f, refusalOf(ret))
	case wire.NotSent(err):
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.leaveOpen(f, req, err)
	}
}

// sendToSuccessor sends a run to the process that has taken the place of the one that was
// registered: that one said so, and has done nothing with it. req is what was sent last.
func (s *scheduler) sendToSuccessor(ctx context.Context, f *flight, req *wire.TriggerRequest) (wire.Return, error) {
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
	return owned && err == nil && moved
}

// dispatchedAsync hands a run that its executor has accepted to the dispatch loop.
func (s *scheduler) dispatchedAsync(run Run, msg string) {
	s.dispatching.add(Dispatch{RunID: run.ID, Owner: run.Owner, Token: run.Token, Msg: run.Address + ": " + plainText(shorten(msg, maxAnswer))})
}

// dispatchAgain is the pause before runs are tried again whose rows others have locked.
const dispatchAgain = 200 * time.Millisecond

// dispatchLoop marks runs dispatched, in batches, until ctx ends.
func (s *scheduler) dispatchLoop(ctx context.Context) {
	s.dispatching.loop(ctx, func(ctx context.Context, batch []Dispatch) ([]Dispatch, time.Duration) {
		return s.storeDispatched(ctx, batch), dispatchAgain
	})
}

// storeDispatched tries until the store has answered, and returns the runs whose rows others
// have locked. From then on a run needs nothing of this node: its result comes to any of
// them.
func (s *scheduler) storeDispatched(ctx context.Context, batch []Dispatch) (locked []Dispatch) {
	retry := backoff{log: s.log, what: "marking runs dispatched"}
	mark := func(ctx context.Context) ([]Run, error) { return s.store.Dispatched(ctx, batch) }
	changed, err := callUntil(ctx, &retry, mark, mark)
	if err != nil && !errors.Is(err, ErrLocked) {
		return nil // ctx has ended
	}
	var others []int64
	there := idsOf(changed)
	for _, d := range batch {
		switch {
		case err != nil && !there[d.RunID]:
			locked = append(locked, d)
			continue
		case !there[d.RunID]:
			others = append(others, d.RunID)
		}
		s.engine.landStart(d.RunID, d.Token)
	}
	s.wakes.watch.poke() // for those who wait for one of them
	s.killUnwanted(changed, others)
	return locked
}
