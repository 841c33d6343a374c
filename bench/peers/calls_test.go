package main

import (
	"errors"
	"testing"
	"time"
)

// at makes a call of a job at an instant, in seconds behind zero, that is late by so much.
func at(job, unit int64, second float64, late time.Duration) call {
	return call{unit, job, int64(second * 1000), int32(late.Microseconds())}
}

func TestSee(t *testing.T) {
	var c calls
	for _, k := range []call{
		at(1, 11, 9, 0),
		at(1, 12, 10, 4*time.Millisecond),
		at(1, 13, 11, 2*time.Millisecond),
		at(1, 14, 14, 3*time.Millisecond), // the instants 12 and 13 are left out
		at(2, 21, 10.5, -time.Millisecond),
		at(2, 22, 11.5, 8*time.Second), // called behind the window
		at(2, 22, 12.5, 0),             // again for the same unit
	} {
		c.all.Add(k.unit, k)
	}
	got := c.see(window{time.Unix(10, 0), 3 * time.Second, time.Second})
	want := seen{Calls: 7, Twice: 1, Gaps: 2, First: 9e6, Due: 5, Early: 1, Called: 4, Thirds: [3]int{2, 1, 1}}
	want.Late = got.Late
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Late.P50 != 2 || got.Late.Max != 8000 {
		t.Errorf("late by %+v", got.Late)
	}
}

func TestTwiceWithoutIDs(t *testing.T) {
	all := []call{at(1, 0, 1, 0), at(1, 0, 2, 0), at(1, 0, 2, 5), at(2, 0, 1, 0)}
	if n := twice(all); n != 1 {
		t.Errorf("%d instants have several calls, want 1", n)
	}
}

func TestNoCalls(t *testing.T) {
	var c calls
	if got := c.see(window{time.Unix(10, 0), time.Second, time.Second}); got != (seen{}) {
		t.Errorf("nothing was called, and it gives %+v", got)
	}
}

func TestAudit(t *testing.T) {
	for name, x := range map[string]struct {
		states states
		seen   seen
		clean  bool
	}{
		"clean":              {states{succeeded: 5}, seen{Calls: 5}, true},
		"skipped":            {states{succeeded: 5, skipped: 3}, seen{Calls: 5}, true},
		"a call is missing":  {states{succeeded: 5}, seen{Calls: 4}, false},
		"a result is lost":   {states{succeeded: 4}, seen{Calls: 5}, false},
		"called twice":       {states{succeeded: 5}, seen{Calls: 5, Twice: 1}, false},
		"failed, or running": {states{succeeded: 5, bad: 1}, seen{Calls: 5}, false},
	} {
		if err := x.states.audit(&x.seen); (err == nil) != x.clean || err != nil && !errors.Is(err, errAudit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
