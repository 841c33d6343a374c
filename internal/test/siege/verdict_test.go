//go:build unix

package siege

import (
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
)

// planted is a runner with figures of a siege that has gone well: an idle heap of 11 MiB, and 60 MiB
// under attack.
func planted() *runner {
	r := &runner{Config: Config{HeapBound: 64 << 20}, honest: &honest{}, besieged: calm}
	h := r.honest
	for _, s := range []*judge.Series{&h.beats, &h.guests, &h.attempts, &h.results, &h.seen} {
		for i := range 400 {
			at := calm + time.Duration(i)*time.Second
			s.Add(judge.Sample{From: at, To: at + 100*time.Millisecond})
		}
	}
	for i := range 420 {
		heap := int64(71 << 20)
		if at := time.Duration(i) * time.Second; at < calm {
			heap = 11 << 20
		}
		r.news(message{Kind: kindSample, Heap: heap, Goroutines: 500})
		l := &r.levels
		for _, list := range [][]judge.Level{l.heap, l.total, l.goroutines} {
			list[i].At = time.Duration(i) * time.Second
		}
	}
	return r
}

// faults are what is said of the figures.
func (r *runner) faults() []string {
	f := judge.Findings{Runs: judge.Runs{Succeeded: 1, Accepted: 1}, Siege: judge.Span{From: calm, To: calm + 400*time.Second}}
	f.Heap, f.Goroutines = r.levels.all()
	f.Kinds = r.kinds(f.Siege)
	return judge.Faults(f, r.bounds())
}

// TestVerdictOfPlantedFigures: what the runner has measured of the console and of the heap gets to the
// judge, and each bound can be missed.
func TestVerdictOfPlantedFigures(t *testing.T) {
	page := func(took time.Duration, o judge.Outcome, times int) func(*runner) {
		return func(r *runner) {
			for i := range times {
				at := calm + time.Duration(i)*time.Second
				r.honest.seen.Add(judge.Sample{From: at, To: at + took, Outcome: o})
			}
		}
	}
	heap := func(second int, mebibytes int64) func(*runner) {
		return func(r *runner) { r.levels.heap[second].Value = mebibytes << 20 }
	}
	for name, c := range map[string]struct {
		change func(*runner)
		want   string // in the only fault; empty: there is none
	}{
		"all is well":                        {func(*runner) {}, ""},
		"one page in a hundred is slow":      {page(9*time.Second, judge.OK, 4), ""},
		"two pages in a hundred are slow":    {page(501*time.Millisecond, judge.OK, 9), "console: p99 is 501ms"},
		"a page is refused":                  {page(time.Millisecond, judge.Refused, 1), "console: 1 refused"},
		"a page does not come":               {page(10*time.Second, judge.TimedOut, 1), "console: 0 refused, 1 timed out"},
		"a page breaks off":                  {page(time.Millisecond, judge.Broken, 1), "console: 0 refused, 0 timed out, 1 broken"},
		"nobody looks":                       {func(r *runner) { r.honest.seen = judge.Series{} }, "console: 0 samples"},
		"the heap is at its bound":           {heap(100, 75), ""},
		"the heap is a mebibyte above it":    {heap(100, 76), "the live heap reached 76.0 MiB, the bound is 75.0 MiB"},
		"it was above it before":             {heap(5, 12), ""},
		"what was above it before raises it": {func(r *runner) { heap(5, 12)(r); heap(100, 77)(r) }, "the bound is 76.0 MiB"},
		"another bound":                      {func(r *runner) { r.HeapBound = 59 << 20 }, "the bound is 70.0 MiB"},
		"it grows within its bound":          {func(r *runner) { r.HeapBound = 200 << 20; heap(400, 95)(r) }, "71.0 MiB in the second quarter, 95.0 MiB in the last"},
		"what is measured behind is not its": {heap(415, 300), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := planted()
			c.change(r)
			faults := r.faults()
			switch {
			case c.want == "" && len(faults) > 0:
				t.Errorf("faults: %q", faults)
			case c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)):
				t.Errorf("faults: %q, want one with %q", faults, c.want)
			}
		})
	}
}
