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
	t, err := t.Encode()
	if err != nil {
		return nil, err
	}
	return d.triggered(ctx, jobID, t)
}

// triggered is Trigger for an encoded trigger.
func (d *definer) triggered(ctx context.Context, jobID int64, t Trigger) ([]int64, error) {
	if d.life.stopped() {
		return nil, fmt.Errorf("xxljob: trigger job %d: %w", jobID, ErrStopped)
	}
	id, err := d.trigger(ctx, jobID, t)
	if err != nil {
		return nil, err
	}
	return []int64{id}, nil
}

func (d *definer) TriggerJob(ctx context.Context, app, key string, t Trigger) ([]int64, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	t, err := t.Encode()
	if err != nil {
		return nil, err
	}
	setDefault(&app, d.cfg.App)
	job, err := d.store.JobByKey(ctx, app, key)
	if err != nil {
		return nil, absent("trigger", fmt.Sprintf("job %q of app %q", key, app), err)
	}
	return d.triggered(ctx, job.ID, t)
}

func (d *definer) TriggerOne(ctx context.Context, jobID int64, t Trigger) (int64, error) {
	if ctx == nil {
		return 0, errNoContext
	}
	t, err := t.Encode()
	if err != nil {
		return 0, err
	}
	job, err := d.store.Job(ctx, jobID)
	if err != nil {
		return 0, absent("trigger", fmt.Sprintf("job %d", jobID), err)
	}
	if job.Route == RouteShardingBroadcast && t.Shard == (Sharding{}) {
		return 0, fmt.Errorf("xxljob: trigger job %d: it is a broadcast, which makes a run for each address: use Trigger, or name a Shard", jobID)
	}
	ids, err := d.triggered(ctx, jobID, t)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// trigger plans the run of an encoded trigger. Requests that come over HTTP are served after
// Stop too: the nodes that are left run what they plan.
func (d *definer) trigger(ctx context.Context, jobID int64, t Trigger) (int64, error) {
	if err := t.Validate(); err != nil {
		return 0, err
	}
	setDefault(&t.Type, TriggerManual)
	if err := d.setShards(ctx); err != nil {
		return 0, err
	}
	done := func(int64, error) {}
	if d.cfg.Tracer != nil && t.Trace == "" {
		t.Trace, done = d.cfg.Tracer.Triggering(ctx, jobID)
	}
	run, err := d.addRun(ctx, jobID, t)
	done(run.ID, err)
	if err != nil {
		return 0, absent("trigger", fmt.Sprintf("job %d", jobID), err)
	}
	if store.Actor(ctx) != "" {
		verb := "trigger"
		if store.Again(ctx) != 0 {
			verb = "again"
		}
		logChange(ctx, d.log, verb, store.ObjectRun, run.ID, run.App, "job", jobID)
	}
	return run.ID, nil
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
