package xxljob

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Where a run goes when its executor does not take it. Input: refusals, from dispatch_send.go.
// Output: the run at its next address, or the refusal, to dispatch_finish.go.

// rerouter moves started runs to other addresses, or to the successor of an executor.
type rerouter struct {
	*shared
	engine   *engine
	finisher *finisher
	watcher  *watcher
	book     *addressBook
	callees  *callees
	deliver  func(*flight)
}

// refused goes on to the next address of a probing route, or ends the run.
func (r *rerouter) refused(ctx context.Context, f *flight, why string) {
	text := errs.PlainText(errs.Shorten(why, maxAnswer))
	res := r.finisher.resultAt(f, store.Result{State: store.StateRefused, HandleMsg: text, TriggerMsg: f.run.Address + ": " + text})
	if block.IsDiscard(why) {
		res.State = store.StateDiscarded
	} else if len(f.choices) > 0 && r.readdress(ctx, f, why) {
		return
	}
	r.finisher.finishAsync(res)
}

// readdress moves the run to the next executor after a refusal, by a compare-and-set
// on the address. It reports whether it has.
func (r *rerouter) readdress(ctx context.Context, f *flight, why string) bool {
	for i, next := range f.choices {
		epoch, owned := r.leases.epoch(int(f.run.planned.Shard))
		if next == f.run.Address || !owned || f.run.Owner != r.leases.incarnation {
			continue
		}
		move := store.Readdress{
			RunID: f.run.planned.ID, Shard: int(f.run.planned.Shard), Epoch: epoch, Owner: r.leases.incarnation, Token: f.run.Token,
			Address: next, BootID: r.book.memory.boot(f.run.planned.App, next), Msg: fmt.Sprintf("%s: %s; next: %s", f.run.Address, errs.PlainText(errs.Shorten(why, maxAnswer)), next),
		}
		moved, err := r.moveTo(ctx, move)
		if err != nil {
			return false
		}
		if moved {
			r.goOn(f, move, f.choices[i+1:])
			return true
		}
	}
	return false
}

// goOn follows a run to its new address: it is another node's, or called from here.
func (r *rerouter) goOn(f *flight, move store.Readdress, choices []string) {
	to := routed{address: move.Address}
	r.callees.equip(&to, f.job)
	to.serial = lot{} // a new address, and no other run of the job was asked about
	to.choices = choices
	run := f.whole()
	run.Address, run.BootID, run.Taken = move.Address, move.BootID, time.Time{}
	if to.exec == nil {
		r.engine.moved(f, run)
		r.watcher.goneAway(run)
		return
	}
	if run.Address == store.LocalAddress(r.leases.incarnation) {
		run.Taken = r.clock.now() // as Readdress has it
	}
	if again := r.engine.redirected(f, run, to); again != nil {
		r.deliver(again)
	}
}

// moveTo tries until the store has told whether the run has moved; an error of
// Readdress may hide that it has.
func (r *rerouter) moveTo(ctx context.Context, move store.Readdress) (bool, error) {
	backoff := loop.Backoff{Log: r.log, What: "moving a run to another address"}
	return loop.CallUntil(ctx, &backoff,
		func(ctx context.Context) (bool, error) { return r.store.Readdress(ctx, move) },
		func(ctx context.Context) (bool, error) {
			run, err := r.store.Run(ctx, move.RunID)
			if err != nil || run.State == store.StateStarted && run.Address == move.Address && run.BootID == move.BootID && run.Token == move.Token {
				return err == nil, err
			}
			return r.store.Readdress(ctx, move)
		})
}

// sendToSuccessor sends a run to the process that has taken the place of the one that was
// registered: that one said so, and has done nothing with it. req is what was sent last.
func (r *rerouter) sendToSuccessor(ctx context.Context, f *flight, req *wire.TriggerRequest) (wire.Return, error) {
	if r.book.memory.boot(f.run.planned.App, f.run.Address) == req.BootID {
		r.book.memory.forgetApp(f.run.planned.App) // otherwise it was read again meanwhile
	}
	known, err := r.book.knows(ctx, f.run.planned.App, f.run.Address)
	if err != nil || !known || !r.leases.trusted(time.Now()) {
		return wire.Failf(wire.MsgOtherBoot), nil
	}
	boot := r.book.memory.boot(f.run.planned.App, f.run.Address)
	if boot == req.BootID {
		boot = "" // it has not registered yet
	}
	if boot != "" && !r.meantFor(ctx, f, boot) {
		return wire.Failf(wire.MsgOtherBoot), nil
	}
	req.BootID = boot
	return f.exec.Run(ctx, *req)
}

// meantFor notes, before a run is sent to another process than it was started for, which
// one that is: it is asked about by whoever owns the run next. It reports whether the run
// is still this node's to send.
func (r *rerouter) meantFor(ctx context.Context, f *flight, boot string) bool {
	epoch, owned := r.leases.epoch(int(f.run.planned.Shard))
	moved, err := r.moveTo(ctx, store.Readdress{
		RunID: f.run.planned.ID, Shard: int(f.run.planned.Shard), Epoch: epoch, Owner: f.run.Owner, Token: f.run.Token,
		Address: f.run.Address, BootID: boot, Msg: f.run.Address + ": the executor was restarted",
	})
	return owned && err == nil && moved
}
