package audit

import (
	"slices"
	"strings"
	"testing"
)

// The jobs of these tests: one with two children, which is retried; a broadcast with one; a
// chain of two behind it; two jobs and one behind both; and one that may be late.
const (
	parent = int64(40 + iota)
	child
	byKey
	spread
	grandchild
	one
	two
	both
	slow
)

// alarm adds an alarm that both sinks have accepted.
func (h *history) alarm(row Row, name string) {
	id := int64(len(h.Alarms) + 1)
	h.Alarms = append(h.Alarms, Alarm{ID: id, Job: row.Job, Run: row.Run, Cause: name, Status: AlarmTold, Instant: row.instant()})
	for _, sink := range h.Rules.Sinks {
		h.Told = append(h.Told, Told{Sink: sink, Alarm: id, Run: row.Run, Cause: name, Instant: row.instant()})
	}
}

// follow adds a run that the success of another has led to.
func (h *history) follow(job int64, of Row, business int64, change ...func(*Row, *Event)) Row {
	return h.attempt(job, 0, of.Ended+5, of.Ended+5, Succeeded, EndOK, append([]func(*Row, *Event){func(r *Row, _ *Event) {
		r.Type, r.Parent, r.Depth, r.Business = typeParent, of.Run, of.Depth+1, business
	}}, change...)...)
}

// elsewhere has a run in a process of its own.
func elsewhere(_ *Row, e *Event) { e.PID += 100 }

// over adds the record of a window that is over.
func (h *history) over(begins, at int64, of Row, missing string) {
	h.add(both, begins, nodeB, Skipped, 0, 0, func(r *Row, _ *Event) {
		r.Type, r.Parent, r.Depth, r.Business, r.Reason, r.Message = typeParent, of.Run, 1, begins, "join", "the window is over, and these have not succeeded for it: "+missing
		r.First, r.Last, r.Count, r.Ended = begins, begins, 1, at
	})
	h.alarm(h.Rows[len(h.Rows)-1], causeSkipped)
}

// leading is a history in which successes lead to other jobs, as they have to, and failures to
// alarms.
func leading() *history {
	h := &history{nextRun: 2000}
	h.Rules = DefaultRules()
	h.Rules.Sinks = []string{"http", "smtp"}
	again := func() *Again { return &Again{Retries: 1, Pause: 1000, Timeout: 1000} }
	h.Jobs = []Job{
		{ID: parent, Name: "parent", Block: BlockSerial, Again: again(), Children: []int64{child, child}, ChildKeys: []string{"app/by key"}},
		{ID: child, Name: "child", Key: "app/child", Block: BlockSerial},
		{ID: byKey, Name: "by key", Key: "app/by key", Block: BlockSerial},
		{ID: spread, Name: "spread", Block: BlockSerial, Broadcast: true, Again: again(), Children: []int64{grandchild}},
		{ID: grandchild, Name: "grandchild", Block: BlockSerial, Again: again(), Children: []int64{child}},
		{ID: one, Name: "one", Key: "app/one", Block: BlockSerial, Again: again()},
		{ID: two, Name: "two", Key: "app/two", Block: BlockSerial, Again: again()},
		{ID: both, Name: "both", Block: BlockSerial, After: []int64{one}, AfterKeys: []string{"app/two"}, Window: 5000, AfterTimeout: 3000},
		{ID: slow, Name: "slow", Block: BlockSerial, LateAfter: 1000},
	}
	for _, j := range h.Jobs {
		h.Ops = append(h.Ops, Op{Kind: OpSet, Verb: "add", Job: j.ID, Call: (t0 - 10) * 1000, Return: (t0 - 1) * 1000, Outcome: Done})
	}
	h.Faults = []Fault{{Name: "SIGKILL", Effect: Dies, Victim: nodeA, Begin: (t0 + 20_500) * 1000, End: (t0 + 21_500) * 1000, Shards: []int{1}}}

	// 2001: fails, succeeds, and leads to two jobs, 2003 and 2004.
	at := t0 + 1000
	first := h.attempt(parent, 0, at, at, Failed, EndFailed)
	second := h.attempt(parent, first.Run, at, at+1011, Succeeded, EndOK, as(1, 0, 0))
	h.follow(child, second, at)
	h.follow(byKey, second, at)
	// 2005: fails for good.
	at = t0 + 6000
	first = h.attempt(parent, 0, at, at, Failed, EndFailed)
	second = h.attempt(parent, first.Run, at, at+1011, Failed, EndFailed, as(1, 0, 0))
	h.alarm(second, causeFailed)
	// 2007: two parts, of which one fails at first; 2010 follows, and 2011 behind that.
	at = t0 + 8000
	part := func(n int) func(*Row, *Event) {
		return func(r *Row, e *Event) {
			r.Index, r.Total, e.Index, e.Total, e.PID = n, 2, n, 2, e.PID+100*n
			if n == 1 {
				r.Type, r.First, r.Last = "MANUAL", 0, 0
			}
		}
	}
	first = h.attempt(spread, 0, at, at, Failed, EndFailed, part(0))
	h.attempt(spread, first.Run, at, at, Succeeded, EndOK, part(1))
	last := h.attempt(spread, first.Run, at, at+1011, Succeeded, EndOK, part(0), as(1, 0, 0))
	h.follow(child, h.follow(grandchild, last, at), at)
	// 2012: lost with its process.
	at = t0 + 20_490
	lost := h.add(byKey, at, nodeA, Lost, at, 0, func(r *Row, e *Event) { r.Type, r.Trigger, r.Ended = "MANUAL", r.Run, at+2000 })
	h.alarm(h.Rows[len(h.Rows)-1], causeLost)
	h.event(EventStart, lost).Total = 0
	// 2013 and 2014: both have succeeded, and 2015 follows. 2016: one has, and 2017 is over.
	at = t0 + 30_000
	a := h.attempt(one, 0, at+1000, at+1000, Succeeded, EndOK)
	b := h.attempt(two, 0, at+1900, at+1900, Succeeded, EndOK)
	h.follow(both, b, at, func(r *Row, e *Event) { r.Depth, r.StandsFor, e.Due = max(a.Depth, b.Depth)+1, at, at })
	at = t0 + 35_000
	a = h.attempt(one, 0, at+1000, at+1000, Succeeded, EndOK)
	h.over(at, a.Ended+3010, a, "app/two")
	// 2018: late. 2019: not.
	at = t0 + 41_000
	h.attempt(slow, 0, at, at, Succeeded, EndOK)
	h.Rows[len(h.Rows)-1].Ended += 7000
	h.Events[len(h.Events)-1].At += 7_000_000
	h.alarm(h.Rows[len(h.Rows)-1], causeLate)
	h.attempt(slow, 0, at+10_000, at+10_000, Succeeded, EndOK)
	return h
}

func TestLeading(t *testing.T) {
	r := leading().report()
	if !r.OK() {
		t.Errorf("a history as it should be is refused:\n%s", strings.Join(r.Problems, "\n"))
	}
	if r.Children != 4 || r.Joins != 1 || r.Over != 1 {
		t.Errorf("%d children, %d joins and %d windows over, want 4, 1 and 1", r.Children, r.Joins, r.Over)
	}
	for _, name := range AlarmCauses() {
		if r.Alarms[name] != 1 {
			t.Errorf("%d alarms that are %s, want 1", r.Alarms[name], name)
		}
	}
}

// at is a row of a history.
func (h *history) at(run int64) *Row {
	return &h.Rows[slices.IndexFunc(h.Rows, func(r Row) bool { return r.Run == run })]
}

// mute forgets an alarm and who was told of it.
func (h *history) mute(name string) {
	h.Alarms = slices.DeleteFunc(h.Alarms, func(one Alarm) bool { return one.Cause == name })
	h.Told = slices.DeleteFunc(h.Told, func(t Told) bool { return t.Cause == name })
}

// TestLeadingMutations breaks that history in one place.
func TestLeadingMutations(t *testing.T) {
	for _, m := range []struct {
		name   string
		change func(*history)
		want   Report
	}{
		{"a success has no child", func(h *history) { h.forget(2003, true) }, Report{Lost: 1}},
		{"a success has no child by key", func(h *history) { h.forget(2004, true) }, Report{Lost: 1}},
		{"a broadcast has no child", func(h *history) { h.forget(2010, true) }, Report{Lost: 1, Forgotten: 1}},
		{"a child has none", func(h *history) { h.forget(2011, true) }, Report{Lost: 1}},
		{"a success has a child twice", func(h *history) { h.follow(child, *h.at(2002), t0+1000, elsewhere) }, Report{Double: 1}},
		{"a failure has a child", func(h *history) { h.follow(child, *h.at(2006), t0+6000) }, Report{Wrong: 1}},
		{"a broadcast has a child though a part has failed", func(h *history) {
			h.at(2009).State = Failed
			h.event(EventEnd, 2009).How = EndFailed
			h.alarm(*h.at(2009), causeFailed)
		}, Report{Wrong: 1}},
		{"a success leads to a job that is no child", func(h *history) { h.follow(slow, *h.at(2002), t0+1000) }, Report{Wrong: 1}},
		{"a child names a run that has failed", func(h *history) { h.at(2003).Parent = 2001 }, Report{Wrong: 1}},
		{"a child has another depth", func(h *history) { h.at(2011).Depth = 1 }, Report{Wrong: 1}},
		{"a child has the business time of its parent's retry", func(h *history) { h.at(2003).Business = t0 + 2011 }, Report{Wrong: 1}},
		{"a child has the time at which a run that repeats another is due", func(h *history) {
			for _, run := range []int64{2001, 2002} {
				h.at(run).StandsFor = t0 + 500
			}
			h.event(EventStart, 2001).Due, h.event(EventStart, 2002).Due = t0+500, t0+500
		}, Report{Wrong: 2}},
		{"a child begins before its parent has ended", func(h *history) { h.event(EventEnd, 2002).At += 10_000 }, Report{Early: 2}},
		{"a child begins before a part has ended", func(h *history) { h.event(EventEnd, 2008).At += 1_100_000 }, Report{Early: 1}},
		{"a child is owed for ever", func(h *history) {
			h.Owed = append(h.Owed, Owed{Run: 2002, Job: child, Business: t0 + 1000})
		}, Report{Unfinished: 1}},
		{"a child is of a run without a row", func(h *history) { h.at(2003).Parent = 999 }, Report{Lost: 1, Forgotten: 1}},

		{"a window has no run", func(h *history) { h.forget(2015, true) }, Report{Lost: 1}},
		{"a window has no record", func(h *history) { h.forget(2017, true); h.mute(causeSkipped) }, Report{Lost: 1}},
		{"a window has two runs", func(h *history) { h.follow(both, *h.at(2014), t0+30_000, elsewhere) }, Report{Double: 1}},
		{"a window has a run and a record", func(h *history) { h.over(t0+30_000, t0+34_100, *h.at(2013), "app/two") }, Report{Double: 1}},
		{"a window of nobody has a run", func(h *history) {
			h.follow(both, *h.at(2014), t0+45_000, elsewhere)
		}, Report{Wrong: 1}},
		{"an incomplete window has a run", func(h *history) { h.forget(2013, true) }, Report{Wrong: 1}},
		{"a window has its run before the last success", func(h *history) { h.at(2015).Due = t0 + 31_500 }, Report{Wrong: 1}},
		{"a join is started before it is due", func(h *history) { h.at(2015).Due = h.event(EventStart, 2015).At/1000 + 1 }, Report{Early: 1}},
		{"a window is over before its time", func(h *history) { h.at(2017).Ended -= 1000 }, Report{Wrong: 1}},
		{"a record names nobody", func(h *history) { h.at(2017).Message = "" }, Report{Wrong: 2}},
		{"a record names the one that has succeeded", func(h *history) {
			h.at(2017).Message = strings.Replace(h.at(2017).Message, "app/two", "#45", 1)
			h.at(2017).Ended += 10_000
		}, Report{Wrong: 2}},
		{"a record names one more", func(h *history) {
			h.at(2017).Message += ", #45"
			h.at(2017).Ended += 10_000
		}, Report{Wrong: 1}},
		{"a record has another reason", func(h *history) { h.at(2017).Reason = "misfire" }, Report{Wrong: 1}},
		{"a join has another depth", func(h *history) { h.at(2015).Depth = 2 }, Report{Wrong: 1}},
		{"a join has another business time", func(h *history) { h.at(2015).Business += 10 }, Report{Wrong: 1}},
		{"a join stands for when it is due", func(h *history) {
			h.at(2015).StandsFor = 0
			h.event(EventStart, 2015).Due = h.at(2015).Due
		}, Report{Wrong: 1}},
		{"the handler of a join is told when it is due", func(h *history) { h.event(EventStart, 2015).Due = h.at(2015).Due }, Report{Wrong: 1}},
		{"a join names a run of another window", func(h *history) { h.at(2015).Parent = 2016 }, Report{Wrong: 1}},
		{"a window is open for ever", func(h *history) { h.Open = append(h.Open, Open{both, t0 + 40_000}) }, Report{Unfinished: 1}},

		{"a failure has no alarm", func(h *history) { h.mute(causeFailed) }, Report{Lost: 1}},
		{"a lost run has no alarm", func(h *history) { h.mute(causeLost) }, Report{Lost: 1}},
		{"a record has no alarm", func(h *history) { h.mute(causeSkipped) }, Report{Lost: 1}},
		{"a late run has no alarm", func(h *history) { h.mute(causeLate) }, Report{Late: 1}},
		{"a failure has two alarms", func(h *history) { h.alarm(*h.at(2006), causeFailed) }, Report{Double: 1}},
		{"a failure has an alarm as if it was lost", func(h *history) { h.alarm(*h.at(2006), causeLost) }, Report{Wrong: 1}},
		{"a failure that was retried into success has an alarm", func(h *history) { h.alarm(*h.at(2001), causeFailed) }, Report{Wrong: 1}},
		{"a success has an alarm", func(h *history) { h.alarm(*h.at(2002), causeFailed) }, Report{Wrong: 1}},
		{"a run that was killed has an alarm", func(h *history) { h.at(2006).Doomed = true }, Report{Wrong: 1}},
		{"a run that was in time has an alarm", func(h *history) { h.alarm(*h.at(2019), causeLate) }, Report{Wrong: 1}},
		{"a run of a job that is never late has an alarm", func(h *history) { h.alarm(*h.at(2003), causeLate) }, Report{Wrong: 1}},
		{"an attempt has an alarm", func(h *history) { h.alarm(*h.at(2001), "attempt") }, Report{Wrong: 1}},
		{"an alarm is about no run", func(h *history) { h.alarm(Row{Job: child}, causeFailed) }, Report{Wrong: 1}},
		{"an alarm is about a run without a row", func(h *history) { h.alarm(Row{Run: 999, Job: child, Due: t0 + 1}, causeFailed) }, Report{Forgotten: 1}},
		{"an alarm waits for ever", func(h *history) { h.Alarms[0].Status = 0 }, Report{Unfinished: 1}},
		{"an alarm was given up", func(h *history) { h.Alarms[0].Status = 3 }, Report{Unfinished: 1}},
		{"a sink was not told", func(h *history) { h.Told = h.Told[1:] }, Report{Lost: 1}},
		{"a sink was told without an alarm", func(h *history) {
			h.Told = append(h.Told, Told{Sink: "http", Alarm: 99, Run: 2001, Cause: causeFailed, Instant: t0 + 1000})
		}, Report{Forgotten: 1}},
		{"a sink was told of another run", func(h *history) { h.Told[0].Run = 2001 }, Report{Lost: 1, Forgotten: 1}},
		{"a sink was told of no event", func(h *history) { h.Told = append(h.Told, Told{Sink: "http", Cause: "{}"}) }, Report{Wrong: 1}},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := leading()
			m.change(h)
			got := h.report()
			if got.OK() {
				t.Error("the auditor stays green")
			}
			a := [...]int{got.Lost, got.Double, got.Early, got.Unfinished, got.Unexplained, got.Wrong, got.Forgotten, got.Late}
			w := m.want
			b := [...]int{w.Lost, w.Double, w.Early, w.Unfinished, w.Unexplained, w.Wrong, w.Forgotten, w.Late}
			if a != b {
				t.Errorf("lost, double, early, unfinished, unexplained, wrong, forgotten, late = %v, want %v:\n%s", a, b, strings.Join(got.Problems, "\n"))
			}
		})
	}
}

// TestLeadingPermitted changes that history in ways that are no fault of the scheduler's.
func TestLeadingPermitted(t *testing.T) {
	for name, change := range map[string]func(*history){
		"the end of another part was stored last": func(h *history) { h.at(2010).Parent = 2008 },
		"a sink is told once more":                func(h *history) { h.Told = append(h.Told, h.Told[0]) },
		"a success comes a moment before its window is over": func(h *history) {
			h.attempt(two, 0, t0+38_900, t0+38_900, Succeeded, EndOK)
		},
		"a late run has ended before anybody looked, on a machine that is busy with other tests": func(h *history) {
			h.mute(causeLate)
			h.Rules.Timed = false
		},
		"nobody looks for late runs while nodes are away": func(h *history) {
			h.mute(causeLate)
			h.Faults = append(h.Faults, Fault{Name: "restart", Effect: Blocked, Begin: (t0 + 43_000) * 1000, End: (t0 + 50_000) * 1000})
		},
		"a window is from before its job": func(h *history) {
			h.forget(2015, true)
			for i := range h.Ops {
				if op := &h.Ops[i]; op.Job == both {
					op.Call, op.Return = (t0+31_000)*1000, (t0+31_010)*1000
				}
			}
		},
		"the database has forgotten an alarm that a sink was told of": func(h *history) {
			h.Rules.MayForget = true
			h.Told = append(h.Told, Told{Sink: "http", Alarm: 99, Run: 2001, Cause: causeFailed, Instant: t0 + 1000})
		},
		"nobody asks for alarms": func(h *history) { h.Rules.Sinks, h.Alarms = nil, nil },
	} {
		h := leading()
		change(h)
		if r := h.report(); !r.OK() {
			t.Errorf("%s:\n%s", name, strings.Join(r.Problems, "\n"))
		}
	}
}

// TestCauseOfWhatGivesUp: a further attempt that is discarded or covered is the end of its trigger in failure.
func TestCauseOfWhatGivesUp(t *testing.T) {
	for _, state := range []int{Discarded, Killed} {
		for _, tt := range []struct {
			row  Row
			want string
		}{
			{Row{Type: typeRetry, Attempt: 1}, causeFailed},
			{Row{Type: typeRetry, Attempt: 1, Doomed: true}, ""},
			{Row{Type: typeRetry, Snoozes: 1}, ""},
			{Row{Type: "CRON"}, ""},
		} {
			tt.row.State = state
			if got := new(Auditor).causeOf(tt.row); got != tt.want {
				t.Errorf("%+v: the cause %q, want %q", tt.row, got, tt.want)
			}
		}
	}
}
