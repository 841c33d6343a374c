package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
)

// TestClock: the estimate is the greatest that one of the last eight samples
// allows, less what two sound clocks drift apart meanwhile, half a millisecond in
// a second; so it is never ahead of the store's clock.
func TestClock(t *testing.T) {
	const drift = 500 * time.Microsecond
	for _, tt := range []struct {
		name   string
		offset time.Duration
		gains  time.Duration // what the store's clock gains in a second
		delays []int         // of the answers, one a second, in milliseconds
	}{
		{"one sample", time.Hour, 0, []int{7}},
		{"at once", -time.Hour, 0, []int{0, 0, 0}},
		{"quicker answers count at once", time.Hour, 0, []int{30, 20, 25, 3, 9}},
		{"slower ones do not count", -time.Hour, 0, []int{1, 500, 40, 900}},
		{"the ninth sample replaces the first", 0, 0, []int{1, 50, 40, 60, 50, 70, 60, 50, 45, 80}},
		{"each answer slower than the one before", 0, 0, []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}},
		{"a faster clock", time.Hour, time.Millisecond, []int{0, 0, 0, 5, 5, 0}},
		{"a slower clock", time.Hour, -drift, []int{0, 0, 0, 5, 5, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c core.TestClock
				if !c.Now().Equal(time.Now()) {
					t.Errorf("without a sample: %v", c.Now())
				}
				c.Sample(time.Time{}, time.Now())
				if !c.Now().Equal(time.Now()) {
					t.Errorf("with a store that goes by the local clock: %v", c.Now())
				}
				zero := time.Now()
				store := func() time.Time {
					gone := time.Since(zero)
					return zero.Add(tt.offset + gone + gone/1000*(tt.gains/1000)/1000)
				}
				check := func(after int) {
					t.Helper()
					want := time.Hour
					for i, ms := range tt.delays[:after+1] {
						age := time.Since(zero) - time.Duration(i+1)*time.Second
						if i > after-8 {
							want = min(want, time.Duration(ms)*time.Millisecond+age/1000*((tt.gains+drift)/1000)/1000)
						}
					}
					if lag := store().Sub(c.Now()); (lag - want).Abs() > time.Microsecond {
						t.Errorf("%v after the first: the estimate lags %v behind, want %v", time.Since(zero), lag, want)
					}
					if name, _ := c.Now().Zone(); name != "UTC" {
						t.Errorf("the zone is %s", name)
					}
				}
				for i, ms := range tt.delays {
					time.Sleep(time.Until(zero.Add(time.Duration(i+1) * time.Second)))
					delay := time.Duration(ms) * time.Millisecond
					c.Sample(store().Add(-delay), time.Now().Add(-delay))
					check(i)
					time.Sleep(300 * time.Millisecond) // between samples it goes on with the local clock
					check(i)
				}
			})
		})
	}
}

// TestClockSetBack: a store whose clock is set back is believed at its next answer,
// however quick the answers before were; one that is set forward too.
func TestClockSetBack(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -100 * time.Millisecond, 100 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var c core.TestClock
			offset := time.Duration(0)
			answer := func(delay time.Duration) {
				asked := time.Now()
				read := asked.Add(offset)
				time.Sleep(delay)
				c.Sample(read, asked)
			}
			for range 8 {
				answer(0)
				time.Sleep(time.Second)
			}
			offset = step
			const delay = 40 * time.Millisecond
			answer(delay)
			if lag := time.Now().Add(offset).Sub(c.Now()); lag < 0 || lag > delay {
				t.Errorf("after a step of %v the estimate lags %v behind, want 0 to %v", step, lag, delay)
			}
		})
	}
}
