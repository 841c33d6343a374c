package audit

import "slices"

// checkStarted judges a run that a handler saw.
func (a *Auditor) checkStarted(r *Report, run int64) {
	starts := a.starts[run]
	first := starts[0]
	r.Runs++
	if len(starts) > 1 {
		r.Double++
		r.problem("double", "run %d of job %d at %s was started %d times: %s", run, first.Job, clock(first.Due), len(starts), places(starts))
	}
	row, there := a.rows[run]
	for _, e := range starts {
		due := e.Due
		if row.StandsFor != 0 { // which is past
			due = max(due, row.Due)
		}
		if e.At < due*1000 {
			r.Early++
			r.problem("early", "run %d of job %d at %s was started at %s", run, e.Job, clock(due), moment(e.At))
		}
	}
	if !there {
		r.Forgotten++
		r.problem("forgotten", "run %d of job %d at %s was started by %v and has no row", run, first.Job, clock(first.Due), first.Process())
		return
	}
	for _, e := range starts {
		if e.Job != row.Job || e.Due != row.told() {
			r.Wrong++
			r.problem("id used twice", "run %d is job %d at %s in the table, and was started as job %d at %s", run, row.Job, clock(row.Due), e.Job, clock(e.Due))
		}
	}
	if row.scheduleBorn() {
		a.checkAsked(r, row, first)
	}
}

// checkAsked finds starts for instants that the job did not have.
func (a *Auditor) checkAsked(r *Report, row Row, e Event) {
	j, known := a.jobs[e.Job]
	if !known || j.Delay > 0 || row.Count > 0 {
		return
	}
	if a.lives[e.Job].at(e.Due) == mustNot {
		r.Wrong++
		r.problem("not asked for", "run %d of job %d (%s) at %s by %v: the job has no such instant", e.Run, e.Job, j.Name, clock(e.Due), e.Process())
	}
}

// checkRow judges what the log table says of a run.
func (a *Auditor) checkRow(r *Report, row Row) {
	if row.StandsFor != 0 && row.scheduleBorn() {
		r.Wrong++
		r.problem("another instant", "run %d of job %d at %s was made by a schedule, and stands for %s", row.Run, row.Job, clock(row.Due), clock(row.StandsFor))
	}
	a.checkBound(r, row)
	a.checkServed(r, row)
	switch row.State {
	case Planned, Started, Dispatched:
		r.Unfinished++
		r.problem("unfinished", "run %d of job %d at %s is %s for ever: owner %q, address %q", row.Run, row.Job, clock(row.Due), stateName(row.State), row.Owner, row.Address)
	case Lost:
		a.checkInterrupted(r, row)
	case Killed:
		j := a.jobs[row.Job]
		switch {
		case a.wasKilled(row):
		case j.Block != BlockCover:
			a.checkInterrupted(r, row)
		case len(a.starts[row.Run]) > 0:
			a.checkYielded(r, j, row.Due, row)
		}
	case Succeeded:
		a.checkSucceeded(r, row)
	case Failed, TimedOut:
		if j := a.jobs[row.Job]; j.Again != nil {
			return // judged with its chain
		}
		r.Wrong++
		r.problem("failed", "run %d of job %d at %s is %s, and no handler fails", row.Run, row.Job, clock(row.Due), stateName(row.State))
	}
}

// CheckEnd adds to a report what the stop of all nodes in good order left behind: a
// run due at or after the end that is started and taken, though nobody runs it: an executor in a
// process of its own may. One that waits to be taken is put back by the next node that comes. Reports are equal to a count
// of the rows.
func (a *Auditor) CheckEnd(r *Report, end int64) {
	for _, row := range a.in.Rows {
		if row.Due >= end && !a.jobs[row.Job].Remote && (row.State == Started && row.Taken != 0 || row.State == Dispatched) {
			r.Wrong++
			r.problem("left behind", "run %d of job %d at %s is %s after all nodes stopped in good order: owner %q, address %q, started %s, events %d",
				row.Run, row.Job, clock(row.Due), stateName(row.State), row.Owner, row.Address, clockOrNever(row.Started), len(a.starts[row.Run])+len(a.ends[row.Run]))
		}
	}
	r.Miscounted = len(a.in.Miscounted)
	for _, line := range a.in.Miscounted {
		r.problem("miscounted", "%s", line)
	}
	a.checkConcurrent(r)
}

// checkInterrupted looks for the fault that explains an interrupted run.
func (a *Auditor) checkInterrupted(r *Report, row Row) {
	r.Interrupted++
	since, until := row.Started*1000, int64(0)
	var where []Process
	for _, e := range a.starts[row.Run] {
		where, since = append(where, e.Process()), e.At
	}
	if taken := row.Taken * 1000; taken != 0 && taken < since {
		since = taken // it may be paused between the taking and the call of the handler
	}
	for _, e := range a.ends[row.Run] {
		if e.How == EndOK {
			until = e.At
		}
	}
	node := NodeOf(row.Address)
	f, ok := a.explain.interrupted(where, node, row.Due*1000, since, until)
	if ok {
		r.Explained = append(r.Explained, explanation(row, where, f))
		return
	}
	r.Unexplained++
	r.problem("unexplained", "run %d of job %d at %s is %s: address %q, begun by %v at %s, handler ended at %s, and no fault that hit it",
		row.Run, row.Job, clock(row.Due), stateName(row.State), row.Address, where, moment(since), moment(until))
}

// checkSucceeded holds a success against what the handler wrote.
func (a *Auditor) checkSucceeded(r *Report, row Row) {
	want := EndOK
	if row.Snoozed {
		want = EndSnoozed
	}
	if !slices.ContainsFunc(a.ends[row.Run], func(e Event) bool { return e.How == want || want == EndOK && a.heldUp(e) }) {
		r.Wrong++
		r.problem("success of nobody", "run %d of job %d at %s succeeded, and no handler has ended well", row.Run, row.Job, clock(row.Due))
	}
}

// heldUp reports whether a handler went on after its timeout without its process: where that
// was paused, both are over when it wakes, and either may be the first to be noticed.
func (a *Auditor) heldUp(end Event) bool {
	return end.How == EndLate && slices.ContainsFunc(a.in.Faults, func(f Fault) bool {
		return f.Effect == Silent && f.Victim == end.Process() && f.Begin <= end.At && end.At <= f.End+a.in.Rules.Slack*1000
	})
}

// part is a part of an instant.
type part struct {
	instant
	index int
}

// checkDoubleInstants finds two schedule-born runs of one (instant, shard), in
// what handlers saw and in the table, and instants that were both run and
// recorded as skipped.
func (a *Auditor) checkDoubleInstants(r *Report, from, to int64) {
	runs := map[part]map[int64]bool{}
	add := func(k part, run int64) {
		if runs[k] == nil {
			runs[k] = map[int64]bool{}
		}
		runs[k][run] = true
	}
	for run, starts := range a.starts {
		e := starts[0]
		row, there := a.rows[run]
		if from <= e.Due && e.Due < to && e.Attempt == 0 && e.Param == "" && (!there || row.scheduleBorn()) {
			add(part{instant{e.Job, e.Due}, e.Index}, run)
		}
	}
	for _, row := range a.in.Rows {
		if from <= row.Due && row.Due < to && row.scheduleBorn() && row.State != Skipped && row.State != Cancelled {
			add(part{instant{row.Job, row.Due}, row.Index}, row.Run)
		}
	}
	for k, ids := range runs {
		if len(ids) > 1 {
			r.Double++
			r.problem("double", "job %d at %s, part %d has %d runs: %v", k.job, clock(k.due), k.index, len(ids), sortedKeys(ids))
		}
		a.checkSkippedToo(r, k, sortedKeys(ids)[0])
	}
}

func (a *Auditor) checkSkippedToo(r *Report, k part, run int64) {
	for _, row := range a.records[k.job] {
		// The span of a FixedDelay job has no instants of its own.
		if row.State == Skipped && row.Run != run && row.covers(k.due) && a.jobs[k.job].Delay == 0 && a.onGrid(k) {
			r.Double++
			r.problem("double", "job %d at %s was run (%d) and is inside of the skip %d", k.job, clock(k.due), run, row.Run)
		}
	}
}

// onGrid excludes instants of a schedule that an edit has since replaced.
func (a *Auditor) onGrid(k part) bool { return a.lives[k.job].at(k.due) != mustNot }
