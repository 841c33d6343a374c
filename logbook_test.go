package xxljob_test

import (
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob"
)

// TestLogBookIsBounded: however many runs end while nothing is written, no more is kept of them
// than there is room for, and nothing is left when it is written.
func TestLogBookIsBounded(t *testing.T) {
	const room, runs = 2 << 20, 100_000
	synctest.Test(t, func(t *testing.T) {
		stats, open, fed := xxljob.FullLogBook(room, runs)
		if stats.Peak > room || stats.Waiting < room/2 || stats.Dropped == 0 || open > room/256 || fed > open {
			t.Errorf("%+v, %d runs are kept, %d wait", stats, open, fed)
		}
		stats, open, lines := xxljob.DrainLogBook(room, runs)
		if stats.Waiting != 0 || open != 0 || len(lines) < 1000 {
			t.Errorf("when all is written: %+v, %d runs, %d logs", stats, open, len(lines))
		}
		for id, n := range lines {
			if n != 1 { // the line, or the one that says it is missing; and its end
				t.Fatalf("run %d has %d", id, n)
			}
		}
	})
}
