package xxljob

// A run that is asked for once more.

import (
	"context"
	"fmt"

	"github.com/xxljob/xxljob/store"
)

func (d *definer) Again(ctx context.Context, runID int64) (int64, error) {
	if ctx == nil {
		return 0, errNoContext
	}
	if d.life.stopped() {
		return 0, fmt.Errorf("xxljob: run %d again: %w", runID, ErrStopped)
	}
	r, err := d.store.Run(ctx, runID)
	if err != nil {
		return 0, absent("again", fmt.Sprintf("run %d", runID), err)
	}
	id, err := d.trigger(store.WithAgain(ctx, runID), r.JobID, againOf(&r))
	return id, about(fmt.Sprintf("run %d again", runID), err)
}

// again is the trigger that a run is asked for with once more. One that was not started has no
// parameter of its own, unless its trigger gave one.
func againOf(r *Run) Trigger {
	t := Trigger{Addresses: r.Addresses, Shard: r.Sharding}
	if r.ParamSet || !r.Started.IsZero() {
		t.Param = &r.Param
	}
	if r.RetriesSet {
		t.Retries = new(max(r.Retries, 0) + r.Attempt - r.Reruns)
	}
	return t
}
