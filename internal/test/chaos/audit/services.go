package audit

import (
	"cmp"
	"slices"
)

// What is promised of services that share a store. While one of them is away its jobs wait for it,
// or are refused, as they say: of a job that waits nothing is planned meanwhile, and when the
// service is back one record stands for all that its misfire policy gives up or makes up for. A
// job with a router that only nodes of its service have goes to an address that one of these chose.
// Who is told of the alarms of one service alone is told of no other's.

// What becomes of a job while its service is away.
const (
	NobodyWait   = "WAIT"
	NobodyRefuse = "REFUSE"
)

// Choice is what a router of a service chose for a job: a line that it writes at each call.
type Choice struct {
	At int64 `json:"at"`
	Process
	Job     int64  `json:"job"`
	Address string `json:"address"`
}

// ReadChoices reads what the routers chose.
func ReadChoices(dir string) ([]Choice, error) { return readLines[Choice](dir, "chosen-*.jsonl") }

// away are the times in which a service had no process at all.
func (x explainer) away(app string) (all []interval) {
	for _, f := range x.faults {
		if f.Effect == Absent && f.App == app {
			all = append(all, interval{f.Begin, f.End})
		}
	}
	return all
}

// missed reports whether a record of these instants may be because its job's service was away.
func (x explainer) missed(j Job, first, last int64) bool {
	return j.Nobody == NobodyWait && slices.ContainsFunc(x.away(j.App), func(i interval) bool {
		end := i.end + x.rules.Slack*1000
		return end-i.begin >= x.rules.Misfire*1000 && i.begin <= last*1000 && first*1000 <= end
	})
}

// mayRefuse reports whether a run may have ended as refused at a moment since its service had been
// away for so long.
func (x explainer) mayRefuse(j Job, ended int64) bool {
	return j.Nobody == NobodyRefuse && slices.ContainsFunc(x.away(j.App), func(i interval) bool {
		return ended*1000 >= i.begin+(x.rules.LostAfter-1000)*1000 && ended*1000 <= i.end+x.rules.Slack*1000
	})
}

// checkServed judges a run of a job that says what becomes of it while its service is away.
func (a *Auditor) checkServed(r *Report, row Row) {
	j := a.jobs[row.Job]
	if j.Nobody == "" {
		return
	}
	wrong := func(kind, why string) {
		r.Wrong++
		r.problem(kind, "%s (%s, %s), due at %s: %s; %s", a.nameOf(row), j.Route, j.Nobody, clock(row.Due), why, describe([]Row{row}))
	}
	if row.State == NoAddress {
		if a.explain.mayRefuse(j, row.Ended) {
			r.Refused++
		} else {
			wrong("refused", "its service was not away for so long")
		}
	}
	if row.Count > 0 {
		switch {
		case j.FireOnce && row.State == Skipped, !j.FireOnce && row.State != Skipped:
			wrong("policy", "its misfire policy says otherwise")
		case row.Count != a.instantsIn(j, row.First, row.Last):
			wrong("count", "it stands for "+itoa(int64(row.Count))+" instants from "+clock(row.First)+" to "+clock(row.Last))
		}
	} else if row.scheduleBorn() {
		for _, i := range a.explain.away(j.App) {
			slack := a.in.Rules.Slack * 1000
			// It is known then that nobody is there, which is so of a process that died once its lease
			// is over, and what was planned until then is due.
			known := i.begin + a.in.Rules.untaken(Silent)*1000 + slack
			if j.Nobody == NobodyRefuse {
				known = i.begin + a.in.Rules.LostAfter*1000 + slack
			} else if i.end-i.begin < a.in.Rules.Misfire*1000+3*slack {
				continue // it may be made up for one by one
			}
			due := row.Due * 1000
			if known <= due && due < i.end-slack && (j.Nobody == NobodyWait || len(a.starts[row.Run]) > 0) {
				wrong("nobody", "it fell due while its service was away")
			}
		}
	}
	if j.Chosen {
		a.checkChosen(row, wrong)
	}
}

// instantsIn is how many instants of a job that nobody edits lie between two.
func (a *Auditor) instantsIn(j Job, first, last int64) (n int) {
	for _, op := range a.lives[j.ID] {
		if g := op.Grid; g.Period > 0 {
			n = 0
			for at := g.first(first); at <= last; at += g.Period {
				n++
			}
		}
	}
	return n
}

// choiceAge is how old a router's choice may be by which a run goes to an address, in
// milliseconds: it may wait there for another of its job.
const choiceAge = 10_000

// checkChosen wants a run at an address that a router of its service chose.
func (a *Auditor) checkChosen(row Row, wrong func(kind, why string)) {
	if row.Started == 0 || row.Address == "" || row.State == NoAddress {
		return
	}
	until := max(row.Started, row.Taken) + hearsay
	for _, e := range a.starts[row.Run] {
		until = max(until, e.At/1000)
		if e.Node != NodeOf(row.Address) {
			wrong("elsewhere", "it was begun by "+e.Node)
		}
	}
	if !slices.ContainsFunc(a.in.Choices, func(c Choice) bool {
		return c.Job == row.Job && c.Address == row.Address && row.Started-choiceAge <= c.At/1000 && c.At/1000 <= until
	}) {
		wrong("not chosen", "no router chose "+row.Address)
	}
}

// checkRecords wants no instant in two records of such jobs, and one record for each absence.
func (a *Auditor) checkRecords(r *Report, from, to int64) {
	for _, job := range sortedKeys(a.records) {
		j := a.jobs[job]
		if j.Nobody == "" {
			continue
		}
		records := slices.SortedFunc(slices.Values(a.records[job]), func(x, y Row) int { return cmp.Compare(x.First, y.First) })
		for i := 1; i < len(records); i++ {
			one, next := records[i-1], records[i]
			if next.First < from || next.First >= to {
				continue
			}
			sameAbsence := slices.ContainsFunc(a.explain.away(j.App), func(i interval) bool { return i.begin <= one.First*1000 && next.First*1000 <= i.end })
			if next.First <= one.Last || sameAbsence {
				r.Double++
				r.problem("double", "job %d (%s) has two records of one absence: %d from %s to %s, and %d from %s to %s", j.ID, j.Name,
					one.Run, clock(one.First), clock(one.Last), next.Run, clock(next.First), clock(next.Last))
			}
		}
	}
}

// checkRepeated wants a reason for a sink's being told twice of one alarm: who told it died, or was
// away, before it had noted that, or could not.
func (a *Auditor) checkRepeated(r *Report, one Alarm, sink string, times []int64) {
	slices.Sort(times)
	for i := 1; i < len(times); i++ {
		before, again := times[i-1], times[i]
		if before == 0 || slices.ContainsFunc(a.in.Faults, func(f Fault) bool {
			return f.Effect != Harmless && f.Effect != Absent && f.Begin <= again && before <= f.End+a.in.Rules.Slack*1000
		}) {
			continue
		}
		r.Double++
		r.problem("told twice", "%s was told of alarm %d (%s) of job %d, run %d, at %s and at %s, without a fault in between", sink, one.ID, one.Cause, one.Job, one.Run, moment(before), moment(again))
	}
}
