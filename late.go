package xxljob

// Runs that are late. Input: the time. Output: alarms, in the store.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The pauses between two looks for late runs: a tenth of the least LateAfter, within these;
// and where no job has any, the time after which another node's edit is noticed.
const (
	lateLeast = time.Second
	lateMost  = time.Minute
)

// lateDuty looks for runs that have not ended Job.LateAfter behind their instants. No run waits
// for it, but who is not seen while it is late is never told of: so it does not wait for a pool
// that the host uses up.
func lateDuty(s *shared) duty {
	return duty{
		what: "looking for runs that are late", wakes: []<-chan struct{}{s.life.wakes.late},
		once: func(ctx context.Context) (time.Duration, error) {
			shards := s.leases.owned()
			if len(shards) == 0 {
				return lateLeast, nil
			}
			now := s.clock.now()
			late, err := call(ctx, func(ctx context.Context) (store.Late, error) {
				return s.store.AddLate(ctx, store.LateQuery{Shards: shards, Now: now, Limit: storeBatch})
			})
			switch {
			case err != nil:
				return 0, err
			case late.Alarms >= storeBatch:
				return 0, nil
			case late.Least == 0:
				return lateMost, nil
			}
			return min(max(late.Least/10, lateLeast), lateMost), nil
		},
	}
}

// sayAlarms tells a store which alarms it is to insert.
func sayAlarms(s Store, rules []alarmRule) {
	if len(rules) > 0 {
		s.KnowAlarms(alarmPolicy(rules))
	}
}
