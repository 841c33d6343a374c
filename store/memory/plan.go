package memory

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Claim advances jobs and inserts the runs that were planned for them.
func (s *Store) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	n := 0
	for i := range plans {
		n += len(plans[i].Runs)
	}
	now := clock()
	inserted := slices.Grow(dst, n)
	for i := range plans {
		p := &plans[i]
		if j := s.claimable(p); j != nil {
			inserted = s.claim(ctx, inserted, j, p, now)
		}
	}
	return inserted, nil
}

// claimable is the compare of the compare-and-set: it returns the plan's job, or nil. A job
// without a next instant is never due, whatever the plan says: else its claim could be repeated.
func (s *Store) claimable(p *store.Plan) *job {
	j := s.live(p.JobID)
	if j == nil || j.unscheduled() || j.version != p.Version ||
		j.next == noTime || j.next != toMilli(p.Due) || j.shard != s.fenced(p.Shard, p.Epoch) {
		return nil
	}
	return j
}

func (s *Store) claim(ctx context.Context, inserted []store.Run, j *job, p *store.Plan, now time.Time) []store.Run {
	j.unindex()
	j.next, j.waitRun = toMilli(stored(p.Next)), 0
	if p.Wait && len(p.Runs) > 0 {
		j.next = noTime
	}
	j.index()
	if len(p.Runs) > 0 {
		j.last = latest(p.Runs)
	}
	for i := range p.Runs {
		n := &p.Runs[i]
		r := s.newRun(j)
		r.PlanEpoch = p.Epoch
		s.plan(r, n, toMilli(now))
		if p.Wait && i == 0 {
			j.waitRun = r.ID
		}
		s.insertRun(r)
		if n.State.Ended() { // a record
			s.end(r, n.State, toMilli(now))
		} else {
			r.count = j.count
			j.made++
		}
		inserted = append(inserted, store.Run{})
		r.put(&inserted[len(inserted)-1])
	}
	if p.Stop != "" {
		j.version++
		s.stop(ctx, j, p.Stop, toMilli(now))
		s.insertAlarm(j, store.Alarm{Cause: string(alarm.Stopped), Text: store.AlarmText(p.Stop)}, now)
	}
	s.stopFinished(ctx, j, toMilli(now))
	return inserted
}

// latest returns the latest instant that one of the runs stands for.
func latest(runs []store.NewRun) int64 {
	last := noTime
	for i := range runs {
		last = max(last, toMilli(stored(runs[i].At)), toMilli(stored(runs[i].Last)))
	}
	return last
}

// plan sets in a new run what the plan says.
func (s *Store) plan(r *run, n *store.NewRun, now int64) {
	r.Type, r.State = n.Type, n.State
	r.created, r.scheduled = now, toMilli(n.At)
	s.agreePlain(r)
	if n.Count != 0 || n.Reason != "" || !n.First.IsZero() || !n.Last.IsZero() {
		x := r.own()
		x.first, x.last, x.count, x.reason = stored(n.First), stored(n.Last), n.Count, n.Reason
	}
}
