package audit

import "testing"

// TestLogs: a line that is missing, or there twice, is a violation, unless its process died
// before it had to be in the database.
func TestLogs(t *testing.T) {
	var (
		writer = Process{Node: "a", PID: 1}
		other  = Process{Node: "b", PID: 2}
		event  = Event{Kind: EventEnd, Run: 7, Job: 1, At: 10_000_000, Node: "a", PID: 1, How: EndOK}
		line   = Line{Run: 7, Kind: EventEnd, At: 10_000_000}
		kill   = func(p Process, at int64) Fault {
			return Fault{Name: "SIGKILL", Effect: Dies, Victim: p, Begin: at, End: at + 500_000}
		}
		away = func(effect string, p Process, begin, end int64) Fault {
			return Fault{Name: "away", Effect: effect, Victim: p, Begin: begin, End: end}
		}
	)
	for _, c := range []struct {
		name   string
		lines  []Line
		faults []Fault
		wrong  int
	}{
		{"there", []Line{line}, nil, 0},
		{"not there", nil, nil, 1},
		{"there twice", []Line{line, line}, nil, 1},
		{"of another moment", []Line{{7, EventEnd, 10_000_001}}, nil, 1},
		{"of another run", []Line{{8, EventEnd, 10_000_000}}, nil, 1},
		{"of another kind", []Line{{7, EventStart, 10_000_000}}, nil, 1},
		{"killed within a second", nil, []Fault{kill(writer, 10_900_000)}, 0},
		{"killed three seconds later", nil, []Fault{kill(writer, 13_000_000)}, 1},
		{"another process was killed", nil, []Fault{kill(other, 10_900_000)}, 1},
		{"twice, and killed", []Line{line, line}, []Fault{kill(writer, 10_100_000)}, 1},
		{"stopped in good order", nil, []Fault{away(Leaves, writer, 10_100_000, 11_000_000)}, 1},
		{"killed while the database was away", nil, []Fault{away(Blocked, Process{}, 10_500_000, 30_000_000), kill(writer, 20_000_000)}, 0},
		{"killed just after the database was away", nil, []Fault{away(Blocked, Process{}, 10_500_000, 19_000_000), kill(writer, 20_000_000)}, 0},
		{"killed long after the database was away", nil, []Fault{away(Blocked, Process{}, 1_000_000, 3_000_000), kill(writer, 20_000_000)}, 1},
		{"killed while it was paused", nil, []Fault{away(Silent, writer, 10_500_000, 30_000_000), kill(writer, 20_000_000)}, 0},
		{"killed while another was paused", nil, []Fault{away(Silent, other, 10_500_000, 30_000_000), kill(writer, 20_000_000)}, 1},
		{"stopped while the database was away", nil, []Fault{away(Blocked, Process{}, 10_500_000, 30_000_000), away(Leaves, writer, 20_000_000, 25_000_000)}, 0},
		{"the database was away", nil, []Fault{away(Blocked, Process{}, 10_500_000, 30_000_000)}, 1},
	} {
		a := New(Input{Events: []Event{event}, Lines: c.lines, Faults: c.faults, Rules: DefaultRules()})
		r := &Report{}
		if said := a.CheckLogs(r); r.Unlogged != c.wrong || r.OK() != (c.wrong == 0) {
			t.Errorf("%s: %d amiss, want %d: %s %q", c.name, r.Unlogged, c.wrong, said, r.Problems)
		}
	}
	for run, wrong := range map[int64]int{7: 0, 6: 1} {
		rules := DefaultRules()
		rules.Refused = run
		r := &Report{}
		if New(Input{Events: []Event{event}, Rules: rules}).CheckLogs(r); r.Unlogged != wrong {
			t.Errorf("the database refuses the logs of run %d: %d amiss, want %d", run, r.Unlogged, wrong)
		}
	}
	forgot := DefaultRules()
	forgot.MayForget = true
	for begin, wrong := range map[int64]int{9_000_000: 0, 20_000_000: 1} {
		a := New(Input{Events: []Event{event}, Faults: []Fault{{Effect: Blocked, Begin: begin, End: begin + 10_000_000, Forgets: begin}}, Rules: forgot})
		r := &Report{}
		if a.CheckLogs(r); r.Unlogged != wrong {
			t.Errorf("the database has forgotten what it had from %d on: %d amiss, want %d", begin, r.Unlogged, wrong)
		}
	} // A run that the database has forgotten goes on, and one that it has not has its lines.
	promotion := Fault{Effect: Blocked, Begin: 1_000_000, End: 2_000_000, Forgets: 500_000}
	for _, c := range []struct {
		rows   []Row
		faults []Fault
		twice  bool // another process has run it as well
		wrong  int
	}{
		{nil, []Fault{promotion}, false, 0},
		{[]Row{{Run: 7, Job: 1, State: Succeeded}}, []Fault{promotion}, false, 1},
		{[]Row{{Run: 7, Job: 1, State: Succeeded}}, []Fault{promotion}, true, 0},
		{[]Row{{Run: 7, Job: 1, State: Succeeded}}, nil, true, 2},
		{nil, nil, false, 1},
		{nil, []Fault{{Effect: Blocked, Begin: 1_000_000, End: 2_000_000}}, false, 1},
	} {
		events := []Event{event}
		if c.twice {
			events = append(events, Event{Kind: EventEnd, Run: 7, Job: 1, At: 11_000_000, Node: "b", PID: 2, How: EndOK})
		}
		a := New(Input{Events: events, Rows: c.rows, Faults: c.faults, Rules: forgot})
		r := &Report{}
		if a.CheckLogs(r); r.Unlogged != c.wrong {
			t.Errorf("rows %v, faults %v, twice %v: %d amiss, want %d", c.rows, c.faults, c.twice, r.Unlogged, c.wrong)
		}
	}
}
