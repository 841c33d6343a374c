package audit

import (
	"cmp"
	"slices"
)

// A MaxRuns is held against the rows: as many runs as that, and not one more, whatever was
// skipped, cancelled or interrupted. The instants up to the last of them have to fire as
// those of any other job.

// lastRuns finds the run with which each job has reached its MaxRuns.
func (a *Auditor) lastRuns() map[int64]Row {
	byJob := map[int64][]Row{}
	for _, row := range a.in.Rows {
		if a.jobs[row.Job].MaxRuns > 0 && counts(row) {
			byJob[row.Job] = append(byJob[row.Job], row)
		}
	}
	last := map[int64]Row{}
	for job, rows := range byJob {
		slices.SortFunc(rows, func(x, y Row) int { return cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(x.Run, y.Run)) })
		if n := a.jobs[job].MaxRuns; len(rows) >= n {
			last[job] = rows[n-1]
		}
	}
	return last
}

// counts reports whether a run is one of those that a MaxRuns bounds.
func counts(row Row) bool {
	return row.scheduleBorn() && row.State != Cancelled && row.State != Skipped && row.Index == 0
}

// usedUp reports whether the job had made all of its runs before the instant.
func (a *Auditor) usedUp(j Job, at int64) bool {
	last, is := a.made[j.ID]
	return is && at > last.Due
}

// checkBound finds runs beyond the job's MaxRuns.
func (a *Auditor) checkBound(r *Report, row Row) {
	if j := a.jobs[row.Job]; counts(row) && a.usedUp(j, row.Due) {
		r.Wrong++
		r.problem("beyond MaxRuns", "run %d of job %d (%s) at %s is one more than its %d", row.Run, row.Job, j.Name, clock(row.Due), j.MaxRuns)
	}
}
