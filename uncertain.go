package xxljob

// Starts of which it is not known whether they took effect. Input: batches whose Start
// returned an error, and runs that could not be started since they are planned no more,
// from start.go. Output: what the store has made of them.

import (
	"context"
	"time"
)

// uncertain finds out what became of a batch whose Start returned an error: it
// may have taken effect. It keeps the batch until the store has told.
func (s *starter) uncertain(ctx context.Context, batch []attempt) {
	ids := make([]int64, len(batch))
	for i, a := range batch {
		ids[i] = a.run.ID
	}
	for {
		if !sleep(ctx, s.starting.delay()) {
			s.engine.undo(batch)
			s.doubts.cutShort.Store(true)
			return
		}
		began := s.fitness.begin(&s.fitness.starts)
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.runsWithSiblings(ctx, ids, batch) })
		if err == nil {
			s.fitness.over(&s.fitness.starts, began)
			s.settleUncertain(batch, runs, began)
			return
		}
		s.fitness.end(ctx, &s.fitness.starts, began, err)
		s.starting.failed(ctx, err)
	}
}

// runsWithSiblings reads the runs, and of broadcasts the parts.
func (s *starter) runsWithSiblings(ctx context.Context, ids []int64, batch []attempt) ([]Run, error) {
	runs, err := s.store.RunsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, a := range batch {
		if len(a.route.targets) < 2 {
			continue
		}
		parts, err := s.store.Runs(ctx, RunFilter{TriggerID: a.run.ID, Limit: len(a.route.targets) + 1})
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p.ID != a.run.ID {
				runs = append(runs, p)
			}
		}
	}
	return runs, nil
}

// settleUncertain acts on what was read.
func (s *starter) settleUncertain(batch []attempt, runs []Run, began time.Time) {
	s.engine.held.refreshRuns(runs)
	byID := make(map[int64]Run, len(runs))
	siblings := map[int64][]Run{}
	for _, r := range runs {
		byID[r.ID] = r
		if r.TriggerID != r.ID {
			siblings[r.TriggerID] = append(siblings[r.TriggerID], r)
		}
	}
	for _, a := range batch {
		r, ok := byID[a.run.ID]
		mine := r.Owner == s.leases.incarnation && r.Token == a.start.Token
		switch {
		case ok && r.State == StatePlanned:
			s.engine.retry(a, true)
		case ok && mine && r.State == StateStarted:
			s.launch(a, r, began)
		default:
			s.engine.giveUp(a)
			if r.State == StateCancelled {
				s.engine.waiters.notify(r)
			} else if r.State.Ended() {
				s.finisher.ended([]Run{r})
			}
		}
		// The other parts of a broadcast are under way whatever became of the first.
		for _, sibling := range siblings[a.run.ID] {
			if sibling.State == StateStarted && sibling.Owner == s.leases.incarnation && sibling.Token == a.start.Token {
				s.launchSibling(a, sibling, began)
			}
		}
	}
}

// takeBack acts on a run that could not be started because it is planned no
// more. Where an earlier start of this node took effect behind its back, it is
// this node's to run.
func (s *starter) takeBack(r Run, job *Job, began time.Time) {
	switch {
	case r.State.Ended():
		s.engine.waiters.notify(r)
	case r.State != StateStarted || r.Owner != s.leases.incarnation || s.engine.under.flight(r.ID) != nil:
	case r.Address == LocalAddress(s.leases.incarnation), isRemote(r.Address) && !s.inDoubt.list.has(r.ID) && !s.engine.under.hasLanded(r):
		s.inbox.receiveOne(r, job, began)
	case isRemote(r.Address):
	default:
		s.engine.adopt(r)
		s.watcher.goneAway(r)
	}
}
