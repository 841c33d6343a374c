package xxljob

// Triggers by hand, of programs and over HTTP.

import (
	"context"
	"fmt"

	"github.com/xxljob/xxljob/store"
)

func (d *definer) Trigger(ctx context.Context, jobID int64, t Trigger) ([]int64, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if d.life.stopped() {
		return nil, fmt.Errorf("xxljob: trigger job %d: %w", jobID, ErrStopped)
	}
	return d.trigger(ctx, jobID, t)
}

// trigger is Trigger for requests that come over HTTP as well, which are served after
// Stop too: the nodes that are left run what they plan.
func (d *definer) trigger(ctx context.Context, jobID int64, t Trigger) ([]int64, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	setDefault(&t.Type, TriggerManual)
	if err := d.setShards(ctx); err != nil {
		return nil, err
	}
	run, err := d.addRun(ctx, jobID, t)
	if err != nil {
		return nil, absent("trigger", fmt.Sprintf("job %d", jobID), err)
	}
	return []int64{run.ID}, nil
}

// addRun plans the run, or has the store keep it apart until its time comes within reach.
func (d *definer) addRun(ctx context.Context, jobID int64, t Trigger) (Run, error) {
	if move, far := store.Ahead(t.At, d.clock.now(), d.cfg.RunRetention); far {
		run, err := d.store.AddAhead(ctx, jobID, t, move)
		d.life.wakes.ahead.pokeIf(err == nil)
		return run, err
	}
	run, err := d.store.AddRun(ctx, jobID, t)
	d.life.wakes.scan.pokeIf(err == nil)
	return run, err
}
