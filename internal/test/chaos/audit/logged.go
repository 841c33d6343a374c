package audit

import (
	"fmt"
	"slices"
)

// What is promised of logs in the store: each line that a handler wrote is there, once. A process
// that dies takes along what it wrote within the last second, and what waited for a database
// that was away.

// Line is a line of a run's log in the store: a handler writes one at each of its events, with
// the kind and the moment of that.
type Line struct {
	Run  int64
	Kind string
	At   int64
}

// CheckLogs adds to a report which lines are not there, or twice, of all events. It returns a
// summary.
func (a *Auditor) CheckLogs(r *Report) string {
	times := make(map[Line]int, len(a.in.Lines))
	for _, l := range a.in.Lines {
		times[l]++
	}
	gone, oldest := 0, int64(0)
	for _, e := range a.in.Events {
		if a.jobs[e.Job].Remote {
			continue
		}
		switch n := times[Line{e.Run, e.Kind, e.At}]; {
		case n > 1:
			r.Unlogged++
			r.problem("logged twice", "the line of the %s of run %d at %s is there %d times", e.Kind, e.Run, clock(e.At/1000), n)
		case n == 1 || e.How == EndExit:
		case a.in.Rules.Refused > 0 && e.Run%a.in.Rules.Refused == 0:
			gone++
		default:
			f, ok := a.explain.takenAlong(e)
			if !ok && a.forgot(e) {
				gone++
				continue
			}
			if !ok {
				r.Unlogged++
				r.problem("not logged", "there is no line of the %s of run %d of job %d at %s, on %s (%d): %s", e.Kind, e.Run, e.Job, clock(e.At/1000), e.Node, e.PID, a.explain.next(e))
				continue
			}
			gone++
			if !a.explain.hampered(e, f.Begin) {
				oldest = max(oldest, f.Begin-e.At)
			}
		}
	}
	return fmt.Sprintf("logs: %d lines in the store, %d gone with their processes, the oldest %d ms before the end where the database answered, %d amiss", len(a.in.Lines), gone, oldest/1000, r.Unlogged)
}

// forgot reports whether the database has forgotten the run of an event, or its start. A run that
// is forgotten may go on at a node that had started it before, and a store takes no lines of a run
// that it does not have. One whose start is forgotten is started again: then two processes count
// its lines from 1 on, and of two with one number the store has the first that came.
func (a *Auditor) forgot(e Event) bool {
	if !a.in.Rules.MayForget || !slices.ContainsFunc(a.in.Faults, func(f Fault) bool { return f.Forgets > 0 && f.Forgets <= e.At }) {
		return false
	}
	_, there := a.rows[e.Run]
	return !there || slices.ContainsFunc(a.in.Events, func(o Event) bool { return o.Run == e.Run && o.Process() != e.Process() })
}

// takenAlong returns the fault with which the process of an event has died before it had to have
// written the line.
func (x explainer) takenAlong(e Event) (Fault, bool) {
	for _, f := range x.faults {
		if x.rules.MayForget && f.Forgets > 0 && f.Forgets <= e.At+x.rules.Unwritten*1000 && e.At <= f.End {
			return f, true
		}
		if f.Victim != e.Process() {
			continue
		}
		late := f.Begin > e.At+x.rules.Unwritten*1000 && !x.hampered(e, f.Begin)
		if f.Effect == Dies && !late || f.Effect == Leaves && x.cutShort(f, false) && x.hampered(e, f.End) {
			return f, true
		}
	}
	return Fault{}, false
}

// hampered reports whether a fault kept the process of an event from writing, or the database
// from answering it, for some of the time from the event to a moment, or had just ended.
func (x explainer) hampered(e Event, until int64) bool {
	return slices.ContainsFunc(x.faults, func(f Fault) bool {
		concerned := f.Effect == Blocked || (f.Effect == Silent || f.Effect == Starves) && f.Victim == e.Process()
		return concerned && f.Begin <= until && e.At <= f.End+x.rules.Slack*1000
	})
}

// next says what became of the process of an event, for people.
func (x explainer) next(e Event) string {
	for _, f := range x.faults {
		if f.Victim == e.Process() && (f.Effect == Dies || f.Effect == Leaves) {
			return fmt.Sprintf("%s came %d ms later", f.Name, (f.Begin-e.At)/1000)
		}
	}
	return "nothing befell the process"
}
