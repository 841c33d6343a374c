package audit

// RouteSpread is how late the runs of one route were, and the most that they might
// be, in milliseconds: the strictest bound of the faults that they were looked at
// for.
type RouteSpread struct {
	Spread
	Bound int64
}

// checkByRoute judges what the victims of faults had not taken: it runs elsewhere
// within a bound, whatever its route, and in its order.
func (a *Auditor) checkByRoute(r *Report, from, to int64) {
	for _, f := range a.in.Faults {
		if f.ByRoute && from <= f.Begin/1000 && f.Begin/1000 < to {
			a.checkUntaken(r, f)
			a.checkOrder(r, f)
		}
	}
}

// checkUntaken measures the runs that fell due after a fault and that its victim had
// not taken.
func (a *Auditor) checkUntaken(r *Report, f Fault) {
	bound := a.in.Rules.untaken(f.Effect)
	measured := map[string]bool{}
	for _, row := range a.dueAfter(f) {
		starts := a.starts[row.Run]
		if len(starts) == 0 {
			a.checkNeverStarted(r, row)
			continue
		}
		e := starts[0]
		if takenBy(f, row, e) {
			continue // judged after LostAfter
		}
		late := e.At - row.Due*1000
		route := a.jobs[row.Job].Route
		r.addRoute(route, late, bound)
		measured[route] = true
		if late > bound*1000 {
			r.Late++
			r.problem("late "+route, "run %d of job %d (%s) at %s began %d ms late at %s, and may be %d: %s of %s at %s had not taken it; started %s, taken %s",
				row.Run, row.Job, a.jobs[row.Job].Name, clock(row.Due), late/1000, e.Node, bound, f.Name, f.Victim.Node, moment(f.Begin), clockOrNever(row.Started), clockOrNever(row.Taken))
		}
	}
	for _, j := range a.in.Jobs {
		if j.Prompt && !measured[j.Route] {
			measured[j.Route] = true
			r.Wrong++
			r.problem("unmeasured", "no run of route %s fell due after %s of %s at %s that it had not taken", j.Route, f.Name, f.Victim.Node, moment(f.Begin))
		}
	}
}

// checkNeverStarted is about a run without a start. The victim had taken it, or the
// rows say otherwise what became of it; but nobody may give up what nobody took.
func (a *Auditor) checkNeverStarted(r *Report, row Row) {
	if row.State == Lost && row.Taken == 0 {
		r.Wrong++
		r.problem("given up", "run %d of job %d (%s) at %s is lost, and nobody had taken it: address %q", row.Run, row.Job, a.jobs[row.Job].Name, clock(row.Due), row.Address)
	}
}

// takenBy reports whether the victim of a fault took the run before it was hit, or
// while it was. What it takes after a silence is as good as taken by another, and so is
// what it takes while it starves: it may do that itself.
func takenBy(f Fault, row Row, e Event) bool {
	if f.Effect == Starves {
		return e.Process() == f.Victim && row.Taken != 0 && row.Taken*1000 < f.Begin
	}
	return e.Process() == f.Victim && (f.Effect == Dies || row.Taken != 0 && row.Taken*1000 < f.End)
}

// dueAfter are the schedule-born runs of prompt jobs that fell due while a fault was
// fresh.
func (a *Auditor) dueAfter(f Fault) (due []Row) {
	from := f.Begin / 1000
	to := from + a.in.Rules.Horizon
	if f.Effect == Starves { // it takes no part for a while after it could again
		to = max(to, f.End/1000+a.in.Rules.Horizon)
	}
	for _, row := range a.in.Rows {
		if row.Due > from && row.Due <= to && a.inOrder(row) {
			due = append(due, row)
		}
	}
	return due
}

// inOrder reports whether the row is a run that is due by itself, of a job whose runs
// are short.
func (a *Auditor) inOrder(row Row) bool {
	return row.scheduleBorn() && row.Count == 0 && row.State != Skipped && a.jobs[row.Job].Prompt
}

func (r *Report) addRoute(route string, late, bound int64) {
	if r.Routes == nil {
		r.Routes = map[string]RouteSpread{}
	}
	s, had := r.Routes[route]
	if !had || bound < s.Bound {
		s.Bound = bound
	}
	s.Spread = append(s.Spread, late)
	r.Routes[route] = s
}
