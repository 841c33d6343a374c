package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Where a run goes when its executor does not take it. Input: refusals, from send.go.
// Output: the run at its next address, or the refusal, to finish.go.

// refused goes on to the next address of a probing route, or ends the run.
func (s *sender) refused(ctx context.Context, f *queue.Flight, why string) {
	text := errs.PlainText(errs.Shorten(why, core.MaxAnswer))
	res := s.finisher.resultAt(f, store.Result{State: store.StateRefused, HandleMsg: text, TriggerMsg: f.Run.Address + ": " + text})
	if block.IsDiscard(why) || block.IsCover(why) {
		res.State = store.StateDiscarded
	} else if len(f.Choices) > 0 && s.readdress(ctx, f, why) {
		return
	}
	s.finisher.finishAsync(res)
}

// readdress moves the run to the next executor after a refusal, by a compare-and-set
// on the address. It reports whether it has.
func (s *sender) readdress(ctx context.Context, f *queue.Flight, why string) bool {
	for i, next := range f.Choices {
		epoch, owned := s.Leases.Epoch(int(f.Run.Planned.Shard))
		if next == f.Run.Address || !owned || f.Run.Owner != s.Leases.Incarnation {
			continue
		}
		move := store.Readdress{
			RunID: f.Run.Planned.ID, Shard: int(f.Run.Planned.Shard), Epoch: epoch, Owner: s.Leases.Incarnation, Token: f.Run.Token,
			Address: next, BootID: s.book.Memory.Boot(f.Run.Planned.App, next), Msg: fmt.Sprintf("%s: %s; next: %s", f.Run.Address, errs.PlainText(errs.Shorten(why, core.MaxAnswer)), next),
		}
		moved, err := s.storeReaddress(ctx, move)
		if err != nil {
			return false
		}
		if moved {
			s.sendReaddressed(f, move, f.Choices[i+1:])
			return true
		}
	}
	return false
}

// sendReaddressed sends a run to its new address, unless that is another node's, which takes it.
func (s *sender) sendReaddressed(f *queue.Flight, move store.Readdress, choices []string) {
	to := queue.Destination{Address: move.Address}
	_ = s.resolver.Equip(&to, f.Job) // one that is refused has no executor
	if !to.AwaitsAnswer() {
		to.JobPlace = queue.WaitKey{} // a new address, and no other run of the job was asked about
	}
	to.Choices = choices
	run := f.Whole()
	run.Address, run.BootID, run.Taken = move.Address, move.BootID, time.Time{}
	if to.Exec == nil {
		s.queue.Moved(f, run)
		return
	}
	if run.Address == store.LocalAddress(s.Leases.Incarnation) {
		run.Taken = s.Clock.Now() // as Readdress has it
	}
	if again := s.queue.Redirected(f, run, to); again != nil {
		s.send(again)
	}
}

// storeReaddress tries until the store has told whether the run has moved; an error of
// Readdress may hide that it has.
func (s *sender) storeReaddress(ctx context.Context, move store.Readdress) (bool, error) {
	backoff := loop.Backoff{Log: s.Logger, What: "moving a run to another address"}
	return loop.CallUntil(ctx, &backoff,
		func(ctx context.Context) (bool, error) { return s.Store.Readdress(ctx, move) },
		func(ctx context.Context) (bool, error) {
			run, err := s.Store.Run(ctx, move.RunID)
			if err != nil || run.State == store.StateStarted && run.Address == move.Address && run.BootID == move.BootID && run.Token == move.Token {
				return err == nil, err
			}
			return s.Store.Readdress(ctx, move)
		})
}

// callSuccessor calls the process that has taken the place of the one that was
// registered: that one said so, and has done nothing with it. req is what was sent last.
func (s *sender) callSuccessor(ctx context.Context, f *queue.Flight, req *wire.TriggerRequest) (wire.Return, error) {
	if s.book.Memory.Boot(f.Run.Planned.App, f.Run.Address) == req.BootID {
		s.book.Memory.ForgetApp(f.Run.Planned.App) // otherwise it was read again meanwhile
	}
	known, err := s.book.Knows(ctx, f.Run.Planned.App, f.Run.Address)
	if err != nil || !known || !s.Leases.Trusted(time.Now()) {
		return wire.Failf(wire.MsgOtherBoot), nil
	}
	boot := s.book.Memory.Boot(f.Run.Planned.App, f.Run.Address)
	if boot == req.BootID {
		boot = "" // it has not registered yet
	}
	ret, err := s.callAs(ctx, f, req, boot)
	if err == nil && ret.Msg == wire.MsgOtherBoot && boot != "" {
		// Several are behind the address and register in turns: whichever is called may have it.
		ret, err = s.callAs(ctx, f, req, "")
	}
	return ret, err
}

// callAs calls the process with a boot id at the address of a run, or whichever is there.
func (s *sender) callAs(ctx context.Context, f *queue.Flight, req *wire.TriggerRequest, boot string) (wire.Return, error) {
	if !s.meantFor(ctx, f, boot) {
		return wire.Failf(wire.MsgOtherBoot), nil
	}
	req.BootID = boot
	return f.Exec.Run(ctx, *req)
}

// meantFor notes, before a run is sent to another process than it was started for, which
// one that is, or that it may be any: the one that it was started for may be there, behind a
// balancer, and say that it does not have the run. It reports whether the run is still this
// node's to send.
func (s *sender) meantFor(ctx context.Context, f *queue.Flight, boot string) bool {
	epoch, owned := s.Leases.Epoch(int(f.Run.Planned.Shard))
	moved, err := s.storeReaddress(ctx, store.Readdress{
		RunID: f.Run.Planned.ID, Shard: int(f.Run.Planned.Shard), Epoch: epoch, Owner: f.Run.Owner, Token: f.Run.Token,
		Address: f.Run.Address, BootID: boot, Msg: f.Run.Address + ": the executor was restarted",
	})
	return owned && err == nil && moved
}
