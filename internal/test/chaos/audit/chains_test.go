package audit

import (
	"slices"
	"strings"
	"testing"
)

// The further jobs of these tests: one whose runs are run again when they are lost, one whose
// lost runs count as failures, one that goes by a delay, and a broadcast.
const (
	rerun = int64(20 + iota)
	retries
	rearmed
	parts
)

// attempt adds a run of a chain: due at a moment, begun a millisecond later and ended ten
// later, as the handler says.
func (h *history) attempt(job, trigger, instant, due int64, state int, how string, change ...func(*Row, *Event)) Row {
	run := h.add(job, due, nodeB, state, due+1, due+11, append([]func(*Row, *Event){func(r *Row, e *Event) {
		r.Type, r.Trigger, e.Due, e.Total = "MANUAL", r.Run, instant, 0
		if trigger != 0 {
			r.Type, r.Trigger, r.First, r.Last = typeRetry, trigger, instant, instant
		}
	}}, change...)...)
	row := &h.Rows[len(h.Rows)-1]
	for i := range h.Events {
		if e := &h.Events[i]; e.Run == run {
			e.Attempt = row.Attempt
			if e.Kind == EventEnd {
				e.How = how
			}
		}
	}
	return *row
}

// as gives a row its numbers.
func as(attempt, reruns, snoozes int) func(*Row, *Event) {
	return func(r *Row, e *Event) { r.Attempt, r.Reruns, r.Snoozes = attempt, reruns, snoozes }
}

// failing is a clean history with chains, each as the settings of its job want it.
func failing() *history {
	h := clean()
	h.nextRun = 1000
	pauses := Again{Retries: 2, Pause: 1000, MostPause: 1500, Timeout: 1000}
	again := func(rerun bool) *Again {
		g := pauses
		g.Rerun, g.MaxReruns = rerun, 1
		return &g
	}
	h.Jobs = append(h.Jobs, Job{ID: rerun, Name: "rerun", Block: BlockSerial, Again: again(true)},
		Job{ID: retries, Name: "retries", Block: BlockSerial, Again: again(false)},
		Job{ID: rearmed, Name: "rearmed", Block: BlockSerial, Delay: 500, Again: again(false)},
		Job{ID: parts, Name: "parts", Block: BlockSerial, Broadcast: true, Again: again(false)})
	h.Ops = append(h.Ops, Op{Kind: OpSet, Verb: "add", Job: rearmed, Call: (t0 - 10) * 1000, Return: (t0 - 1) * 1000, Outcome: Done})

	// 1001: fails, is snoozed, fails again and succeeds.
	at := t0 + 1000
	first := h.attempt(retries, 0, at, at, Failed, EndFailed).Run
	h.attempt(retries, first, at, at+1011, Succeeded, EndSnoozed, as(1, 0, 0), func(r *Row, _ *Event) { r.Snoozed = true })
	h.event(EventEnd, first+1).After = 300
	h.attempt(retries, first, at, at+1322, Failed, EndPanicked, as(1, 0, 1))
	h.attempt(retries, first, at, at+2833, Succeeded, EndOK, as(2, 0, 1))
	h.Ops = append(h.Ops, Op{Kind: OpChain, Job: retries, Call: at * 1000, Return: (at + 1) * 1000, Outcome: Done, Run: first, Param: "chain a"})
	h.event(EventStart, first).Param = "chain a"

	// 1005: lost with its process, refused, and then given up by its handler.
	at = t0 + 20_490
	lost := h.attempt(retries, 0, at, at, Lost, EndExit).Run
	for _, kind := range []string{EventStart, EventEnd} {
		h.event(kind, lost).Node, h.event(kind, lost).PID = nodeA.Node, nodeA.PID
	}
	h.Rows[len(h.Rows)-1].Ended = at + 2000
	refused := h.attempt(retries, lost, at, at+3000, NoAddress, "", as(1, 0, 0)).Run
	h.forget(refused, false)
	h.attempt(retries, lost, at, at+3011+1500, Failed, EndPermanent, as(2, 0, 0), func(r *Row, _ *Event) { r.NoRetry = true })

	// 1008: lost with its process, run again, timed out, tried again.
	first = h.attempt(rerun, 0, at, at, Lost, EndExit).Run
	for _, kind := range []string{EventStart, EventEnd} {
		h.event(kind, first).Node, h.event(kind, first).PID = nodeA.Node, nodeA.PID
	}
	h.Rows[len(h.Rows)-1].Ended = at + 2000
	h.attempt(rerun, first, at, at+3000, TimedOut, EndLate, as(1, 1, 0))
	h.Rows[len(h.Rows)-1].Ended = at + 4001
	h.event(EventEnd, first+1).At += 1_500_000
	h.attempt(rerun, first, at, at+5001, Succeeded, EndOK, as(2, 1, 0))

	// 1011: two instants of the job that goes by a delay.
	at = t0 + 40_000
	first = h.attempt(rearmed, 0, at, at, Failed, EndFailed, func(r *Row, _ *Event) { r.Type = "FIX_DELAY" }).Run
	h.attempt(rearmed, first, at, at+1011, Succeeded, EndOK, as(1, 0, 0))
	h.attempt(rearmed, 0, at+1522, at+1522, Succeeded, EndOK, func(r *Row, _ *Event) { r.Type = "FIX_DELAY" })

	// 1014: one part of a broadcast fails.
	at = t0 + 50_000
	part := func(n int) func(*Row, *Event) {
		return func(r *Row, e *Event) { r.Index, r.Total, e.Index, e.Total, e.PID = n, 2, n, 2, e.PID+100*n }
	}
	first = h.attempt(parts, 0, at, at, Failed, EndLater, part(0)).Run
	h.event(EventEnd, first).After = 100
	h.attempt(parts, first, at, at, Succeeded, EndOK, part(1), func(r *Row, _ *Event) { r.Type, r.Last = "MANUAL", 0 })
	h.attempt(parts, first, at, at+111, Succeeded, EndOK, part(0), as(1, 0, 0))

	// 1017: killed while its retry waited.
	at = t0 + 55_000
	first = h.attempt(retries, 0, at, at, Failed, EndFailed).Run
	h.attempt(retries, first, at, at+1011, Cancelled, "", as(1, 0, 0))
	h.forget(first+1, false)
	h.Ops = append(h.Ops, Op{Kind: OpKill, Job: retries, Run: first, Call: (at + 500) * 1000, Return: (at + 510) * 1000, Outcome: Done})
	return h
}

func TestFailing(t *testing.T) {
	r := failing().report()
	if !r.OK() {
		t.Errorf("a history as it should be is refused:\n%s", strings.Join(r.Problems, "\n"))
	}
	want := map[string]int{whyFailed: 5, whyTimedOut: 1, whyRefused: 1, whyRetried: 1, whyRerun: 1, whySnoozed: 1}
	for _, why := range Causes() {
		if r.Followed[why] != want[why] {
			t.Errorf("%d were followed because they were %q, want %d", r.Followed[why], why, want[why])
		}
	}
}

// TestFailingMutations breaks that history in one place.
func TestFailingMutations(t *testing.T) {
	at := func(h *history, run int64) *Row {
		return &h.Rows[slices.IndexFunc(h.Rows, func(r Row) bool { return r.Run == run })]
	}
	for _, m := range []struct {
		name   string
		change func(*history)
		want   Report
	}{
		{"a failure is not followed", func(h *history) { h.forget(1003, true); h.forget(1004, true) }, Report{Lost: 1}},
		{"the last failure that is to be followed is not", func(h *history) { h.forget(1004, true) }, Report{Lost: 1}},
		{"a lost run is not run again", func(h *history) { h.forget(1009, true); h.forget(1010, true) }, Report{Lost: 1}},
		{"a part of a broadcast is not tried again", func(h *history) { h.forget(1016, true) }, Report{Lost: 1}},
		{"a failure is followed twice", func(h *history) {
			h.attempt(retries, 1001, t0+1000, t0+4833, Succeeded, EndOK, as(2, 0, 1))
		}, Report{Double: 1}},
		{"a success is followed", func(h *history) {
			h.attempt(rerun, 1008, t0+20_490, t0+27_000, Succeeded, EndOK, as(3, 1, 0))
		}, Report{Double: 1}},
		{"a failure without a further attempt is followed", func(h *history) {
			h.Jobs[slices.IndexFunc(h.Jobs, func(j Job) bool { return j.ID == rerun })].Again.Retries = 0
		}, Report{Double: 1}},
		{"a failure that was to be the last is followed", func(h *history) {
			h.event(EventEnd, 1003).How = EndPermanent
			at(h, 1003).NoRetry = true
		}, Report{Double: 1}},
		{"a lost run was run again too often", func(h *history) {
			h.Jobs[slices.IndexFunc(h.Jobs, func(j Job) bool { return j.ID == rerun })].Again.MaxReruns = 0
		}, Report{Double: 1}},
		{"a run that was run again counts as retried", func(h *history) { at(h, 1009).Reruns, at(h, 1010).Reruns = 0, 0 }, Report{Wrong: 2}},
		{"a snooze counts as an attempt", func(h *history) {
			for _, run := range []int64{1003, 1004} {
				at(h, run).Attempt++
				h.event(EventStart, run).Attempt++
			}
		}, Report{Double: 2}},
		{"a chain has no beginning", func(h *history) { h.forget(1014, true) }, Report{Wrong: 1}},
		{"a handler is told another attempt", func(h *history) { h.event(EventStart, 1004).Attempt = 1 }, Report{Wrong: 1}},
		{"a retry is due too early", func(h *history) { at(h, 1004).Due -= 10 }, Report{Wrong: 1}},
		{"a retry is due too late", func(h *history) { at(h, 1016).Due += 2 }, Report{Wrong: 1, Early: 1}},
		{"a retry is begun before it is due", func(h *history) { h.event(EventStart, 1004).At -= 2000 }, Report{Early: 1}},
		{"a retry stands for another instant", func(h *history) { at(h, 1016).Last += 1000 }, Report{Wrong: 2}},
		{"a retry begins before its run has ended", func(h *history) { h.event(EventEnd, 1003).At += 2_000_000 }, Report{Double: 1, Wrong: 1}},
		{"a panic is a success", func(h *history) { at(h, 1003).State = Succeeded }, Report{Wrong: 1, Double: 1}},
		{"a snooze is a success", func(h *history) { at(h, 1002).Snoozed = false }, Report{Wrong: 1, Double: 1}},
		{"a success is a failure", func(h *history) { at(h, 1004).State = Failed }, Report{Wrong: 1}},
		{"a failure without a handler that failed", func(h *history) { h.event(EventEnd, 1003).How = EndOK }, Report{Wrong: 1}},
		{"a run times out at once", func(h *history) { at(h, 1009).Ended -= 900; at(h, 1010).Due -= 900 }, Report{Wrong: 1}},
		{"what was refused was begun", func(h *history) { at(h, 1016).State = NoAddress }, Report{Wrong: 1, Lost: 1}},
		{"a run is lost without a fault", func(h *history) { at(h, 1003).State = Lost }, Report{Unexplained: 1}},
		{"a retry waits for ever", func(h *history) { at(h, 1004).State = Planned; h.forget(1004, false) }, Report{Unfinished: 1}},
		{"a retry is cancelled by nobody", func(h *history) {
			h.Ops = slices.DeleteFunc(h.Ops, func(op Op) bool { return op.Kind == OpKill })
		}, Report{Wrong: 1}},
		{"a run that ended after its kill is followed", func(h *history) {
			op := &h.Ops[len(h.Ops)-1]
			op.Call, op.Return = (t0+55_005)*1000, (t0+55_006)*1000
		}, Report{Wrong: 1}},
		{"an instant goes before the retry of an earlier one", func(h *history) {
			h.attempt(retries, 0, t0+3000, t0+3000, Succeeded, EndOK)
		}, Report{Disorder: 1}},
		{"a delay counts from the first attempt", func(h *history) {
			row := at(h, 1013)
			row.Due, h.event(EventStart, 1013).Due = t0+40_600, t0+40_600
		}, Report{Double: 1}},
		{"one trigger made two chains", func(h *history) {
			run := h.attempt(retries, 0, t0+9000, t0+9000, Succeeded, EndOK).Run
			h.event(EventStart, run).Param = "chain a"
		}, Report{Double: 1}},
		{"an acknowledged trigger has no run", func(h *history) {
			h.Ops = append(h.Ops, Op{Kind: OpChain, Job: retries, Call: (t0 + 9000) * 1000, Return: (t0 + 9001) * 1000, Outcome: Done, Run: 999_999, Param: "chain b"})
		}, Report{Lost: 1, Forgotten: 1}},
		{"a trigger was made under another id", func(h *history) {
			i := slices.IndexFunc(h.Ops, func(op Op) bool { return op.Kind == OpChain })
			h.Ops[i].Run = 1005
		}, Report{Wrong: 1}},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := failing()
			m.change(h)
			got := h.report()
			if got.OK() {
				t.Error("the auditor stays green")
			}
			a := [...]int{got.Lost, got.Double, got.Early, got.Unfinished, got.Unexplained, got.Wrong, got.Forgotten, got.Disorder}
			w := m.want
			b := [...]int{w.Lost, w.Double, w.Early, w.Unfinished, w.Unexplained, w.Wrong, w.Forgotten, w.Disorder}
			if a != b {
				t.Errorf("lost, double, early, unfinished, unexplained, wrong, forgotten, order = %v, want %v:\n%s", a, b, strings.Join(got.Problems, "\n"))
			}
		})
	}
}

// TestFailingPermitted changes that history in ways that are no fault of the scheduler's.
func TestFailingPermitted(t *testing.T) {
	h := failing()
	h.Jobs[slices.IndexFunc(h.Jobs, func(j Job) bool { return j.ID == retries })].Again.Aside = true
	h.attempt(retries, 0, t0+3000, t0+3000, Succeeded, EndOK)
	if r := h.report(); !r.OK() {
		t.Errorf("a later instant of a job that lets them pass:\n%s", strings.Join(r.Problems, "\n"))
	}
	h = failing()
	h.event(EventEnd, 1004).How = EndLate
	if r := h.report(); r.Wrong != 1 {
		t.Errorf("the success of a handler that had timed out: %d wrong", r.Wrong)
	}
	h.Faults = append(h.Faults, Fault{Name: "SIGSTOP", Effect: Silent, Victim: nodeB, Begin: (t0 + 3_835) * 1000, End: (t0 + 3_840) * 1000})
	if r := h.report(); !r.OK() {
		t.Errorf("and whose process was paused:\n%s", strings.Join(r.Problems, "\n"))
	}
	h = failing()
	h.event(EventEnd, 1009).At += 20_000_000
	h.attempt(rerun, 0, t0+35_000, t0+35_000, Succeeded, EndOK)
	if r := h.report(); r.Wrong != 1 { // the second attempt came within the grace
		t.Errorf("a handler that is stuck: %d wrong:\n%s", r.Wrong, strings.Join(r.Problems, "\n"))
	}
	for early, wrong := range map[int64]int{0: 0, timeoutSlack + 1: 1} { // its row is of a moment after the timeout
		h = failing()
		h.event(EventEnd, 1009).At += 20_000_000
		began := h.event(EventStart, 1009).At
		for _, kind := range []string{EventStart, EventEnd} {
			h.event(kind, 1010).At = began + (1000+h.Rules.Grace-early)*1000
		}
		if r := h.report(); r.Wrong != wrong {
			t.Errorf("the next attempt %d ms before a handler that is stuck was given up: %d wrong:\n%s", early, r.Wrong, strings.Join(r.Problems, "\n"))
		}
	}
	for early, wrong := range map[int64]int{0: 0, 1: 1} {
		h = failing()
		stuck := h.attempt(retries, 0, t0+28_000, t0+28_000, Killed, EndLate).Run
		h.event(EventEnd, stuck).At += 20_000_000
		killed := t0 + 28_005 // and stored a moment later
		h.Ops = append(h.Ops, Op{Kind: OpKill, Job: retries, Run: stuck, Call: killed * 1000, Return: (killed + 5) * 1000, Outcome: Done})
		at := killed + h.Rules.Grace - early
		h.attempt(retries, 0, at-1, at-1, Succeeded, EndOK)
		if r := h.report(); r.Wrong != wrong {
			t.Errorf("another run %d ms before a handler that ignores its kill was given up: %d wrong:\n%s", early, r.Wrong, strings.Join(r.Problems, "\n"))
		}
	}
	h = failing()
	h.forget(1018, true)
	if r := h.report(); !r.OK() {
		t.Errorf("a run that was killed and not followed:\n%s", strings.Join(r.Problems, "\n"))
	}
}

// TestOvertakenAgain: a run may go before the retry of an earlier one that was started before
// that failed, and once more when its node had died.
func TestOvertakenAgain(t *testing.T) {
	for _, c := range []struct {
		due      int64
		dies     bool
		disorder int
	}{{t0 + 2000, true, 0}, {t0 + 2000, false, 1}, {t0 + 2500, true, 1}} {
		h := failing()
		other := h.attempt(retries, 0, c.due, c.due, Succeeded, EndOK).Run
		for _, kind := range []string{EventStart, EventEnd} {
			h.event(kind, other).At = (t0 + 3000) * 1000
		}
		h.Rows[len(h.Rows)-1].Started = t0 + 3000
		if c.dies {
			h.Faults = append(h.Faults, Fault{Name: "SIGKILL", Effect: Dies, Victim: nodeA, Begin: (t0 + 2900) * 1000, End: (t0 + 3200) * 1000})
		}
		if r := h.report(); r.Disorder != c.disorder {
			t.Errorf("due at %s, and a death is %v: %d out of order, want %d:\n%s", clock(c.due), c.dies, r.Disorder, c.disorder, strings.Join(r.Problems, "\n"))
		}
	}
}

// TestAbandonedWithoutARow: an executor gives up a handler that ignores its timeout, also where
// the database has forgotten the run.
func TestAbandonedWithoutARow(t *testing.T) {
	a := New(failing().Input)
	start := Event{Job: retries, Run: 4711, At: t0 * 1000}
	for after, want := range map[int64]bool{1000 + a.in.Rules.Grace: true, 1000 + a.in.Rules.Grace - timeoutSlack - 1: false} {
		if got := a.abandoned(start, start.At+after*1000); got != want {
			t.Errorf("given up %d ms after its start: %v, want %v", after, got, want)
		}
	}
}
