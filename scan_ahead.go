package xxljob

import (
	"context"
	"time"

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

// aheadDuty moves runs of this node's shards, when their time to move has come. What was
// left behind while no node was there moves at once, however late it is, and starts then.
func aheadDuty(s *shared, signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "moving runs that were planned far ahead", Wakes: []<-chan struct{}{signals.Ahead, s.life.wakes.ahead},
		Once: func(ctx context.Context) (time.Duration, error) {
			shards := s.leases.owned()
			if len(shards) == 0 || !s.leases.trusted(time.Now()) {
				return loop.Forever, nil // the lease loop pokes
			}
			now := s.clock.now()
			moved, err := loop.Call(ctx, func(ctx context.Context) (store.Moved, error) {
				return s.store.MoveAhead(ctx, store.AheadQuery{
					Shards: shards, Before: now, Oldest: now.Add(-store.PlannedFor(s.cfg.RunRetention)), Limit: loop.StoreBatch,
				})
			})
			s.life.wakes.scan.PokeIf(moved.Runs > 0)
			return untilAhead(s, moved), err
		},
	}
}

// untilAhead is when to look again.
func untilAhead(s *shared, moved store.Moved) time.Duration {
	wait := time.Duration(loop.Forever)
	if poll, _ := s.store.Poll(); poll > 0 {
		wait = aheadPoll
	}
	if moved.Next.IsZero() {
		return wait
	}
	next := moved.Next.Sub(s.clock.now())
	if next <= 0 && moved.Runs < loop.StoreBatch {
		next = aheadRetry
	}
	return min(wait, next)
}

// What successes owe to other jobs. Input: signals that something is owed, the times at which
// windows are over. Output: planned runs, in the store, which the scan loop finds.

// payer pays what is owed in this node's shards, and closes windows that are over.
type payer struct {
	*shared
}

// owedDuty pays as soon as the store signals. A store that may lose signals is asked as often
// as it says for an inbox: whoever waits for a child waits for a run.
func (p *payer) owedDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "triggering what follows a success", Wakes: []<-chan struct{}{signals.Owed, p.life.wakes.owed},
		Once: func(ctx context.Context) (time.Duration, error) {
			shards := p.leases.owned()
			if len(shards) == 0 || !p.leases.trusted(time.Now()) {
				return loop.Forever, nil // the lease loop pokes
			}
			paid, err := loop.Call(ctx, func(ctx context.Context) (store.Paid, error) {
				return p.store.PayOwed(ctx, store.OwedQuery{Shards: shards, Limit: loop.StoreBatch})
			})
			if err != nil {
				return 0, err
			}
			p.life.wakes.scan.PokeIf(paid.Runs > 0)
			if paid.Absent > 0 {
				p.life.mishaps.absent.Add(uint64(paid.Absent))
				p.log.Warn("xxljob: children are not triggered, since there are no such jobs; the rows of the runs that have succeeded say which", "children", paid.Absent)
			}
			if paid.Skipped > 0 {
				p.life.mishaps.endless.Add(uint64(paid.Skipped))
				p.log.Error("xxljob: successes lead to each other without an end; what they led to last is recorded as skipped", "runs", paid.Skipped, "depth", store.MostDepth)
			}
			wait, err := p.expire(ctx, shards) // also while there is more to be paid than one call does
			if paid.Owed >= loop.StoreBatch {
				wait = 0
			}
			return wait, err
		},
	}
}

// expire closes the windows that are over, and returns how long to wait.
func (p *payer) expire(ctx context.Context, shards []store.Shard) (time.Duration, error) {
	now := p.clock.now()
	expired, err := loop.Call(ctx, func(ctx context.Context) (store.Expired, error) {
		return p.store.ExpireWindows(ctx, store.WindowQuery{Shards: shards, Before: now, Limit: loop.StoreBatch})
	})
	if err != nil {
		return 0, err
	}
	p.life.wakes.scan.PokeIf(expired.Windows > 0)
	wait := time.Duration(loop.Forever)
	if _, inbox := p.store.Poll(); inbox > 0 {
		wait = inbox
	}
	if !expired.Next.IsZero() {
		wait = min(wait, max(expired.Next.Sub(p.clock.now()), time.Millisecond))
	}
	return wait, nil
}
