package memory

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Finish stores results.
func (s *Store) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := toMilli(clock())
	accepted := slices.Grow(dst, len(results))
	for i := range results {
		res := &results[i]
		r := s.runs.find(res.RunID)
		switch {
		case r == nil:
		case accepts(r, res):
			r.HandleMsg, r.NoRetry = res.HandleMsg, res.NoRetry
			r.say(res.TriggerMsg)
			if res.Progress != 0 || res.ProgressText != "" {
				r.setProgress(res.Progress, res.ProgressText)
			}
			accepted = append(accepted, store.Run{})
			s.concludeTo(ctx, &accepted[len(accepted)-1], r, ending{res.State, res.After}, now)
		case r.State == store.StateLost && !r.LateNoted && res.State.Ended() && res.State != store.StateLost && res.Owner == "":
			r.LateNoted = true
			r.say("a result came after the run was lost: " + res.State.String())
		}
	}
	return accepted, nil
}

// accepts is the compare of the compare-and-set.
func accepts(r *run, res *store.Result) bool {
	if !res.State.Ended() || !r.State.CanBecome(res.State) || r.State == store.StatePlanned {
		return false
	}
	switch {
	case res.Owner != "":
		return r.terms.owner == res.Owner && r.Token == res.Token
	case res.Incarnation == "" && res.Token == 0:
		return true
	}
	return r.State == store.StateStarted && r.Token == res.Token &&
		r.addressee != nil && r.addressee.incarnation == res.Incarnation
}

// Kill asks for the end of a run.
func (s *Store) Kill(ctx context.Context, runID int64, reason string) (store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.done()
	if reason == "" {
		reason = "killed" // an empty KillReason would be: nobody asked
	}
	r := s.runs.find(runID)
	if r != nil && r.State.Ended() {
		r = r.latest()
	}
	if r == nil {
		return store.Run{}, failed(store.ErrNotFound, "kill run %d", runID)
	}
	before, now := r.snapshot(), clock()
	after := s.kill(ctx, r, reason, now)
	var c store.Change
	if c.OfKill(ctx, &before, &after) {
		s.write(c, nil, now)
	}
	return after, nil
}

func (s *Store) kill(ctx context.Context, r *run, reason string, now time.Time) store.Run {
	switch {
	case r.State == store.StatePlanned:
		r.setReason(reason)
		s.uncount(r)
		return s.conclude(ctx, r, ending{state: store.StateCancelled}, toMilli(now))
	case !r.State.Ended():
		if r.extra().killReason == "" { // the first reason stays
			s.leave(r)
			r.own().killReason = reason
			s.enter(r)
		}
		s.tellKill(r)
	}
	return r.snapshot()
}
