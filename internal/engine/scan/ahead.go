package scan

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Runs that are planned far ahead, which the store keeps apart. Input: the times at which
// they are to move. Output: planned runs, in the store, which the scan loop finds.

const (
	// aheadPoll is how often a store that does not signal everything is asked when the next
	// run is to move. That is long before the run is due.
	aheadPoll = time.Minute
	// aheadRetry is the pause where the store has left something that was to move: rows that
	// others have locked, or shards that are not this node's any more.
	aheadRetry = time.Second
)

// Moving is the duty, as it is said.
const Moving = "moving runs that were planned far ahead"

// AheadDuty moves runs of this node's shards, when their time to move has come. What was
// left behind while no node was there moves at once, however late it is, and starts then.
func AheadDuty(s *core.Core, signals store.Signals) loop.Duty {
	return loop.Duty{
		What: Moving, Wakes: []<-chan struct{}{signals.Ahead, s.Life.Wakes.Ahead},
		Once: func(ctx context.Context) (time.Duration, error) {
			shards := s.Leases.Owned()
			if len(shards) == 0 || !s.Leases.Trusted(time.Now()) {
				return loop.Forever, nil // the lease loop pokes
			}
			now := s.Clock.Now()
			moved, err := loop.Call(ctx, func(ctx context.Context) (store.Moved, error) {
				return s.Store.MoveAhead(ctx, store.AheadQuery{
					Shards: shards, Before: now, Oldest: now.Add(-store.PlannedFor(s.Cfg.RunRetention)), Limit: loop.StoreBatch,
				})
			})
			s.Life.Wakes.Scan.PokeIf(moved.Runs > 0)
			if moved.Refused != nil {
				s.Troubles.Refused(s.Clock.Now(), "", 0, store.SeenRefusesAhead, 0, moved.Refused)
			}
			return untilAhead(s, moved), err
		},
	}
}

// untilAhead is when to look again.
func untilAhead(s *core.Core, moved store.Moved) time.Duration {
	wait := time.Duration(loop.Forever)
	if poll, _ := s.Store.Poll(); poll > 0 {
		wait = aheadPoll
	}
	if moved.Next.IsZero() {
		return wait
	}
	next := moved.Next.Sub(s.Clock.Now())
	if next <= 0 && moved.Runs < loop.StoreBatch {
		next = aheadRetry
	}
	return min(wait, next)
}
