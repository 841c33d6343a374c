package judge

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain has CI run none of these tests again that has failed: it looks for that line.
func TestMain(m *testing.M) {
	code := m.Run()
	if code != 0 {
		fmt.Println("audited: not run again")
	}
	os.Exit(code)
}

const ms = time.Millisecond

func TestPercentiles(t *testing.T) {
	var s Series
	for i := 200; i > 0; i-- { // of 1 to 200 ms
		s.Add(Sample{From: time.Duration(i) * ms, To: 2 * time.Duration(i) * ms})
	}
	got := s.Summary(Span{0, time.Hour})
	if want := (Summary{N: 200, P50: 100 * ms, P99: 198 * ms, Max: 200 * ms}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := s.Summary(Span{time.Hour, 2 * time.Hour}); got != (Summary{}) {
		t.Errorf("of nothing: %+v", got)
	}
	// Of a hundred and one, two are above the percentile: one slow request is not hidden
	// by rounding, and is not the percentile either.
	var few Series
	for range 100 {
		few.Add(Sample{To: ms})
	}
	few.Add(Sample{To: time.Second})
	if got := few.Summary(Span{0, 1}); got.P99 != ms || got.Max != time.Second {
		t.Errorf("one of 101: p99 %v, max %v", got.P99, got.Max)
	}
	few.Add(Sample{To: time.Second})
	if got := few.Summary(Span{0, 1}); got.P99 != time.Second {
		t.Errorf("two of 102: p99 %v", got.P99)
	}
}

func TestOutcomes(t *testing.T) {
	var s Series
	for _, o := range []Outcome{OK, OK, Refused, TimedOut, TimedOut, TimedOut, Broken} {
		s.Add(Sample{To: ms, Outcome: o})
	}
	got := s.Summary(Span{0, 1})
	if got.N != 7 || got.Refused != 1 || got.TimedOut != 3 || got.Broken != 1 || got.Bad() != 5 {
		t.Errorf("%+v", got)
	}
}

// TestStalls: what meets a stall of the store at any moment is no part of the verdict, and
// all of it is part of the stall.
func TestStalls(t *testing.T) {
	var s Series
	stall := Span{10 * time.Second, 15 * time.Second}
	for _, x := range []struct{ from, to time.Duration }{{0, 9}, {9, 10}, {11, 12}, {9, 16}, {14, 20}, {15, 16}, {20, 21}} {
		s.Add(Sample{From: x.from * time.Second, To: x.to * time.Second})
	}
	if got := s.Summary(Span{0, time.Minute}, stall); got.N != 3 || got.Max != 9*time.Second {
		t.Errorf("outside: %+v", got)
	}
	if got := s.Within(stall); got.N != 4 || got.Max != 7*time.Second {
		t.Errorf("inside: %+v", got)
	}
}

// kept are findings of a run in which all promises were kept.
func kept() Findings {
	f := Findings{
		Kinds: []Kind{{"beats", Summary{N: 1000, P50: 2 * ms, P99: 499 * ms, Max: 2 * time.Second}}},
		Runs:  Runs{Succeeded: 500, Cancelled: 3, Accepted: 500},
		Siege: Span{10 * time.Second, 410 * time.Second},
	}
	for i := range 420 {
		f.Heap = append(f.Heap, Level{time.Duration(i) * time.Second, 40 << 20})
		f.Goroutines = append(f.Goroutines, Level{time.Duration(i) * time.Second, 500})
	}
	return f
}

func TestVerdict(t *testing.T) {
	at := func(l []Level, second int, v int64) { l[second].Value = v }
	for name, c := range map[string]struct {
		change func(*Findings)
		want   string // in the only fault; empty: there is none
	}{
		"kept":      {func(*Findings) {}, ""},
		"slow":      {func(f *Findings) { f.Kinds[0].P99 = 500 * ms }, "p99 is 500ms"},
		"few":       {func(f *Findings) { f.Kinds[0].N = 99 }, "too few"},
		"refused":   {func(f *Findings) { f.Kinds[0].Refused = 1 }, "1 refused"},
		"timed out": {func(f *Findings) { f.Kinds[0].TimedOut = 1 }, "1 timed out"},
		"broken":    {func(f *Findings) { f.Kinds[0].Broken = 1 }, "1 broken"},
		"nothing":   {func(f *Findings) { f.Runs.Succeeded = 0 }, "no run"},
		"unended":   {func(f *Findings) { f.Runs.Unended = 1 }, "have not ended"},
		"otherwise": {func(f *Findings) { f.Runs.Other = 1 }, "otherwise"},
		"forgotten": {func(f *Findings) { f.Runs.Forgotten = 1 }, "not stored"},
		"twice":     {func(f *Findings) { f.Runs.Twice = 1 }, "twice"},
		"unheard":   {func(f *Findings) { f.Runs.Unacknowledged = 1 }, "never acknowledged"},

		"heap above the bound":       {func(f *Findings) { at(f.Heap, 20, 65<<20) }, "reached 65.0 MiB"},
		"heap before the siege":      {func(f *Findings) { at(f.Heap, 9, 300<<20) }, ""},
		"heap within a fifth":        {func(f *Findings) { at(f.Heap, 400, 56<<20) }, ""},
		"heap grew":                  {func(f *Findings) { at(f.Heap, 400, 57<<20) }, "40.0 MiB in the second quarter, 57.0 MiB in the last"},
		"heap grew behind the siege": {func(f *Findings) { at(f.Heap, 410, 63<<20) }, ""},
		"heap fell":                  {func(f *Findings) { at(f.Heap, 120, 63<<20) }, ""},
		"heap unknown":               {func(f *Findings) { f.Heap = f.Heap[:300] }, "not measured"},
		"goroutines within":          {func(f *Findings) { at(f.Goroutines, 400, 664) }, ""},
		"goroutines grew":            {func(f *Findings) { at(f.Goroutines, 400, 665) }, "500 in the second quarter, 665 in the last"},
	} {
		t.Run(name, func(t *testing.T) {
			f := kept()
			c.change(&f)
			faults := Faults(f, DefaultBounds())
			switch {
			case c.want == "" && len(faults) > 0:
				t.Errorf("faults: %q", faults)
			case c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)):
				t.Errorf("faults: %q, want one with %q", faults, c.want)
			}
		})
	}
}
