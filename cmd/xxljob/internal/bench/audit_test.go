package bench

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// planned is a calendar of two jobs that are spread, with three instants each, and its units.
func planned() (calendar, *instantUnits) {
	begin := time.UnixMilli(1_800_000_000_000).UTC()
	c := calendar{jobs: 2, spread: true, begin: begin, from: begin.Add(second / 2), to: begin.Add(3 * second / 2), last: begin.Add(2500 * time.Millisecond)}
	return c, newInstantUnits(c, []int64{70, 71})
}

// world is what handlers were called for and what the store has.
type world struct {
	calls []call
	runs  []xxljob.Run
}

// clean is a world in which each instant has run once.
func clean(c calendar) *world {
	w := &world{}
	for i := range c.jobs {
		for k := range c.instants(i, c.last) {
			w.run(c, i, c.first(i).Add(time.Duration(k)*second))
		}
	}
	return w
}

// run adds a run that has succeeded, and its call.
func (w *world) run(c calendar, i int, at time.Time) {
	id := int64(len(w.runs) + 1)
	w.calls = append(w.calls, call{Run: id, Job: int32(70 + i), At: int32(at.Sub(c.begin).Milliseconds()), Late: 100})
	w.runs = append(w.runs, xxljob.Run{ID: id, JobID: int64(70 + i), Scheduled: at, State: xxljob.StateSucceeded})
}

func (w *world) audit(c calendar, u units) Audit {
	a := newAuditor(u)
	for _, x := range w.calls {
		a.called(c.begin, x)
	}
	for i := range w.runs {
		a.ran(&w.runs[i])
	}
	return a.verdict()
}

func TestAuditFinds(t *testing.T) {
	c, u := planned()
	for _, x := range []struct {
		name  string
		plant func(*world)
		want  Audit
	}{
		{"nothing", func(*world) {}, Audit{Expected: 6, Once: 6}},
		{"an instant without a run", func(w *world) { w.calls, w.runs = w.calls[1:], w.runs[1:] }, Audit{Expected: 6, Once: 5, Lost: 1}},
		{"a success without a call", func(w *world) { w.calls = w.calls[1:] }, Audit{Expected: 6, Once: 5, Lost: 1}},
		{"a call without a record", func(w *world) { w.runs = w.runs[1:] }, Audit{Expected: 6, Once: 5, Lost: 1}},
		{"a run that was called twice", func(w *world) { w.calls = append(w.calls, w.calls[2]) }, Audit{Expected: 6, Once: 5, Double: 1}},
		{"two runs of an instant", func(w *world) { w.run(c, 1, c.first(1)) }, Audit{Expected: 6, Once: 5, Double: 1}},
		{"a failed run that was run again", func(w *world) {
			w.run(c, 1, c.first(1))
			w.runs[6].State = xxljob.StateFailed
		}, Audit{Expected: 6, Once: 5, Double: 1, Failed: 1}},
		{"an early call", func(w *world) { w.calls[3].Late = -1 }, Audit{Expected: 6, Once: 6, Early: 1}},
		{"a failure", func(w *world) { w.runs[0].State = xxljob.StateFailed }, Audit{Expected: 6, Once: 5, Lost: 1, Failed: 1}},
		{"a run that is lost", func(w *world) { w.runs[0].State = xxljob.StateLost }, Audit{Expected: 6, Once: 5, Lost: 1, Failed: 1}},
		{"a run under way", func(w *world) { w.runs[0].State = xxljob.StateStarted }, Audit{Expected: 6, Once: 5, Lost: 1, Unended: 1}},
		{"a run that waits", func(w *world) { w.runs[0].State, w.calls = xxljob.StatePlanned, w.calls[1:] }, Audit{Expected: 6, Once: 5, Lost: 1, Unended: 1}},
		{"skipped instants", func(w *world) {
			w.runs[0].State, w.runs[0].Count = xxljob.StateSkipped, 2
			w.runs, w.calls = append(w.runs[:1], w.runs[2:]...), w.calls[2:]
		}, Audit{Expected: 6, Once: 4, Lost: 2, Skipped: 2}},
		{"a run between two instants", func(w *world) { w.run(c, 0, c.first(0).Add(time.Millisecond)) }, Audit{Expected: 6, Once: 6, Stray: 2}},
		{"a run before the first", func(w *world) { w.run(c, 0, c.first(0).Add(-second)) }, Audit{Expected: 6, Once: 6, Stray: 2}},
		{"a run after the last", func(w *world) { w.run(c, 0, c.last.Add(second/2)) }, Audit{Expected: 6, Once: 6, Stray: 2}},
		{"a run of another job", func(w *world) { w.run(c, 9, c.first(0)) }, Audit{Expected: 6, Once: 6, Stray: 2}},
	} {
		w := clean(c)
		x.plant(w)
		got := w.audit(c, u)
		if got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
		if got.Clean() != (x.name == "nothing") {
			t.Errorf("%s: clean is %v", x.name, got.Clean())
		}
	}
}

func TestAuditOfADrainGoesByRuns(t *testing.T) {
	c, _ := planned()
	w := clean(c)
	var ids []int64
	for _, r := range w.runs {
		ids = append(ids, r.ID)
	}
	at := c.first(0) // all runs have one instant
	for i := range w.runs {
		w.runs[i].Scheduled = at
		w.calls[i].At = 0
	}
	if got := w.audit(c, newRunUnits(ids)); !got.Clean() || got.Expected != 6 {
		t.Errorf("%+v", got)
	}
	w.calls[0].Run = w.calls[1].Run
	if got := w.audit(c, newRunUnits(ids)); got.Lost != 1 || got.Double != 1 {
		t.Errorf("one that was not called, another called twice: %+v", got)
	}
}

func TestCalendar(t *testing.T) {
	c, u := planned()
	if got := c.first(1).Sub(c.begin); got != second/2 {
		t.Errorf("the second of two jobs begins %v later", got)
	}
	if got := u.count(); got != 6 {
		t.Errorf("%d instants, want 6", got)
	}
	if got := c.offered(); got != 2 { // of one job at 1 s, of the other at 0.5 s
		t.Errorf("%d are measured, want 2", got)
	}
	herd := newCalendar(10, false, time.Now(), 5*second, 30*second)
	if herd.offered() != 300 || herd.begin.Before(time.Now().Add(-second)) || herd.begin.Nanosecond() != 0 {
		t.Errorf("%d are measured of a herd from %v on, want 300", herd.offered(), herd.begin)
	}
	spread := newCalendar(3000, true, time.Now(), 5*second, 30*second)
	if spread.offered() != 90_000 {
		t.Errorf("%d are measured, want 90,000", spread.offered())
	}
	// All instants are to the millisecond, as stores keep them.
	odd := newCalendar(7, true, time.Now(), second, second)
	for i := range 7 {
		if odd.first(i).Truncate(time.Millisecond) != odd.first(i) {
			t.Errorf("job %d begins at %v", i, odd.first(i))
		}
	}
}

func TestSeries(t *testing.T) {
	from := time.UnixMilli(1_800_000_000_500)
	s := newSeries(from, from.Add(3*second))
	for _, after := range []time.Duration{-1, 0, second - 1, second, 3*second - 1, 3 * second} {
		s.ended(from.Add(after))
		s.called(from.Add(after), int32(after/time.Millisecond))
	}
	got := s.seconds()
	if len(got) != 3 || got[0].Completed != 2 || got[1].Completed != 1 || got[2].Completed != 1 || s.total() != 4 {
		t.Fatalf("%+v", got)
	}
	if got[0].Called != 2 || got[1].P50 != 1 || got[1].P99 != 1 {
		t.Errorf("%+v", got)
	}
	first, last := thirds([]Second{{Completed: 10}, {Completed: 20}, {Completed: 30}, {Completed: 1}, {Completed: 4}, {Completed: 8}, {Completed: 9}})
	if first != 15 || last != 8.5 {
		t.Errorf("thirds are %v and %v", first, last)
	}
	if first, last := thirds(nil); first != 0 || last != 0 {
		t.Errorf("thirds of nothing are %v and %v", first, last)
	}
}
