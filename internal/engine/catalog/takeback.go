package catalog

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Jobs that a node of an older release has stopped since it could not work them out: in a zone that
// it has no data of, or of a type that it does not know. Input: what jobs say of why they are
// stopped. Output: they are started again, once by each process that can work them out.

const (
	// takeBackEvery is how often they are looked for: such a node may be there for a while.
	takeBackEvery = time.Hour
	takeBackPage  = 1000
)

// TakeBackDuty starts such jobs again.
func (d *Catalog) TakeBackDuty() loop.Duty {
	done := map[int64]bool{} // by this process
	return loop.Duty{What: "looking for jobs that were stopped in error", Aside: true, Once: func(ctx context.Context) (time.Duration, error) {
		reader, ok := core.Given(d.Store).(store.JobReader)
		if !ok || d.Leases.IsAlone() { // nobody else is there, nor was
			return loop.Forever, nil
		}
		if len(d.Leases.Owned()) == 0 {
			return time.Minute, nil
		}
		q := store.JobSearch{Stopped: new(true), Limit: takeBackPage}
		for {
			page, err := loop.Call(ctx, func(ctx context.Context) ([]store.Job, error) {
				return reader.SearchJobs(store.WithShortTexts(ctx, 0), q)
			})
			if err != nil {
				return 0, err
			}
			for i := range page {
				if job := &page[i]; isIgnorance(job) && !done[job.ID] {
					done[job.ID] = true
					d.takeBack(ctx, job)
				}
			}
			if len(page) < takeBackPage {
				return takeBackEvery, nil
			}
			q.After = page[len(page)-1]
		}
	}}
}

// isIgnorance reports whether a job was stopped by who could not work it out, and this process can.
func isIgnorance(job *store.Job) bool {
	// As releases have written the reasons that stopped jobs so.
	reasons := []string{`there is no zone "`, `there is no type "`, `there is no DST policy "`}
	return job.Stopped && !job.Schedule.IsManual() &&
		slices.ContainsFunc(reasons, func(begins string) bool { return strings.Contains(job.StopReason, begins) }) && job.Schedule.Validate(true) == nil
}

// takeBack starts it again, unless somebody was quicker.
func (d *Catalog) takeBack(ctx context.Context, job *store.Job) {
	why := job.StopReason
	started, err := loop.Call(store.WithActor(ctx, store.Scheduler), func(ctx context.Context) (store.Job, error) {
		return d.edit(ctx, job.ID, store.Edit{Verb: "start", Next: plan.Restarted, Change: func(j *store.Job) (bool, error) {
			if !isIgnorance(j) {
				return false, nil
			}
			j.Stopped, j.StopReason = false, ""
			return true, nil
		}})
	})
	if err != nil {
		d.Logger.Warn("xxljob: could not start a job again that a node had stopped which could not work it out", "job", job.ID, "app", job.App, "name", job.Name, "was", why, "error", err)
	} else if !started.Stopped {
		d.Logger.Warn("xxljob: started a job again that a node had stopped which could not work it out", "job", job.ID, "app", job.App, "name", job.Name, "was", why)
	}
}
