package audit

import (
	"cmp"
	"slices"
)

// What is promised of the runs of one trigger whose handlers fail: each has exactly the
// follower that the job's settings ask for, with its number of attempts, at its time, and
// never a second one; a run that nothing is to follow has none; and nothing follows one
// after somebody's wish to kill it was answered.

// Again are a job's settings of what follows the end of a run. Times are milliseconds.
type Again struct {
	Retries          int
	Pause, MostPause int64
	Jitter           int64 // percent
	Rerun            bool  // lost runs are run again, besides
	MaxReruns        int
	Aside            bool // later instants do not wait for a retry
	Timeout          int64
}

// chain is a part of a trigger.
type chain struct {
	trigger int64
	index   int
}

// addChains sorts the rows of jobs whose handlers fail.
func (a *Auditor) addChains() {
	a.chains = map[chain][]Row{}
	for _, row := range a.in.Rows {
		if a.jobs[row.Job].Again != nil && row.Count == 0 && row.State != Skipped {
			k := chain{row.Trigger, row.Index}
			a.chains[k] = append(a.chains[k], row)
		}
	}
	for _, rows := range a.chains {
		slices.SortFunc(rows, func(x, y Row) int {
			return cmp.Or(cmp.Compare(x.Attempt, y.Attempt), cmp.Compare(x.Snoozes, y.Snoozes), cmp.Compare(x.Run, y.Run))
		})
	}
}

// wasKilled reports whether somebody wanted the run, or the chain that it is in, to be
// killed.
func (a *Auditor) wasKilled(row Row) bool {
	_, itself := a.killed[row.Run]
	return itself || a.killOf(row).Kind != ""
}

// killOf is who asked for the end of the chain that a row is in.
func (a *Auditor) killOf(row Row) Op {
	if a.jobs[row.Job].Again == nil {
		return Op{}
	}
	return a.killed[row.Trigger]
}

// checkChains judges the chains whose instants are in a stretch of time.
func (a *Auditor) checkChains(r *Report, from, to int64) {
	keys := make([]chain, 0, len(a.chains))
	for k, rows := range a.chains {
		if at := rows[0].instant(); from <= at && at < to {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y chain) int { return cmp.Or(cmp.Compare(x.trigger, y.trigger), cmp.Compare(x.index, y.index)) })
	for _, k := range keys {
		rows := a.chains[k]
		if first := rows[0]; first.Type == typeRetry {
			r.Wrong++
			r.problem("headless", "%s, attempt %d, follows nothing that has a row", a.nameOf(first), first.Attempt)
		}
		for i, row := range rows {
			a.checkAttempt(r, row)
			a.checkFollower(r, row, rows[i+1:])
		}
	}
	a.checkChainTriggers(r, from, to)
	a.checkRearmed(r, from, to)
}

// checkFollower compares what follows a row, which is the first of the rest, with what has
// to.
func (a *Auditor) checkFollower(r *Report, row Row, rest []Row) {
	j := a.jobs[row.Job]
	want, why := j.Again.follower(row)
	kill := a.killOf(row)
	switch {
	case len(rest) == 0 && (why == "" || kill.Kind != "" || row.State <= Dispatched):
		return
	case len(rest) == 0:
		r.Lost++
		r.problem("not followed", "%s, attempt %d, has to be followed (%s), and nothing does", a.nameOf(row), row.Attempt, why)
		return
	}
	next := rest[0]
	if why == "" || next.Attempt != want.Attempt || next.Snoozes != want.Snoozes {
		r.Double++
		r.problem("double", "%s, attempt %d, and run %d, attempt %d: the second follows nothing", a.nameOf(row), row.Attempt, next.Run, next.Attempt)
		return
	}
	if r.Followed == nil {
		r.Followed = map[string]int{}
	}
	r.Followed[why]++
	if kill.Kind != "" && kill.Outcome == Done && row.Ended*1000 > kill.Return {
		r.Wrong++
		r.problem("killed", "%s ended after its kill was answered at %s, and run %d follows it", a.nameOf(row), moment(kill.Return), next.Run)
	}
	if next.Type != typeRetry || next.Reruns != want.Reruns || next.Last != row.instant() || next.Total != row.Total {
		r.Wrong++
		r.problem("follower", "%s is followed by run %d: %+v, want %+v", a.nameOf(row), next.Run, next, want)
	}
	a.checkPause(r, row, next, why)
	a.checkApart(r, row, next)
	a.checkOvertaken(r, row, next)
}

// Why a run is followed by another.
const (
	whyFailed   = "failed"
	whyTimedOut = "timed out"
	whyRefused  = "refused"
	whyRetried  = "lost, retried"
	whyRerun    = "lost, run again"
	whySnoozed  = "snoozed"
)

// Causes are the reasons for which a run is followed by another, in their order.
func Causes() []string {
	return []string{whyFailed, whyTimedOut, whyRefused, whyRetried, whyRerun, whySnoozed}
}

// follower is the follower that a row has to have, as far as the settings say, and why; no
// reason is that it must have none.
func (g *Again) follower(row Row) (next Row, why string) {
	next = Row{Attempt: row.Attempt + 1, Reruns: row.Reruns, Snoozes: row.Snoozes}
	switch {
	case row.NoRetry:
		return Row{}, ""
	case row.Snoozed:
		next.Attempt--
		next.Snoozes++
		return next, whySnoozed
	case row.State == Lost && g.Rerun:
		next.Reruns++
		if row.Reruns >= g.MaxReruns {
			return Row{}, ""
		}
		return next, whyRerun
	}
	why = map[int]string{Failed: whyFailed, TimedOut: whyTimedOut, NoAddress: whyRefused, Lost: whyRetried}[row.State]
	if row.Attempt-row.Reruns >= g.Retries {
		why = ""
	}
	return next, why
}

// checkPause wants the follower at its time: that which the handler gave, or the job's.
func (a *Auditor) checkPause(r *Report, row, next Row, why string) {
	g := a.jobs[row.Job].Again
	before := row.Attempt - row.Reruns
	if why == whyRerun {
		before = row.Reruns
	}
	pause := g.Pause
	if g.MostPause > 0 {
		for ; before > 0 && pause < g.MostPause; before-- {
			pause *= 2
		}
		pause = min(pause, g.MostPause)
	}
	jitter := pause * g.Jitter / 100
	if end := a.lastEnd(row.Run); (why == whyFailed || why == whySnoozed) && end.After > 0 {
		pause, jitter = end.After, 0
	}
	if got := next.Due - row.Ended; got < pause-jitter-1 || got > pause+jitter+1 {
		r.Wrong++
		r.problem("pause", "%s (%s) ended at %s, and run %d is due %d ms later; want %d, %d more or less", a.nameOf(row), why, clock(row.Ended), next.Run, got, pause, jitter)
	}
}

// checkApart wants the handler of a run to have ended before that of its follower begins.
// A handler that went on after its timeout, or whose process was given up, may not have.
func (a *Auditor) checkApart(r *Report, row, next Row) {
	starts := a.starts[next.Run]
	if len(starts) == 0 || len(a.starts[row.Run]) == 0 || row.State == TimedOut || row.State == Lost {
		return
	}
	if end := a.lastEnd(row.Run); end.At == 0 || end.At > starts[0].At {
		r.Double++
		r.problem("double", "%s was under way (%s at %s) when run %d, which follows it, began at %s", a.nameOf(row), end.How, moment(end.At), next.Run, moment(starts[0].At))
	}
}

// checkOvertaken wants no run of a later instant to be started while a retry of an earlier
// one waits, where the job says so. A run that was due before the failure may have been started
// before it as well, and again when its node had died.
func (a *Auditor) checkOvertaken(r *Report, row, next Row) {
	j := a.jobs[row.Job]
	if j.Again.Aside || j.Block != BlockSerial || j.Broadcast || next.Started == 0 || a.explain.duringOutage(row.Ended*1000) {
		return
	}
	for _, other := range a.in.Rows {
		if other.Due <= row.Ended && a.explain.duringOutage(other.Started*1000) {
			continue
		}
		if other.Job == row.Job && other.instant() > row.instant() && other.Started > row.Ended+hearsay && other.Started < next.Started {
			r.Disorder++
			r.problem("overtaken", "%s ended at %s, its retry %d was started at %s, and run %d of %s in between, at %s",
				a.nameOf(row), clock(row.Ended), next.Run, clock(next.Started), other.Run, clock(other.instant()), clock(other.Started))
			return
		}
	}
}

// checkRearmed wants the next instant of a job that goes by a delay behind the end of the
// last attempt, and not of the first.
func (a *Auditor) checkRearmed(r *Report, from, to int64) {
	for _, row := range a.in.Rows {
		j := a.jobs[row.Job]
		if j.Again == nil || j.Delay == 0 || !row.scheduleBorn() || row.Due < from || row.Due >= to {
			continue
		}
		for k, rows := range a.chains {
			last := rows[len(rows)-1]
			if k.trigger != row.Run && last.Job == row.Job && rows[0].instant() < row.Due && row.Due < last.Ended+j.Delay-1 {
				r.Double++
				r.problem("double", "%s is due at %s, less than its delay behind the end of run %d, attempt %d of an earlier one, at %s",
					a.nameOf(row), clock(row.Due), last.Run, last.Attempt, clock(last.Ended))
			}
		}
	}
}

// checkChainTriggers judges the triggers themselves: what was acknowledged is there, once.
func (a *Auditor) checkChainTriggers(r *Report, from, to int64) {
	for _, op := range a.in.Ops {
		if op.Kind != OpChain || op.Call/1000 < from || op.Call/1000 >= to {
			continue
		}
		made := map[int64]bool{}
		for _, run := range a.byParam[op.Param] {
			if row, there := a.rows[run]; there {
				made[row.Trigger] = true
			}
		}
		if len(made) > 1 {
			r.Double++
			r.problem("double", "trigger %s of job %d was made as %v", op.Param, op.Job, sortedKeys(made))
		}
		if op.Outcome != Done {
			continue
		}
		if _, there := a.rows[op.Run]; !there {
			r.Forgotten++
			r.Lost++
			r.problem("lost", "trigger %s of job %d was answered with run %d, which has no row", op.Param, op.Job, op.Run)
		} else if len(made) == 1 && !made[op.Run] {
			r.Wrong++
			r.problem("other id", "trigger %s of job %d was answered with run %d, and was made as %v", op.Param, op.Job, op.Run, sortedKeys(made))
		}
	}
}
