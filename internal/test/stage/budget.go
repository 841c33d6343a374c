package stage

import (
	"runtime"
	"testing"
)

// Budget is what a run, or a batch of runs, costs in one respect.
type Budget struct {
	// What is bounded, with its unit.
	What string
	// Measured is what it was when the bound was set last, and Most is the bound.
	Measured, Most float64
	// Heap is set where it is about memory that this process allocates, which is another with
	// the race detector: it is not compared then.
	Heap bool
}

// CheckBudgets compares what was measured with the bounds of a table, and logs both. Every
// line of the table must have been measured, and nothing else.
func CheckBudgets(t testing.TB, table []Budget, measured map[string]float64) {
	t.Helper()
	for _, b := range table {
		now, ok := measured[b.What]
		t.Logf("%s: %.5g, at most %.5g (%.5g when that was set)", b.What, now, b.Most, b.Measured)
		switch {
		case !ok:
			t.Errorf("%s: not measured", b.What)
		case now > b.Most && !(b.Heap && Detector):
			t.Errorf("%s: %.5g, want at most %.5g; it was %.5g when the bound was set", b.What, now, b.Most, b.Measured)
		}
	}
	if len(table) != len(measured) {
		t.Errorf("%d lines are in the table, and %d were measured: %v", len(table), len(measured), measured)
	}
}

// LeastOf keeps the least of each figure that several rounds have measured: what others do on
// the machine can add to a figure, and takes nothing from it.
func LeastOf(rounds int, measure func() map[string]float64) map[string]float64 {
	least := measure()
	for range rounds - 1 {
		for what, n := range measure() {
			least[what] = min(least[what], n)
		}
	}
	return least
}

// Allocated is what this process has allocated since it was started.
type Allocated struct{ bytes, objects uint64 }

// AllocatedNow collects garbage, so that no collection that others have caused is at work, and
// reads what has been allocated so far. It stops the world.
func AllocatedNow() Allocated {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Allocated{m.TotalAlloc, m.Mallocs}
}

// Since is what has been allocated between two moments, in bytes and in objects.
func (a Allocated) Since(before Allocated) (bytes, objects float64) {
	return float64(a.bytes - before.bytes), float64(a.objects - before.objects)
}
