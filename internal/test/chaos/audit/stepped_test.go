package audit

import (
	"strings"
	"testing"
)

// stepped is a history of two jobs over a minute, one of them due every second, while the clock of
// nodes and rows is an hour ahead from second 20 to 25.
func stepped() *history {
	h := &history{}
	h.Rules = DefaultRules()
	h.Rules.Stepped = true
	h.Jobs = []Job{{ID: everySecond, Name: "every second", Prompt: true}, {ID: byHand, Name: "by hand"}}
	for s := int64(0); s < 60; s++ {
		at, by := t0+s*1000, int64(0)
		if 20 <= s && s < 25 {
			by = 3_600_000
		}
		h.add(everySecond, at, nodeA, Succeeded, at+1, at+2, func(r *Row, e *Event) { r.Due, e.Due = r.Due+by, e.Due+by })
	}
	h.add(byHand, t0+7_000, nodeA, Succeeded, t0+7_001, t0+7_002)
	return h
}

// TestStepped: a history in which all is as promised, and what breaks it.
func TestStepped(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*history)
		want   Report
	}{
		"as promised": {func(*history) {}, Report{}},
		"nodes hold back for a while": {func(h *history) {
			for s := int64(26); s < 34; s++ {
				h.forget(h.run(everySecond, s), true)
			}
		}, Report{}},
		"a job is silent": {func(h *history) {
			for s := int64(26); s < 38; s++ {
				h.forget(h.run(everySecond, s), true)
			}
		}, Report{Lost: 1}},
		"all rows are gone": {func(h *history) { h.Rows = nil }, Report{Forgotten: 61}},
		"an instant is run again": {func(h *history) {
			h.add(everySecond, t0+19_000, nodeA, Succeeded, t0+26_500, t0+26_501)
		}, Report{Double: 1}},
		"a run was started twice": {func(h *history) {
			e := *h.event(EventStart, h.run(everySecond, 7))
			e.At += 1000
			h.Events = append(h.Events, e)
		}, Report{Double: 1}},
		"a run has not ended": {func(h *history) { h.row(everySecond, 7).State = Dispatched }, Report{Unfinished: 1}},
		"a run is lost":       {func(h *history) { h.row(everySecond, 7).State = Lost }, Report{Unexplained: 1}},
	} {
		h := stepped()
		c.change(h)
		got := h.report()
		a := [...]int{got.Lost, got.Double, got.Unfinished, got.Unexplained, got.Forgotten}
		if b := [...]int{c.want.Lost, c.want.Double, c.want.Unfinished, c.want.Unexplained, c.want.Forgotten}; a != b || got.OK() != (b == [5]int{}) {
			t.Errorf("%s: lost, double, unfinished, unexplained, forgotten = %v, want %v:\n%s", name, a, b, strings.Join(got.Problems, "\n"))
		}
	}
}
