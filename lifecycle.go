package xxljob

// The way up: Start and Run. The way down is in stop.go.

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func (s *scheduler) Start(ctx context.Context) error { return s.start(ctx, ctx) }

// start looks for what no retry mends, for as long as ctx lasts, and starts the loops.
// They go on until life ends.
func (s *scheduler) start(ctx, life context.Context) error {
	if ctx == nil {
		return errNoContext
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
	_, err := call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.setShards(ctx) })
	if errors.Is(err, ErrShards) {
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
	l.loops.plan, l.loops.work, l.loops.lease = newLoops(), newLoops(), newLoops()
	plan, work, lease := s.duties(s.store.Watch(l.loops.lease.ctx, s.leases.incarnation))
	l.loops.lease.start(s.log, lease)
	l.loops.work.start(s.log, work)
	l.loops.plan.start(s.log, plan)
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
		return errNoContext
	}
	if err := s.start(ctx, context.WithoutCancel(ctx)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.life.loops.lease.ctx.Done(): // somebody else called Stop
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
