package xxljob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

// The way up, Start and Run, and the way down, Stop.

func (s *scheduler) Start(ctx context.Context) error { return s.start(ctx, ctx) }

// start looks for what no retry mends, for as long as ctx lasts, and starts the loops.
// They go on until life ends.
func (s *scheduler) start(ctx, life context.Context) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	if err := s.mayStart(life); err != nil {
		return err
	}
	if err := s.sameShards(ctx); err != nil {
		return err
	}
	return s.startLoops(life)
}

func (s *scheduler) mayStart(ctx context.Context) error {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	return s.life.mayStart(ctx)
}

// sameShards returns an error if the store has another number of shards. Whatever else
// is wrong with it the loops look after.
func (s *scheduler) sameShards(ctx context.Context) error {
	_, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.setShards(ctx) })
	if errors.Is(err, errs.ErrShards) {
		return fmt.Errorf("xxljob: start: %w", err)
	}
	return nil
}

func (s *scheduler) startLoops(ctx context.Context) error {
	l := s.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mayStart(ctx); err != nil {
		return err
	}
	l.started = true
	s.speaker.warnOfDefaultToken()
	s.speaker.warnOfJobsAPI()
	l.loops.plan, l.loops.work, l.loops.lease = loop.NewGroup(), loop.NewGroup(), loop.NewGroup()
	plan, work, lease := s.duties(s.store.Watch(l.loops.lease.Ctx, s.leases.incarnation))
	l.loops.lease.Start(s.log, lease)
	l.loops.work.Start(s.log, work)
	l.loops.plan.Start(s.log, plan)
	// The goroutine that AfterFunc starts ends with Stop.
	l.end.unhook = context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), s.cfg.StopGrace)
		defer cancel()
		if err := s.graceOver(s.Stop(grace)); err != nil {
			s.log.Warn("xxljob: stopped before all handlers had ended", "error", err)
		}
	})
	return nil
}

func (s *scheduler) Run(ctx context.Context) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	if err := s.start(ctx, context.WithoutCancel(ctx)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.life.loops.lease.Ctx.Done(): // somebody else called Stop
	case <-s.life.fault.known:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StopGrace)
	defer cancel()
	return errors.Join(s.graceOver(s.Stop(grace)), s.life.fatalErr())
}

// graceOver has an error of Stop say how long handlers had.
func (s *scheduler) graceOver(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("xxljob: handlers had not ended within StopGrace %v: %w", s.cfg.StopGrace, err)
	}
	return err
}

func (s *scheduler) Ready() error {
	e := &NotReadyError{}
	if s.life.judge(e); len(e.Errs) == 0 {
		s.judge(e)
	}
	if len(e.Errs) == 0 {
		return nil
	}
	return e
}

// judge adds what keeps a scheduler that runs from being ready.
func (s *scheduler) judge(e *NotReadyError) {
	if s.leases.isSuperseded() {
		e.add(notReadySuperseded, errors.New("a later node has the same Config.Node"))
		return
	}
	now, c := time.Now(), &s.cfg.Ready
	if silent, ever := s.leases.silentFor(now); !s.leases.trusted(now) && (!ever || silent >= c.StoreAway) {
		e.add(notReadyStoreAway, errors.New("the store has not acknowledged a beat in time"))
	}
	if err := s.fitness.err(s.leases.isResting(), c.StoreAway); err != nil {
		e.add(notReadyFailing, err)
	}
	var b backlog
	if c.MaxWaiting > 0 || c.MaxLate > 0 {
		b = s.engine.backlog()
	}
	c.judge(e, b, s.clock.now(), s.clock.offset())
}

func (s *scheduler) Stop(ctx context.Context) error {
	if ctx == nil {
		return errs.ErrNoContext
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
	l.loops.plan.Cancel() // before this node offers no executors any more: where no other does either, runs would be refused
	s.takeNoMore(ctx)
	s.life.wakes.lease.Poke() // the next beat tells the others
	l.loops.plan.End()
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
	l.loops.work.Cancel()
	l.loops.lease.End()
	close(l.over)
	s.leave(final)
	// Last, for these wait for executors and handlers that ignore cancellation.
	l.loops.work.End()
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
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout)
	defer cancel()
	if err := s.store.Leave(ctx, s.leases.incarnation); err != nil {
		s.log.Warn("xxljob: could not announce departure; other nodes will detect it by silence", "error", err)
	}
}

// giveBack puts runs that are started but not sent back to planned, at Stop,
// also those whose start this node was not sure of: another node starts them.
func (s *scheduler) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout)
	defer cancel()
	var verdicts []store.Verdict
	for _, f := range s.engine.under.inFlight() {
		// A run of a shard that is another's by now cannot be given back: it is sent.
		if _, owned := s.leases.epoch(int(f.run.planned.Shard)); owned && f.run.Owner == s.leases.incarnation && s.engine.under.intercept(f) {
			verdicts = append(verdicts, s.leases.verdict(f.whole(), store.StatePlanned, "put back: node stopped"))
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
func (s *scheduler) orphansOfMine(ctx context.Context) []store.Verdict {
	runs, err := s.store.StartedBy(ctx, s.leases.owned(), []string{s.leases.incarnation}, 0, loop.StoreBatch)
	if err != nil {
		return nil
	}
	var verdicts []store.Verdict
	for _, r := range runs {
		if r.Owner == s.leases.incarnation && r.Address == store.LocalAddress(s.leases.incarnation) && s.engine.under.flight(r.ID) == nil {
			verdicts = append(verdicts, s.leases.verdict(r, store.StatePlanned, "put back: node stopped"))
		}
	}
	return verdicts
}
