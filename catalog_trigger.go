package xxljob

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Triggers by hand, of programs and over HTTP.

func (d *definer) Trigger(ctx context.Context, jobID int64, t store.Trigger) ([]int64, error) {
	if ctx == nil {
		return nil, errs.ErrNoContext
	}
	t, err := t.Encode()
	if err != nil {
		return nil, err
	}
	return d.triggered(ctx, jobID, t)
}

// triggered is Trigger for an encoded trigger.
func (d *definer) triggered(ctx context.Context, jobID int64, t store.Trigger) ([]int64, error) {
	if d.life.stopped() {
		return nil, fmt.Errorf("xxljob: trigger job %d: %w", jobID, errs.ErrStopped)
	}
	id, err := d.trigger(ctx, jobID, t)
	if err != nil {
		return nil, err
	}
	return []int64{id}, nil
}

func (d *definer) TriggerJob(ctx context.Context, app, key string, t store.Trigger) ([]int64, error) {
	if ctx == nil {
		return nil, errs.ErrNoContext
	}
	t, err := t.Encode()
	if err != nil {
		return nil, err
	}
	errs.SetDefault(&app, d.cfg.App)
	job, err := d.store.JobByKey(ctx, app, key)
	if err != nil {
		return nil, errs.Missing("trigger", fmt.Sprintf("job %q of app %q", key, app), err)
	}
	return d.triggered(ctx, job.ID, t)
}

func (d *definer) TriggerOne(ctx context.Context, jobID int64, t store.Trigger) (int64, error) {
	if ctx == nil {
		return 0, errs.ErrNoContext
	}
	t, err := t.Encode()
	if err != nil {
		return 0, err
	}
	job, err := d.store.Job(ctx, jobID)
	if err != nil {
		return 0, errs.Missing("trigger", fmt.Sprintf("job %d", jobID), err)
	}
	if job.Route == route.ShardingBroadcast && t.Shard == (store.Sharding{}) {
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
func (d *definer) trigger(ctx context.Context, jobID int64, t store.Trigger) (int64, error) {
	if err := t.Validate(); err != nil {
		return 0, err
	}
	errs.SetDefault(&t.Type, store.TriggerManual)
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
		return 0, errs.Missing("trigger", fmt.Sprintf("job %d", jobID), err)
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
func (d *definer) addRun(ctx context.Context, jobID int64, t store.Trigger) (store.Run, error) {
	if move, far := store.Ahead(t.At, d.clock.now(), d.cfg.RunRetention); far {
		run, err := d.store.AddAhead(ctx, jobID, t, move)
		d.life.wakes.ahead.PokeIf(err == nil)
		return run, err
	}
	run, err := d.store.AddRun(ctx, jobID, t)
	d.life.wakes.scan.PokeIf(err == nil)
	return run, err
}

// A run that is asked for once more.

func (d *definer) Again(ctx context.Context, runID int64) (int64, error) {
	if ctx == nil {
		return 0, errs.ErrNoContext
	}
	if d.life.stopped() {
		return 0, fmt.Errorf("xxljob: run %d again: %w", runID, errs.ErrStopped)
	}
	r, err := d.store.Run(ctx, runID)
	if err != nil {
		return 0, errs.Missing("again", fmt.Sprintf("run %d", runID), err)
	}
	id, err := d.trigger(store.WithAgain(ctx, runID), r.JobID, againOf(&r))
	return id, errs.In(fmt.Sprintf("run %d again", runID), err)
}

// again is the trigger that a run is asked for with once more. One that was not started has no
// parameter of its own, unless its trigger gave one.
func againOf(r *store.Run) store.Trigger {
	t := store.Trigger{Addresses: r.Addresses, Shard: r.Sharding}
	if r.ParamSet || !r.Started.IsZero() {
		t.Param = &r.Param
	}
	if r.RetriesSet {
		t.Retries = new(max(r.Retries, 0) + r.Attempt - r.Reruns)
	}
	return t
}

// When a job runs next: by what is planned, and by what its schedule would have planned.

func (d *definer) NextFire(ctx context.Context, jobID int64) (time.Time, error) {
	if ctx == nil {
		return time.Time{}, errs.ErrNoContext
	}
	at, err := d.nextFire(ctx, jobID)
	if err != nil {
		return time.Time{}, errs.Missing("next instant", fmt.Sprintf("job %d", jobID), err)
	}
	return at, nil
}

func (d *definer) nextFire(ctx context.Context, jobID int64) (time.Time, error) {
	// The job first: what is claimed meanwhile is among the runs then.
	job, err := d.store.Job(ctx, jobID)
	if err != nil {
		return time.Time{}, err
	}
	first, err := d.firstPlanned(ctx, jobID)
	if err != nil || !first.IsZero() || unscheduled(&job) || job.Next.IsZero() {
		return first, err
	}
	now, err := d.now(ctx)
	if err != nil || job.Next.After(now) && within(&job, job.Next) {
		return job.Next, err
	}
	return planAt(d.shared, now, now).next(&job), nil
}

// firstPlanned is the earliest instant of the job's schedule that is planned and not started,
// the zero time if there is none.
func (d *definer) firstPlanned(ctx context.Context, jobID int64) (first time.Time, err error) {
	f := store.RunFilter{JobID: jobID, States: []store.State{store.StatePlanned}, Limit: store.CountCap}
	for {
		page, err := d.store.Runs(ctx, f)
		if err != nil {
			return time.Time{}, err
		}
		for i := range page {
			if r := &page[i]; r.Type.ScheduleBorn() {
				first = earlier(first, r.Scheduled)
			}
			f.Before = page[i].ID
		}
		if len(page) < f.Limit {
			return first, nil
		}
	}
}
