package audit

// checkDelays judges jobs whose runs are due a delay after the one before: the
// chain goes on, and never faster than that.
func (a *Auditor) checkDelays(r *Report, from, to int64) {
	for _, j := range a.in.Jobs {
		if j.Delay == 0 {
			continue
		}
		dues := map[int64]bool{}
		for k := range a.at {
			if k.job == j.ID {
				dues[k.due] = true
			}
		}
		for _, row := range a.in.Rows {
			if row.Job == j.ID && row.scheduleBorn() {
				dues[row.Due] = true
			}
		}
		a.checkChain(r, j, sortedKeys(dues), from, to)
	}
}

// checkChain looks at the instants of one such job.
func (a *Auditor) checkChain(r *Report, j Job, dues []int64, from, to int64) {
	for i := 1; i < len(dues); i++ {
		before, due := dues[i-1], dues[i]
		if due < from || due >= to {
			continue
		}
		if due-before < j.Delay {
			r.Double++
			r.problem("double", "job %d (%s) is due at %s and at %s, less than its delay apart", j.ID, j.Name, clock(before), clock(due))
		}
	}
	// Only the end of the whole chain can show that it broke.
	last := int64(0)
	if len(dues) > 0 {
		last = dues[len(dues)-1]
	}
	if begun := a.begun(j); begun > 0 && last < to && a.lastMoment()/1000-max(last, begun) > j.Delay+a.in.Rules.LostAfter+a.in.Rules.Misfire {
		r.Lost++
		r.problem("lost", "job %d (%s): the chain ended at %s, and the last event of all is of %s", j.ID, j.Name, clock(last), moment(a.lastMoment()))
	}
}

// begun is when the job was added, in milliseconds.
func (a *Auditor) begun(j Job) int64 {
	for _, op := range a.lives[j.ID] {
		return op.Return / 1000
	}
	return 0
}

// lastMoment is the last event of all.
func (a *Auditor) lastMoment() (last int64) {
	for _, e := range a.in.Events {
		last = max(last, e.At)
	}
	return last
}
