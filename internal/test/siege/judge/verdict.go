package judge

import (
	"fmt"
	"time"
)

// Bounds are what is asserted.
type Bounds struct {
	// P99 is what the 99th percentile of each kind of request has to be below.
	P99 time.Duration
	// Heap is what the live heap must not exceed, in bytes.
	Heap int64
	// HeapSlack and GoroutineSlack are what the last quarter of the siege may have beyond
	// a fifth more than the second.
	HeapSlack, GoroutineSlack int64
	// Samples are how many samples of each kind there have to be at least: of few,
	// a percentile says nothing.
	Samples int
}

// DefaultBounds are those of the promise, but for Heap.
func DefaultBounds() Bounds {
	return Bounds{P99: 500 * time.Millisecond, Heap: 64 << 20, HeapSlack: 8 << 20, GoroutineSlack: 64, Samples: 100}
}

// Kind is one kind of request of the honest app, outside of stalls of the store.
type Kind struct {
	Name string
	Summary
}

// Runs are the runs of the honest app, as the store has them in the end.
type Runs struct {
	// Succeeded and Cancelled have ended as they should: cancelled are those that were
	// planned when their jobs were stopped.
	Succeeded, Cancelled int
	// Unended have no result.
	Unended int
	// Other ended in any other way.
	Other int
	// Accepted is how many runs the executors have accepted, Forgotten how many of them
	// the store does not have as succeeded.
	Accepted, Forgotten int
	// Twice is how many runs were sent twice.
	Twice int
	// Unacknowledged is how many results were never answered with 200.
	Unacknowledged int
}

// Findings are what a run has brought to light.
type Findings struct {
	Kinds      []Kind
	Runs       Runs
	Siege      Span
	Heap       []Level // live bytes
	Goroutines []Level
}

// Faults says what breaks the promise, nothing where it was kept.
func Faults(f Findings, b Bounds) (faults []string) {
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	for _, k := range f.Kinds {
		add(k.N < b.Samples, "%s: %d samples, too few to judge", k.Name, k.N)
		add(k.P99 >= b.P99, "%s: p99 is %v, not below %v", k.Name, round(k.P99), b.P99)
		add(k.Bad() > 0, "%s: %d refused, %d timed out, %d broken of %d", k.Name, k.Refused, k.TimedOut, k.Broken, k.N)
	}
	r := f.Runs
	add(r.Succeeded == 0, "no run of the honest app has succeeded")
	add(r.Unended > 0, "%d runs of the honest app have not ended", r.Unended)
	add(r.Other > 0, "%d runs of the honest app ended otherwise than they should", r.Other)
	add(r.Forgotten > 0, "%d of %d accepted runs are not stored as succeeded", r.Forgotten, r.Accepted)
	add(r.Twice > 0, "%d runs were sent twice", r.Twice)
	add(r.Unacknowledged > 0, "%d results were never acknowledged", r.Unacknowledged)
	most := Most(f.Heap, f.Siege)
	add(most > b.Heap, "the live heap reached %s, the bound is %s", mebibytes(most), mebibytes(b.Heap))
	for _, g := range []string{
		growth("the live heap", f.Heap, f.Siege, b.HeapSlack, mebibytes),
		growth("the number of goroutines", f.Goroutines, f.Siege, b.GoroutineSlack, plain),
	} {
		add(g != "", "%s", g)
	}
	return faults
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func plain(n int64) string { return fmt.Sprint(n) }

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
