package store_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestAhead: what is due in more than two days is kept apart until a day before; where runs
// are kept for less than three days, a planned run never waits for longer than it is kept.
func TestAhead(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ keep, most, reach time.Duration }{
		{0, 2 * day, day}, {30 * day, 2 * day, day}, {3 * day, 2 * day, day}, {60 * time.Hour, 36 * time.Hour, day},
		{2 * day, day, day}, {day, day / 2, day / 2}, {time.Hour, time.Hour / 2, time.Hour / 2},
	} {
		for _, ahead := range []time.Duration{-100 * 365 * day, 0, c.most, c.most + time.Nanosecond, 28 * 365 * day} {
			at := now.Add(ahead)
			move, far := store.Ahead(at, now, c.keep)
			if far != (ahead > c.most) || far && (at.Sub(move) != c.reach || move.Before(now)) {
				t.Errorf("runs are kept for %v: one that is due in %v: far %t, moves %v before", c.keep, ahead, far, at.Sub(move))
			}
		}
		if c.keep > 0 && (c.most > store.PlannedFor(c.keep) || store.PlannedFor(c.keep) >= c.keep) {
			t.Errorf("runs are kept for %v: one may wait for %v, of %v", c.keep, c.most, store.PlannedFor(c.keep))
		}
	}
	if _, far := store.Ahead(time.Time{}, now, 0); far {
		t.Error("now is far ahead")
	}
}
