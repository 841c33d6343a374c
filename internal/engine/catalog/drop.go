package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Ended runs that somebody has deleted, and those that their jobs keep for less than all runs
// are kept.

const (
	// dropSettled is how long ago a run has to have ended before it may be deleted: who waits
	// for it, or reads again what has become of it, finds it for so long.
	dropSettled = 10 * time.Minute
	// dropAhead is how far a RunDrop.Before may be ahead of the clock.
	dropAhead = time.Minute
)

func (d *Catalog) DropRuns(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	if ctx == nil {
		return store.Dropped{}, errs.ErrNoContext
	}
	r, ok := core.Given(d.Store).(store.RunDropper)
	if !ok {
		return store.Dropped{}, fmt.Errorf("xxljob: delete runs: the store cannot: %w", errors.ErrUnsupported)
	}
	now := d.Clock.Now()
	f := store.Faults{Of: "runs to be deleted"}
	if q.Before.After(now.Add(dropAhead)) && q.Before.UTC().Year() <= 9999 {
		f.Add("Before", errs.InWords(q.Before), errors.New("it is in the future"))
	}
	if err := errors.Join(q.Validate(), f.Err()); err != nil {
		return store.Dropped{}, err
	}
	if settled := now.Add(-dropSettled); q.EndedBefore.IsZero() || q.EndedBefore.After(settled) {
		q.EndedBefore = settled
	}
	timed := core.Metered(d.Store, "DropEnded")
	got, err := r.DropEnded(ctx, q)
	timed.End(&err)
	d.dropped(ctx, &q, got)
	return got, errs.In("delete runs", err)
}

// dropped is told of each call that has deleted runs, with who has asked for it.
func (d *Catalog) dropped(ctx context.Context, q *store.RunDrop, got store.Dropped) {
	if got.Runs > 0 && !q.DryRun {
		core.LogChange(ctx, d.Logger, "drop", store.ObjectRuns, "", "", "runs", got.Runs, "apps", len(q.Apps), "jobs", len(q.JobIDs),
			"before", q.Before, "newest", q.KeepNewest, "all", q.All)
		recordDrop(ctx, d.Core, q, got.Runs)
	}
}

// recordDrop writes an entry about runs that were deleted, where the store has a record. They are
// gone, so one that cannot be written is no error of the caller's.
func recordDrop(ctx context.Context, s *core.Core, q *store.RunDrop, runs int) {
	r, ok := core.Given(s.Store).(store.ChangeRecord)
	if !ok {
		return
	}
	var c store.Change
	c.OfDrop(q, runs)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loop.CallTimeout) // whoever has asked may have gone
	defer cancel()
	timed := core.Metered(s.Store, "RecordChange")
	_, err := r.RecordChange(ctx, c)
	if timed.End(&err); err != nil {
		s.Logger.Warn("xxljob: there is no entry in the record of changes about ended runs that were deleted", "runs", runs, "error", err)
	}
}

const (
	// keepFirst is when runs are looked for after a start that their jobs do not keep any
	// longer, keepEvery how often from then on, and keepFor how long at a time.
	keepFirst, keepEvery, keepFor = time.Minute, 15 * time.Minute, 5 * time.Minute
	// keepBatch is how many of them one call looks at. Behind each call there is a pause of
	// keepPause at least, or of so many times what it took.
	keepBatch, keepPause, keepPauses = 1000, 20 * time.Millisecond, 4
)

// KeepDuty deletes runs that their jobs do not keep any longer, at the node that drops old runs.
// Where that takes long it goes on the next time. A job whose runs cannot be deleted is passed
// by, so that it does not keep the others from theirs, and has its turn in the next walk.
func KeepDuty(s *core.Core, r store.RunDropper) loop.Duty {
	backoff := loop.Backoff{Log: s.Logger, What: "deleting the runs of jobs that keep them for less"}
	var mark store.DropMark
	return loop.Duty{Aside: true, After: keepFirst, Once: func(ctx context.Context) (time.Duration, error) {
		until, runs := time.Now().Add(keepFor), 0
		for time.Now().Before(until) {
			if _, mine := s.Leases.Epoch(0); !mine {
				mark = store.DropMark{}
				break
			}
			if why, _ := s.Clock.Doubt(); why != "" {
				break // it goes on from here
			}
			began, now := time.Now(), s.Clock.Now()
			timed := core.Metered(s.Store, "DropExpired")
			got, err := r.DropExpired(ctx, store.KeepQuery{Now: now, EndedBefore: now.Add(-dropSettled), After: mark, Limit: keepBatch})
			timed.End(&err)
			runs += got.Runs
			if backoff.Failed(ctx, err) && !got.More {
				break
			}
			if mark = got.Next; !got.More {
				break
			}
			if !loop.Sleep(ctx, max(keepPause, keepPauses*time.Since(began))) {
				break
			}
		}
		if runs > 0 {
			recordDrop(store.WithActor(ctx, store.Scheduler), s, &store.RunDrop{}, runs)
		}
		return keepEvery, nil
	}}
}
