package audit

import (
	"fmt"
	"slices"
	"testing"
)

// noted adds the row of a trouble of an app, and the messages of all sinks that are to hear of it.
func (h *history) noted(app string, over bool, at int64) {
	id, cause := int64(1000+len(h.Noted)), causeTrouble
	if over {
		cause = causeTroubleOver
	}
	h.Noted = append(h.Noted, Trouble{ID: id, Kind: "no-executor", App: app, Over: over, Status: AlarmTold, At: at})
	for _, sink := range h.Rules.Sinks {
		if of := h.Rules.SinkOf[sink]; of == "" || of == app {
			h.Told = append(h.Told, Told{Sink: sink, Alarm: id, Message: fmt.Sprintf("xxljob-t%d-%s", id, sink), Cause: cause, Trouble: "no-executor", App: app, At: (at + 100) * 1000})
		}
	}
}

// TestNoted: a trouble that nodes have passed on is told once for each rule that wants it.
func TestNoted(t *testing.T) {
	last := func(h *history) *Told { return &h.Told[len(h.Told)-1] } // by the sink of the second service
	for _, m := range []struct {
		name   string
		change func(*history)
		want   Report
	}{
		{"all as promised", func(*history) {}, Report{}},
		{"a rule was told twice", func(h *history) {
			again := *last(h)
			again.At += 60_000_000
			h.Told = append(h.Told, again)
		}, Report{Double: 1}},
		{"a rule was told twice, as a node died that had told it", func(h *history) {
			again := *last(h)
			again.At += 2_000_000
			h.Told = append(h.Told, again)
			h.Faults = append(h.Faults, Fault{Name: "SIGKILL", Effect: Dies, Victim: nodeB, Begin: last(h).At - 1_000_000, End: last(h).At - 500_000})
		}, Report{}},
		{"one of two rules was not told", func(h *history) { h.Told = h.Told[:len(h.Told)-1] }, Report{Lost: 1}},
		{"no rule was told of a beginning", func(h *history) {
			h.Told = slices.DeleteFunc(h.Told, func(t Told) bool { return t.Cause == causeTrouble })
		}, Report{Lost: 3}},
		{"a node told what it saw itself", func(h *history) { last(h).Alarm, last(h).Message = 0, "xxljob-t0123456789abcdef-own" }, Report{}},
		{"a node told of another trouble", func(h *history) {
			last(h).Alarm, last(h).Message, last(h).Trouble = 0, "xxljob-t0123456789abcdef-own", "clock"
		}, Report{Lost: 1}},
		{"a node told that it began, and not of its end", func(h *history) {
			last(h).Alarm, last(h).Message, last(h).Cause = 0, "xxljob-t0123456789abcdef-own", causeTrouble
		}, Report{Lost: 1}},
		{"a rule of another app was told", func(h *history) {
			h.Told = append(h.Told, Told{Sink: "own", Alarm: 1000, Message: "xxljob-t1000-own", Cause: causeTrouble, Trouble: "no-executor", App: "first", At: (t0 + 31_000) * 1000})
		}, Report{Wrong: 1}},
		{"it waits for ever", func(h *history) { h.Noted[0].Status = 0 }, Report{Unfinished: 1}},
		{"it was noted when all stopped", func(h *history) {
			h.Stopped = (t0 + 119_000) * 1000
			h.Noted = append(h.Noted, Trouble{ID: 2000, Kind: "clock", Status: 0, At: t0 + 118_900})
		}, Report{}},
		{"what was told has no row", func(h *history) { h.Noted = h.Noted[1:] }, Report{Forgotten: 1}},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := shared()
			h.noted("first", false, t0+30_000)
			h.noted(ofSecond, false, t0+40_000)
			h.noted(ofSecond, true, t0+80_000)
			m.change(h)
			for i := range h.Rows {
				h.Rows[i].Trigger = h.Rows[i].Run
			}
			r := New(h.Input).Check(t0, t0+120_000)
			got := Report{Lost: r.Lost, Double: r.Double, Wrong: r.Wrong, Unfinished: r.Unfinished, Forgotten: r.Forgotten}
			if fmt.Sprint(got) != fmt.Sprint(m.want) {
				t.Errorf("got %+v, want %+v: %q", got, m.want, r.Problems)
			}
		})
	}
}
