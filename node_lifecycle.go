package xxljob

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

func (s *scheduler) Stop(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	l := s.life
	l.mu.Lock()
	first := !l.stopping
	if first {
		l.stopping = true
		l.end.done = make(chan struct{})
		// The steps go on past ctx where the store hangs; Stop does not. The
		// goroutine ends with its steps.
		go func() {
			defer close(l.end.done)
			l.end.err = s.stop(ctx, l.started)
			s.teller.end(ctx)
		}()
	}
	l.mu.Unlock()
	select {
	case <-l.end.done:
		l.end.given.Store(true)
		return l.end.err
	case <-ctx.Done():
	}
	last := time.NewTimer(lastWords)
	defer last.Stop()
	select {
	case <-l.end.done:
		l.end.given.Store(true)
		return l.end.err
	case <-last.C:
		if first { // the steps go by the ctx of the first: handlers that it waits for may go on
			l.end.given.Store(true)
		}
		return ctx.Err()
	}
}

// stop takes the steps of the design: no new work, give back, release, wait for
// handlers while beats and results go on, leave.
func (s *scheduler) stop(ctx context.Context, started bool) error {
	if !started {
		close(s.life.over)
		return s.own.Stop(ctx)
	}
	l := s.life
	l.end.unhook()
	s.herald.hush()
	l.loops.plan.cancel() // before this node offers no executors any more: where no other does either, runs would be refused
	s.takeNoMore(ctx)
	s.life.wakes.lease.poke() // the next beat tells the others
	l.loops.plan.end()
	// What is left to write is written even when ctx ends meanwhile.
	final, cancel := context.WithCancel(urgent.Mark(context.WithoutCancel(ctx)))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })()
	s.giveBack(final)
	s.deliverer.deliverRest(final)
	s.herald.settle(final)
	s.leaser.resign(final)
	s.publisher.deregisterAttached(final)
	err := s.drain(ctx, final)
	l.loops.work.cancel()
	l.loops.lease.end()
	close(l.over)
	s.leave(final)
	// Last, for these wait for executors and handlers that ignore cancellation.
	l.loops.work.end()
	s.herald.lastMarks(final)
	s.users.wait(ctx)
	if stopErr := s.own.Stop(ctx); err == nil {
		err = stopErr
	}
	s.keeper.last(final)
	return err
}

// takeNoMore ends the taking of runs out of the inbox. What is being taken at
// this moment is under way when it returns.
func (s *scheduler) takeNoMore(ctx context.Context) {
	s.life.draining.Store(true)
	select {
	case s.inbox.taker.taking <- struct{}{}:
		<-s.inbox.taker.taking
	case <-ctx.Done():
	}
}

// drain waits for the runs of this process to end. When ctx ends it kills them
// and waits for their results, shortly.
func (s *scheduler) drain(ctx, final context.Context) error {
	err := s.engine.under.idle(ctx)
	if err != nil {
		s.killer.killAll(final, "the scheduler was stopped")
		last, cancel := context.WithTimeout(final, lastWords)
		defer cancel()
		_ = s.engine.under.idle(last) // handlers that ignore cancellation are recorded all the same
	}
	return err
}

// leave tells the other nodes that this one is gone, so that they need not find
// out by its silence.
func (s *scheduler) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.store.Leave(ctx, s.leases.incarnation); err != nil {
		s.log.Warn("xxljob: could not announce departure; other nodes will detect it by silence", "error", err)
	}
}

// giveBack puts runs that are started but not sent back to planned, at Stop,
// also those whose start this node was not sure of: another node starts them.
func (s *scheduler) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var verdicts []Verdict
	for _, f := range s.engine.under.inFlight() {
		// A run of a shard that is another's by now cannot be given back: it is sent.
		if _, owned := s.leases.epoch(int(f.run.planned.Shard)); owned && f.run.Owner == s.leases.incarnation && s.engine.under.intercept(f) {
			verdicts = append(verdicts, s.leases.verdict(f.whole(), StatePlanned, "put back: node stopped"))
		}
	}
	if s.doubts.cutShort.Load() {
		verdicts = append(verdicts, s.orphansOfMine(ctx)...)
	}
	if len(verdicts) == 0 {
		return
	}
	runs, err := s.store.Settle(ctx, verdicts)
	if err != nil {
		s.log.Warn("xxljob: could not put started runs back; the next owner of their shards will find them", "runs", len(verdicts), "error", err)
	}
	for _, r := range runs {
		s.engine.land(r.ID)
	}
	// What the store did not give back has ended otherwise, or is left to others.
	for _, v := range verdicts {
		s.engine.land(v.RunID)
	}
}

// orphansOfMine finds runs that the store has as started by this node for
// itself, but that nobody here knows.
func (s *scheduler) orphansOfMine(ctx context.Context) []Verdict {
	runs, err := s.store.StartedBy(ctx, s.leases.owned(), []string{s.leases.incarnation}, 0, storeBatch)
	if err != nil {
		return nil
	}
	var verdicts []Verdict
	for _, r := range runs {
		if r.Owner == s.leases.incarnation && r.Address == store.LocalAddress(s.leases.incarnation) && s.engine.under.flight(r.ID) == nil {
			verdicts = append(verdicts, s.leases.verdict(r, StatePlanned, "put back: node stopped"))
		}
	}
	return verdicts
}
