package audit

// What is promised of troubles that nodes pass on: each row that says that one has begun or is over is
// told once by every sink that is to hear of it, by a message of its own, unless a node has told that sink
// of the trouble from what it saw itself. In: the rows, and the messages about troubles.

const (
	causeTrouble     = "trouble"
	causeTroubleOver = "trouble-over"
)

// checkNoted judges the rows of a stretch of time, where there are sinks.
func (a *Auditor) checkNoted(r *Report, from, to int64) {
	if len(a.in.Rules.Sinks) == 0 {
		return
	}
	type message struct{ sink, id string }
	times, rows, byID := map[message][]int64{}, map[int64]bool{}, map[message]Told{}
	for _, t := range a.in.Told {
		if t.Message != "" {
			k := message{t.Sink, t.Message}
			times[k], byID[k] = append(times[k], t.At), t
		}
	}
	for _, one := range a.in.Noted {
		if rows[one.ID] = true; from <= one.At && one.At < to {
			a.checkNote(r, one)
		}
	}
	for k, t := range byID {
		at := times[k]
		if first := at[0] / 1000; first < from || first >= to {
			continue
		}
		if app := a.in.Rules.SinkOf[k.sink]; app != "" && t.App != "" && t.App != app {
			r.Wrong++
			r.problem("told of another's", "%s, which is of %s, was told of a trouble (%s) of %s", k.sink, app, t.Trouble, t.App)
		}
		if t.Alarm != 0 && !rows[t.Alarm] {
			r.Forgotten++
			r.problem("told of nothing", "%s was told of trouble %d (%s), which has no row", k.sink, t.Alarm, t.Trouble)
		}
		if len(at) > 1 {
			r.Repeated += len(at) - 1
			a.checkRepeated(r, Alarm{ID: t.Alarm, Cause: t.Cause + " " + t.Message}, k.sink, at)
		}
	}
}

// checkNote judges a row: it is done with, and each sink that is to hear of it has.
func (a *Auditor) checkNote(r *Report, one Trouble) {
	if a.in.Stopped != 0 && one.At*1000 > a.in.Stopped-a.in.Rules.Slack*1000 {
		return // nobody was there any more to tell of it
	}
	if r.Alarms == nil {
		r.Alarms = map[string]int{}
	}
	r.Alarms[causeTrouble]++
	if one.Status != AlarmTold {
		r.Unfinished++
		r.problem("untold", "trouble %d (%s of %s) has the status %d for ever", one.ID, one.Kind, one.App, one.Status)
	}
	for _, sink := range a.in.Rules.Sinks {
		if app := a.in.Rules.SinkOf[sink]; (app == "" || app == one.App) && !a.heard(sink, one) {
			r.Lost++
			r.problem("not told", "%s was told nothing of trouble %d (%s of %s, over %t)", sink, one.ID, one.Kind, one.App, one.Over)
		}
	}
}

// heard reports whether a sink was told of a row, or of its trouble by who saw it: its end says that it
// has begun, too.
func (a *Auditor) heard(sink string, one Trouble) bool {
	for _, t := range a.in.Told {
		switch {
		case t.Sink != sink || t.Message == "":
		case t.Alarm == one.ID:
			return true
		case t.Alarm == 0 && t.Trouble == one.Kind && (t.App == one.App || t.App == "") && (!one.Over || t.Cause == causeTroubleOver):
			return true
		}
	}
	return false
}
