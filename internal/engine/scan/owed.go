package scan

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// What successes owe to other jobs. Input: signals that something is owed, the times at which
// windows are over. Output: planned runs, in the store, which the scan loop finds.

const (
	// doubtedPause is the pause before windows are closed while the store's clock is doubted.
	doubtedPause = time.Minute
	// refusedPause is the pause where the store has refused to close a window that is over.
	refusedPause = time.Second
	// unknownPause is the pause before that is tried again which is owed to jobs whose windows this node
	// cannot work out: they may have been edited.
	unknownPause = time.Minute
)

// Payer pays what is owed in this node's shards, and closes windows that are over. The Bus tells of
// the records of runs that are skipped for that.
type Payer struct {
	*core.Core
	Bus *events.Bus
}

// Paying is the duty, as it is said.
const Paying = "triggering what follows a success"

// OwedDuty pays as soon as the store signals. A store that may lose signals is asked as often
// as it says for an inbox: whoever waits for a child waits for a run.
func (p *Payer) OwedDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: Paying, Wakes: []<-chan struct{}{signals.Owed, p.Life.Wakes.Owed},
		Once: func(ctx context.Context) (time.Duration, error) {
			shards := p.Leases.Owned()
			if len(shards) == 0 || !p.Leases.Trusted(time.Now()) {
				return loop.Forever, nil // the lease loop pokes
			}
			paid, err := loop.Call(ctx, func(ctx context.Context) (store.Paid, error) {
				return p.Store.PayOwed(ctx, store.OwedQuery{Shards: shards, Limit: loop.StoreBatch})
			})
			p.tellPaid(&paid) // also what was paid before an error
			if err != nil {
				return 0, err
			}
			p.tellUnknown(paid.Unknown)
			if paid.Refused != nil {
				p.Core.Troubles.Refused(p.Clock.Now(), "", 0, store.SeenRefusesOwed, 0, paid.Refused)
			}
			wait, err := p.expire(ctx, shards) // also while there is more to be paid than one call does
			switch {
			case paid.Owed >= loop.StoreBatch:
				wait = 0
			case len(paid.Unknown) > 0:
				wait = min(wait, unknownPause)
			}
			return wait, err
		},
	}
}

// tellPaid tells of what was paid.
func (p *Payer) tellPaid(paid *store.Paid) {
	p.Life.Wakes.Scan.PokeIf(paid.Runs > 0)
	p.tell(paid.Records)
	if paid.Absent > 0 {
		p.Life.FaultCounts.Absent.Add(uint64(paid.Absent))
		p.Logger.Warn("xxljob: children are not triggered, since there are no such jobs; the rows of the runs that have succeeded say which", "children", paid.Absent)
	}
	if paid.Skipped > 0 {
		p.Life.FaultCounts.Endless.Add(uint64(paid.Skipped))
		p.Logger.Error("xxljob: successes lead to each other without an end; what they led to last is recorded as skipped", "runs", paid.Skipped, "depth", store.MostDepth)
	}
}

// tell tells of records of skipped runs.
func (p *Payer) tell(records []store.Run) {
	for i := range records {
		p.Bus.Ended(&records[i], nil)
	}
}

// tellUnknown says which jobs behind others this node cannot work out the windows of: what is owed to them
// waits for a node that can.
func (p *Payer) tellUnknown(unknown []store.UnknownWindow) {
	left := make([]core.UnableJob, 0, len(unknown))
	for _, u := range unknown {
		_, err := schedule.LoadZone(u.Zone)
		if err == nil {
			continue // it has come meanwhile
		}
		job := core.UnknownZone(u.Shard, u.App, u.JobID, u.Zone, err)
		job.Late = u.Owed
		left = append(left, job)
	}
	p.TellUnable(core.UnableOwed, p.Clock.Now(), left)
}

// expire closes the windows that are over, and returns how long to wait.
func (p *Payer) expire(ctx context.Context, shards []store.Shard) (time.Duration, error) {
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
	p.tell(expired.Records)
	if expired.Refused != nil {
		p.Core.Troubles.Refused(p.Clock.Now(), "", 0, store.SeenRefusesWindows, 0, expired.Refused)
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
			least = refusedPause // that is the one
		}
		wait = min(wait, max(expired.Next.Sub(p.Clock.Now()), least))
	}
	return wait, nil
}
