package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// call is a handler's call, as the handler saw it. It has no pointers, so that a million of
// them are no work for the collector.
type call struct {
	unit int64 // what was to be done once: a run, a job of River; or zero where it has no id
	job  int64 // whose instant it is
	due  int64 // the instant, in milliseconds since 1970
	late int32 // microseconds
}

// at is when the handler was called, in microseconds since 1970.
func (c call) at() int64 { return c.due*1000 + int64(c.late) }

// calls are those of one process. The methods may be called concurrently.
type calls struct{ all measure.Shards[call] }

// note records a call that is made now.
func (c *calls) note(unit, job int64, due time.Time) {
	c.all.Add(unit^job, call{unit, job, due.UnixMilli(), measure.Microseconds(time.Since(due.Truncate(time.Millisecond)))})
}

// noteSecond records a call of a scheduler that does not say which instant it is for: the last
// whole second.
func (c *calls) noteSecond(job int64) {
	due := time.Now().Truncate(time.Second)
	c.all.Add(job, call{0, job, due.UnixMilli(), measure.Microseconds(time.Since(due))})
}

// window says which calls are looked at, and how far the instants of a job are apart.
type window struct {
	From  time.Time     `json:"from"`
	For   time.Duration `json:"for"`
	Every time.Duration `json:"every"`
}

// seen is what the calls of a process say.
type seen struct {
	Calls int `json:"calls"` // all of them
	Twice int `json:"twice"` // units, or instants of jobs, with more than one call
	Gaps  int `json:"gaps"`  // instants of a job between its first and last call that had none
	First int64
	// Of instants in the window:
	Due   int                 `json:"due"` // how many had a call
	Late  measure.Percentiles `json:"late_ms"`
	Early int                 `json:"early"`
	// Of calls in the window, whatever their instants:
	Called int    `json:"called"`
	Thirds [3]int `json:"thirds"`
}

// see finds out what the calls say. No handler may be running any more.
func (c *calls) see(w window) seen {
	all := c.all.All()
	s := seen{Calls: len(all)}
	from, to := w.From.UnixMilli(), w.From.Add(w.For).UnixMilli()
	var late []int32
	for _, k := range all {
		if s.First == 0 || k.at() < s.First {
			s.First = k.at()
		}
		if k.due >= from && k.due < to {
			late = append(late, k.late)
		}
		if at := k.at() - from*1000; at >= 0 && at < w.For.Microseconds() {
			s.Called++
			s.Thirds[min(at*3/w.For.Microseconds(), 2)]++
		}
	}
	d := measure.NewDistribution(late)
	s.Due, s.Late, s.Early = d.Len(), d.Percentiles(), d.Early()
	s.Twice = twice(all)
	if w.Every > 0 {
		s.Gaps = gaps(all, w.Every.Milliseconds())
	}
	return s
}

// twice counts calls that another one was for already: of the same unit, or where units have no
// ids, of the same instant of the same job.
func twice(all []call) (n int) {
	slices.SortFunc(all, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.job, b.job), cmp.Compare(a.due, b.due))
	})
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.unit == b.unit && (a.unit != 0 || a.job == b.job && a.due == b.due) {
			n++
		}
	}
	return n
}

// gaps counts the instants that had no call though an earlier and a later one of the job had.
func gaps(all []call, every int64) (n int) {
	slices.SortFunc(all, func(a, b call) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.due, b.due)) })
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.job == b.job && b.due > a.due {
			n += int((b.due-a.due)/every) - 1
		}
	}
	return n
}
