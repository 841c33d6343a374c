package main

import (
	"context"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// oursInMemory is a scheduler with the defaults of New, over a store with the defaults of its. Of a
// herd it may run all handlers at once, as its peers do.
type oursInMemory struct {
	store *memory.Store
	sched xxljob.Scheduler
}

func enterOursInMemory(ctx context.Context, t task, c *calls) (contestant, error) {
	st := memory.New()
	places := 0
	if t.Units == 0 && !t.Spread {
		places = t.Jobs
	}
	s, err := newOurs(st, c, places)
	if err != nil {
		return nil, err
	}
	o := &oursInMemory{st, s}
	switch {
	case t.Units > 0:
		err = o.wait(ctx, t)
	case t.Spread:
		err = o.spread(ctx, t.Jobs)
	default:
		err = o.herd(ctx, t.Jobs)
	}
	return o, err
}

// wait adds jobs without a schedule, and runs of them that wait.
func (o *oursInMemory) wait(ctx context.Context, t task) error {
	ids := make([]int64, t.Jobs)
	for i := range ids {
		job, err := o.sched.AddJob(ctx, xxljob.Job{Name: strconv.Itoa(i), Handler: handler})
		if err != nil {
			return err
		}
		ids[i] = job.ID
	}
	for i := range t.Units {
		if _, err := o.sched.Trigger(ctx, ids[i%len(ids)], xxljob.Trigger{}); err != nil {
			return err
		}
	}
	return nil
}

// herd adds jobs that are all due each second.
func (o *oursInMemory) herd(ctx context.Context, n int) error {
	for i := range n {
		if _, err := o.sched.AddJob(ctx, xxljob.Job{Name: strconv.Itoa(i), Handler: handler, Schedule: xxljob.Cron("* * * * * ?")}); err != nil {
			return err
		}
	}
	return nil
}

// spread adds jobs with a period of a second, whose instants are spread over it. They are added
// as copies of one that the scheduler has taken, for a fixed rate counts from the time at which
// the scheduler adds a job.
func (o *oursInMemory) spread(ctx context.Context, n int) error {
	job, err := o.sched.AddJob(ctx, xxljob.Job{Name: firstKey, Handler: handler, Schedule: xxljob.FixedRate(time.Second), Stopped: true})
	if err != nil {
		return err
	}
	began := time.Now().Add(2 * time.Second)
	job.Stopped, job.StopReason = false, ""
	for i := range n {
		job.Name = strconv.Itoa(i)
		job.Key = job.Name
		first := began.Add(time.Duration(i) * time.Second / time.Duration(n))
		if _, err := o.store.AddJob(ctx, job, func(_ xxljob.Job, now time.Time) (time.Time, error) {
			if late := now.Sub(first); late > 0 {
				return first.Add(late.Truncate(time.Second) + time.Second), nil
			}
			return first, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (o *oursInMemory) start(ctx context.Context) error { return o.sched.Start(ctx) }
func (o *oursInMemory) stop(ctx context.Context) error  { return o.sched.Stop(ctx) }

// done is how many runs the store's reports have as succeeded. They count every end, while of
// the runs themselves the store keeps the last 200,000.
func (o *oursInMemory) done(ctx context.Context) (n int64, err error) {
	now := store.QuarterOf(time.Now())
	found, err := o.store.Reports(ctx, xxljob.ReportQuery{From: now.Add(-4 * store.Quarter), To: now.Add(4 * store.Quarter)})
	for _, r := range found.Reports {
		n += r.Ended[xxljob.StateSucceeded]
	}
	return n, err
}
