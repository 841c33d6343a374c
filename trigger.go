package xxljob

// Triggers by hand, of programs and over HTTP.

import (
	"context"
	"fmt"
	"time"
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
	if most := d.cfg.RunRetention - 24*time.Hour; !t.At.IsZero() && t.At.Sub(d.clock.now()) > most {
		return nil, fmt.Errorf("xxljob: trigger: At %v: further ahead than RunRetention %v less a day", t.At, d.cfg.RunRetention)
	}
	setDefault(&t.Type, TriggerManual)
	if err := d.setShards(ctx); err != nil {
		return nil, err
	}
	run, err := d.store.AddRun(ctx, jobID, t)
	if err != nil {
		return nil, absent("trigger", fmt.Sprintf("job %d", jobID), err)
	}
	d.life.wakes.scan.poke()
	return []int64{run.ID}, nil
}
