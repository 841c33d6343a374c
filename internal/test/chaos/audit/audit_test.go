package audit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain has CI run none of these tests again that has failed: it looks for that line.
func TestMain(m *testing.M) {
	code := m.Run()
	if code != 0 {
		fmt.Println("audited: not run again")
	}
	os.Exit(code)
}

// The history of these tests: five jobs over sixty seconds from t0, and one kill.
const (
	t0 = int64(1_800_000_000_000)

	everySecond = int64(1) // CRON, at node a
	broadcast   = int64(2) // every two seconds, over nodes a and b
	discards    = int64(3) // every second, for 2.5 s each
	byHand      = int64(4) // triggers only
	delayed     = int64(5) // two seconds behind the end before
	tenRuns     = int64(6) // every second, ten runs in all
	halfAMinute = int64(7) // every second from second 5 to second 30
	concurrent  = int64(8) // every two seconds, for 3 s each, two side by side
)

var (
	nodeA = Process{"a", 10}
	nodeB = Process{"b", 20}
)

// history is an input in the making.
type history struct {
	Input
	nextRun int64
}

// add puts a run into the history: its row, and unless ended is zero the two
// events around it. It returns the run.
func (h *history) add(job, due int64, p Process, state int, start, end int64, change ...func(*Row, *Event)) int64 {
	h.nextRun++
	row := Row{Run: h.nextRun, Job: job, State: state, Type: "CRON", Due: due, Owner: p.Node + "-0123456789", Address: "local://" + p.Node + "-0123456789", Started: start, Taken: start}
	e := Event{Kind: EventStart, At: start * 1000, Node: p.Node, PID: p.PID, Run: h.nextRun, Job: job, Due: due, Total: 1}
	for _, f := range change {
		f(&row, &e)
	}
	if start > 0 {
		h.Events = append(h.Events, e)
	}
	if end > 0 {
		e.Kind, e.At, e.How = EventEnd, end*1000, EndOK
		h.Events = append(h.Events, e)
		row.Ended = end
	}
	h.Rows = append(h.Rows, row)
	return h.nextRun
}

// clean is a history in which everything is as promised.
func clean() *history {
	h := &history{}
	h.Rules = DefaultRules()
	h.Jobs = []Job{
		{ID: everySecond, Name: "every second", Shard: 1, Block: BlockSerial, Nearest: true},
		{ID: broadcast, Name: "broadcast", Shard: 2, Block: BlockSerial, Broadcast: true},
		{ID: discards, Name: "discards", Shard: 3, Block: BlockDiscard},
		{ID: byHand, Name: "by hand", Shard: 4, Block: BlockSerial},
		{ID: delayed, Name: "delayed", Shard: 5, Block: BlockSerial, Delay: 2000},
		{ID: tenRuns, Name: "ten runs", Shard: 6, Block: BlockSerial, MaxRuns: 10},
		{ID: halfAMinute, Name: "half a minute", Shard: 7, Block: BlockSerial},
		{ID: concurrent, Name: "concurrent", Shard: 8, Block: BlockConcurrent, Nearest: true, Max: 2},
	}
	set := func(job, at int64, g Grid) {
		h.Ops = append(h.Ops, Op{Kind: OpSet, Verb: "add", Job: job, Call: (at - 10) * 1000, Return: (at - 1) * 1000, Outcome: Done, Grid: g})
	}
	set(everySecond, t0, Grid{Period: 1000})
	set(broadcast, t0, Grid{Period: 2000})
	set(discards, t0, Grid{Period: 1000})
	set(delayed, t0, Grid{})
	set(tenRuns, t0, Grid{Period: 1000})
	set(halfAMinute, t0, Grid{Period: 1000, From: t0 + 4_001, To: t0 + 30_999})
	set(concurrent, t0, Grid{Period: 2000})
	// Node a dies at 20.5 s and is back a second later; b takes over.
	h.Faults = []Fault{{Name: "SIGKILL", Effect: Dies, Victim: nodeA, Begin: (t0 + 20_500) * 1000, End: (t0 + 21_500) * 1000, Shards: []int{1}}}
	for s := int64(0); s < 60; s++ {
		at, p := t0+s*1000, nodeA
		if s > 20 {
			p = nodeB
		}
		switch {
		case s == 20: // interrupted in the handler
			h.add(everySecond, at, p, Lost, at+1, 0)
		default:
			h.add(everySecond, at, p, Succeeded, at+1, at+2)
		}
		h.addOthers(s, at)
	}
	h.trigger("op1", Done, t0+5000, 1)
	h.trigger("op2", Refused, t0+6000, 0)
	h.trigger("op3", Unknown, t0+7000, 1)
	return h
}

// addOthers adds what the other jobs do in second s.
func (h *history) addOthers(s, at int64) {
	if s%2 == 0 {
		for i, p := range []Process{nodeA, nodeB} {
			p.PID += 100 // another process than the one that dies
			h.add(broadcast, at, p, Succeeded, at+3, at+4, func(r *Row, e *Event) { r.Index, r.Total, e.Index, e.Total = i, 2, i, 2 })
		}
	}
	if s%3 == 0 {
		h.add(discards, at, nodeB, Succeeded, at+1, at+2500)
	} else {
		h.add(discards, at, nodeB, Discarded, 0, 0, func(r *Row, _ *Event) { r.Ended = at + 1 })
	}
	if s < 10 {
		h.add(tenRuns, at, nodeB, Succeeded, at+1, at+2)
	}
	if 5 <= s && s <= 30 {
		h.add(halfAMinute, at, nodeB, Succeeded, at+1, at+2)
	}
	if s%2 == 0 {
		h.add(concurrent, at, nodeB, Succeeded, at+1, at+3000)
	}
	if s%5 == 0 {
		h.add(delayed, at+2000, nodeB, Succeeded, at+2001, at+2500, func(r *Row, _ *Event) { r.Type = "FIX_DELAY" })
	}
}

// trigger adds an operation, and its run where there are any.
func (h *history) trigger(param, outcome string, at int64, runs int) {
	op := Op{Kind: OpTrigger, Job: byHand, Call: at * 1000, Return: (at + 5) * 1000, Outcome: outcome, Param: param}
	for range runs {
		op.Run = h.add(byHand, at+5, nodeB, Succeeded, at+6, at+7, func(r *Row, e *Event) { r.Type, e.Param = "MANUAL", param })
	}
	if outcome != Done {
		op.Run = 0
	}
	h.Ops = append(h.Ops, op)
}

func (h *history) report() *Report { return New(h.Input).Check(t0, t0+60_000) }

// run returns the id of the first run of the job at second s.
func (h *history) run(job, s int64) int64 {
	for _, r := range h.Rows {
		if r.Job == job && r.Due == t0+s*1000 {
			return r.Run
		}
	}
	return 0
}

func (h *history) row(job, s int64) *Row {
	id := h.run(job, s)
	return &h.Rows[slices.IndexFunc(h.Rows, func(r Row) bool { return r.Run == id })]
}

func (h *history) event(kind string, run int64) *Event {
	return &h.Events[slices.IndexFunc(h.Events, func(e Event) bool { return e.Run == run && e.Kind == kind })]
}

// forget removes a run's events, and its row too where asked.
func (h *history) forget(run int64, row bool) {
	h.Events = slices.DeleteFunc(h.Events, func(e Event) bool { return e.Run == run })
	if row {
		h.Rows = slices.DeleteFunc(h.Rows, func(r Row) bool { return r.Run == run })
	}
}

func TestClean(t *testing.T) {
	r := clean().report()
	if !r.OK() {
		t.Errorf("a clean history is refused:\n%s", strings.Join(r.Problems, "\n"))
	}
	if r.Interrupted != 1 || len(r.Explained) != 1 || r.Yielded != 40 {
		t.Errorf("interrupted %d, explained %v, yielded %d", r.Interrupted, r.Explained, r.Yielded)
	}
	// 60 of the first, 2x30 of the broadcast, 20 that discard, 12 delayed, 2 by hand; the
	// last of those delayed is due within the stretch. Ten runs, 26 and 30 of the others.
	if r.Runs != 60+60+20+12+2+10+26+30 {
		t.Errorf("runs: %d", r.Runs)
	}
	if got := r.Failover.At(1); got != 501_000 {
		t.Errorf("fail-over: %d us", got)
	}
}

// TestMutations breaks the clean history in one place, and wants the auditor to
// say what is broken and nothing else.
func TestMutations(t *testing.T) {
	for _, m := range []struct {
		name   string
		change func(*history)
		want   Report
	}{
		{"a start and its row are gone", func(h *history) { h.forget(h.run(everySecond, 7), true) }, Report{Lost: 1}},
		{"a run was cancelled though nobody stopped its job", func(h *history) {
			h.row(everySecond, 7).State = Cancelled
			h.forget(h.run(everySecond, 7), false)
		}, Report{Lost: 1}},
		{"a run was refused", func(h *history) {
			h.row(everySecond, 7).State = NoAddress
			h.forget(h.run(everySecond, 7), false)
		}, Report{Lost: 1}},
		{"one part of a broadcast is gone", func(h *history) {
			last := h.run(broadcast, 8) + 1 // part 1
			h.forget(last, true)
		}, Report{Lost: 1}},
		{"an acknowledged trigger did not run", func(h *history) {
			i := slices.IndexFunc(h.Ops, func(op Op) bool { return op.Param == "op1" })
			h.forget(h.Ops[i].Run, true)
		}, Report{Lost: 1, Forgotten: 1}},
		{"the chain of a delay broke", func(h *history) {
			for s := int64(7); s < 62; s++ {
				if id := h.run(delayed, s); id != 0 {
					h.forget(id, true)
				}
			}
		}, Report{Lost: 1}},
		{"one run was started twice", func(h *history) {
			e := *h.event(EventStart, h.run(everySecond, 7))
			e.Node, e.PID, e.At = "c", 30, e.At+1000
			h.Events = append(h.Events, e)
		}, Report{Double: 1}},
		{"one instant has two runs", func(h *history) {
			h.add(everySecond, t0+7000, Process{"c", 30}, Succeeded, t0+7001, t0+7002)
		}, Report{Double: 1}},
		{"one instant has a second run in the table only", func(h *history) {
			h.add(everySecond, t0+7000, nodeA, Lost, 0, 0)
		}, Report{Double: 1, Unexplained: 0}},
		{"one trigger made two runs", func(h *history) {
			h.add(byHand, t0+5005, nodeB, Succeeded, t0+5020, t0+5021, func(r *Row, e *Event) { r.Type, e.Param = "MANUAL", "op1" })
		}, Report{Double: 1}},
		{"an unknown trigger made two runs", func(h *history) {
			h.add(byHand, t0+7005, nodeB, Succeeded, t0+7020, t0+7021, func(r *Row, e *Event) { r.Type, e.Param = "MANUAL", "op3" })
		}, Report{Double: 1}},
		{"a delay was too short", func(h *history) {
			h.add(delayed, t0+3500, nodeB, Succeeded, t0+3501, t0+3502, func(r *Row, _ *Event) { r.Type = "FIX_DELAY" })
		}, Report{Double: 1}},
		{"a start came a microsecond early", func(h *history) { h.event(EventStart, h.run(everySecond, 7)).At = (t0+7000)*1000 - 1 }, Report{Early: 1}},
		{"a run is planned for ever", func(h *history) {
			h.row(everySecond, 7).State = Planned
			h.forget(h.run(everySecond, 7), false)
		}, Report{Unfinished: 1}},
		{"a run is started for ever", func(h *history) { h.row(everySecond, 7).State = Started }, Report{Unfinished: 1}},
		{"a run is interrupted that no fault explains", func(h *history) { h.row(everySecond, 40).State = Lost }, Report{Unexplained: 1}},
		{"a run of the dead process began after its death", func(h *history) {
			h.Faults[0].Begin, h.Faults[0].End = (t0+19_000)*1000, (t0+19_500)*1000
		}, Report{Unexplained: 1, Late: 1}},
		{"a stop in good order interrupts what it had not begun", func(h *history) {
			h.Faults[0].Effect, h.Faults[0].Name = Leaves, "SIGTERM"
			h.forget(h.run(everySecond, 20), false)
		}, Report{Unexplained: 1, Late: 1}},
		{"the kill hit another process of the same name", func(h *history) { h.Faults[0].Victim.PID++ }, Report{Unexplained: 1}},
		{"a run ended long before its process died", func(h *history) {
			h.row(everySecond, 3).State = Lost
		}, Report{Unexplained: 1}},
		{"an instant is skipped in a short fault", func(h *history) { h.skip(everySecond, 21, 23) }, Report{Forbidden: 3, Late: 1}},
		{"instants are skipped after two kills that the cluster recovered from in between", func(h *history) {
			for s := int64(25); s < 50; s += 3 {
				h.Faults = append(h.Faults, Fault{Name: "SIGKILL", Effect: Dies, Victim: Process{"c", int(s)}, Begin: (t0 + s*1000) * 1000, End: (t0 + s*1000 + 500) * 1000})
			}
			h.skip(everySecond, 30, 33)
		}, Report{Forbidden: 4}},
		{"instants are skipped in a silence that another node saw from its beginning", func(h *history) {
			h.Faults = append(h.Faults,
				Fault{Name: "SIGSTOP", Effect: Silent, Victim: Process{"a", 11}, Begin: (t0 + 25_000) * 1000, End: (t0 + 50_000) * 1000},
				Fault{Name: "SIGKILL", Effect: Dies, Victim: Process{"b", 21}, Begin: (t0 + 36_000) * 1000, End: (t0 + 37_000) * 1000})
			h.skip(everySecond, 26, 29)
		}, Report{Forbidden: 4}},
		{"an instant is cancelled, and a record from before that covers it", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 30_000) * 1000, End: (t0 + 50_000) * 1000})
			h.skip(everySecond, 31, 49)
			h.Rows[len(h.Rows)-1].Ended = t0 + 29_000
			h.Rows = append(h.Rows, Row{Run: 9999, Job: everySecond, State: Cancelled, Type: "CRON", Due: t0 + 31_000, Ended: t0 + 30_000, Reason: "update"})
		}, Report{Lost: 1}},
		{"an instant is both run and skipped", func(h *history) {
			h.Rows = append(h.Rows, Row{Run: 9999, Job: everySecond, State: Skipped, Type: "CRON", Due: t0 + 7000, First: t0 + 7000, Last: t0 + 7000, Count: 1})
		}, Report{Double: 1}},
		{"a run of a schedule stands for an instant of its own", func(h *history) { h.row(everySecond, 7).StandsFor = h.row(everySecond, 7).Due }, Report{Wrong: 1}},
		{"a success that no handler saw the end of", func(h *history) {
			h.Events = slices.DeleteFunc(h.Events, func(e Event) bool { return e.Kind == EventEnd && e.Run == h.run(everySecond, 7) })
		}, Report{Wrong: 1}},
		{"a run was killed that nobody asked to be", func(h *history) { h.row(everySecond, 40).State = Killed }, Report{Unexplained: 1}},
		{"a handler failed", func(h *history) { h.row(everySecond, 7).State = Failed }, Report{Wrong: 1}},
		{"an instant that the job does not have", func(h *history) { h.add(everySecond, t0+7500, nodeB, Succeeded, t0+7501, t0+7502) }, Report{Wrong: 1}},
		{"a rolled back trigger ran", func(h *history) {
			h.add(byHand, t0+6005, nodeB, Succeeded, t0+6006, t0+6007, func(r *Row, e *Event) { r.Type, e.Param = "MANUAL", "op2" })
		}, Report{Wrong: 1}},
		{"a trigger ran under another id than was answered", func(h *history) {
			i := slices.IndexFunc(h.Ops, func(op Op) bool { return op.Param == "op1" })
			h.Ops[i].Run++
		}, Report{Wrong: 1}},
		{"a serial job ran twice at once", func(h *history) { h.event(EventEnd, h.run(everySecond, 7)).At += 1_000_000 }, Report{Wrong: 1}},
		{"a job made a run more than it may", func(h *history) { h.add(tenRuns, t0+10_000, nodeB, Succeeded, t0+10_001, t0+10_002) }, Report{Wrong: 1}},
		{"a job made a run less than it may", func(h *history) { h.forget(h.run(tenRuns, 9), true) }, Report{Lost: 51}},
		{"a job left one of its instants out and made one more run", func(h *history) {
			h.forget(h.run(tenRuns, 4), true)
			h.add(tenRuns, t0+10_000, nodeB, Succeeded, t0+10_001, t0+10_002)
		}, Report{Lost: 1}},
		{"an instant before the schedule begins", func(h *history) { h.add(halfAMinute, t0+4000, nodeB, Succeeded, t0+4001, t0+4002) }, Report{Wrong: 1}},
		{"an instant after the schedule has ended", func(h *history) { h.add(halfAMinute, t0+31_000, nodeB, Succeeded, t0+31_001, t0+31_002) }, Report{Wrong: 1}},
		{"the last instant of a schedule is gone", func(h *history) { h.forget(h.run(halfAMinute, 30), true) }, Report{Lost: 1}},
		{"three runs side by side where two may be", func(h *history) { h.event(EventEnd, h.run(concurrent, 6)).At += 1_500_000 }, Report{Wrong: 1}},
		{"a discard with nothing else under way", func(h *history) {
			for s := int64(0); s < 60; s += 3 {
				if s > 30 {
					continue
				}
				h.event(EventEnd, h.run(discards, s)).At = (t0 + s*1000 + 100) * 1000
			}
		}, Report{Wrong: 22}},
		{"a run without a row", func(h *history) {
			id := h.run(everySecond, 7)
			h.Rows = slices.DeleteFunc(h.Rows, func(r Row) bool { return r.Run == id })
		}, Report{Forgotten: 1}},
		{"an id was given to two runs", func(h *history) {
			r := h.row(everySecond, 7)
			r.Due, r.Type = t0+200_000, "MANUAL"
		}, Report{Wrong: 1}},
		{"a skip in a fault that is none of the cluster's", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "no zones", Effect: Harmless, Victim: nodeB, Begin: (t0 + 30_000) * 1000, End: (t0 + 50_000) * 1000})
			h.skip(everySecond, 31, 49)
		}, Report{Forbidden: 19}},
		{"a shard is taken over too late", func(h *history) {
			for s := int64(21); s < 24; s++ {
				h.event(EventStart, h.run(everySecond, s)).At += 2_500_000
				h.event(EventEnd, h.run(everySecond, s)).At += 2_500_000
			}
		}, Report{Late: 1}},
		{"scheduling is not back in time", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 30_500) * 1000, End: (t0 + 31_500) * 1000, Again: true, Within: 2000})
			for s := int64(32); s < 34; s++ {
				h.event(EventStart, h.run(everySecond, s)).At += 2_500_000
				h.event(EventEnd, h.run(everySecond, s)).At += 2_500_000
			}
		}, Report{Late: 1}},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := clean()
			m.change(h)
			got := h.report()
			if got.OK() {
				t.Error("the auditor stays green")
			}
			a := [...]int{got.Lost, got.Double, got.Early, got.Unfinished, got.Unexplained, got.Forbidden, got.Overdue, got.Wrong, got.Forgotten, got.Late}
			w := m.want
			b := [...]int{w.Lost, w.Double, w.Early, w.Unfinished, w.Unexplained, w.Forbidden, w.Overdue, w.Wrong, w.Forgotten, w.Late}
			if a != b {
				t.Errorf("lost, double, early, unfinished, unexplained, forbidden, dropped, wrong, forgotten, late = %v, want %v:\n%s", a, b, strings.Join(got.Problems, "\n"))
			}
		})
	}
}

// TestBoundedIsRobbed: what was skipped or cancelled is none of the runs that a job has made.
func TestBoundedIsRobbed(t *testing.T) {
	h := clean()
	h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 1_000) * 1000, End: (t0 + 20_000) * 1000})
	h.skip(tenRuns, 2, 4)
	for s := int64(10); s < 13; s++ {
		h.add(tenRuns, t0+s*1000, nodeB, Succeeded, t0+s*1000+1, t0+s*1000+2)
	}
	if r := h.report(); !r.OK() || r.Skipped != 3 {
		t.Errorf("%d skipped:\n%s", r.Skipped, strings.Join(r.Problems, "\n"))
	}
}

// TestConcurrentAlone: a concurrent job whose runs never met did not run as one.
func TestConcurrentAlone(t *testing.T) {
	h := clean()
	end := func() *Report {
		r := &Report{}
		New(h.Input).CheckEnd(r, t0+60_000)
		return r
	}
	if r := end(); !r.OK() {
		t.Errorf("a clean history: %q", r.Problems)
	}
	for i := range h.Events {
		if e := &h.Events[i]; e.Job == concurrent && e.Kind == EventEnd {
			e.At -= 1_500_000
		}
	}
	if r := end(); r.Wrong != 1 {
		t.Errorf("%d wrong: %q", r.Wrong, r.Problems)
	}
}

// skip replaces the runs of seconds first to last by a record.
func (h *history) skip(job, first, last int64) {
	for s := first; s <= last; s++ {
		h.forget(h.run(job, s), true)
	}
	h.nextRun++
	h.Rows = append(h.Rows, Row{Run: h.nextRun, Job: job, State: Skipped, Type: "CRON", Due: t0 + first*1000,
		First: t0 + first*1000, Last: t0 + last*1000, Count: int(last - first + 1), Reason: "misfire"})
}

// TestPermitted changes the history in ways that the definitions permit.
func TestPermitted(t *testing.T) {
	for _, m := range []struct {
		name   string
		change func(*history)
	}{
		{"a skip in a long fault", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 30_000) * 1000, End: (t0 + 50_000) * 1000})
			h.skip(everySecond, 31, 49)
		}},
		{"a skip of an instant that was cancelled when the schedule was replaced", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 30_000) * 1000, End: (t0 + 50_000) * 1000})
			h.skip(everySecond, 31, 49)
			h.Rows[len(h.Rows)-1].Ended = t0 + 50_000
			h.say(nodeB, 37, 50, "not ready: claims fail")
			h.Rows = append(h.Rows, Row{Run: 9999, Job: everySecond, State: Cancelled, Type: "CRON", Due: t0 + 31_000, Ended: t0 + 30_000, Reason: "update"})
		}},
		{"a skip in two short faults in a row", func(h *history) {
			h.Faults = append(h.Faults,
				Fault{Name: "restart", Effect: Blocked, Begin: (t0 + 30_000) * 1000, End: (t0 + 38_000) * 1000},
				Fault{Name: "restart", Effect: Blocked, Begin: (t0 + 39_000) * 1000, End: (t0 + 47_000) * 1000})
			h.skip(everySecond, 31, 44)
		}},
		{"a skip in a silence that nobody saw for long enough", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "SIGSTOP", Effect: Silent, Victim: Process{"a", 11}, Begin: (t0 + 25_000) * 1000, End: (t0 + 50_000) * 1000})
			for _, s := range []int64{28, 37} {
				h.Faults = append(h.Faults, Fault{Name: "SIGKILL", Effect: Dies, Victim: Process{"b", int(s)}, Begin: (t0 + s*1000) * 1000, End: (t0 + s*1000 + 2000) * 1000})
			}
			h.skip(everySecond, 26, 48)
		}},
		{"an interruption by a long silence", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "SIGSTOP", Effect: Silent, Victim: nodeB, Begin: (t0 + 25_500) * 1000, End: (t0 + 57_000) * 1000})
			h.row(everySecond, 25).State = Lost
			h.event(EventEnd, h.run(everySecond, 25)).At = (t0 + 57_001) * 1000
			for s := int64(26); s < 58; s++ {
				h.event(EventStart, h.run(everySecond, s)).PID = 30
				h.event(EventEnd, h.run(everySecond, s)).PID = 30
			}
		}},
		{"a stop in good order whose grace was too short", func(h *history) {
			h.Faults[0].Effect, h.Faults[0].Name, h.Faults[0].Shards = Leaves, "SIGTERM", nil
		}},
		{"a stop while the database was away", func(h *history) {
			h.Faults[0].Effect, h.Faults[0].Name, h.Faults[0].Shards = Leaves, "SIGTERM", nil
			h.Faults = append(h.Faults, Fault{Name: "restart", Effect: Blocked, Begin: (t0 + 20_000) * 1000, End: (t0 + 20_700) * 1000})
			h.forget(h.run(everySecond, 20), false)
		}},
		{"a death between taking and calling", func(h *history) { h.forget(h.run(everySecond, 20), false) }},
		{"a run that was killed because somebody asked for it", func(h *history) {
			h.row(everySecond, 7).State = Killed
			h.Ops = append(h.Ops, Op{Kind: OpKill, Job: everySecond, Run: h.run(everySecond, 7), Call: (t0 + 7_000) * 1000, Return: (t0 + 7_100) * 1000})
		}},
		{"an instant within a stop", func(h *history) {
			h.Ops = append(h.Ops, Op{Kind: OpSet, Job: everySecond, Call: (t0 + 6_500) * 1000, Return: (t0 + 7_500) * 1000, Outcome: Done, Grid: Grid{Period: 1000}})
			h.forget(h.run(everySecond, 7), true)
		}},
		{"a stop and a start", func(h *history) {
			h.Ops = append(h.Ops,
				Op{Kind: OpSet, Job: everySecond, Call: (t0 + 6_500) * 1000, Return: (t0 + 6_600) * 1000, Outcome: Done},
				Op{Kind: OpSet, Job: everySecond, Call: (t0 + 9_500) * 1000, Return: (t0 + 9_600) * 1000, Outcome: Done, Grid: Grid{Period: 1000}})
			for s := int64(7); s <= 9; s++ {
				h.forget(h.run(everySecond, s), true)
			}
		}},
		{"an edit whose outcome nobody knows, and what it would have changed", func(h *history) {
			h.Ops = append(h.Ops, Op{Kind: OpSet, Job: everySecond, Call: (t0 + 30_500) * 1000, Return: (t0 + 30_600) * 1000, Outcome: Unknown, Grid: Grid{Period: 2000}})
			for s := int64(31); s < 60; s += 2 {
				h.forget(h.run(everySecond, s), true)
			}
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := clean()
			m.change(h)
			if r := h.report(); !r.OK() {
				t.Errorf("refused:\n%s", strings.Join(r.Problems, "\n"))
			}
		})
	}
}

// TestAfterAnEdit goes on in its second half under another schedule.
func TestAfterAnEdit(t *testing.T) {
	h := clean()
	h.Ops = append(h.Ops, Op{Kind: OpSet, Job: everySecond, Call: (t0 + 30_500) * 1000, Return: (t0 + 30_600) * 1000, Outcome: Done, Grid: Grid{Period: 2000}})
	if r := h.report(); r.Wrong != 15 || r.Lost != 0 {
		t.Errorf("fifteen instants that the edit took away: wrong %d, lost %d", r.Wrong, r.Lost)
	}
	for s := int64(31); s < 60; s++ {
		h.forget(h.run(everySecond, s), true)
	}
	if r := h.report(); r.Lost != 15-1 && r.Lost != 14 {
		t.Errorf("lost %d of the instants that the edit left:\n%s", r.Lost, strings.Join(r.Problems, "\n"))
	}
}

func TestOverdueAtAnEdit(t *testing.T) {
	h := clean()
	h.Ops = append(h.Ops, Op{Kind: OpSet, Job: everySecond, Call: (t0 + 9_500) * 1000, Return: (t0 + 9_600) * 1000, Outcome: Done, Grid: Grid{Period: 1000}})
	h.forget(h.run(everySecond, 7), true)
	if r := h.report(); r.Dropped != 0 || r.Lost != 1 {
		t.Errorf("an edit that keeps the schedule: dropped %d, lost %d", r.Dropped, r.Lost)
	}
	edit := &h.Ops[len(h.Ops)-1]
	edit.Grid = Grid{}
	h.Ops = append(h.Ops, Op{Kind: OpSet, Job: everySecond, Call: (t0 + 9_700) * 1000, Return: (t0 + 9_800) * 1000, Outcome: Done, Grid: Grid{Period: 1000}})
	if r := h.report(); r.Dropped != 1 || r.Lost != 0 || r.OK() {
		t.Errorf("a stop in good health: dropped %d, lost %d, ok %v", r.Dropped, r.Lost, r.OK())
	}
	h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 6_900) * 1000, End: (t0 + 9_000) * 1000})
	if r := h.report(); r.Dropped != 1 || !r.OK() {
		t.Errorf("a stop after an outage: dropped %d, ok %v", r.Dropped, r.OK())
	}
}

// TestRecordAtAnEdit is about instants that an edit left behind, where nothing was
// planned for them: its record needs the edit, and what made them overdue.
func TestRecordAtAnEdit(t *testing.T) {
	h := clean()
	h.skip(everySecond, 7, 7)
	h.Rows[len(h.Rows)-1].Reason = "edit"
	if r := h.report(); r.Forbidden != 1 || r.Dropped != 0 {
		t.Errorf("a record of an edit that nobody made: forbidden %d, dropped %d", r.Forbidden, r.Dropped)
	}
	h.Ops = append(h.Ops,
		Op{Kind: OpSet, Job: everySecond, Call: (t0 + 9_500) * 1000, Return: (t0 + 9_600) * 1000, Outcome: Done, Grid: Grid{}},
		Op{Kind: OpSet, Job: everySecond, Call: (t0 + 9_700) * 1000, Return: (t0 + 9_800) * 1000, Outcome: Done, Grid: Grid{Period: 1000}})
	if r := h.report(); r.Forbidden != 0 || r.Dropped != 1 || r.Overdue != 1 || r.OK() {
		t.Errorf("a stop in good health: forbidden %d, dropped %d, overdue %d, ok %v", r.Forbidden, r.Dropped, r.Overdue, r.OK())
	}
	others := h.Faults
	for _, c := range []struct {
		begin   int64
		overdue int
	}{{6_900, 0}, {7_050, 0}, {7_000 + h.Rules.overdue() + 100, 1}} {
		h.Faults = append(slices.Clone(others), Fault{Name: "lock", Effect: Blocked, Begin: (t0 + c.begin) * 1000, End: (t0 + 9_000) * 1000})
		if r := h.report(); r.Dropped != 1 || r.Overdue != c.overdue || r.OK() != (c.overdue == 0) {
			t.Errorf("a stop after an outage from %d on: dropped %d, overdue %d, ok %v", c.begin, r.Dropped, r.Overdue, r.OK())
		}
	}
}

func TestEnd(t *testing.T) {
	h := clean()
	h.add(everySecond, t0+60_000, nodeB, Planned, 0, 0)
	a, r := New(h.Input), &Report{}
	if a.CheckEnd(r, t0+60_000); !r.OK() {
		t.Errorf("a planned run at the end: %v", r.Problems)
	}
	h.add(everySecond, t0+61_000, nodeB, Started, 0, 0)
	if New(h.Input).CheckEnd(r, t0+60_000); r.Wrong != 0 {
		t.Errorf("a run that nobody has taken: %v", r.Problems)
	}
	h.Rows[len(h.Rows)-1].Taken = t0 + 61_000
	if New(h.Input).CheckEnd(r, t0+60_000); r.Wrong != 1 {
		t.Errorf("a run that was left behind: %v", r.Problems)
	}
}

func TestMayForget(t *testing.T) {
	h := clean()
	h.Rules.MayForget = true
	h.forget(h.run(everySecond, 7), true)
	if r := h.report(); r.Lost != 1 || !r.OK() {
		t.Errorf("lost %d, ok %v", r.Lost, r.OK())
	}
	h.event(EventStart, h.run(everySecond, 9)).At -= 2000 * 1000
	if r := h.report(); r.OK() {
		t.Error("a start that is early is forgiven")
	}
}

// TestForgottenEdit: an edit that a promotion may have undone leaves both schedules
// possible. One that nothing can have undone does not.
func TestForgottenEdit(t *testing.T) {
	h := clean()
	h.Rules.MayForget = true
	h.Faults = append(h.Faults, Fault{Name: "promotion", Effect: Blocked, Begin: (t0 + 40_500) * 1000, End: (t0 + 43_000) * 1000, Forgets: (t0 + 37_000) * 1000})
	h.Ops = append(h.Ops, Op{Kind: OpSet, Job: everySecond, Call: (t0 + 38_500) * 1000, Return: (t0 + 38_600) * 1000, Outcome: Done, Grid: Grid{Period: 2000}})
	if r := h.report(); r.Wrong != 0 || !r.OK() {
		t.Errorf("the schedule from before an edit that is gone: wrong %d, %v", r.Wrong, r.Problems)
	}
	edits := h.Ops
	h.Ops = append(slices.Clone(edits),
		Op{Kind: OpSet, Verb: "stop", Job: everySecond, Call: (t0 + 44_100) * 1000, Return: (t0 + 44_200) * 1000, Outcome: Done},
		Op{Kind: OpSet, Verb: "start", Job: everySecond, Call: (t0 + 44_300) * 1000, Return: (t0 + 44_400) * 1000, Outcome: Done, Grid: Grid{Period: 2000}})
	if r := h.report(); r.Wrong != 0 || !r.OK() {
		t.Errorf("the same, and the job was stopped and started since: wrong %d, %v", r.Wrong, r.Problems)
	}
	h.Ops = edits
	h.Ops[len(h.Ops)-1].Call -= 2_000_000
	h.Ops[len(h.Ops)-1].Return -= 2_000_000
	if r := h.report(); r.Wrong != 12 {
		t.Errorf("the schedule from before an edit that is kept: wrong %d", r.Wrong)
	}
}

// TestForgottenResult: a run whose result a promotion has lost ends as lost, and the
// promotion explains it. Elsewhere nothing does.
func TestForgottenResult(t *testing.T) {
	h := clean()
	h.Faults = append(h.Faults, Fault{Name: "promotion", Effect: Blocked, Begin: (t0 + 40_500) * 1000, End: (t0 + 43_000) * 1000})
	h.row(everySecond, 40).State = Lost
	if r := h.report(); r.Unexplained != 1 {
		t.Errorf("a result that a database lost which may not: unexplained %d", r.Unexplained)
	}
	h.Rules.MayForget = true
	if r := h.report(); r.Unexplained != 0 || !r.OK() {
		t.Errorf("a result that a promotion lost: unexplained %d, ok %v", r.Unexplained, r.OK())
	}
	h.row(everySecond, 42).State = Lost
	h.event(EventStart, h.run(everySecond, 42)).At = (t0 + 43_600) * 1000
	h.event(EventEnd, h.run(everySecond, 42)).At = (t0 + 43_601) * 1000
	if r := h.report(); r.Unexplained != 0 {
		t.Errorf("a run whose handler was called a moment behind the promotion: unexplained %d", r.Unexplained)
	}
	h.row(everySecond, 50).State = Lost
	if r := h.report(); r.Unexplained != 1 {
		t.Errorf("a run that began after the promotion: unexplained %d", r.Unexplained)
	}
}

// TestHinderedTakeOver: the targets are for faults that are alone.
func TestHinderedTakeOver(t *testing.T) {
	slow := func(others ...Fault) *Report {
		h := clean()
		h.Rules.Timed = true
		for s := int64(21); s < 24; s++ { // nobody starts anything for three seconds more
			h.forget(h.run(everySecond, s), true)
		}
		h.Faults = append(h.Faults, others...)
		return h.report()
	}
	if r := slow(); r.Late == 0 {
		t.Error("a slow fail-over is not noticed")
	}
	if r := slow(Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 20_000) * 1000, End: (t0 + 23_000) * 1000}); r.Late != 0 {
		t.Errorf("a fail-over while a table is locked: late %d", r.Late)
	}
	if r := slow(Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 50_000) * 1000, End: (t0 + 53_000) * 1000}); r.Late == 0 {
		t.Error("a lock long after it excuses a slow fail-over")
	}
	h := clean()
	h.Rules.Busy = true
	for s := int64(21); s < 24; s++ {
		h.forget(h.run(everySecond, s), true)
	}
	if r := h.report(); r.Late != 0 {
		t.Errorf("on a machine that others use: late %d", r.Late)
	}
}

func TestSpread(t *testing.T) {
	var s Spread
	if s.At(0.5) != 0 {
		t.Error("an empty spread has a median")
	}
	for i := range int64(100) {
		s = append(s, 100-i)
	}
	for p, want := range map[float64]int64{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := s.At(p); got != want {
			t.Errorf("At(%v) = %d, want %d", p, got, want)
		}
	}
}

func TestParseEvents(t *testing.T) {
	events, err := parseLines[Event]([]byte("{\"kind\":\"start\",\"run\":7}\n{\"kind\":\"end\",\"ru"))
	if err != nil || len(events) != 1 || events[0].Run != 7 {
		t.Errorf("%v %v", events, err)
	}
	if _, err := parseLines[Event]([]byte("{\"kind\":\"sta\n{}\n")); err == nil {
		t.Error("a broken line in the middle is accepted")
	}
}

func TestGrid(t *testing.T) {
	g := Grid{Period: 1000, Anchor: 250}
	for at, want := range map[int64]int64{0: 250, 250: 250, 251: 1250, -1000: -750} {
		if got := g.first(at); got != want {
			t.Errorf("first(%d) = %d, want %d", at, got, want)
		}
	}
	if (Grid{}).has(0) {
		t.Error("a grid without a period has instants")
	}
}

// TestBegunWhileDying: the death of a process is written down before the signal is sent, and it
// may begin a handler in between.
func TestBegunWhileDying(t *testing.T) {
	const ending = 3 * dying // where the machine has no processor free for it
	for _, x := range []struct {
		after, gone int64 // gone after its death was written down, if that was seen
		unexplained int
	}{{10, 0, 0}, {dying + 1, 0, 1}, {ending + dying, ending, 0}, {ending + dying + 1, ending, 1}} {
		h := clean()
		start := h.event(EventStart, h.run(everySecond, 20))
		f := &h.Faults[0]
		if f.Begin = start.At - x.after; x.gone > 0 {
			f.Gone = f.Begin + x.gone
		}
		if r := h.report(); r.Unexplained != x.unexplained {
			t.Errorf("a run that began %d µs after the death of its process, seen after %d: %d unexplained:\n%s", x.after, x.gone, r.Unexplained, strings.Join(r.Problems, "\n"))
		}
	}
}

// TestPausedBeforeItsHandler: a process that is paused for long after it has taken a run, and
// before it calls the handler, explains that the run is lost; one that was paused before it
// took the run does not.
func TestPausedBeforeItsHandler(t *testing.T) {
	for _, takenBefore := range []bool{true, false} {
		h := clean()
		row := h.row(everySecond, 40)
		begun, ended := h.event(EventStart, row.Run), h.event(EventEnd, row.Run)
		pause := Fault{Name: "SIGSTOP", Effect: Silent, Victim: begun.Process(), Begin: row.Due*1000 + 1000, End: row.Due*1000 + 1000 + h.Rules.LostAfter*1000}
		h.Faults = append(h.Faults, pause)
		row.State, row.Taken = Lost, row.Due
		if !takenBefore {
			row.Started, row.Taken = pause.End/1000+1, pause.End/1000+1
		}
		begun.At, ended.At = pause.End+1500, pause.End+1600
		r := h.report()
		if unexplained := r.Unexplained; (unexplained == 0) != takenBefore {
			t.Errorf("taken before the pause: %t, unexplained %d:\n%s", takenBefore, unexplained, strings.Join(r.Problems, "\n"))
		}
	}
}
