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
	// doubtedPause is the pause before windows are closed while the store's clock is doubted.
	doubtedPause = time.Minute
)

// AheadDuty moves runs of this node's shards, when their time to move has come. What was
// left behind while no node was there moves at once, however late it is, and starts then.
func AheadDuty(s *core.Core, signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "moving runs that were planned far ahead", Wakes: []<-chan struct{}{signals.Ahead, s.Life.Wakes.Ahead},
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
				s.Troubles.Refused(s.Clock.Now(), "", 0, "to move some runs that were planned far ahead", moved.Refused)
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

// What successes owe to other jobs. Input: signals that something is owed, the times at which
// windows are over. Output: planned runs, in the store, which the scan loop finds.

// Outbox pays what is owed in this node's shards, and closes windows that are over.
type Outbox struct {
	*core.Core
}

// OwedDuty pays as soon as the store signals. A store that may lose signals is asked as often
// as it says for an inbox: whoever waits for a child waits for a run.
func (p *Outbox) OwedDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "triggering what follows a success", Wakes: []<-chan struct{}{signals.Owed, p.Life.Wakes.Owed},
		Once: func(ctx context.Context) (time.Duration, error) {
			shards := p.Leases.Owned()
			if len(shards) == 0 || !p.Leases.Trusted(time.Now()) {
				return loop.Forever, nil // the lease loop pokes
			}
			paid, err := loop.Call(ctx, func(ctx context.Context) (store.Paid, error) {
				return p.Store.PayOwed(ctx, store.OwedQuery{Shards: shards, Limit: loop.StoreBatch})
			})
			if err != nil {
				return 0, err
			}
			p.Life.Wakes.Scan.PokeIf(paid.Runs > 0)
			if paid.Refused != nil {
				p.Core.Troubles.Refused(p.Clock.Now(), "", 0, "to trigger what follows some successes", paid.Refused)
			}
			if paid.Absent > 0 {
				p.Life.FaultCounts.Absent.Add(uint64(paid.Absent))
				p.Logger.Warn("xxljob: children are not triggered, since there are no such jobs; the rows of the runs that have succeeded say which", "children", paid.Absent)
			}
			if paid.Skipped > 0 {
				p.Life.FaultCounts.Endless.Add(uint64(paid.Skipped))
				p.Logger.Error("xxljob: successes lead to each other without an end; what they led to last is recorded as skipped", "runs", paid.Skipped, "depth", store.MostDepth)
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
func (p *Outbox) expire(ctx context.Context, shards []store.Shard) (time.Duration, error) {
	if why, _ := p.Clock.Doubt(); why != "" {
		return doubtedPause, nil // a window that is over may be open yet
	}
	now := p.Clock.Now()
	expired, err := loop.Call(ctx, func(ctx context.Context) (store.Expired, error) {
		return p.Store.ExpireWindows(ctx, store.WindowQuery{Shards: shards, Before: now, Limit: loop.StoreBatch})
	})
	if err != nil {
		return 0, err
	}
	p.Life.Wakes.Scan.PokeIf(expired.Windows > 0)
	if expired.Refused != nil {
		p.Core.Troubles.Refused(p.Clock.Now(), "", 0, "to close some windows that are over", expired.Refused)
	}
	if expired.Windows > 0 {
		p.Logger.Warn("xxljob: windows of jobs that run behind several are over; where jobs were missing a record of a skipped run says which", "windows", expired.Windows)
	}
	wait := time.Duration(loop.Forever)
	if _, inbox := p.Store.Poll(); inbox > 0 {
		wait = inbox
	}
	if !expired.Next.IsZero() {
		least := time.Millisecond
		if expired.Refused != nil {
			least = aheadRetry // that is the one
		}
		wait = min(wait, max(expired.Next.Sub(p.Clock.Now()), least))
	}
	return wait, nil
}
