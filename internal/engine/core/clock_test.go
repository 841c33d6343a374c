package core_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
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
				var c core.Clock
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

// stepped is a store whose clock can be moved, and a node that asks it once a second.
type stepped struct {
	core.Clock
	offset time.Duration
}

func (s *stepped) answer(delay time.Duration) {
	asked := time.Now()
	read := asked.Add(s.offset)
	time.Sleep(delay)
	s.Sample(read, asked)
}

func (s *stepped) live(seconds int) {
	for range seconds {
		s.answer(0)
		time.Sleep(time.Second)
	}
}

// TestClockSetBack: a store whose clock is set back is believed at its next answer,
// however quick the answers before were; one that is set forward by little too.
func TestClockSetBack(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -100 * time.Millisecond, 100 * time.Millisecond, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var s stepped
			s.live(8)
			s.offset = step
			const delay = 40 * time.Millisecond
			s.answer(delay)
			if lag := time.Now().Add(s.offset).Sub(s.Now()); lag < 0 || lag > delay {
				t.Errorf("after a step of %v the estimate lags %v behind, want 0 to %v", step, lag, delay)
			}
		})
	}
}

// TestClockStepsAhead: a clock that is ahead for some seconds moves nothing, one that stays there
// is believed; and after either nothing is deleted for an hour.
func TestClockStepsAhead(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, 31 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var s stepped
			s.live(8)
			lag := func() time.Duration { return time.Since(s.Now()).Round(50 * time.Millisecond) }
			doubted := func(when string, want bool, since time.Duration) {
				t.Helper()
				why, from := s.Doubt()
				if (why != "") != want || want && (s.Now().Sub(from)-since).Abs() > 2*time.Second {
					t.Errorf("%s: %q since %v, want %t, %v ago", when, why, from, want, since)
				}
			}
			doubted("before", false, 0)
			s.offset = step
			s.live(10)
			if lag() != 0 || s.Leapt(time.Minute).Round(time.Second) != step || s.Backs() != 0 {
				t.Errorf("ten seconds after a step of %v the estimate is %v behind the local clock; leapt %v, back %d times", step, lag(), s.Leapt(time.Minute), s.Backs())
			}
			doubted("while the clock is ahead", true, 10*time.Second)
			if s.Age(s.Now().Add(-time.Hour)) != 0 {
				t.Error("something is old while the clock is doubted")
			}
			s.offset = 0
			s.live(20)
			if lag() != 0 || s.Backs() != 1 {
				t.Errorf("after a step of %v that was set right the estimate is %v behind; back %d times", step, lag(), s.Backs())
			}
			doubted("after it was set right", true, 20*time.Second)
			s.live(3600)
			doubted("an hour later", false, 0)
			if s.Age(s.Now().Add(-time.Hour)).Round(time.Second) != time.Hour || s.Leapt(time.Minute) != 0 {
				t.Errorf("an hour ago is %v ago; leapt %v", s.Age(s.Now().Add(-time.Hour)), s.Leapt(time.Minute))
			}

			s.offset = step
			s.live(17)
			if lag() != -step {
				t.Errorf("17 s after a step of %v the estimate is %v behind the local clock", step, lag())
			}
			doubted("after a step that is believed", true, 17*time.Second)
			s.live(3600)
			doubted("an hour later", false, 0)
			s.offset = 0
			s.answer(0)
			if lag() != 0 || s.Backs() != 2 {
				t.Errorf("set back by %v the estimate is %v behind; back %d times", step, lag(), s.Backs())
			}
			doubted("set back", true, 0)
		})
	}
}

// TestClockStepsAreAddedUp: a clock that moves by less than a minute again and again is doubted once that is
// more than a minute within an hour, and for an hour from the last time on.
func TestClockStepsAreAddedUp(t *testing.T) {
	for _, step := range []time.Duration{59 * time.Second, -59 * time.Second, 15 * time.Second, -15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var s stepped
			s.live(30)
			each := 1 + int(time.Minute/step.Abs()) // so many are more than a minute
			for i := range each {
				if why, _ := s.Doubt(); why != "" {
					t.Errorf("%d steps of %v: %q", i, step, why)
				}
				s.offset += step
				s.live(50 * 60 / each)
			}
			if seen, _ := s.Doubted(); seen.What == "" || (seen.For-time.Duration(each)*step.Abs()).Abs() > 3*time.Second {
				t.Errorf("%d steps of %v: %+v", each, step, seen)
			}
			for range 60 { // hours of it
				s.offset += step
				s.live(300)
				if why, _ := s.Doubt(); why == "" {
					t.Fatalf("further steps of %v are not doubted", step)
				}
			}
			s.live(3700)
			if why, _ := s.Doubt(); why != "" {
				t.Errorf("an hour after the last step of %v: %q", step, why)
			}
		})
	}
}

// TestClockTrusted: while steps are doubted, however many, how late it is goes by what the clock was before the
// first of them, where that is earlier; and so says what is seen of it.
func TestClockTrusted(t *testing.T) {
	type move struct {
		by   time.Duration
		live int // seconds
	}
	small := slices.Repeat([]move{{59 * time.Second, 300}}, 60)
	for name, tt := range map[string]struct {
		moves []move
		want  time.Duration // less than the local clock, or more
		seen  store.SeenWhat
	}{
		"a step ahead":                              {[]move{{time.Hour, 60}}, 0, store.SeenClockAhead},
		"a step ahead that is not believed yet":     {[]move{{time.Hour, 5}}, 0, store.SeenClockAhead},
		"a step back":                               {[]move{{-time.Hour, 60}}, -time.Hour, store.SeenClockBack},
		"small steps for hours":                     {small, 0, store.SeenClockAhead},
		"a step ahead, and one more":                {[]move{{time.Hour, 60}, {61 * time.Second, 60}}, 0, store.SeenClockAhead},
		"a step ahead, and a part of it back":       {[]move{{time.Hour, 60}, {-5 * time.Minute, 60}}, 0, store.SeenClockBack},
		"a step ahead, and all of it back":          {[]move{{time.Hour, 60}, {-time.Hour, 60}}, 0, store.SeenClockBack},
		"a step back, and a part of it ahead":       {[]move{{-time.Hour, 60}, {5 * time.Minute, 60}}, -55 * time.Minute, store.SeenClockAhead},
		"a step ahead that is believed, and a step": {[]move{{time.Hour, 3700}, {2 * time.Minute, 60}}, time.Hour, store.SeenClockAhead},
		"a step ahead long ago":                     {[]move{{time.Hour, 3700}}, time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s stepped
				s.live(30)
				for _, m := range tt.moves {
					s.offset += m.by
					s.live(m.live)
				}
				if got := time.Until(s.Trusted()); (got - tt.want).Abs() > 2*time.Second {
					t.Errorf("trusted is the local clock and %v, want %v", got, tt.want)
				}
				seen, _ := s.Doubted()
				at, ahead := store.ClockTrusted(seen)
				if seen.What != tt.seen || ahead && (time.Until(at)-tt.want).Abs() > 2*time.Second {
					t.Errorf("seen: %+v, %v by what it was before, want %v", seen, time.Until(at), tt.want)
				}
				if behind := s.Now().Sub(s.Trusted()) > time.Minute; behind != ahead && seen.What != store.SeenClockAhead {
					t.Errorf("the clock is ahead by %v, and is said to be: %t", s.Now().Sub(s.Trusted()), ahead)
				}
			})
		})
	}
}

// TestClockMarkOfAnotherPast: where the database was restored from a copy of days ago, whose mark is as old, the
// clock is right, and is not doubted for that; one that is ahead while the mark goes on is.
func TestClockMarkOfAnotherPast(t *testing.T) {
	const days = 48 * time.Hour
	for name, tt := range map[string]struct {
		hours   int           // that the node was there
		mark    time.Duration // before now, then
		doubted bool
		later   bool // an hour later
	}{
		"a copy of two days ago":                    {3, days, false, false},
		"a copy of two days ago, and a new node":    {0, days, true, false},
		"a copy of hours ago":                       {3, 5 * time.Hour, false, false},
		"the copy has no mark":                      {3, -1, false, false},
		"the node was there for less than two days": {0, 23 * time.Hour, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s stepped
				s.KeepsMark()
				s.live(8)
				for range 60 * tt.hours {
					s.KnowMark(s.Now())
					s.live(60)
				}
				if s.KnowMark(s.Now()); tt.mark < 0 {
					s.KnowMark(time.Time{})
				} else {
					s.KnowMark(s.Now().Add(-tt.mark))
				}
				if seen, _ := s.Doubted(); (seen.What != "") != tt.doubted {
					t.Errorf("at once: %+v", seen)
				}
				s.live(3600)
				if seen, _ := s.Doubted(); (seen.What != "") != tt.later {
					t.Errorf("an hour later: %+v", seen)
				}
				s.offset = 31 * 24 * time.Hour
				s.KnowMark(s.Now())
				s.live(2 * 3600)
				if seen, _ := s.Doubted(); seen.What != store.SeenClockJumped {
					t.Errorf("a month ahead: %+v", seen)
				}
			})
		})
	}
}

// TestClockDrifts: samples that are days apart are no step.
func TestClockDrifts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stepped
		s.live(8)
		time.Sleep(7 * 24 * time.Hour)
		s.offset = 2 * time.Minute
		s.answer(0)
		if why, _ := s.Doubt(); why != "" || s.Now().Before(time.Now()) {
			t.Errorf("after a week without an answer: %q, %v", why, s.Now())
		}
	})
}

// TestClockMarkOfItsTime: a clock that steps ahead while nodes are there is not trusted however long it stays
// so; the mark was not old when the node began, nor when another node has moved it on.
func TestClockMarkOfItsTime(t *testing.T) {
	const month = 31 * 24 * time.Hour
	for _, before := range []time.Duration{0, 40 * 24 * time.Hour} { // how old the mark is at the start
		synctest.Test(t, func(t *testing.T) {
			var s stepped
			s.KeepsMark()
			s.live(8)
			s.KnowMark(s.Now().Add(-before))
			s.live(2 * 3600)
			s.KnowMark(s.Now())
			s.offset = month
			s.live(3 * 3600)
			if why, _ := s.Doubt(); why == "" || s.Age(s.Now().Add(-month)) != 0 {
				t.Errorf("a month ahead for three hours: %q", why)
			}
			s.offset = 0
			s.live(3700)
			if why, _ := s.Doubt(); why != "" {
				t.Errorf("an hour after it was set right: %q", why)
			}
		})
	}
}

// TestClockMark: a clock that is more than a day ahead of the mark is not trusted before the node has
// seen it go on for an hour; one that nobody has moved on for as long as it has gone on is.
func TestClockMark(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		mark     time.Duration // before now; negative: none
		unknown  bool
		doubted  bool
		hourLate bool
	}{
		{mark: 0}, {mark: 23 * time.Hour}, {mark: 25 * time.Hour, doubted: true}, {mark: 31 * day, doubted: true},
		{mark: -1}, {unknown: true, doubted: true, hourLate: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s stepped
			s.KeepsMark()
			s.live(8)
			switch {
			case tt.unknown:
			case tt.mark < 0:
				s.KnowMark(time.Time{})
			default:
				s.KnowMark(s.Now().Add(-tt.mark))
			}
			if why, _ := s.Doubt(); (why != "") != tt.doubted {
				t.Errorf("%+v: %q", tt, why)
			}
			s.live(3600)
			if why, _ := s.Doubt(); (why != "") != tt.hourLate {
				t.Errorf("%+v: an hour later %q", tt, why)
			}
		})
	}
}
