package memory

import (
	"context"
	"time"

	"github.com/xxljob/xxljob"
)

// Settle decides about started runs.
func (s *Store) Settle(ctx context.Context, verdicts []xxljob.Verdict) ([]xxljob.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := toMilli(clock())
	var changed []xxljob.Run
	for i := range verdicts {
		v := &verdicts[i]
		if r := s.runs.find(v.RunID); r != nil && s.applies(v, r) {
			changed = append(changed, s.settle(ctx, v, r, now))
		}
	}
	return changed, nil
}

// applies is the compare of the compare-and-set.
func (s *Store) applies(v *xxljob.Verdict, r *run) bool {
	switch v.To {
	case xxljob.StatePlanned, xxljob.StateLost, xxljob.StateStarted:
	default:
		return false
	}
	return r.State == xxljob.StateStarted && r.job.shard == s.fenced(v.Shard, v.Epoch) &&
		r.Owner == v.Owner && r.Token == v.Token && r.Taken.IsZero() == !v.Taken
}

func (s *Store) settle(ctx context.Context, v *xxljob.Verdict, r *run, now int64) xxljob.Run {
	r.say(v.Msg)
	j := r.job
	switch {
	case v.To == xxljob.StateLost:
		return s.conclude(ctx, r, ending{state: xxljob.StateLost}, now)
	case v.To == xxljob.StateStarted:
		s.leave(r)
		r.Owner, r.Token = v.NewOwner, v.NewToken
		s.enter(r)
		s.tellInbox(r)
	case r.KillReason != "":
		return s.conclude(ctx, r, ending{state: xxljob.StateKilled}, now)
	case j.removed:
		r.Reason = "remove"
		return s.conclude(ctx, r, ending{state: xxljob.StateCancelled}, now)
	case r.heldBack():
		r.Reason = "stop"
		s.uncount(r)
		return s.conclude(ctx, r, ending{state: xxljob.StateCancelled}, now)
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
	r.State = xxljob.StatePlanned
	r.PlanEpoch, r.foreign = 0, true
	r.Owner, r.Token, r.Address, r.BootID = "", 0, "", ""
	r.JobVersion, r.Handler, r.Block = 0, "", ""
	r.Progress, r.ProgressText = 0, ""
	if !r.ParamSet {
		r.Param = ""
	}
	r.Started, r.Taken = time.Time{}, time.Time{}
	s.enter(r)
	s.tellScan(r.job)
}
