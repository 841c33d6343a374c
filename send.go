package xxljob

// Input: runs that the store has marked started at an executor of this process,
// from start.go and handover.go. Output: the executor's answer, to finish.go
// where it is a refusal; an accepted run is heard of again when its result comes.

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/wire"
)

// sender hands started runs to their executors, at their time.
type sender struct {
	*shared
	engine   *engine
	finisher *finisher
	watcher  *watcher
	killer   *killer
	inDoubt  *inDoubt
	acceptor *acceptor
	book     *addressBook
	callees  *callees
	early    *earlyFlights
	fanOut   fanOut
}

// deliverAt sends a started run at its time: now, or when the start loop finds
// it due.
func (s *sender) deliverAt(f *flight) {
	early := f.run.Scheduled.Sub(s.clock.now())
	switch {
	case early <= 0:
		s.deliver(f)
	case s.life.draining.Load():
		// The start loop ends, or has ended; Stop waits for this goroutine.
		s.life.loops.work.run(func(ctx context.Context) {
			if sleep(ctx, early) {
				s.deliver(f)
			}
		})
	default:
		s.early.add(f)
		s.life.wakes.start.poke() // it is another loop's flight, perhaps
	}
}

// deliverDue sends what was started early and is due now.
func (s *sender) deliverDue(now time.Time) {
	for _, f := range s.early.pop(now) {
		s.deliver(f)
	}
}

// deliverEarly waits for what was started a moment before its time, and sends it. It takes
// maxLead at most: more may come in all the time, from other nodes.
func (s *sender) deliverEarly(ctx context.Context) {
	until := s.clock.now().Add(maxLead)
	for {
		at, ok := s.early.next()
		if !ok || at.After(until) || !sleep(ctx, at.Sub(s.clock.now())) {
			return
		}
		s.deliverDue(s.clock.now())
	}
}

// deliverRest sends what was taken from other nodes a moment before its time,
// when the start loop has ended: this node has taken it, so it runs it.
func (s *sender) deliverRest(ctx context.Context) {
	for {
		at, ok := s.early.next()
		if !ok || !sleep(ctx, at.Sub(s.clock.now())) {
			return
		}
		s.deliverDue(s.clock.now())
	}
}

// deliver hands a started run to its executor. One of ours only enqueues it;
// others may take their time, and are called from a goroutine that holds a place
// in a lane. Stop waits for these goroutines.
func (s *sender) deliver(f *flight) {
	if f.lane == laneNone && !f.remote && time.Since(f.acked) <= s.leases.times.window {
		s.send(s.life.loops.work.ctx, f)
		return
	}
	s.life.loops.work.run(func(ctx context.Context) {
		if f.fanned && !s.fanOut.enter(ctx) {
			return
		}
		defer s.fanOut.leaveIf(f.fanned)
		if s.stillMine(ctx, f) {
			s.send(ctx, f)
		}
	})
}

// fanOut bounds the calls for the further parts of broadcasts at remote executors. They
// are started together, and have no places in the lanes.
type fanOut chan struct{}

func (o fanOut) enter(ctx context.Context) bool {
	select {
	case o <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o fanOut) leaveIf(entered bool) {
	if entered {
		<-o
	}
}

// stillMine looks at the run again when its start is longer ago than this node
// is trusted for: a node that was paused must not send what may have been
// decided about meanwhile.
func (s *sender) stillMine(ctx context.Context, f *flight) bool {
	retry := backoff{log: s.log, what: "reading a run before it is sent"}
	for time.Since(f.acked) > s.leases.times.window {
		began := time.Now()
		run, err := call(ctx, func(ctx context.Context) (Run, error) { return s.store.Run(ctx, f.run.ID) })
		switch {
		case err == nil && run.State == StateStarted && run.Address == f.run.Address && run.Token == f.run.Token:
			f.acked = began
		case err == nil || isNotFound(err):
			s.engine.land(f.run.ID)
			s.engine.answered(f, 0, s.clock.now())
			if err == nil {
				s.engine.notMine(run)
			}
			return false
		default:
			retry.failed(ctx, err)
			if !sleep(ctx, retry.delay()) {
				return false
			}
		}
	}
	return true
}

// send calls the executor and acts on its answer.
func (s *sender) send(ctx context.Context, f *flight) {
	if !s.engine.under.send(f) {
		s.engine.answered(f, 0, s.clock.now())
		return
	}
	if f.remote {
		s.sendElsewhere(ctx, f)
		return
	}
	began := time.Now()
	ret, err := f.exec.Run(ctx, requestOf(f))
	s.engine.answered(f, time.Since(began), s.clock.now())
	switch {
	case err == nil && ret.OK() && ret.Msg == wire.Noted(wire.MsgRepeatEnded, f.run.ID).Msg:
		// A database that failed over has forgotten the result it had acknowledged.
		s.finisher.finishAsync(s.finisher.resultAt(f, Result{State: StateLost, HandleMsg: resultForgotten}))
	case err == nil && ret.OK():
		if reason := s.engine.under.accepted(f); reason != "" {
			s.killer.killAt(ctx, f, reason) // asked for while it was being accepted
		}
	case err != nil:
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.refused(ctx, f, refusalOf(ret))
	}
}

// refused goes on to the next address of a probing route, or ends the run.
func (s *sender) refused(ctx context.Context, f *flight, why string) {
	text := plainText(shorten(why, maxAnswer))
	res := s.finisher.resultAt(f, Result{State: StateRefused, HandleMsg: text, TriggerMsg: f.run.Address + ": " + text})
	if block.IsDiscard(why) {
		res.State = StateDiscarded
	} else if len(f.choices) > 0 && s.readdress(ctx, f, why) {
		return
	}
	s.finisher.finishAsync(res)
}

// readdress moves the run to the next executor after a refusal, by a compare-and-set
// on the address. It reports whether it has.
func (s *sender) readdress(ctx context.Context, f *flight, why string) bool {
	for i, next := range f.choices {
		epoch, owned := s.leases.epoch(f.run.Shard)
		if next == f.run.Address || !owned || f.run.Owner != s.leases.incarnation {
			continue
		}
		move := Readdress{
			RunID: f.run.ID, Shard: f.run.Shard, Epoch: epoch, Owner: s.leases.incarnation, Token: f.run.Token,
			Address: next, BootID: s.book.boot(f.run.App, next), Msg: fmt.Sprintf("%s: %s; next: %s", f.run.Address, plainText(shorten(why, maxAnswer)), next),
		}
		moved, err := s.moveTo(ctx, move)
		if err != nil {
			return false
		}
		if moved {
			s.goOn(f, move, f.choices[i+1:])
			return true
		}
	}
	return false
}

// goOn follows a run to its new address: it is another node's, or called from here.
func (s *sender) goOn(f *flight, move Readdress, choices []string) {
	to := routed{address: move.Address}
	s.callees.equip(&to, f.job)
	to.serial = lot{} // a new address, and no other run of the job was asked about
	to.choices = choices
	run := f.run
	run.Address, run.BootID, run.Taken = move.Address, move.BootID, time.Time{}
	if to.exec == nil {
		s.engine.moved(f, run)
		s.watcher.goneAway(run)
		s.life.wakes.start.poke()
		return
	}
	if run.Address == LocalAddress(s.leases.incarnation) {
		run.Taken = s.clock.now() // as Readdress has it
	}
	if again := s.engine.redirected(f, run, to); again != nil {
		s.life.wakes.start.poke()
		s.deliver(again)
	}
}

// moveTo tries until the store has told whether the run has moved; an error of
// Readdress may hide that it has.
func (s *sender) moveTo(ctx context.Context, move Readdress) (bool, error) {
	retry := backoff{log: s.log, what: "moving a run to another address"}
	return callUntil(ctx, &retry,
		func(ctx context.Context) (bool, error) { return s.store.Readdress(ctx, move) },
		func(ctx context.Context) (bool, error) {
			run, err := s.store.Run(ctx, move.RunID)
			if err != nil || run.State == StateStarted && run.Address == move.Address && run.BootID == move.BootID && run.Token == move.Token {
				return err == nil, err
			}
			return s.store.Readdress(ctx, move)
		})
}

// requestOf is the wire's request for a flight.
func requestOf(f *flight) wire.TriggerRequest {
	total := max(f.run.Sharding.Total, 1)
	req := wire.TriggerRequest{
		JobID: f.run.JobID, ExecutorHandler: f.run.Handler, ExecutorParams: f.run.Param,
		ExecutorBlockStrategy: f.run.Block, ExecutorTimeout: int(f.job.Timeout / time.Second),
		LogID: f.run.ID, LogDateTime: f.run.Created.UnixMilli(),
		GlueType: f.job.GlueType, GlueSource: f.job.GlueSource,
		BroadcastIndex: f.run.Sharding.Index, BroadcastTotal: total,
		ScheduledAt: f.run.Scheduled.UnixMilli(), Attempt: f.run.Attempt,
		StartToken: f.run.Token, BootID: f.run.BootID,
	}
	if !f.job.GlueUpdated.IsZero() {
		req.GlueUpdatetime = f.job.GlueUpdated.UnixMilli()
	}
	return req
}
