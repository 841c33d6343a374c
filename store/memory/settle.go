package memory

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// Settle decides about started runs.
func (s *Store) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := toMilli(clock())
	var changed []store.Run
	for i := range verdicts {
		v := &verdicts[i]
		if r := s.runs.find(v.RunID); r != nil && s.applies(v, r) {
			changed = append(changed, s.settle(ctx, v, r, now))
		}
	}
	return changed, nil
}

// applies is the compare of the compare-and-set.
func (s *Store) applies(v *store.Verdict, r *run) bool {
	switch v.To {
	case store.StatePlanned, store.StateLost, store.StateStarted:
	default:
		return false
	}
	return r.State == store.StateStarted && r.job.shard == s.fenced(v.Shard, v.Epoch) &&
		r.terms.owner == v.Owner && r.Token == v.Token && (r.taken == noTime) == !v.Taken
}

func (s *Store) settle(ctx context.Context, v *store.Verdict, r *run, now int64) store.Run {
	r.say(v.Msg)
	j := r.job
	switch {
	case v.To == store.StateLost:
		return s.conclude(ctx, r, ending{state: store.StateLost}, now)
	case v.To == store.StateStarted:
		s.leave(r)
		t := *r.terms
		t.owner = v.NewOwner
		r.agree(t)
		r.Token = v.NewToken
		s.enter(r)
		s.tellInbox(r)
	case r.extra().killReason != "":
		return s.conclude(ctx, r, ending{state: store.StateKilled}, now)
	case j.removed:
		r.setReason("remove")
		return s.conclude(ctx, r, ending{state: store.StateCancelled}, now)
	case r.heldBack():
		r.setReason("stop")
		s.uncount(r)
		return s.conclude(ctx, r, ending{state: store.StateCancelled}, now)
	default:
		s.putBack(r)
	}
	return r.snapshot()
}

// putBack makes a started run planned again, as if it had not been started: the
// next start says anew what it is started with. The number of retries stays, for
// the run's own was replaced by the start. It counts as not loaded, so that the
// owner's next scan finds it.
func (s *Store) putBack(r *run) {
	s.leave(r)
	r.State = store.StatePlanned
	r.PlanEpoch, r.foreign = 0, true
	t := terms{app: r.terms.app, retries: r.terms.retries}
	if r.ParamSet {
		t.param = r.terms.param
	}
	r.agree(t)
	r.Token = 0
	r.setProgress(0, "")
	r.started, r.taken = noTime, noTime
	s.enter(r)
	s.tellScan(r.job)
}
