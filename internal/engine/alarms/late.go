package alarms

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Runs that are late. Input: the time. Output: alarms, in the store.

// The pauses between two looks for late runs: a tenth of the least LateAfter, within these;
// and where no job has any, the time after which another node's edit is noticed.
const (
	lateLeast = time.Second
	lateMost  = time.Minute

	lateRefused = 10 * time.Second // where the store refuses one
)

// LateDuty looks for runs that have not ended Job.LateAfter behind their instants. No run waits
// for it, but who is not seen while it is late is never told of: so it does not wait for a pool
// that the host uses up.
func (h *Notifier) LateDuty() loop.Duty {
	s := h.Core
	return loop.Duty{
		What: "looking for runs that are late", Wakes: []<-chan struct{}{s.Life.Wakes.Late},
		Once: func(ctx context.Context) (time.Duration, error) {
			shards, err := h.lateShards(ctx)
			if err != nil || len(shards) == 0 {
				return lateLeast, err
			}
			now := s.Clock.Now()
			late, err := loop.Call(ctx, func(ctx context.Context) (store.Late, error) {
				return s.Store.AddLate(ctx, store.LateQuery{Shards: shards, Now: now, Limit: loop.StoreBatch})
			})
			if late.Refused != nil {
				s.Troubles.Refused(s.Clock.Now(), "", 0, store.SeenRefusesAlarms, 0, late.Refused)
			}
			switch {
			case err != nil:
				return 0, err
			case late.Alarms >= loop.StoreBatch:
				return 0, nil
			case late.Refused != nil: // a trouble goes on while it is seen
				return lateRefused, nil
			case late.Least == 0:
				return lateMost, nil
			}
			return min(max(late.Least/10, lateLeast), lateMost), nil
		},
	}
}

// lateShards are those in which this node looks for late runs: its own, and all where it holds a rule
// that wants them, since their owners may have none.
func (h *Notifier) lateShards(ctx context.Context) ([]store.Shard, error) {
	for i := range h.Rules {
		if !h.Rules[i].wants(alarm.Late) {
			continue
		}
		if held, _, err := h.holdRule(ctx, i); held || err != nil {
			return h.Leases.Shards(), err
		}
	}
	return h.Leases.Owned(), nil
}
