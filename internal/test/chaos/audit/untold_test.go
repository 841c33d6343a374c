package audit

import (
	"slices"
	"strings"
	"testing"
)

// stall has node b begin nothing of the job that is due every second from second 30 to 39, when
// it begins all of it.
func (h *history) stall() {
	const end = t0 + 39_500
	for i := range h.Rows {
		r := &h.Rows[i]
		if r.Job != everySecond || r.Due < t0+30_000 || r.Due > end {
			continue
		}
		by := end - r.Due + (r.Due-t0-30_000)/100 // one behind the other
		r.Started, r.Taken, r.Ended = r.Started+by, r.Taken+by, r.Ended+by
		h.event(EventStart, r.Run).At += by * 1000
		h.event(EventEnd, r.Run).At += by * 1000
	}
}

// say has a node say something from one second to another.
func (h *history) say(p Process, from, to int64, unready string, troubles ...string) {
	h.Said = append(h.Said, Said{At: (t0 + from*1000) * 1000, Process: p, Unready: unready, Troubles: troubles}, Said{At: (t0 + to*1000) * 1000, Process: p})
}

// TestUntold: of the runs that wait, one waits for nothing that it may wait for. That its node
// says nothing for longer than it may is found, whatever others say.
func TestUntold(t *testing.T) {
	for _, m := range []struct {
		name   string
		change func(*history)
		want   int
	}{
		{"nobody says why", func(*history) {}, 1},
		{"the node is not ready", func(h *history) { h.say(nodeB, 34, 40, "not ready: claims fail") }, 0},
		{"the node has a trouble", func(h *history) { h.say(nodeB, 37, 39, "", "locked-rows") }, 0},
		{"the node says so too late", func(h *history) { h.say(nodeB, 39, 40, "not ready: claims fail") }, 1},
		{"the node has long ceased to say so", func(h *history) { h.say(nodeB, 29, 31, "not ready: claims fail") }, 1},
		{"another node says something", func(h *history) { h.say(nodeA, 31, 40, "", "locked-rows") }, 1},
		{"a process of the node said so and is dead", func(h *history) {
			h.Said = []Said{{At: (t0 + 10_000) * 1000, Process: Process{"b", 9}, Unready: "not ready"}}
			h.Faults = append(h.Faults, Fault{Name: "SIGKILL", Effect: Dies, Victim: Process{"b", 9}, Begin: (t0 + 11_000) * 1000, End: (t0 + 11_500) * 1000})
		}, 1},
		{"the node is paused", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "SIGSTOP", Effect: Silent, Victim: nodeB, Begin: (t0 + 31_000) * 1000, End: (t0 + 38_000) * 1000})
		}, 0},
		{"the database is locked", func(h *history) {
			h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 29_500) * 1000, End: (t0 + 39_000) * 1000})
		}, 1},
		{"no executor takes them", func(h *history) { h.row(everySecond, 30).State = NoAddress }, 0},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := clean()
			h.stall()
			m.change(h)
			if r := h.report(); r.Untold != m.want {
				t.Errorf("%d waited untold, want %d:\n%s", r.Untold, m.want, strings.Join(r.Problems, "\n"))
			}
		})
	}
}

// TestUntoldSkip: instants that are skipped have waited until that was recorded.
func TestUntoldSkip(t *testing.T) {
	h := clean()
	h.skip(everySecond, 31, 49)
	h.Rows[len(h.Rows)-1].Ended = t0 + 49_500
	h.Faults = append(h.Faults, Fault{Name: "lock", Effect: Blocked, Begin: (t0 + 30_500) * 1000, End: (t0 + 49_000) * 1000})
	if r := h.report(); r.OK() || r.Untold != 1 {
		t.Errorf("nobody says why: %d, %v", r.Untold, r.Problems)
	}
	for _, node := range []Process{nodeA, nodeB} {
		h.say(node, 37, 49, "not ready: claims fail")
	}
	if r := h.report(); !r.OK() {
		t.Errorf("the nodes say why: %v", r.Problems)
	}
}

// TestTroubleOfAFault: a fault that is a trouble is told of in time, or since before it.
func TestTroubleOfAFault(t *testing.T) {
	for _, m := range []struct {
		name     string
		from, to int64
		trouble  string
		want     int
	}{
		{"nobody tells", 0, 0, "", 1},
		{"told in time", 35, 50, "clock: it was moved", 0},
		{"told since before", 10, 50, "clock: it was moved", 0},
		{"told too late", 42, 50, "clock: it was moved", 1},
		{"over before", 10, 20, "clock: it was moved", 1},
		{"another trouble", 35, 50, "locked-rows", 1},
	} {
		h := clean()
		h.Faults = append(h.Faults, Fault{Name: "a step", Effect: Harmless, Begin: (t0 + 30_000) * 1000, End: (t0 + 45_000) * 1000, Trouble: "clock", ToldWithin: 10_000})
		if m.trouble != "" {
			h.say(nodeA, m.from, m.to, "", m.trouble)
		}
		if r := h.report(); r.Untold != m.want {
			t.Errorf("%s: %d untold, want %d: %v", m.name, r.Untold, m.want, r.Problems)
		}
	}
}

// TestSaidIsRead: what a node says comes from the file of each of its processes, and a word that
// a kill cut off is none.
func TestSaidIsRead(t *testing.T) {
	all, err := parseLines[Said]([]byte(`{"at":7,"Node":"a","PID":3,"unready":"no","troubles":["x"]}` + "\n" + `{"at":9,"No`))
	if err != nil || len(all) != 1 || all[0].At != 7 || all[0].Process != (Process{"a", 3}) || all[0].Unready != "no" || !slices.Equal(all[0].Troubles, []string{"x"}) {
		t.Errorf("read %+v, %v", all, err)
	}
}
