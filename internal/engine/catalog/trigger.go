package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/grants"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Triggers by hand, of programs and over HTTP.

func (d *Catalog) Trigger(ctx context.Context, g grants.Grants, jobID int64, t store.Trigger) (ids []int64, err error) {
	if ctx == nil {
		return nil, errs.ErrNoContext
	}
	defer d.sayUnstarted(ctx, &err)
	t, err = t.Encode()
	if err != nil {
		return nil, err
	}
	return d.triggered(ctx, g, jobID, t)
}

// triggered is Trigger for an encoded trigger.
func (d *Catalog) triggered(ctx context.Context, g grants.Grants, jobID int64, t store.Trigger) ([]int64, error) {
	if d.Life.Stopped() {
		return nil, errs.In(fmt.Sprintf("trigger job %d", jobID), errs.ErrStopped)
	}
	id, err := d.TriggerAs(ctx, g, jobID, t)
	if err != nil {
		return nil, err
	}
	return []int64{id}, nil
}

func (d *Catalog) TriggerJob(ctx context.Context, g grants.Grants, app, key string, t store.Trigger) (ids []int64, err error) {
	if ctx == nil {
		return nil, errs.ErrNoContext
	}
	defer d.sayUnstarted(ctx, &err)
	t, err = t.Encode()
	if err != nil {
		return nil, err
	}
	errs.SetDefault(&app, d.Cfg.App)
	job, err := d.Store.JobByKey(ctx, app, key)
	if err != nil {
		return nil, errs.Missing("trigger", fmt.Sprintf("job %q of app %q", key, app), err)
	}
	return d.triggered(ctx, g, job.ID, t)
}

func (d *Catalog) TriggerOne(ctx context.Context, g grants.Grants, jobID int64, t store.Trigger) (id int64, err error) {
	if ctx == nil {
		return 0, errs.ErrNoContext
	}
	defer d.sayUnstarted(ctx, &err)
	t, err = t.Encode()
	if err != nil {
		return 0, err
	}
	job, err := d.Store.Job(ctx, jobID)
	if err != nil {
		return 0, errs.Missing("trigger", fmt.Sprintf("job %d", jobID), err)
	}
	if job.Route == route.ShardingBroadcast && t.Shard == (store.Sharding{}) {
		return 0, fmt.Errorf("xxljob: trigger job %d: it is a broadcast, which makes a run for each address: use Trigger, or name a Shard", jobID)
	}
	ids, err := d.triggered(ctx, g, jobID, t)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// sayUnstarted has the error of a trigger that its context has ended say that this scheduler was not
// started, which may be why, and is why nothing would have been run by it.
func (d *Catalog) sayUnstarted(ctx context.Context, err *error) {
	if *err != nil && ctx.Err() != nil && !d.Life.WasStarted() {
		*err = fmt.Errorf("%w; this scheduler was not started, and runs nothing that it triggers", *err)
	}
}

// TriggerAs plans the run of an encoded trigger. Requests that come over HTTP are served after
// Stop too: the nodes that are left run what they plan.
func (d *Catalog) TriggerAs(ctx context.Context, g grants.Grants, jobID int64, t store.Trigger) (int64, error) {
	if err := t.Validate(); err != nil {
		return 0, err
	}
	errs.SetDefault(&t.Type, store.TriggerManual)
	if err := d.mayTrigger(ctx, g, jobID, &t); err != nil {
		return 0, errs.Missing("trigger", fmt.Sprintf("job %d", jobID), err)
	}
	if err := d.SetShards(ctx); err != nil {
		return 0, err
	}
	done := func(int64, error) {}
	if d.Cfg.Tracer != nil && t.Trace == "" {
		t.Trace, done = d.Cfg.Tracer.Triggering(ctx, jobID)
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
		core.LogChange(ctx, d.Logger, verb, store.ObjectRun, run.ID, run.App, "job", jobID)
	}
	return run.ID, nil
}

// addRun plans the run, or has the store keep it apart until its time comes within reach.
func (d *Catalog) addRun(ctx context.Context, jobID int64, t store.Trigger) (store.Run, error) {
	if move, far := store.Ahead(t.At, d.Clock.Now(), d.Cfg.RunRetention); far {
		run, err := d.Store.AddAhead(ctx, jobID, t, move)
		d.Life.Wakes.Ahead.PokeIf(err == nil)
		return run, err
	}
	run, err := d.Store.AddRun(ctx, jobID, t)
	d.Life.Wakes.Scan.PokeIf(err == nil)
	return run, err
}

// A run that is asked for once more.

func (d *Catalog) Again(ctx context.Context, g grants.Grants, runID int64) (id int64, err error) {
	if ctx == nil {
		return 0, errs.ErrNoContext
	}
	defer d.sayUnstarted(ctx, &err)
	if d.Life.Stopped() {
		return 0, errs.In(fmt.Sprintf("run %d again", runID), errs.ErrStopped)
	}
	r, err := d.Store.Run(ctx, runID)
	if err != nil {
		return 0, errs.Missing("again", fmt.Sprintf("run %d", runID), err)
	}
	id, err = d.TriggerAs(store.WithAgain(ctx, runID), g, r.JobID, againOf(&r))
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
	return t.Repeating(r)
}

// When a job runs next: by what is planned, and by what its schedule would have planned.

func (d *Catalog) NextFire(ctx context.Context, jobID int64) (time.Time, error) {
	if ctx == nil {
		return time.Time{}, errs.ErrNoContext
	}
	at, err := d.nextFire(ctx, jobID)
	if err != nil {
		return time.Time{}, errs.Missing("next instant", fmt.Sprintf("job %d", jobID), err)
	}
	return at, nil
}

func (d *Catalog) nextFire(ctx context.Context, jobID int64) (time.Time, error) {
	// The job first: what is claimed meanwhile is among the runs then.
	job, err := d.Store.Job(ctx, jobID)
	if err != nil {
		return time.Time{}, err
	}
	first, err := d.firstPlanned(ctx, jobID)
	if err != nil || !first.IsZero() || core.Unscheduled(&job) || job.Next.IsZero() {
		return first, err
	}
	now, err := d.Now(ctx)
	if err != nil || job.Next.After(now) && plan.Within(&job, job.Next) {
		return job.Next, err
	}
	return plan.PlanAt(d.Core, now, now).Next(&job), nil
}

// firstPlanned is the earliest instant of the job's schedule that is planned and not started,
// the zero time if there is none.
func (d *Catalog) firstPlanned(ctx context.Context, jobID int64) (first time.Time, err error) {
	ctx = store.WithShortTexts(ctx, 0)
	f := store.RunFilter{JobID: jobID, States: []store.State{store.StatePlanned}, Limit: store.CountCap}
	for {
		page, err := d.Store.Runs(ctx, f)
		if err != nil {
			return time.Time{}, err
		}
		for i := range page {
			if r := &page[i]; r.Type.ScheduleBorn() {
				first = core.Earlier(first, r.Scheduled)
			}
			f.Before = page[i].ID
		}
		if len(page) < f.Limit {
			return first, nil
		}
	}
}
