package audit

// What a handler that fails by a script wrote down, and what the table says of its run.

// timeoutSlack is by how much shorter a run that timed out may look than its timeout: its
// handler is called, and writes that down, a moment after its time has begun.
const timeoutSlack = 300

// checkAttempt holds the state of a row against what its handler wrote.
func (a *Auditor) checkAttempt(r *Report, row Row) {
	wrong := func(why string) {
		r.Wrong++
		r.problem("attempt", "%s is %s: %s; %d starts, ended %q", a.nameOf(row), stateName(row.State), why, len(a.starts[row.Run]), a.lastEnd(row.Run).How)
	}
	for _, e := range a.starts[row.Run] {
		if e.Attempt != row.Attempt {
			wrong("the handler was told another number of attempts")
		}
		if e.At < row.Due*1000 {
			r.Early++
			r.problem("early", "%s is due at %s, and was begun at %s", a.nameOf(row), clock(row.Due), moment(e.At))
		}
	}
	how := a.lastEnd(row.Run).How
	switch row.State {
	case Failed:
		failed := how == EndFailed || how == EndLater || how == EndPanicked || how == EndPermanent
		if !failed || row.NoRetry != (how == EndPermanent) {
			wrong("its handler did not fail like this")
		}
	case TimedOut:
		if starts := a.starts[row.Run]; len(starts) == 0 || row.Ended-starts[0].At/1000 < a.jobs[row.Job].Again.Timeout-timeoutSlack {
			wrong("its handler had not been called for so long")
		}
	case NoAddress:
		if len(a.starts[row.Run]) > 0 {
			wrong("it was begun")
		}
	case Discarded:
		wrong("its job discards nothing")
	case Cancelled:
		if !a.wasKilled(row) && !row.scheduleBorn() {
			wrong("nobody asked for that")
		}
	}
}

// lastEnd is how the handler of a run ended; zero when nobody saw it.
func (a *Auditor) lastEnd(run int64) Event {
	if ends := a.ends[run]; len(ends) > 0 {
		return ends[len(ends)-1]
	}
	return Event{}
}

// nameOf names the run of a row.
func (a *Auditor) nameOf(row Row) string {
	return "run " + itoa(row.Run) + " of job " + itoa(row.Job) + " (" + a.jobs[row.Job].Name + ")"
}
