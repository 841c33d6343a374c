package xxljob

// Triggers of remote executors and what they answer. Input: flights, from send.go,
// and answers, from indoubt.go. Output: runs that are marked dispatched, in the store;
// refusals, to send.go; unknown outcomes, to indoubt.go.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// sendElsewhere calls a remote executor, which holds its place in the lane until the
// answer is there: it has accepted the run, or refused it, or nobody knows.
func (s *sender) sendElsewhere(ctx context.Context, f *flight) {
	began := time.Now()
	req := requestOf(f)
	ret, err := f.exec.Run(ctx, req)
	if err == nil && ret.Msg == wire.MsgOtherBoot {
		ret, err = s.sendToSuccessor(ctx, f, &req)
	}
	s.engine.answered(f, time.Since(began), s.clock.now())
	switch {
	case err == nil && ret.OK():
		s.acceptor.dispatchedAsync(f.run, "accepted: "+ret.Msg)
	case err == nil:
		s.refused(ctx, f, refusalOf(ret))
	case wire.NotSent(err):
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.inDoubt.leaveInDoubt(f, req, err)
	}
}

// sendToSuccessor sends a run to the process that has taken the place of the one that was
// registered: that one said so, and has done nothing with it. req is what was sent last.
func (s *sender) sendToSuccessor(ctx context.Context, f *flight, req *wire.TriggerRequest) (wire.Return, error) {
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
func (s *sender) meantFor(ctx context.Context, f *flight, boot string) bool {
	epoch, owned := s.leases.epoch(f.run.Shard)
	moved, err := s.moveTo(ctx, Readdress{
		RunID: f.run.ID, Shard: f.run.Shard, Epoch: epoch, Owner: f.run.Owner, Token: f.run.Token,
		Address: f.run.Address, BootID: boot, Msg: f.run.Address + ": the executor was restarted",
	})
	return owned && err == nil && moved
}
