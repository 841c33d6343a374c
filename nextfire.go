package xxljob

// When a job runs next: by what is planned, and by what its schedule would have planned.

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/store"
)

func (d *definer) NextFire(ctx context.Context, jobID int64) (time.Time, error) {
	if ctx == nil {
		return time.Time{}, errNoContext
	}
	at, err := d.nextFire(ctx, jobID)
	if err != nil {
		return time.Time{}, absent("next instant", fmt.Sprintf("job %d", jobID), err)
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
	if err != nil || !first.IsZero() || job.unscheduled() || job.Next.IsZero() {
		return first, err
	}
	now, err := d.now(ctx)
	if err != nil || job.Next.After(now) && job.within(job.Next) {
		return job.Next, err
	}
	return planAt(d.shared, now, now).next(&job), nil
}

// firstPlanned is the earliest instant of the job's schedule that is planned and not started,
// the zero time if there is none.
func (d *definer) firstPlanned(ctx context.Context, jobID int64) (first time.Time, err error) {
	f := RunFilter{JobID: jobID, States: []State{StatePlanned}, Limit: store.CountCap}
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
