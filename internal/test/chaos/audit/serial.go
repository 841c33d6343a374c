package audit

import (
	"cmp"
	"slices"
)

// sideBySide is how many runs of a job may be under way in one process; zero is no bound.
func (j Job) sideBySide() int {
	switch j.Block {
	case BlockSerial:
		return 1
	case BlockConcurrent:
		return j.Max
	}
	return 0
}

// checkSideBySide finds more runs of a job side by side in one process than may be.
func (a *Auditor) checkSideBySide(r *Report, from, to int64) {
	for k, starts := range a.startsByProcess() {
		most := a.jobs[k.job].sideBySide()
		for i, e := range starts {
			if e.Due < from || e.Due >= to {
				continue
			}
			if beside := a.beside(starts[:i], e.At); len(beside) >= most {
				r.Wrong++
				r.problem("side by side", "job %d in %v: run %d began at %s beside the runs %v, and %d may be under way", k.job, k.Process, e.Run, moment(e.At), beside, most)
			}
		}
	}
}

// checkConcurrent wants the runs of a concurrent job that are all at one node side by side:
// each lasts longer than the schedule's period.
func (a *Auditor) checkConcurrent(r *Report) {
	runs, overlaps := map[int64]int{}, map[int64]int{}
	for k, starts := range a.startsByProcess() {
		for i, e := range starts {
			runs[k.job]++
			overlaps[k.job] += len(a.beside(starts[:i], e.At))
		}
	}
	for _, j := range a.in.Jobs {
		if j.Block == BlockConcurrent && j.Nearest && runs[j.ID] > 5 && overlaps[j.ID] == 0 {
			r.Wrong++
			r.problem("never side by side", "job %d (%s) is concurrent, and each of its %d runs was alone", j.ID, j.Name, runs[j.ID])
		}
	}
}

// jobAt is a job at one process.
type jobAt struct {
	job int64
	Process
}

// startsByProcess are the starts, in order of time, of jobs that have a bound of how many
// runs may be side by side.
func (a *Auditor) startsByProcess() map[jobAt][]Event {
	all := map[jobAt][]Event{}
	for _, starts := range a.starts {
		for _, e := range starts {
			if a.jobs[e.Job].sideBySide() > 0 {
				k := jobAt{e.Job, e.Process()}
				all[k] = append(all[k], e)
			}
		}
	}
	for _, starts := range all {
		slices.SortFunc(starts, func(x, y Event) int { return cmp.Compare(x.At, y.At) })
	}
	return all
}

// beside are the runs of the given starts that were under way at a moment. It looks at the
// latest twenty: nothing lasts as long as so many of its job do after it.
func (a *Auditor) beside(starts []Event, at int64) (runs []int64) {
	for _, e := range starts[max(0, len(starts)-20):] {
		if a.endOf(e) > at && !a.abandoned(e, at) {
			runs = append(runs, e.Run)
		}
	}
	return runs
}

// abandoned reports whether an executor may have given a handler up at a moment. Its patience
// begins with the timeout, whatever became of the row, which a database that was promoted may
// have forgotten; or when somebody asks for the end of the run, which is stored some time after
// that.
func (a *Auditor) abandoned(start Event, at int64) bool {
	if again := a.jobs[start.Job].Again; again != nil && again.Timeout > 0 &&
		at/1000 >= start.At/1000+again.Timeout-timeoutSlack+a.in.Rules.Grace {
		return true
	}
	row := a.rows[start.Run]
	cancelled := row.Ended
	switch op, itself := a.killed[row.Run]; {
	case row.State == TimedOut && a.jobs[row.Job].Again == nil:
	case row.State == Killed && itself:
		cancelled = op.Call / 1000
	case row.State == Killed && a.wasKilled(row):
		cancelled = a.killOf(row).Call / 1000
	default:
		return false
	}
	return at/1000 >= cancelled+a.in.Rules.Grace
}

// endOf is when the handler of this start ended; zero when nobody saw it.
func (a *Auditor) endOf(start Event) int64 {
	for _, e := range a.ends[start.Run] {
		if e.Process() == start.Process() && e.At >= start.At {
			return e.At
		}
	}
	return 0
}
