package dispatch

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// What has become of starts that had no plain answer. Input: batches whose Start returned an
// error, and runs that could not be started since they are planned no more, from startbatch.go.
// Output: started runs, to launch.go; the others are tried again or let go.

// uncertain finds out what became of a batch whose Start returned an error: it
// may have taken effect. It keeps the batch until the store has told.
func (s *starter) uncertain(ctx context.Context, batch []queue.Attempt) {
	s.queue.TryAgain(true, s.stillPlanned(ctx, batch, true)...)
}

// stillPlanned reads the runs of a batch, acts on those that are planned no more, and returns the
// others. It reads after a pause where the call that was to start them may still be under way.
func (s *starter) stillPlanned(ctx context.Context, batch []queue.Attempt, pause bool) []queue.Attempt {
	ids := make([]int64, len(batch))
	for i, a := range batch {
		ids[i] = a.Run.ID
	}
	for ; ; pause = true {
		if pause && !loop.Sleep(ctx, s.starting.Delay()) {
			s.queue.TryAgain(false, batch...)
			s.unconfirmed.stopInterrupted.Store(true)
			return nil
		}
		began := s.fitness.Begin(&s.fitness.Starts)
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return s.runsWithSiblings(ctx, ids, batch) })
		if err == nil {
			s.fitness.Over(&s.fitness.Starts, began)
			return s.settleUncertain(batch, runs, began)
		}
		s.fitness.End(ctx, &s.fitness.Starts, began, err)
		s.starting.Failed(ctx, err)
	}
}

// runsWithSiblings reads the runs, and of broadcasts the parts.
func (s *starter) runsWithSiblings(ctx context.Context, ids []int64, batch []queue.Attempt) ([]store.Run, error) {
	for i := range batch {
		ids = append(ids, batch[i].Start.Covers...)
	}
	runs, err := s.Store.RunsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, a := range batch {
		if len(a.Route.Targets) < 2 {
			continue
		}
		parts, err := s.Store.Runs(ctx, store.RunFilter{TriggerID: a.Run.TriggerID(), Limit: len(a.Route.Targets) + 1})
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p.ID != a.Run.ID {
				runs = append(runs, p)
			}
		}
	}
	return runs, nil
}

// settleUncertain acts on what was read, and returns those that are planned.
func (s *starter) settleUncertain(batch []queue.Attempt, runs []store.Run, began time.Time) (planned []queue.Attempt) {
	s.queue.Held.RefreshRuns(runs)
	byID := make(map[int64]store.Run, len(runs))
	siblings := map[int64][]store.Run{}
	for _, r := range runs {
		byID[r.ID] = r
		if r.TriggerID != r.ID {
			siblings[r.TriggerID] = append(siblings[r.TriggerID], r)
		}
	}
	for _, a := range batch {
		r, ok := byID[a.Run.ID]
		mine := r.Owner == s.Leases.Incarnation && r.Token == a.Start.Token
		switch {
		case ok && r.State == store.StatePlanned:
			planned = append(planned, a)
		case ok && mine && r.State == store.StateStarted:
			covered := coveredBy(a, byID)
			s.launcher.launch(a, r, covered, began)
			s.finisher.ended(covered)
		default:
			s.queue.ForgetNotOurs(a)
			if r.State == store.StateCancelled {
				s.queue.Waiters.Notify(&r)
			} else if r.State.Ended() {
				s.finisher.ended([]store.Run{r})
			}
		}
		// The other parts of a broadcast are under way whatever became of the first.
		for _, sibling := range siblings[a.Run.TriggerID()] {
			if sibling.ID != a.Run.ID && sibling.State == store.StateStarted && sibling.Owner == s.Leases.Incarnation && sibling.Token == a.Start.Token {
				s.launcher.launchPart(a, sibling, began)
			}
		}
	}
	return planned
}

// coveredBy are the runs whose place a start has taken that took effect.
func coveredBy(a queue.Attempt, runs map[int64]store.Run) (covered []store.Run) {
	for _, id := range a.Start.Covers {
		if r := runs[id]; r.State == store.StateDiscarded {
			covered = append(covered, r)
		}
	}
	return covered
}

// takeBack acts on a run that could not be started because it is planned no
// more. Where an earlier start of this node took effect behind its back, it is
// this node's to run.
func (s *starter) takeBack(r store.Run, job *store.Job, began time.Time) {
	switch {
	case r.State.Ended():
		s.queue.Waiters.Notify(&r)
	case r.State != store.StateStarted || r.Owner != s.Leases.Incarnation || s.queue.InFlight.Of(r.ID) != nil:
	case r.Address == store.LocalAddress(s.Leases.Incarnation), store.IsRemote(r.Address) && !s.inDoubt.list.has(r.ID) && !s.queue.InFlight.HasLanded(r):
		s.Life.FaultCounts.Adopted.Add(1)
		s.launcher.launchOne(r, job, began)
	case store.IsRemote(r.Address):
	default:
		s.queue.Adopt(r)
	}
}
