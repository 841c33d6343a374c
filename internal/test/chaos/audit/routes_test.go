package audit

import (
	"slices"
	"strings"
	"testing"
)

// byRoute is the clean history, in which the kill of node a at 20.5 s asks for
// lateness by route; node c is another that lives.
func byRoute() *history {
	h := clean()
	h.Faults[0].ByRoute = true
	for i := range h.Jobs {
		h.Jobs[i].Route = "FIRST"
		h.Jobs[i].Prompt = h.Jobs[i].ID == everySecond || h.Jobs[i].ID == broadcast
	}
	h.Jobs[1].Route = "SHARDING_BROADCAST"
	return h
}

var nodeC = Process{"c", 30}

// silence makes the fault one of a paused node, from 20.5 s, in which it takes what
// it had taken along.
func (h *history) silence(seconds int64) {
	f := &h.Faults[0]
	f.Name, f.Effect, f.End, f.Shards = "SIGSTOP", Silent, f.Begin+seconds*1_000_000, nil
	h.row(everySecond, 20).State = Succeeded
	h.row(everySecond, 20).Ended = t0 + 20_002
	h.Events = append(h.Events, Event{Kind: EventEnd, At: (t0 + 20_002) * 1000, Node: "a", PID: 10, Run: h.run(everySecond, 20), Job: everySecond, Due: t0 + 20_000, How: EndOK})
}

// underWay has the result of a run of node a come that much later.
func (h *history) underWay(s, by int64) { h.row(everySecond, s).Ended = h.row(everySecond, s).Due + by }

// starve makes the fault one of a node whose host keeps its pool, from 20.5 s.
func (h *history) starve(seconds int64) {
	h.silence(seconds)
	h.Faults[0].Name, h.Faults[0].Effect = "pool held", Starves
}

// late has the run of second s taken, called and ended that many milliseconds behind
// its instant, at a node.
func (h *history) late(job, s, by int64, p Process) {
	row := h.row(job, s)
	row.Started, row.Taken, row.Ended = row.Due+by, row.Due+by, row.Due+by
	row.Address, row.Owner = "local://"+p.Node+"-0123456789", p.Node+"-0123456789"
	for i := range h.Events {
		e := &h.Events[i]
		if e.Run != row.Run {
			continue
		}
		e.Node, e.PID, e.At = p.Node, p.PID, row.Started*1000
	}
}

func TestByRouteClean(t *testing.T) {
	r := byRoute().report()
	if !r.OK() {
		t.Errorf("refused:\n%s", strings.Join(r.Problems, "\n"))
	}
	// Fifteen instants of one job, seven of a broadcast of two.
	if n, m := len(r.Routes["FIRST"].Spread), len(r.Routes["SHARDING_BROADCAST"].Spread); n != 15 || m != 14 || len(r.Routes) != 2 {
		t.Errorf("%d of FIRST and %d of the broadcast, in %d routes", n, m, len(r.Routes))
	}
	if s := r.Routes["FIRST"]; s.At(1) != 1_000 || s.Bound != 2_000 {
		t.Errorf("late %d us, may be %d ms", s.At(1), s.Bound)
	}
}

// TestByRoute breaks one thing at a time.
func TestByRoute(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*history)
		late     int
		disorder int
		wrong    int
	}{
		{"a run is late by what it may be after a kill", func(h *history) { h.late(everySecond, 35, 2_000, nodeC) }, 0, 0, 0},
		{"a run is late after a kill", func(h *history) { h.late(everySecond, 35, 2_001, nodeC) }, 1, 0, 0},
		{"a part of a broadcast is late after a kill", func(h *history) { h.late(broadcast, 34, 2_001, nodeB) }, 1, 0, 0},
		{"a run is late that fell due long after the kill", func(h *history) { h.late(everySecond, 36, 2_001, nodeC) }, 0, 0, 0},
		{"a run is late that fell due before the kill", func(h *history) { h.late(everySecond, 20, 2_001, nodeC) }, 0, 0, 0},
		{"a run is late where rows alone tell of a death", func(h *history) {
			h.Rules = RowRules()
			h.late(everySecond, 35, 8_000, nodeC)
		}, 0, 0, 0},
		{"a run is too late where rows alone tell of a death", func(h *history) {
			h.Rules = RowRules()
			h.late(everySecond, 35, 8_001, nodeC)
		}, 1, 0, 0},
		{"a run is late after a silence", func(h *history) {
			h.silence(40)
			h.late(everySecond, 35, 8_000, nodeC)
		}, 0, 0, 0},
		{"a run is too late after a silence", func(h *history) {
			h.silence(40)
			h.late(everySecond, 35, 8_001, nodeC)
		}, 1, 0, 0},
		{"a run that the silent node had taken", func(h *history) {
			h.silence(12)
			h.late(everySecond, 21, 11_600, nodeA)
			h.row(everySecond, 21).Taken = t0 + 21_000
			h.row(everySecond, 21).Started = t0 + 21_000
		}, 0, 0, 0},
		{"a run that the silent node took when it woke", func(h *history) {
			h.silence(12)
			h.late(everySecond, 21, 11_600, nodeA)
			h.row(everySecond, 21).Started = t0 + 21_000
		}, 1, 0, 0},
		{"a run is late long after a node has starved", func(h *history) {
			h.starve(5)
			h.late(everySecond, 40, 8_000, nodeC)
		}, 0, 0, 0},
		{"a run is too late long after a node has starved", func(h *history) {
			h.starve(5)
			h.late(everySecond, 40, 8_001, nodeC)
		}, 1, 0, 0},
		{"a run is too late at the node that starves", func(h *history) {
			h.starve(20)
			h.late(everySecond, 55, 8_001, nodeA)
		}, 1, 0, 0},
		{"a run that the node had taken when it came to starve", func(h *history) {
			h.starve(5)
			h.late(everySecond, 40, 8_001, nodeA)
			h.row(everySecond, 40).Taken = t0 + 20_000
		}, 0, 0, 0},
		{"a run that the node took of which another process was killed", func(h *history) { h.late(everySecond, 35, 2_001, Process{"a", 11}) }, 1, 0, 0},
		{"a run that a job's edit, or its handler, made late", func(h *history) {
			h.Jobs[0].Prompt = false
			h.late(everySecond, 35, 9_000, nodeC)
		}, 0, 0, 0},
		{"a later run is started before an earlier one", func(h *history) { h.late(everySecond, 25, 1_500, nodeC) }, 0, 1, 0},
		{"three later runs are started before an earlier one", func(h *history) {
			h.Rules = RowRules()
			h.late(everySecond, 25, 3_500, nodeC)
		}, 0, 3, 0},
		{"two nodes call what was started in order the wrong way round", func(h *history) {
			h.late(everySecond, 25, 1_500, nodeC)
			h.row(everySecond, 25).Started = t0 + 25_010
		}, 0, 0, 0},
		{"one node calls what was started in order the wrong way round", func(h *history) {
			h.late(everySecond, 25, 1_500, nodeB)
			h.row(everySecond, 25).Started = t0 + 25_010
		}, 0, 1, 0},
		{"a later run goes elsewhere while an earlier one waits for room", func(h *history) {
			h.late(everySecond, 25, 1_500, nodeC)
			h.row(everySecond, 24).Address = h.row(everySecond, 25).Address
			h.row(everySecond, 24).Ended = h.row(everySecond, 25).Started - 10
		}, 0, 0, 0},
		{"a later run goes elsewhere while an earlier one waits for room at a node that falls silent", func(h *history) {
			h.silence(8)
			h.underWay(20, 8_600)
			h.late(everySecond, 21, 2_500, nodeC)
			h.row(everySecond, 23).Started = t0 + 23_600
			h.event(EventStart, h.run(everySecond, 23)).At = (t0 + 23_600) * 1000
		}, 0, 0, 0},
		{"a later run goes elsewhere long after the node fell silent", func(h *history) {
			h.silence(8)
			h.underWay(20, 8_600)
			h.late(everySecond, 24, 1_500, nodeC)
		}, 0, 1, 0},
		{"a later run goes elsewhere and nothing is under way at the node that fell silent", func(h *history) {
			h.silence(8)
			h.late(everySecond, 21, 1_500, nodeC)
		}, 0, 1, 0},
		{"a later run is started before an earlier one of a job that is not serial", func(h *history) {
			h.Jobs[0].Block = BlockCover
			h.late(everySecond, 25, 1_500, nodeC)
		}, 0, 0, 0},
		{"a later trigger of a broadcast is started before a part of an earlier one", func(h *history) {
			h.Rules = RowRules()
			h.late(broadcast, 24, 2_500, nodeC)
		}, 0, 2, 0}, // the two parts of 26 s
		{"the parts of one trigger are started in any order", func(h *history) { h.late(broadcast, 24, 900, nodeC) }, 0, 0, 0},
		{"no run of a route is there to be looked at", func(h *history) { h.Jobs[3].Route, h.Jobs[3].Prompt = "LAST", true }, 0, 0, 1},
		{"a run is given up that nobody had taken", func(h *history) {
			row := h.row(everySecond, 22)
			row.State, row.Taken, row.Address = Lost, 0, "local://a-0123456789"
			h.forget(row.Run, false)
		}, 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := byRoute()
			h.Rules.Busy = true // how fast shards are taken over is another question
			c.change(h)
			h.Rules.Busy = true
			got := h.report()
			if got.Late != c.late || got.Disorder != c.disorder || got.Wrong != c.wrong {
				t.Errorf("late %d, disorder %d, wrong %d; want %d, %d, %d:\n%s", got.Late, got.Disorder, got.Wrong, c.late, c.disorder, c.wrong, strings.Join(got.Problems, "\n"))
			}
			if broken := c.late+c.disorder+c.wrong > 0; broken && got.OK() {
				t.Error("the auditor stays green")
			}
		})
	}
}

// TestNotByRoute: where a fault does not ask for it, nothing is measured by route.
func TestNotByRoute(t *testing.T) {
	h := byRoute()
	h.Faults[0].ByRoute = false
	h.late(everySecond, 35, 9_000, nodeC)
	if r := h.report(); r.Late+r.Disorder+len(r.Routes) != 0 {
		t.Errorf("late %d, disorder %d, %d routes", r.Late, r.Disorder, len(r.Routes))
	}
}

// TestStrictestBound: what is printed for a route is the bound of the strictest of
// the faults that it was looked at for.
func TestStrictestBound(t *testing.T) {
	h := byRoute()
	h.Faults = append(h.Faults, Fault{Name: "SIGSTOP", Effect: Silent, Victim: nodeC, Begin: (t0 + 40_500) * 1000, End: (t0 + 42_500) * 1000, ByRoute: true})
	if s := h.report().Routes["FIRST"]; s.Bound != 2_000 || len(s.Spread) != 30 {
		t.Errorf("bound %d ms, %d runs", s.Bound, len(s.Spread))
	}
	slices.Reverse(h.Faults)
	if s := h.report().Routes["FIRST"]; s.Bound != 2_000 {
		t.Errorf("in the other order: bound %d ms", s.Bound)
	}
}

// TestMissed: what the scheduler had to find by itself is a violation.
func TestMissed(t *testing.T) {
	r := clean().report()
	if r.AddMissed([]string{"a line"}); r.OK() || r.Missed != 1 || len(r.Problems) != 1 {
		t.Errorf("a run that nobody held: %d, ok %v, %v", r.Missed, r.OK(), r.Problems)
	}
}

// TestMiscounted: reports that are not equal to a count of the rows are a violation.
func TestMiscounted(t *testing.T) {
	in := clean().Input
	in.Miscounted = []string{"a line"}
	r := New(in).Check(0, 1)
	if New(in).CheckEnd(r, 1<<62); r.OK() || r.Miscounted != 1 || len(r.Problems) != 1 {
		t.Errorf("reports that are wrong: %d, ok %v, %v", r.Miscounted, r.OK(), r.Problems)
	}
}

// TestLateness holds the 99th percentile of all starts against its bound.
func TestLateness(t *testing.T) {
	for _, c := range []struct {
		runs int64
		want int
	}{{1, 0}, {4, 1}} { // of 154
		h := clean()
		h.Rules.Busy = true
		for s := range c.runs {
			h.late(everySecond, 40+s, 10_001, nodeC)
		}
		a := New(h.Input)
		r := a.Check(t0, t0+60_000)
		before := r.Late
		if a.CheckLateness(r); r.Late-before != c.want {
			t.Errorf("%d late runs: %v", c.runs, r.Problems)
		}
	}
}

// TestPartsOfABroadcast: one part is no reason to give up another of the same trigger.
func TestPartsOfABroadcast(t *testing.T) {
	for _, block := range []string{BlockCover, BlockDiscard} {
		h := clean()
		h.Jobs[1].Block = block
		id := h.run(broadcast, 58) // no later one can be the reason
		i := slices.IndexFunc(h.Rows, func(r Row) bool { return r.Run == id })
		if h.Rows[i].State = Discarded; block == BlockCover {
			h.Rows[i].State = Killed
		}
		h.event(EventEnd, id+1).At = (t0 + 58_900) * 1000 // the other part, beside it
		if block == BlockDiscard {
			h.forget(id, false)
		}
		if r := h.report(); r.Wrong != 1 || r.OK() {
			t.Errorf("%s for another part: wrong %d, %v", block, r.Wrong, r.Problems)
		}
		if block == BlockCover {
			continue
		}
		h.event(EventEnd, h.run(broadcast, 56)).At = (t0 + 58_100) * 1000 // an earlier trigger goes on
		if r := h.report(); !r.OK() {
			t.Errorf("%s for an earlier trigger: %v", block, r.Problems)
		}
	}
}

// TestYieldsInOrder: what is covered has to have a later run, and what is discarded as later an
// earlier one.
func TestYieldsInOrder(t *testing.T) {
	for _, c := range []struct {
		name, block string
		state       int
		begun       bool // its handler was called
		ok          bool
	}{
		{"killed for a later one", BlockCover, Killed, true, true},
		{"discarded for a later one", BlockCover, Discarded, false, true},
		{"killed, and nothing later comes", BlockCover, Killed, true, false},
		{"discarded, and nothing later comes", BlockCover, Discarded, false, false},
		{"discarded for an earlier one", BlockDiscard, Discarded, false, true},
		{"discarded, and only a later one is under way", BlockDiscard, Discarded, false, false},
	} {
		h := clean()
		h.Jobs[0].Block = c.block
		second := int64(40)
		if c.block == BlockDiscard {
			second = 10 // before the kill, whose run has no end
		}
		at := t0 + second*1000
		row := h.row(everySecond, second)
		run := row.Run
		row.State = c.state
		if !c.begun {
			row.Started, row.Taken = 0, 0
		}
		switch later := h.run(everySecond, second+1); {
		case c.block == BlockDiscard && c.ok:
			h.event(EventEnd, h.run(everySecond, second-1)).At = (at + 100) * 1000
		case c.block == BlockDiscard: // started before it, as a former owner may have
			row.Ended = at + 1100
			h.event(EventEnd, later).At = (at + 2100) * 1000
		case !c.ok: // the one before goes on, and those behind it come much later
			h.event(EventEnd, h.run(everySecond, second-1)).At = (at + 500) * 1000
			for s := int64(41); s < 60; s++ {
				for _, kind := range []string{EventStart, EventEnd} {
					h.event(kind, h.run(everySecond, s)).At += 60_000_000
				}
			}
		}
		if !c.begun {
			h.forget(run, false)
		}
		yielded := slices.ContainsFunc(h.report().Problems, func(s string) bool {
			return strings.Contains(s, "no other run was under way") && strings.Contains(s, "run "+itoa(run)+" ")
		})
		if yielded == c.ok {
			t.Errorf("%s: found wrong: %t", c.name, yielded)
		}
	}
}
