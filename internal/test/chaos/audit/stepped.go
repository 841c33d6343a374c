package audit

import "slices"

// What is promised while the clock is stepped by which nodes and rows go: due times, and what rows
// say of time, are then of no use to anybody who goes by another. No instant is run twice, no run
// is begun twice or without a row, none that was begun stays unfinished, and no job that is due
// all the time is silent for long.

// silence is for how long such a job may start nothing, in microseconds: nodes hold back for a
// LeaseTTL before they believe a clock.
const silence = 10_000_000

// checkStepped judges the starts in a stretch of time, in microseconds.
func (a *Auditor) checkStepped(r *Report, from, to int64) {
	runs, byJob := map[part][]int64{}, map[int64][]int64{}
	for _, run := range sortedKeys(a.starts) {
		starts := a.starts[run]
		first := starts[0]
		for _, e := range starts {
			byJob[e.Job] = append(byJob[e.Job], e.At)
		}
		k := part{instant{first.Job, first.Due}, first.Index}
		runs[k] = append(runs[k], run)
		if first.At < from || first.At >= to {
			continue
		}
		r.Runs++
		if n := runs[k]; len(n) > 1 || len(starts) > 1 {
			r.Double++
			r.problem("double", "job %d (%s) at %s, part %d, has the runs %v, the last of them started %s", first.Job, a.jobs[first.Job].Name, clock(first.Due), first.Index, n, places(starts))
		}
		switch row, there := a.rows[run]; {
		case !there:
			r.Forgotten++
			r.problem("forgotten", "run %d of job %d at %s was started by %v and has no row", run, first.Job, clock(first.Due), first.Process())
		case row.State <= Dispatched:
			r.Unfinished++
			r.problem("unfinished", "run %d of job %d at %s is %s for ever", run, first.Job, clock(first.Due), stateName(row.State))
		case row.State != Succeeded:
			a.checkInterrupted(r, row)
		}
	}
	for _, j := range a.in.Jobs {
		if !j.Prompt {
			continue
		}
		at := byJob[j.ID]
		slices.Sort(at)
		last := from
		for _, next := range append(at, to) {
			if next <= from || last >= to {
				continue
			}
			if silent := min(next, to) - last; silent > silence {
				r.Lost++
				r.problem("silent", "job %d (%s) started nothing for %d s from %s on", j.ID, j.Name, silent/1_000_000, moment(last))
			}
			last = next
		}
	}
}
