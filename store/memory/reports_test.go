package memory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestEndsOfRunsToCome: whatever is cancelled that is due in years, the quarters of an hour about
// now stay what they are, and what is far away is added up to days.
func TestEndsOfRunsToCome(t *testing.T) {
	const quarters = 20_500
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		id := f.job().ID
		end := func(at time.Time) {
			r, err := f.AddRun(t.Context(), id, store.Trigger{At: at})
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
			found, err := f.Reports(t.Context(), store.ReportQuery{From: from, To: to, Length: length, Examine: 200_000})
			f.must(err)
			return found.Reports
		}
		for what, from := range map[string]time.Time{"now": now, "twenty days ago": now.Add(-20 * store.ReportDay), "in a week": now.Add(7 * store.ReportDay)} {
			list := read(from, from.Add(store.Quarter), 0)
			if len(list) != 1 || list[0].Length != store.Quarter || list[0].Ended[store.StateCancelled] != 1 {
				t.Errorf("the quarter of an hour %s: %+v", what, list)
			}
		}
		all := read(now.Add(-30*store.ReportDay), now.Add(300*store.ReportDay), 330*store.ReportDay)
		if len(all) != 1 || all[0].Ended[store.StateCancelled] != quarters+2 {
			t.Errorf("all of them: %+v", all)
		}
		last := store.DayOf(now.Add((quarters - 1) * store.Quarter))
		if list := read(last, last.Add(store.Quarter), 0); len(list) != 1 || list[0].Length != store.ReportDay {
			t.Errorf("the last day: %+v", list)
		}
	})
}

// TestReportsOfManyApps: that somebody asks for a thousand apps, of which there is none, takes
// about as long as one of them, since the store is locked meanwhile.
func TestReportsOfManyApps(t *testing.T) {
	s := memory.New()
	from := store.QuarterOf(time.Now())
	for i := range 19_000 {
		s.CountEnd(fmt.Sprintf("app-%04d", i%1000), from.Add(time.Duration(i/1000)*store.Quarter))
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("not-%04d", i)
	}
	quickest := func(apps []string) (least time.Duration) {
		for i := range 7 {
			began := time.Now()
			found, err := s.Reports(t.Context(), store.ReportQuery{Apps: apps, From: from, To: from.Add(store.ReportDay)})
			if err != nil || len(found.Reports) != 0 {
				t.Fatal(len(found.Reports), err)
			}
			if took := time.Since(began); i == 0 || took < least {
				least = took
			}
		}
		return least
	}
	one, all := quickest(many[:1]), quickest(many)
	t.Logf("one app %v, a thousand %v", one, all)
	if all > 20*one+5*time.Millisecond {
		t.Errorf("a thousand apps take %v, one %v", all, one)
	}
}

// TestReportsByADoubtedClock: what a clock that is ahead takes for long ago is not added up to days, until the
// clock has gone on steadily for an hour.
func TestReportsByADoubtedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		var ahead time.Duration
		f.GoBy(func() time.Time { return time.Now().Add(ahead) })
		id, now := f.job().ID, time.Now()
		r, err := f.AddRun(t.Context(), id, store.Trigger{At: now})
		f.must(err)
		_, err = f.Kill(t.Context(), r.ID, "x")
		f.must(err)
		length := func() time.Duration {
			found, err := f.Reports(t.Context(), store.ReportQuery{From: store.DayOf(now), To: store.DayOf(now).Add(store.ReportDay), Examine: 1000})
			f.must(err)
			if len(found.Reports) != 1 {
				t.Fatalf("reports: %+v", found.Reports)
			}
			return found.Reports[0].Length
		}
		for _, by := range []time.Duration{0, 10 * 365 * 24 * time.Hour, 0} {
			ahead = by
			time.Sleep(5 * time.Second)
			if l := length(); l != store.Quarter {
				t.Errorf("by a clock that is %v ahead for five seconds the report is of %v", by, l)
			}
		}
		ahead = 10 * 365 * 24 * time.Hour
		length()
		time.Sleep(59 * time.Minute)
		if l := length(); l != store.Quarter {
			t.Errorf("after 59 minutes the report is of %v", l)
		}
		time.Sleep(2 * time.Minute)
		if l := length(); l != store.ReportDay {
			t.Errorf("after an hour the report is of %v", l)
		}
	})
}
