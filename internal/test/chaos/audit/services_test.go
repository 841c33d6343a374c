package audit

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The jobs of a second service, each due every second.
const (
	waits    = int64(101) // skips what it has missed
	onceJob  = int64(102) // makes up for it
	refuses  = int64(103)
	chosen   = int64(104) // by a router that only nodes of the service have
	ofFirst  = int64(105) // another service's
	ofSecond = "second"
)

// shared is a history of two services over 120 seconds. The second is away from second 20 to second
// 65, and what was planned by second 25 waits for it.
func shared() *history {
	h := &history{}
	h.Rules = DefaultRules()
	h.Rules.Timed = false
	h.Rules.Sinks, h.Rules.SinkOf = []string{"all", "own"}, map[string]string{"own": ofSecond}
	h.Jobs = []Job{
		{ID: waits, Name: "waits", App: ofSecond, Block: BlockSerial, Nobody: NobodyWait},
		{ID: onceJob, Name: "fires once", App: ofSecond, Block: BlockSerial, Nobody: NobodyWait, FireOnce: true},
		{ID: refuses, Name: "refuses", App: ofSecond, Block: BlockSerial, Nobody: NobodyRefuse},
		{ID: chosen, Name: "chosen", App: ofSecond, Block: BlockSerial, Nobody: NobodyWait, Chosen: true},
		{ID: ofFirst, Name: "of the first", App: "first", Block: BlockSerial},
	}
	for _, j := range h.Jobs {
		h.Ops = append(h.Ops, Op{Kind: OpSet, Verb: "ensure", Job: j.ID, Call: (t0 - 10) * 1000, Return: (t0 - 1) * 1000, Outcome: Done, Grid: Grid{Period: 1000}})
	}
	h.Faults = []Fault{{Name: "away", Effect: Absent, App: ofSecond, Begin: (t0 + 19_500) * 1000, End: (t0 + 65_500) * 1000}}
	for s := range int64(120) {
		at, begun := t0+s*1000, t0+s*1000+1
		h.add(ofFirst, at, nodeA, Succeeded, begun, begun+1)
		if 20 <= s && s <= 65 {
			begun = t0 + 65_600 + s
		}
		if s <= 25 || s > 65 {
			for _, job := range []int64{waits, onceJob, chosen} {
				h.add(job, at, nodeB, Succeeded, begun, begun+1)
			}
			h.Choices = append(h.Choices, Choice{At: begun * 1000, Process: nodeB, Job: chosen, Address: "local://b-0123456789"})
		}
		if refusedAt := max(at, t0+49_500) + 100; 20 <= s && s <= 64 {
			run := h.add(refuses, at, nodeB, NoAddress, 0, 0, func(r *Row, _ *Event) { r.Ended, r.Owner, r.Address = refusedAt, "", "" })
			h.alarmed(run, refuses, causeFailed, at)
		} else {
			h.add(refuses, at, nodeB, Succeeded, begun, begun+1)
		}
	}
	for _, job := range []int64{waits, onceJob, chosen} {
		record := func(r *Row, _ *Event) { r.First, r.Last, r.Count = t0+26_000, t0+65_000, 40 }
		if job == onceJob {
			h.add(job, t0+65_000, nodeB, Succeeded, t0+65_600, t0+65_610, record, func(r *Row, _ *Event) { r.Type = "MISFIRE" })
			continue
		}
		run := h.add(job, t0+26_000, nodeB, Skipped, 0, 0, record, func(r *Row, _ *Event) { r.Ended, r.Reason = t0+65_600, "misfire" })
		h.alarmed(run, job, causeSkipped, t0+26_000)
	}
	return h
}

// alarmed adds an alarm of the second service that all who want to were told of once.
func (h *history) alarmed(run, job int64, cause string, at int64) {
	id := int64(len(h.Alarms) + 1)
	h.Alarms = append(h.Alarms, Alarm{ID: id, Job: job, Run: run, Cause: cause, Status: AlarmTold, Instant: at})
	for _, sink := range h.Rules.Sinks {
		h.Told = append(h.Told, Told{Sink: sink, Alarm: id, Run: run, Cause: cause, Instant: at, At: (t0 + 80_000) * 1000})
	}
}

// record is that of a job.
func (h *history) record(job int64) *Row {
	return &h.Rows[slices.IndexFunc(h.Rows, func(r Row) bool { return r.Job == job && r.Count > 0 })]
}

func TestServices(t *testing.T) {
	for _, m := range []struct {
		name   string
		change func(*history)
		want   Report
	}{
		{"all as promised", func(*history) {}, Report{}},
		{"what was missed is nowhere", func(h *history) { h.forget(h.record(onceJob).Run, true) }, Report{Lost: 40}},
		{"a job that makes up for what it missed gives it up", func(h *history) {
			r := h.record(onceJob)
			r.State, r.Type, r.Started = Skipped, "CRON", 0
			h.forget(r.Run, false)
			h.alarmed(r.Run, onceJob, causeSkipped, t0+65_000)
		}, Report{Wrong: 1}},
		{"a job that gives up what it missed makes up for it", func(h *history) {
			r := h.record(waits)
			r.State, r.Type = Succeeded, "MISFIRE"
			h.Events = append(h.Events, Event{Kind: EventEnd, At: r.Ended * 1000, Run: r.Run, Job: waits, How: EndOK})
			i := slices.IndexFunc(h.Alarms, func(a Alarm) bool { return a.Run == r.Run })
			h.Alarms = slices.Delete(h.Alarms, i, i+1)
			h.Told = slices.DeleteFunc(h.Told, func(t Told) bool { return t.Run == r.Run })
		}, Report{Wrong: 1}},
		{"a record counts what it does not stand for", func(h *history) { h.record(waits).Count++ }, Report{Wrong: 1}},
		{"two records of one absence", func(h *history) {
			r := h.record(onceJob)
			r.First, r.Count = t0+46_000, 20
			h.add(onceJob, t0+45_000, nodeB, Succeeded, t0+65_640, t0+65_641, func(r *Row, _ *Event) { r.Type, r.First, r.Last, r.Count = "MISFIRE", t0+26_000, t0+45_000, 20 })
		}, Report{Double: 1}},
		{"a record though the service was away for a moment", func(h *history) { h.Faults[0].Begin = (t0 + 61_000) * 1000 },
			Report{Forbidden: 40 + 40 + 39, Wrong: 45}}, // of the one that makes up for all, one instant is its own
		{"a job that waits is planned while nobody is there", func(h *history) {
			h.add(waits, t0+40_000, nodeB, Succeeded, t0+65_700, t0+65_701)
			r := h.record(waits)
			r.Last, r.Count = t0+39_000, 14
			h.add(waits, t0+41_000, nodeB, Skipped, 0, 0, func(r *Row, _ *Event) {
				r.First, r.Last, r.Count, r.Ended = t0+41_000, t0+65_000, 25, t0+65_600
			})
			h.alarmed(h.nextRun, waits, causeSkipped, t0+41_000)
		}, Report{Wrong: 1, Double: 1}},
		{"a job that waits is refused", func(h *history) {
			r := h.row(chosen, 22)
			r.State = NoAddress
			h.forget(r.Run, false)
			h.alarmed(r.Run, chosen, causeFailed, t0+22_000)
		}, Report{Wrong: 1}},
		{"a run is refused before its service was away for so long", func(h *history) { h.row(refuses, 22).Ended = t0 + 40_000 }, Report{Wrong: 1}},
		{"a run waits that is to be refused", func(h *history) {
			r := h.row(refuses, 58)
			run := r.Run
			r.State, r.Started, r.Taken, r.Ended = Succeeded, t0+65_700, t0+65_700, t0+65_701
			h.Events = append(h.Events, Event{Kind: EventStart, At: (t0 + 65_700) * 1000, Node: "b", PID: 20, Run: run, Job: refuses, Due: t0 + 58_000, Total: 1},
				Event{Kind: EventEnd, At: (t0 + 65_701) * 1000, Node: "b", PID: 20, Run: run, Job: refuses, Due: t0 + 58_000, Total: 1, How: EndOK})
			h.Alarms = slices.DeleteFunc(h.Alarms, func(a Alarm) bool { return a.Run == run })
			h.Told = slices.DeleteFunc(h.Told, func(t Told) bool { return t.Run == run })
		}, Report{Wrong: 1}},
		{"a run goes to an address that the router did not choose", func(h *history) {
			for i := range h.Choices {
				if at := h.Choices[i].At / 1000; t0+75_000 <= at && at < t0+90_000 {
					h.Choices[i].Address = "local://c-0123456789"
				}
			}
		}, Report{Wrong: 5}}, // the others have one that is less than ten seconds old
		{"a run begins elsewhere", func(h *history) { h.event(EventStart, h.run(chosen, 80)).Node = "c" }, Report{Wrong: 1}},
		{"an alarm is told twice, and nobody died", func(h *history) {
			t := h.Told[0]
			t.At += 20_000_000
			h.Told = append(h.Told, t)
		}, Report{Double: 1}},
		{"an alarm is told twice, and its node died", func(h *history) {
			t := h.Told[0]
			t.At += 20_000_000
			h.Told = append(h.Told, t)
			h.Faults = append(h.Faults, Fault{Name: "SIGKILL", Effect: Dies, Victim: Process{"c", 30}, Begin: t.At - 10_000_000, End: t.At - 9_000_000})
		}, Report{}},
		{"the service is not told of its alarm", func(h *history) {
			i := slices.IndexFunc(h.Told, func(t Told) bool { return t.Sink == "own" })
			h.Told = slices.Delete(h.Told, i, i+1)
		}, Report{Lost: 1}},
		{"the service is told of another's alarm", func(h *history) {
			r := h.row(ofFirst, 7)
			r.State = Lost
			h.Events = slices.DeleteFunc(h.Events, func(e Event) bool { return e.Run == r.Run && e.Kind == EventEnd })
			h.Faults = append(h.Faults, Fault{Name: "SIGKILL", Effect: Dies, Victim: nodeA, Begin: (t0 + 7002) * 1000, End: (t0 + 7003) * 1000})
			h.alarmed(r.Run, ofFirst, causeLost, t0+7000)
		}, Report{Wrong: 1}},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := shared()
			m.change(h)
			for i := range h.Rows {
				h.Rows[i].Trigger = h.Rows[i].Run
			}
			got := New(h.Input).Check(t0, t0+120_000)
			broken := Report{Lost: got.Lost, Double: got.Double, Early: got.Early, Unfinished: got.Unfinished, Unexplained: got.Unexplained, Forbidden: got.Forbidden, Overdue: got.Overdue,
				Wrong: got.Wrong, Forgotten: got.Forgotten}
			if !reflect.DeepEqual(broken, m.want) {
				t.Errorf("broken: %+v\nwant %+v\n%s", broken, m.want, strings.Join(got.Problems, "\n"))
			}
		})
	}
}
