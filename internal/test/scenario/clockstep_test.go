package scenario_test

// Stores whose clock is moved, and set right again.

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// movedClock is a clock that can be moved.
type movedClock struct {
	mu sync.Mutex
	by time.Duration // guarded by mu
}

func (c *movedClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *movedClock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

// goingBy is a store in memory that goes by the clock.
func (c *movedClock) goingBy() *memory.Store {
	st := memory.New()
	st.GoBy(c.now)
	return st
}

// clockSteps are those that a clock takes by mistake.
var clockSteps = map[string]time.Duration{"an hour": time.Hour, "31 days": 31 * 24 * time.Hour, "10 years": 3653 * 24 * time.Hour}

// marking is a store that keeps a mark of its clock.
type marking struct {
	*retaining
	mark time.Time // guarded by mu
}

func (s *marking) ClockMark(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark, nil
}

func (s *marking) SetClockMark(_ context.Context, mark time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = mark
	return nil
}

// dropped is how often something was dropped, by the local clock that of so long ago.
func (s *retaining) dropped(t *testing.T, kept time.Duration) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ago := range s.before {
		if (ago - kept).Abs() > time.Second {
			t.Errorf("dropped what is older than %v, want %v", ago, kept)
		}
	}
	return len(s.before)
}

func clockTroubles(s xxljob.Scheduler) (all []xxljob.Trouble) {
	for _, x := range s.Troubles() {
		if x.Cause == xxljob.TroubleClock {
			all = append(all, x)
		}
	}
	return all
}

// TestRetentionWaitsForTheClock: while the store's clock is ahead, and for an hour after it was set
// right, nothing is dropped, reports are not added up, and the node says so.
func TestRetentionWaitsForTheClock(t *testing.T) {
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock movedClock
				st := &retaining{Store: clock.goingBy()}
				lines := &lockedLines{}
				s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: slog.New(slog.NewTextHandler(lines, nil)), RunRetention: 48 * time.Hour})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(30 * time.Second)
				clock.move(step)
				began := time.Now()
				time.Sleep(40 * time.Second) // longer than it is not believed, and past the first go
				if ts := clockTroubles(s); len(ts) != 1 || !strings.Contains(ts[0].Detail, "ahead by "+step.String()) || ts[0].Since.Sub(began).Abs() > 5*time.Second+step {
					t.Errorf("while the clock is ahead: %v", ts)
				}
				clock.move(0)
				time.Sleep(time.Hour - time.Minute)
				if n := st.dropped(t, 48*time.Hour); n != 0 || st.folds != 0 {
					t.Errorf("dropped %d times, added up %d times while the clock was not to be trusted", n, st.folds)
				}
				if ts := clockTroubles(s); len(ts) != 1 || !strings.Contains(ts[0].Detail, "back by "+step.String()) {
					t.Errorf("after it was set right: %v", ts)
				}
				time.Sleep(5 * time.Minute)
				if n := st.dropped(t, 48*time.Hour); n != 1 || st.folds == 0 || len(clockTroubles(s)) != 0 {
					t.Errorf("an hour later: dropped %d times, added up %d times, %v", n, st.folds, clockTroubles(s))
				}
				stage.Must(t, s.Stop(t.Context()))
				if n := len(lines.with("cause=clock")); n < 2 {
					t.Errorf("%d lines of the clock", n)
				}
			})
		})
	}
}

// TestRetentionGoesByTheMark: a node that starts while the store's clock is far ahead of the mark
// waits for an hour; where the clock is set right meanwhile, for an hour from then on.
func TestRetentionGoesByTheMark(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ahead time.Duration // of the mark, at the start
		right bool          // it is set right after ten seconds
		waits bool
	}{
		{"it is as it was", 0, false, false},
		{"nobody was there for a night", 12 * time.Hour, false, false},
		{"it is 31 days ahead", 31 * 24 * time.Hour, true, true},
		{"nobody was there for a month", 31 * 24 * time.Hour, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock movedClock
				st := &marking{retaining: &retaining{Store: clock.goingBy()}}
				st.mark = time.Now()
				clock.move(tt.ahead)
				s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog(), RunRetention: 48 * time.Hour})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(10 * time.Second)
				kept := 48*time.Hour - tt.ahead
				if tt.right {
					clock.move(0)
					kept = 48 * time.Hour
				}
				time.Sleep(59 * time.Minute)
				early := st.dropped(t, kept)
				if early > 0 == tt.waits || len(clockTroubles(s)) > 0 != tt.waits {
					t.Errorf("within an hour: dropped %d times, %v", early, clockTroubles(s))
				}
				time.Sleep(6 * time.Minute)
				if n := st.dropped(t, kept); n == 0 || len(clockTroubles(s)) != 0 {
					t.Errorf("after it: dropped %d times, %v", n, clockTroubles(s))
				}
				if off := st.mark.Sub(clock.now()); off.Abs() > 2*time.Minute {
					t.Errorf("the mark is off by %v", off)
				}
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}
