package plan

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// Planner is the pure planner with its fields by name.
type Planner struct {
	Now, Before time.Time
	PreRead     time.Duration
	Threshold   time.Duration
	CatchUp     store.CatchUp
	MaxPlanned  int
}

// Plan plans one job.
func (p Planner) Plan(j *store.DueJob, epoch int64) store.Plan {
	return planner{
		now: p.Now, before: p.Before, preRead: p.PreRead, threshold: p.Threshold, catchUp: p.CatchUp, maxPlanned: p.MaxPlanned,
	}.Plan(j, epoch)
}

// InstantAfter is the job's first instant after a time, within its bounds.
func InstantAfter(j store.Job, after time.Time) (time.Time, error) { return instantAfter(&j, after) }

// InstantInStep is the same where a period keeps step with an instant.
func InstantInStep(j store.Job, with, after time.Time) (time.Time, error) {
	return instantInStep(&j, with, after)
}

// OverdueOf is the record of a job's instants that are past and not planned.
func OverdueOf(j store.Job, now time.Time) (store.NewRun, bool) { return Overdue(j, now) }
