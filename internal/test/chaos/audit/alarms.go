package audit

// What is promised of alarms: a run that has failed or was lost for good, a further attempt that was discarded
// or covered, a record of what
// was skipped and a run that is late has one each, and nothing else has any: a run least of
// all that another attempt follows. Each is told by every sink at least once, and no sink is
// told of anything else.

// The causes of alarms, and the status of one that all were told of.
const (
	causeFailed  = "failed"
	causeLost    = "lost"
	causeSkipped = "skipped"
	causeLate    = "late"
	AlarmTold    = 2
)

// AlarmCauses are those that are counted, in their order.
func AlarmCauses() []string { return []string{causeFailed, causeLost, causeSkipped, causeLate} }

// cause is what a run and an alarm have in common.
type cause struct {
	run  int64
	name string
}

// told is a row and who has accepted it.
type told struct {
	sink  string
	alarm int64
	cause
}

// alarms is what there is of alarms, sorted for questions.
type alarms struct {
	of   map[cause][]Alarm
	told map[told][]int64 // when
	last map[chain]Row    // of each part of a trigger: the run that nothing follows
}

func (a *Auditor) addAlarms() {
	a.alarms = alarms{map[cause][]Alarm{}, map[told][]int64{}, map[chain]Row{}}
	for _, one := range a.in.Alarms {
		k := cause{one.Run, one.Cause}
		a.alarms.of[k] = append(a.alarms.of[k], one)
	}
	for _, t := range a.in.Told {
		if t.Message != "" {
			continue
		}
		k := told{t.Sink, t.Alarm, cause{t.Run, t.Cause}}
		a.alarms.told[k] = append(a.alarms.told[k], t.At)
	}
	for _, row := range a.in.Rows {
		k := chain{row.Trigger, row.Index}
		if last, had := a.alarms.last[k]; !had || row.Attempt+row.Snoozes > last.Attempt+last.Snoozes {
			a.alarms.last[k] = row
		}
	}
}

// causeOf is the alarm that the end of a run has to be.
func (a *Auditor) causeOf(row Row) string {
	switch row.State {
	case Skipped:
		return causeSkipped
	case Failed, TimedOut, NoAddress, Lost:
		switch {
		case row.Doomed || a.alarms.last[chain{row.Trigger, row.Index}].Run != row.Run:
			return ""
		case row.State == Lost:
			return causeLost
		}
		return causeFailed
	case Discarded, Killed: // what was to make up for a failure, unless somebody asked for its end
		if row.Type == typeRetry && row.Attempt > 0 && !row.Doomed {
			return causeFailed
		}
	}
	return ""
}

// checkAlarms judges the alarms about instants of a stretch of time, where there are sinks.
func (a *Auditor) checkAlarms(r *Report, from, to int64) {
	if len(a.in.Rules.Sinks) == 0 {
		return
	}
	for _, row := range a.in.Rows {
		if at := row.instant(); from <= at && at < to {
			a.checkAlarmed(r, row)
		}
	}
	for _, one := range a.in.Alarms {
		if from <= one.Instant && one.Instant < to || one.Instant == 0 {
			a.checkAlarm(r, one)
		}
	}
	for _, t := range a.in.Told {
		switch {
		case t.Message != "": // see checkNoted
		case t.Alarm == 0: // at no time that anybody knows
			r.Wrong++
			r.problem("message", "%s was told %s", t.Sink, t.Cause)
		case from <= t.Instant && t.Instant < to:
			a.checkTold(r, t)
		}
	}
}

// checkAlarmed compares the alarms of a run with those that it has to have.
func (a *Auditor) checkAlarmed(r *Report, row Row) {
	want := a.causeOf(row)
	for _, name := range AlarmCauses() {
		n := len(a.alarms.of[cause{row.Run, name}])
		must, may := name == want, name == want
		if name == causeLate {
			must, may = a.lateness(row)
		}
		switch {
		case n > 1:
			r.Double++
			r.problem("double", "%s has %d alarms (%s)", a.nameOf(row), n, name)
		case must && n == 0:
			if name == causeLate {
				r.Late++ // who has ended before anybody looks is not told of: a matter of the clock
			} else {
				r.Lost++
			}
			r.problem("no alarm", "%s is %s, and there is no alarm (%s)", a.nameOf(row), stateName(row.State), name)
		case !may && n > 0:
			r.Wrong++
			r.problem("alarm of nothing", "%s, attempt %d, is %s, and has an alarm (%s)", a.nameOf(row), row.Attempt, stateName(row.State), name)
		}
	}
}

// lateness reports whether a run has to have an alarm that it is late, and whether it may:
// somebody looks every second or so, and ends are stored a moment after they have come.
func (a *Auditor) lateness(row Row) (must, may bool) {
	after := a.jobs[row.Job].LateAfter
	if after == 0 || row.State == Skipped {
		return false, false
	}
	from := row.instant() + after
	may = row.Ended == 0 || row.Ended > from-hearsay
	must = row.Ended-from > a.in.Rules.Slack && !a.explain.outageWithin(from, row.Ended)
	return must, may
}

// checkAlarm judges a row: it has a cause, all were told, and each sink has accepted it.
func (a *Auditor) checkAlarm(r *Report, one Alarm) {
	_, there := a.rows[one.Run]
	known := one.Cause == causeFailed || one.Cause == causeLost || one.Cause == causeSkipped || one.Cause == causeLate
	switch {
	case !known || one.Run == 0:
		r.Wrong++
		r.problem("alarm of nothing", "alarm %d (%s) of job %d, run %d: nobody has asked for that", one.ID, one.Cause, one.Job, one.Run)
	case !there:
		r.Forgotten++
		r.problem("alarm of nothing", "alarm %d (%s) of job %d is about run %d, which has no row", one.ID, one.Cause, one.Job, one.Run)
	}
	if r.Alarms == nil {
		r.Alarms = map[string]int{}
	}
	r.Alarms[one.Cause]++
	if one.Status != AlarmTold {
		r.Unfinished++
		r.problem("untold", "alarm %d (%s) of job %d, run %d, has the status %d for ever", one.ID, one.Cause, one.Job, one.Run, one.Status)
	}
	for _, sink := range a.in.Rules.Sinks {
		times := a.alarms.told[told{sink, one.ID, cause{one.Run, one.Cause}}]
		app := a.in.Rules.SinkOf[sink]
		switch n := len(times); {
		case app != "" && app != a.jobs[one.Job].App:
			if n > 0 {
				r.Wrong++
				r.problem("told of another's", "%s, which is of %s, was told of alarm %d (%s) of job %d (%s)", sink, app, one.ID, one.Cause, one.Job, a.jobs[one.Job].App)
			}
		case n == 0:
			r.Lost++
			r.problem("not told", "alarm %d (%s) of job %d, run %d, was not accepted by %s", one.ID, one.Cause, one.Job, one.Run, sink)
		case n > 1:
			r.Repeated += n - 1
			a.checkRepeated(r, one, sink, times)
		}
	}
}

// checkTold wants a row for what a sink was told.
func (a *Auditor) checkTold(r *Report, t Told) {
	for _, one := range a.alarms.of[cause{t.Run, t.Cause}] {
		if one.ID == t.Alarm {
			return
		}
	}
	r.Forgotten++
	r.problem("told of nothing", "%s was told of alarm %d (%s) about run %d, which has no row", t.Sink, t.Alarm, t.Cause, t.Run)
}
