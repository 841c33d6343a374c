package runlog_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/runlog"
)

// TestLogBookIsBounded: however many runs end while nothing is written, no more is kept of them
// than there is room for, and nothing is left when it is written.
func TestLogBookIsBounded(t *testing.T) {
	const room, runs = 2 << 20, 100_000
	synctest.Test(t, func(t *testing.T) {
		stats, open, fed := runlog.FullLogBook(room, runs)
		if stats.Peak > room || stats.Waiting < room/2 || stats.Dropped == 0 || open > room/256 || fed > open {
			t.Errorf("%+v, %d runs are kept, %d wait", stats, open, fed)
		}
		stats, open, lines := runlog.DrainLogBook(room, runs)
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

// TestLinesDoNotKeepTheirRecord: a line counts with its own bytes, so it must not keep those of
// the record that it is of, which may be as long as the handler likes.
func TestLinesDoNotKeepTheirRecord(t *testing.T) {
	long := strings.Repeat("y", 1<<20+1)
	for name, c := range map[string]struct {
		record string
		lines  int
	}{
		"one line":               {"a line", 1},
		"one line, ended":        {"a line\n", 1},
		"a short and a long one": {"panic: x\n" + long, 2},
		"a long and a short one": {long + "\nx\n", 2},
		"many":                   {strings.Repeat("a line\n", 1000), 1000},
		"not as it was":          {"a\x00b\xff\n\nc", 3},
		"one that is too long":   {long, 1},
	} {
		if lines, aliased := runlog.AliasedLines(c.record); lines != c.lines || aliased > 0 {
			t.Errorf("%s: %d lines wait, want %d; %d of them keep the record", name, lines, c.lines, aliased)
		}
	}
}

// TestPageWithOtherNumbers: to look for a line in a page takes as long as its text is, whatever
// numbers its lines have.
func TestPageWithOtherNumbers(t *testing.T) {
	for _, c := range []struct {
		first, last, from int
		want              string
	}{
		{1, 2, 1, "a\nb\n"},
		{1, 2, 2, "b\n"},
		{1, math.MaxInt32, 3, ""},
		{1, math.MaxInt32, math.MaxInt32, ""},
		{math.MinInt32, 1, 1, ""},
		{5, 1, 1, "a\nb\n"},
	} {
		began := time.Now()
		if got, err := runlog.LinesOfPage("a\nb", c.first, c.last, c.from); err != nil || got != c.want || time.Since(began) > time.Second {
			t.Errorf("from %d of %d to %d: %q %v after %v", c.from, c.first, c.last, got, err, time.Since(began))
		}
	}
}
