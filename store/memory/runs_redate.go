package memory

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// RedateRuns corrects planned runs that say to have been inserted in the future.
func (s *Store) RedateRuns(ctx context.Context, q store.RedateQuery) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.done()
	now := toMilli(stored(q.Now))
	var found []*run
	for _, sh := range q.Shards {
		own := s.fenced(sh.ID, sh.Epoch)
		if own == nil {
			continue
		}
		for c := own.planned.after(noID, noID); c.peek() != nil && len(found) < q.Limit; c.next() {
			if r := c.peek().of; !r.Type.ScheduleBorn() && r.created > now+time.Minute.Milliseconds() {
				found = append(found, r)
			}
		}
	}
	for _, r := range found {
		s.leave(r)
		switch ahead := r.created - now; {
		case r.Type == store.TriggerRetry:
			r.scheduled = max(r.scheduled-ahead, now)
		case r.scheduled == r.created:
			r.scheduled = now
		}
		r.created, r.PlanEpoch, r.foreign = now, 0, true
		s.enter(r)
		s.tellScan(r.job)
	}
	return len(found), nil
}
