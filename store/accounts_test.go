package store_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestSessionsEndByTheClock, and by none that was set back.
func TestSessionsEndByTheClock(t *testing.T) {
	limits := store.SessionLimits{Idle: time.Hour, Most: 24 * time.Hour}
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		seen, now time.Duration // since it began
		over      bool
	}{
		{0, 0, false}, {0, time.Hour, false}, {0, time.Hour + 1, true}, {23 * time.Hour, 24 * time.Hour, false}, {24 * time.Hour, 24*time.Hour + 1, true},
		{23 * time.Hour, -time.Hour, false}, {time.Hour, 0, false}, {0, -1000 * time.Hour, false},
	} {
		s := store.Session{Began: began, Seen: began.Add(c.seen)}
		if got := limits.Over(&s, began.Add(c.now)); got != c.over {
			t.Errorf("seen after %v, looked at after %v: over is %v", c.seen, c.now, got)
		}
	}
}
