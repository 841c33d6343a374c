package xxljob

// Runs of nodes that are gone. A node is judged only when it has left, was
// superseded by a newer incarnation, or was silent for LostAfter. Input: started
// runs of this node's shards. Output: planned runs again, or lost ones.

import (
	"context"
)

// interrupted is the handle_msg of a lost run.
const interrupted = "interrupted: the node that ran it is gone"

// settleGone settles the runs of gone nodes in this node's shards, and buries
// the nodes.
func (s *scheduler) settleGone(ctx context.Context) error {
	gone := s.leases.gone()
	shards := s.leases.owned()
	if len(gone) == 0 || len(shards) == 0 {
		return nil
	}
	incs := make([]string, len(gone))
	isGone := make(map[string]bool, len(gone))
	for i, n := range gone {
		incs[i] = n.Incarnation
		isGone[n.Incarnation] = true
	}
	for after := int64(0); ; {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) {
			return s.store.StartedBy(ctx, shards, incs, after, startBatch)
		})
		if err != nil {
			return err
		}
		if err := s.settle(ctx, runs, isGone); err != nil {
			s.reload.add(shards) // some may have been put back
			return err
		}
		if len(runs) < startBatch {
			break
		}
		after = runs[len(runs)-1].ID
	}
	for _, n := range gone {
		if _, err := call(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.store.Bury(ctx, n.Incarnation, n.Beats)
		}); err != nil {
			return err
		}
	}
	return nil
}

// settle decides about a page of runs.
func (s *scheduler) settle(ctx context.Context, runs []Run, gone map[string]bool) error {
	var verdicts []Verdict
	for _, r := range runs {
		if v, ok := s.judge(r, gone); ok {
			verdicts = append(verdicts, v)
		}
	}
	if len(verdicts) == 0 {
		return nil
	}
	settled, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Settle(ctx, verdicts) })
	if err != nil {
		return err
	}
	var over []Run
	for _, r := range settled {
		switch {
		case r.State.Ended():
			over = append(over, r)
		case r.State == StatePlanned:
			s.landed(r.ID)
			s.holdRuns([]Run{r}, nil)
		case r.State == StateStarted:
			s.engine.adopt(r)
		}
	}
	s.ended(over)
	return nil
}

// judge decides about one run whose owner or addressee is gone.
func (s *scheduler) judge(r Run, gone map[string]bool) (Verdict, bool) {
	addressee, local := LocalIncarnation(r.Address)
	switch {
	case local && gone[addressee] && r.Taken.IsZero():
		return s.verdict(r, StatePlanned, "put back: node "+addressee+" is gone"), true
	case local && gone[addressee]:
		return s.verdict(r, StateLost, interrupted), true
	case r.Taken.IsZero() && local && addressee != s.incarnation:
		// The addressee lives and will take it; this node waits for its end.
		v := s.verdict(r, StateStarted, "")
		v.NewOwner, v.NewToken = s.incarnation, s.token.Add(1)
		return v, true
	}
	return Verdict{}, false
}

// adopt makes this node wait for the end of a run that it now owns.
func (e *engine) adopt(r Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.away[r.ID]; !known && e.flights[r.ID] == nil {
		e.away[r.ID] = awayRun{}
	}
}
