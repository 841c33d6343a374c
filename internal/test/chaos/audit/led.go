package audit

import (
	"cmp"
	"slices"
)

// What is promised of successes that lead to other jobs: each trigger that has succeeded, in
// all of its parts, has each child of its job once, and nothing else has one. Windows are in
// windows.go.

// led is what successes led to, sorted for questions.
type led struct {
	keys     map[string]int64          // jobs by "app/key"
	triggers map[int64][]Row           // by the first run: all runs
	children map[int64]map[int64][]Row // by trigger and job
	windows  map[window]*gathering
}

// typeParent is the type of a run that the success of another led to.
const typeParent = "PARENT"

// addLed sorts what successes led to.
func (a *Auditor) addLed() {
	a.led = led{keys: map[string]int64{}, triggers: map[int64][]Row{}, children: map[int64]map[int64][]Row{}, windows: map[window]*gathering{}}
	for _, j := range a.in.Jobs {
		if j.Key != "" {
			a.led.keys[j.Key] = j.ID
		}
	}
	for _, row := range a.in.Rows {
		if row.State != Skipped {
			a.led.triggers[row.Trigger] = append(a.led.triggers[row.Trigger], row)
		}
	}
	for _, row := range a.in.Rows {
		if row.Type != typeParent {
			continue
		}
		if j := a.jobs[row.Job]; j.Window > 0 {
			w := a.window(j, row.Business)
			w.rows = append(w.rows, row)
			continue
		}
		trigger := a.rows[row.Parent].Trigger
		if a.led.children[trigger] == nil {
			a.led.children[trigger] = map[int64][]Row{}
		}
		a.led.children[trigger][row.Job] = append(a.led.children[trigger][row.Job], row)
	}
	a.addWindows()
}

// named are the jobs that a definition names, each once.
func (a *Auditor) named(ids []int64, keys []string) (jobs []int64) {
	jobs = slices.Clone(ids)
	for _, key := range keys {
		jobs = append(jobs, a.led.keys[key])
	}
	slices.Sort(jobs)
	return slices.Compact(jobs)
}

// business is the time that the work of a run is for: of a run that nothing led to, the
// first instant that it stands for.
func (r Row) business() int64 {
	if r.StandsFor != 0 && r.Count == 0 {
		return cmp.Or(r.Business, r.StandsFor)
	}
	return cmp.Or(r.Business, r.First, r.Due)
}

// succeeded returns the run with which a trigger has succeeded: of each part one has.
func succeeded(rows []Row) (last Row, ok bool) {
	parts := map[int]bool{}
	for _, row := range rows {
		good := row.State == Succeeded && !row.Snoozed
		parts[row.Index] = parts[row.Index] || good
		if good && row.Ended >= last.Ended {
			last = row
		}
	}
	for _, good := range parts {
		if !good {
			return Row{}, false
		}
	}
	return last, len(parts) > 0
}

// checkLed judges what successes led to that are for a stretch of time, and what is still
// owed.
func (a *Auditor) checkLed(r *Report, from, to int64) {
	for _, trigger := range sortedKeys(a.led.triggers) {
		rows := a.led.triggers[trigger]
		if at := rows[0].business(); from <= at && at < to {
			a.checkChildren(r, trigger, rows)
		}
	}
	for _, kin := range a.led.children[0] { // of runs without a row
		for _, row := range kin {
			if at := row.business(); from <= at && at < to {
				r.Forgotten++
				r.problem("orphan", "%s was led to by run %d, which has no row", a.nameOf(row), row.Parent)
			}
		}
	}
	for _, w := range a.in.Owed {
		if from <= w.Business && w.Business < to {
			r.Unfinished++
			r.problem("owed", "run %d has succeeded, and what that leads to is owed for ever: job %d", w.Run, w.Job)
		}
	}
	a.checkWindows(r, from, to)
}

// checkChildren judges the children of a trigger.
func (a *Auditor) checkChildren(r *Report, trigger int64, rows []Row) {
	j, made := a.jobs[rows[0].Job], a.led.children[trigger]
	children := a.named(j.Children, j.ChildKeys)
	if len(children)+len(made) == 0 {
		return
	}
	last, ok := succeeded(rows)
	for _, child := range children {
		switch n := len(made[child]); {
		case ok && n == 0:
			r.Lost++
			r.problem("no child", "%s has succeeded, and has not led to job %d (%s)", a.nameOf(last), child, a.jobs[child].Name)
		case n > 1:
			r.Double++
			r.problem("double", "trigger %d of job %d (%s) has led to job %d (%s) %d times: %s", trigger, j.ID, j.Name, child, a.jobs[child].Name, n, describe(made[child]))
		}
	}
	for _, child := range sortedKeys(made) {
		for _, row := range made[child] {
			r.Children++
			if !ok || !slices.Contains(children, child) {
				r.Wrong++
				r.problem("child of nothing", "%s was led to by trigger %d of job %d (%s), which does not lead to it, or has not succeeded: %s", a.nameOf(row), trigger, j.ID, j.Name, describe(rows))
				continue
			}
			a.checkChild(r, row, rows)
		}
	}
}

// checkChild holds a child against the trigger that has succeeded.
func (a *Auditor) checkChild(r *Report, child Row, rows []Row) {
	// Of parts that end at several nodes, any may be the last whose end was stored: while rows
	// are locked, results wait, and go in any order.
	if parent := a.rows[child.Parent]; parent.State != Succeeded || parent.Snoozed {
		r.Wrong++
		r.problem("parent", "%s names run %d as its parent, which is %s", a.nameOf(child), child.Parent, stateName(parent.State))
	}
	if child.Depth != rows[0].Depth+1 || child.Business != rows[0].business() || child.Count != 0 {
		r.Wrong++
		r.problem("child", "%s has the depth %d, the business time %s and a count of %d; its parent has %d and %s",
			a.nameOf(child), child.Depth, clock(child.Business), child.Count, rows[0].Depth, clock(rows[0].business()))
	}
	starts := a.starts[child.Run]
	if len(starts) == 0 {
		return
	}
	for _, row := range rows {
		if end := a.lastEnd(row.Run); row.State == Succeeded && !row.Snoozed && end.At > starts[0].At {
			r.Early++
			r.problem("early", "%s was begun at %s, and run %d, which leads to it, ended at %s", a.nameOf(child), moment(starts[0].At), row.Run, moment(end.At))
		}
	}
}
