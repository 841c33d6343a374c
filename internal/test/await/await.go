// Package await has tests wait for what other goroutines, processes and servers bring
// about.
//
// Comes in: a condition. Goes out: that it holds, or a failure of the test in words. The
// only bound is the deadline of the test binary (go test -timeout), for how long something
// takes depends on what else the machine does: a shorter one fails where it is slow.
package await

import (
	"testing"
	"time"
)

const (
	// every is how often a condition is looked at.
	every = 2 * time.Millisecond
	// words is the time that is left to a test for saying what it has waited for, a quarter
	// of what there is where that is less.
	words = 15 * time.Second
)

// Until waits until a condition holds, which is called from the test's goroutine. It fails
// the test at once, a little before its deadline; where that has none it waits for ever.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := deadline(t); !holds(); time.Sleep(every) {
		if !end.IsZero() && time.Now().After(end) {
			t.Fatalf("still not, at the deadline of the tests: %s", what)
		}
	}
}

// deadline is when the test gives up, zero for never.
func deadline(t testing.TB) time.Time {
	d, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return time.Time{} // a benchmark
	}
	end, ok := d.Deadline()
	if !ok {
		return time.Time{}
	}
	return end.Add(-min(words, time.Until(end)/4))
}
