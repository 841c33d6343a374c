package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

// The way up, Start and Run, and the way down, Stop.

func (s *Node) Start(ctx context.Context) error { return s.start(ctx, ctx) }

// start looks for what trying again does not mend, for as long as ctx lasts, and starts the loops.
// They go on until life ends.
func (s *Node) start(ctx, life context.Context) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	if err := s.mayStart(life); err != nil {
		return err
	}
	if err := s.sameShards(ctx); err != nil {
		return err
	}
	if err := s.CheckKept(ctx); err != nil {
		return err
	}
	return s.startLoops(life, s.handlers())
}

func (s *Node) mayStart(ctx context.Context) error {
	s.Life.Mu.Lock()
	defer s.Life.Mu.Unlock()
	return s.Life.MayStart(ctx)
}

// sameShards returns an error if the store has another number of shards. Whatever else
// is wrong with it the loops look after.
func (s *Node) sameShards(ctx context.Context) error {
	err := loop.Do(ctx, s.SetShards)
	if errors.Is(err, errs.ErrShards) {
		return errs.In("start", err)
	}
	return nil
}

// startLoops starts them; handlers are those that the line about it names.
func (s *Node) startLoops(ctx context.Context, handlers []string) error {
	l := s.Life
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if err := l.MayStart(ctx); err != nil {
		return err
	}
	l.Started = true
	s.authorizer.WarnOfDefaultToken()
	s.authorizer.WarnOfJobsAPI()
	l.Loops.Plan, l.Loops.Work, l.Loops.Lease = loop.NewGroup(), loop.NewGroup(), loop.NewGroup()
	plan, work, lease := s.duties(s.Store.Watch(l.Loops.Lease.Ctx, s.Leases.Incarnation))
	l.Loops.Lease.Start(s.Logger, lease)
	l.Loops.Work.Start(s.Logger, work)
	l.Loops.Plan.Start(s.Logger, plan)
	s.sayStarted(handlers)
	// The goroutine that AfterFunc starts ends with Stop.
	l.End.Unhook = context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), s.Cfg.StopGrace)
		defer cancel()
		if err := s.graceOver(s.Stop(grace)); err != nil {
			s.Logger.Warn("xxljob: stopped before all was done", "error", err)
		}
	})
	return nil
}

// sayStarted logs what this node is, for whoever looks for it later: jobs are those that the program has
// defined until now.
func (s *Node) sayStarted(handlers []string) {
	s.Logger.Info("xxljob: the scheduler has started", "app", s.Cfg.App, "handlers", handlers, "jobs", s.Defined(),
		"shards", s.Cfg.Cluster.Shards, "store", storeName(s.Store), "zone", s.Cfg.Location.String())
}

// handlers are those of all executors of this process, with their app in front where it is not Config.App.
func (s *Node) handlers() []string {
	all := []string{}
	for _, at := range s.Attachments() {
		for _, name := range at.Handlers {
			if at.App != s.Cfg.App {
				name = at.App + "/" + name
			}
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// storeName is the type of a store, below what measures its calls.
func storeName(st store.Store) string {
	if m, ok := st.(*core.Meter); ok {
		st = m.Store
	}
	return fmt.Sprintf("%T", st)
}

func (s *Node) Run(ctx context.Context) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	if err := s.start(ctx, context.WithoutCancel(ctx)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.Life.Loops.Lease.Ctx.Done(): // somebody else called Stop
	case <-s.Life.Fault.Known:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Cfg.StopGrace)
	defer cancel()
	return errors.Join(s.graceOver(s.Stop(grace)), s.Life.FatalErr())
}

// graceOver has an error of Stop say how long there was, and whether handlers or the store have taken
// longer.
func (s *Node) graceOver(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		returned := s.Life.End.Returned.Load()
		if returned == nil && s.places.attached.AllReturned() || returned != nil && *returned {
			return fmt.Errorf("xxljob: all handlers had ended within StopGrace %v, but the store has not taken all that they have returned, or that Stop writes: %w", s.Cfg.StopGrace, err)
		}
		return fmt.Errorf("xxljob: handlers had not ended within StopGrace %v: %w", s.Cfg.StopGrace, err)
	}
	return err
}

func (s *Node) Ready() error {
	e := &core.NotReadyError{}
	if s.Life.Judge(e); len(e.Errs) == 0 {
		s.judge(e)
	}
	if len(e.Errs) == 0 {
		return nil
	}
	return e
}

// unfit reports whether Ready says why nothing is run by this process, of whatever app.
func (s *Node) unfit() bool {
	e := &core.NotReadyError{}
	s.judgeFit(e, time.Now())
	return s.Leases.IsSuperseded() || slices.Contains(e.Reasons, core.NotReadyStoreAway) || slices.Contains(e.Reasons, core.NotReadyFailing)
}

// judge adds what keeps a scheduler that runs from being ready.
func (s *Node) judge(e *core.NotReadyError) {
	if s.Leases.IsSuperseded() {
		e.Add(core.NotReadySuperseded, errors.New("a later node has the same Config.Node"))
		return
	}
	now, c := time.Now(), &s.Cfg.Ready
	s.judgeFit(e, now)
	var b core.Backlog
	if c.MaxWaiting > 0 || c.MaxLate > 0 {
		b = s.queue.Backlog()
	}
	c.Judge(e, b, s.Clock.Now(), s.Clock.Offset())
	c.JudgeTroubles(e, s.Core.Troubles)
}

// judgeFit adds what this process cannot do of its part.
func (s *Node) judgeFit(e *core.NotReadyError, now time.Time) {
	c := &s.Cfg.Ready
	why := s.fitness.Silence()
	if silent, ever := s.Leases.SilentFor(now); !s.Leases.Trusted(now) && (!ever || silent >= c.StoreAway) {
		err := errors.New("the store has not acknowledged a beat in time")
		if why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		e.Add(core.NotReadyStoreAway, err)
	} else if errors.Is(why, errs.ErrStoreClosed) { // for which no patience helps
		e.Add(core.NotReadyStoreAway, why)
	}
	if err := s.fitness.Err(s.Leases.IsResting(), c.StoreAway); err != nil {
		e.Add(core.NotReadyFailing, err)
	}
	if n, since := s.dispatch.Unstored(); n > 0 && now.Sub(since) >= max(s.Cfg.Cluster.LeaseTTL, c.StoreAway) {
		e.Add(core.NotReadyResults, fmt.Errorf("%d results could not be stored for %v", n, now.Sub(since).Round(time.Millisecond)))
	}
	s.places.judge(e, now)
}

func (s *Node) Stop(ctx context.Context) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	if err := s.dispatch.StoppedFromInside(ctx); err != nil {
		return err
	}
	l := s.Life
	l.Mu.Lock()
	first := !l.Stopping
	if first {
		l.Stopping = true
		l.End.Done = make(chan struct{})
		// The steps go on past ctx where the store hangs; Stop does not. The
		// goroutine ends with its steps.
		go func() {
			defer close(l.End.Done)
			began := time.Now()
			if l.End.Err = s.stop(ctx, l.Started); l.Started {
				s.Logger.Info("xxljob: the scheduler has stopped", "took", time.Since(began).Round(time.Millisecond), "error", l.End.Err)
			}
			s.Bus.End(ctx)
		}()
	}
	l.Mu.Unlock()
	select {
	case <-l.End.Done:
		l.End.Given.Store(true)
		return l.End.Err
	case <-ctx.Done():
	}
	last := time.NewTimer(core.LastWords)
	defer last.Stop()
	select {
	case <-l.End.Done:
		l.End.Given.Store(true)
		return l.End.Err
	case <-last.C:
		if first { // the steps go by the ctx of the first: handlers that it waits for may go on
			l.End.Given.Store(true)
		}
		return ctx.Err()
	}
}

// stop takes the steps of the way down (doc.go): no new work, give back, release, wait for
// handlers while beats and results go on, leave.
func (s *Node) stop(ctx context.Context, started bool) error {
	if !started {
		close(s.Life.Over)
		return s.own.Stop(ctx)
	}
	l := s.Life
	l.End.Unhook()
	s.alarms.Hush()
	l.Loops.Plan.Cancel() // before this node offers no executors any more: where no other does either, runs would be refused
	s.Leases.StopTaking() // those that are being taken at this moment are given back
	s.dispatch.TakeNoMore(ctx)
	s.Life.Wakes.Lease.Poke() // the next beat tells the others
	l.Loops.Plan.End()
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	// What is left to write is written even when ctx ends meanwhile.
	final, cancel := context.WithCancel(urgent.Mark(context.WithoutCancel(ctx)))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(core.LastWords, cancel) })()
	s.dispatch.GiveBack(final)
	s.dispatch.SendRest(final)
	s.alarms.Settle(final)
	s.heartbeat.resign(final)
	s.advertiser.DeregisterAttached(final)
	err := s.dispatch.Drain(ctx, final)
	if errors.Is(err, errs.ErrStoreClosed) {
		giveUp() // nor is anything else written
	}
	l.Loops.Work.Cancel()
	l.Loops.Lease.End()
	close(l.Over)
	s.leave(final)
	// Last, for these wait for executors and handlers that ignore cancellation.
	l.Loops.Work.End()
	s.alarms.LastMarks(final)
	s.users.Wait(ctx)
	if stopErr := s.own.Stop(ctx); err == nil {
		err = stopErr
	}
	s.lines.Last(final)
	return err
}

// leave tells the other nodes that this one is gone, so that they need not find
// out by its silence.
func (s *Node) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout)
	defer cancel()
	if err := s.Store.Leave(ctx, s.Leases.Incarnation); err != nil {
		s.Logger.Warn("xxljob: could not announce departure; other nodes will detect it by silence", "error", err)
	}
}
