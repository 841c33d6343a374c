package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// TestEndsOfRunsToCome: whatever is cancelled that is due in years, the quarters of an hour about
// now stay what they are, and what is far away is added up to days.
func TestEndsOfRunsToCome(t *testing.T) {
	const quarters = 20_500
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		id := f.job().ID
		end := func(at time.Time) {
			r, err := f.AddRun(t.Context(), id, xxljob.Trigger{At: at})
			f.must(err)
			_, err = f.Kill(t.Context(), r.ID, "x")
			f.must(err)
		}
		end(time.Now())
		time.Sleep(20 * store.ReportDay)
		end(time.Now())
		now := store.QuarterOf(time.Now())
		for i := range quarters {
			end(now.Add(time.Duration(i+1) * store.Quarter))
		}
		read := func(from, to time.Time, length time.Duration) []store.Report {
			found, err := f.Reports(t.Context(), xxljob.ReportQuery{From: from, To: to, Length: length, Examine: 200_000})
			f.must(err)
			return found.Reports
		}
		for what, from := range map[string]time.Time{"now": now, "twenty days ago": now.Add(-20 * store.ReportDay), "in a week": now.Add(7 * store.ReportDay)} {
			list := read(from, from.Add(store.Quarter), 0)
			if len(list) != 1 || list[0].Length != store.Quarter || list[0].Ended[xxljob.StateCancelled] != 1 {
				t.Errorf("the quarter of an hour %s: %+v", what, list)
			}
		}
		all := read(now.Add(-30*store.ReportDay), now.Add(300*store.ReportDay), 330*store.ReportDay)
		if len(all) != 1 || all[0].Ended[xxljob.StateCancelled] != quarters+2 {
			t.Errorf("all of them: %+v", all)
		}
		last := store.DayOf(now.Add((quarters - 1) * store.Quarter))
		if list := read(last, last.Add(store.Quarter), 0); len(list) != 1 || list[0].Length != store.ReportDay {
			t.Errorf("the last day: %+v", list)
		}
	})
}
