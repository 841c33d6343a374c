package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// What is promised of jobs that run behind others: a window for which all of these have
// succeeded has one run, one that is over before has one record that names who is missing,
// and one for which nobody has succeeded has nothing.

// window is a window of a job, which begins at a time.
type window struct{ job, begins int64 }

// gathering is what there is of a window.
type gathering struct {
	rows      []Row
	successes []Row // with which the triggers of the jobs before it have succeeded
}

// window is the one of a job that a business time is in. All are parts of a minute.
func (a *Auditor) window(j Job, business int64) *gathering {
	k := window{j.ID, business - business%j.Window}
	if a.led.windows[k] == nil {
		a.led.windows[k] = &gathering{}
	}
	return a.led.windows[k]
}

// addWindows sorts the successes into the windows of the jobs behind them.
func (a *Auditor) addWindows() {
	behind := map[int64][]Job{}
	for _, j := range a.in.Jobs {
		if j.Window > 0 {
			for _, before := range a.named(j.After, j.AfterKeys) {
				behind[before] = append(behind[before], j)
			}
		}
	}
	for _, rows := range a.led.triggers {
		joins := behind[rows[0].Job]
		if len(joins) == 0 {
			continue
		}
		if last, ok := succeeded(rows); ok {
			for _, j := range joins {
				w := a.window(j, rows[0].business())
				w.successes = append(w.successes, last)
			}
		}
	}
}

// checkWindows judges those windows that end in a stretch of time and have begun after their
// job was there.
func (a *Auditor) checkWindows(r *Report, from, to int64) {
	keys := slices.SortedFunc(maps.Keys(a.led.windows), func(x, y window) int { return cmp.Or(cmp.Compare(x.begins, y.begins), cmp.Compare(x.job, y.job)) })
	for _, k := range keys {
		j := a.jobs[k.job]
		if end := k.begins + j.Window; end <= from || end > to || k.begins <= a.begun(j) {
			continue
		}
		a.checkWindow(r, j, k.begins, a.led.windows[k])
	}
	for _, open := range a.in.Open {
		if end := open.Begins + a.jobs[open.Job].Window; from < end && end <= to {
			r.Unfinished++
			r.problem("open", "the window of job %d (%s) from %s is open for ever", open.Job, a.jobs[open.Job].Name, clock(open.Begins))
		}
	}
}

func (a *Auditor) checkWindow(r *Report, j Job, begins int64, w *gathering) {
	switch n := len(w.rows); {
	case n == 0:
		r.Lost++
		r.problem("no join", "the window of job %d (%s) from %s has neither run nor record, and %s", j.ID, j.Name, clock(begins), describe(w.successes))
		return
	case n > 1:
		r.Double++
		r.problem("double", "the window of job %d (%s) from %s has %s", j.ID, j.Name, clock(begins), describe(w.rows))
		return
	case len(w.successes) == 0:
		r.Wrong++
		r.problem("join of nothing", "%s is for the window from %s, for which nobody has succeeded", a.nameOf(w.rows[0]), clock(begins))
		return
	}
	row, deepest := w.rows[0], 0
	for _, s := range w.successes {
		deepest = max(deepest, s.Depth)
	}
	if row.Business != begins || row.Depth != deepest+1 || !slices.ContainsFunc(w.successes, func(s Row) bool { return s.Run == row.Parent }) {
		r.Wrong++
		r.problem("join", "%s has the business time %s, the depth %d and the parent %d; its window is from %s, and %s",
			a.nameOf(row), clock(row.Business), row.Depth, row.Parent, clock(begins), describe(w.successes))
	}
	if row.State == Skipped {
		r.Over++
		a.checkOver(r, j, row, w)
	} else {
		r.Joins++
		if row.StandsFor != begins {
			r.Wrong++
			r.problem("join", "%s stands for %s, and its window is from %s", a.nameOf(row), clock(row.StandsFor), clock(begins))
		}
		a.checkComplete(r, j, row, w)
	}
}

// first is when a job has first succeeded for a window; zero when it has not.
func (w *gathering) first(job int64) (ended int64) {
	for _, s := range w.successes {
		if s.Job == job && (ended == 0 || s.Ended < ended) {
			ended = s.Ended
		}
	}
	return ended
}

// checkComplete wants all jobs to have succeeded before the run.
func (a *Auditor) checkComplete(r *Report, j Job, row Row, w *gathering) {
	for _, job := range a.named(j.After, j.AfterKeys) {
		if ended := w.first(job); ended == 0 || ended > row.Due+1 {
			r.Wrong++
			r.problem("incomplete", "%s is due at %s, and job %d (%s) had not succeeded for its window: %s", a.nameOf(row), clock(row.Due), job, a.jobs[job].Name, clockOrNever(ended))
		}
	}
}

// checkOver wants the record of a window that was over to come in its time and to name those
// who had not succeeded. One that has a moment before may not have been counted yet, and
// longer where nodes were away.
func (a *Auditor) checkOver(r *Report, j Job, row Row, w *gathering) {
	wrong := func(why string) {
		r.Wrong++
		r.problem("window", "%s says %q (%s) at %s: %s; %s", a.nameOf(row), row.Message, row.Reason, clock(row.Ended), why, describe(w.successes))
	}
	if row.Reason != "join" || row.Due != row.Business || row.Count != 1 {
		wrong("it is no record of a window")
	}
	opened, named := row.Ended, false
	for _, job := range a.named(j.After, j.AfterKeys) {
		ended := w.first(job)
		if ended != 0 {
			opened = min(opened, ended)
		}
		names := a.names(row.Message, job)
		named = named || names
		switch {
		case !names && (ended == 0 || ended > row.Ended+1):
			wrong(a.jobs[job].Name + " had not succeeded, and is not named")
		case names && ended != 0 && row.Ended-ended > a.in.Rules.Slack && !a.explain.outageWithin(ended, row.Ended):
			wrong(a.jobs[job].Name + " had succeeded, and is named")
		}
	}
	if !named {
		wrong("it names nobody")
	}
	if row.Ended < opened+j.AfterTimeout-hearsay {
		wrong("its time was not over")
	}
}

// names reports whether a record names a job, by its id or by its key.
func (a *Auditor) names(message string, job int64) bool {
	_, list, _ := strings.Cut(message, "succeeded for it: ")
	for name := range strings.SplitSeq(list, ", ") {
		if name == "#"+itoa(job) || a.led.keys[name] == job && job != 0 {
			return true
		}
	}
	return false
}

// outageWithin reports whether a fault kept the cluster from scheduling in a stretch of time,
// in milliseconds, or a moment before it.
func (x explainer) outageWithin(begin, end int64) bool {
	return slices.ContainsFunc(x.joined, func(i interval) bool {
		return i.begin <= end*1000 && begin*1000 <= i.end+x.rules.Slack*1000
	})
}
