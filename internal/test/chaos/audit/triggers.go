package audit

// checkTriggers judges triggers by hand and in transactions of the caller: what
// was acknowledged runs once, what was rolled back never, and what nobody knows at
// most once.
func (a *Auditor) checkTriggers(r *Report, from, to int64) {
	for _, op := range a.in.Ops {
		if op.Kind != OpTrigger && op.Kind != OpTx || op.Call/1000 < from || op.Call/1000 >= to {
			continue
		}
		runs := a.byParam[op.Param]
		if len(runs) > 1 {
			r.Double++
			r.problem("double", "trigger %s of job %d made the runs %v", op.Param, op.Job, runs)
		}
		switch {
		case op.Outcome == Refused && len(runs) > 0:
			r.Wrong++
			r.problem("rolled back", "trigger %s of job %d was rolled back, and ran as %v", op.Param, op.Job, runs)
		case op.Outcome != Done:
		case len(runs) == 1 && runs[0] != op.Run:
			r.Wrong++
			r.problem("other id", "trigger %s of job %d was answered with run %d, and ran as %d", op.Param, op.Job, op.Run, runs[0])
		case len(runs) == 0:
			a.checkUnrun(r, op)
		}
	}
}

// checkUnrun says why an acknowledged trigger has no handler start.
func (a *Auditor) checkUnrun(r *Report, op Op) {
	row, there := a.rows[op.Run]
	switch {
	case !there:
		r.Forgotten++
		r.Lost++
		r.problem("lost", "trigger %s of job %d was answered with run %d, which has no row", op.Param, op.Job, op.Run)
	case row.State == Lost || row.State == Killed || row.State <= Dispatched:
		// Interrupted or unfinished: counted where rows are.
	default:
		r.Lost++
		r.problem("lost", "trigger %s of job %d, run %d: no start, and %s", op.Param, op.Job, op.Run, describe([]Row{row}))
	}
}
