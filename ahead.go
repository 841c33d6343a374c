package xxljob

// Runs that are planned far ahead, which the store keeps apart. Input: the times at which
// they are to move. Output: planned runs, in the store, which the scan loop finds.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

const (
	// aheadPoll is how often a store that does not signal everything is asked when the next
	// run is to move. That is long before the run is due.
	aheadPoll = time.Minute
	// aheadRetry is the pause where the store has left something that was to move: rows that
	// others have locked, or shards that are not this node's any more.
	aheadRetry = time.Second
)

// aheadDuty moves runs of this node's shards, when their time to move has come. What was
// left behind while no node was there moves at once, however late it is, and starts then.
func aheadDuty(s *shared, signals store.Signals) duty {
	return duty{
		what: "moving runs that were planned far ahead", wakes: []<-chan struct{}{signals.Ahead, s.life.wakes.ahead},
		once: func(ctx context.Context) (time.Duration, error) {
			shards := s.leases.owned()
			if len(shards) == 0 || !s.leases.trusted(time.Now()) {
				return forever, nil // the lease loop pokes
			}
			now := s.clock.now()
			moved, err := call(ctx, func(ctx context.Context) (store.Moved, error) {
				return s.store.MoveAhead(ctx, store.AheadQuery{
					Shards: shards, Before: now, Oldest: now.Add(-store.PlannedFor(s.cfg.RunRetention)), Limit: storeBatch,
				})
			})
			s.life.wakes.scan.pokeIf(moved.Runs > 0)
			return untilAhead(s, moved), err
		},
	}
}

// untilAhead is when to look again.
func untilAhead(s *shared, moved store.Moved) time.Duration {
	wait := time.Duration(forever)
	if poll, _ := s.store.Poll(); poll > 0 {
		wait = aheadPoll
	}
	if moved.Next.IsZero() {
		return wait
	}
	next := moved.Next.Sub(s.clock.now())
	if next <= 0 && moved.Runs < storeBatch {
		next = aheadRetry
	}
	return min(wait, next)
}
