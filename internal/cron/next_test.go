package cron

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Every instant between two fires has the later one as its next, and no fire is
// at or before the instant asked from.
func TestNextIsTheSameUntilItComes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := readRows(t, "testdata/quartz_utc.tsv", 4)
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia"}
	for _, name := range zones {
		loc := zone(t, name)
		for range 400 {
			expr, err := Parse(rows[r.IntN(len(rows))][0])
			if err != nil {
				continue
			}
			at := time.Unix(1293840000+r.Int64N(30*366*daySeconds), r.Int64N(1e9))
			for range 5 {
				next := expr.Next(at, loc, Civil)
				if next.IsZero() {
					break
				}
				checkBetween(t, expr, at, next, loc, r)
				at = next
			}
		}
	}
}

func checkBetween(t *testing.T, s compiled, at, next time.Time, loc *time.Location, r *rand.Rand) {
	t.Helper()
	if !next.After(at) || next.Nanosecond() != 0 || next.Location() != time.UTC {
		t.Fatalf("%s in %s: next after %v is %v", s, loc, at, next)
	}
	gap := next.Sub(at)
	between := []time.Time{at.Add(time.Duration(r.Int64N(int64(gap)))), next.Add(-1), next.Add(-time.Second / 3)}
	for _, b := range between {
		if b.Before(at) {
			continue
		}
		if got := s.Next(b, loc, Civil); !got.Equal(next) {
			t.Fatalf("%s in %s: next after %v is %v, but after %v in between it is %v", s, loc, at, next, b, got)
		}
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	from := time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC)
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York"} {
		loc := zone(t, name)
		for _, text := range commonExpressions {
			expr := compile(t, text)
			for _, policy := range []Policy{Civil, Quartz} {
				if n := testing.AllocsPerRun(100, func() { expr.Next(from, loc, policy) }); n != 0 {
					t.Errorf("%s in %s under %s: %v allocations", text, name, policy, n)
				}
			}
		}
	}
	change := time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC)
	loc := zone(t, "America/New_York")
	for _, text := range commonExpressions {
		expr := compile(t, text)
		if n := testing.AllocsPerRun(100, func() { expr.Next(change, loc, Civil) }); n != 0 {
			t.Errorf("%s at a change of offset: %v allocations", text, n)
		}
	}
}

func TestCrontabNextAllocatesNothing(t *testing.T) {
	loc := zone(t, "America/New_York")
	for _, from := range []time.Time{time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC), time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC)} {
		for _, text := range commonCrontabs {
			tab := compile(t, text)
			for _, policy := range []Policy{Civil, Quartz} {
				if n := testing.AllocsPerRun(100, func() { tab.Next(from, loc, policy) }); n != 0 {
					t.Errorf("%s after %v under %s: %v allocations", text, from, policy, n)
				}
			}
		}
	}
}

func TestNextAtTheEdges(t *testing.T) {
	tests := []struct{ name, expr, from, want string }{
		{"a fraction before the fire", "0 0 12 * * ?", "2026-05-05T11:59:59.999999999Z", "2026-05-05T12:00:00Z"},
		{"at the fire", "0 0 12 * * ?", "2026-05-05T12:00:00Z", "2026-05-06T12:00:00Z"},
		{"a fraction after the fire", "0 0 12 * * ?", "2026-05-05T12:00:00.000000001Z", "2026-05-06T12:00:00Z"},
		{"before the first year", "0 0 0 * * ?", "1900-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"the last second", "* * * * * ?", "2199-12-31T23:59:58Z", "2199-12-31T23:59:59Z"},
		{"after the last second", "* * * * * ?", "2199-12-31T23:59:59Z", "NONE"},
		{"2100 is no leap year", "0 0 0 29 2 ?", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"a fifth Sunday of February", "0 0 12 ? 2 SUN#5", "2088-03-01T00:00:00Z", "2128-02-29T12:00:00Z"},
		{"30 February", "0 0 0 30 2 ?", "2026-01-01T00:00:00Z", "NONE"},
		{"years gone by", "0 0 0 1 1 ? 2020-2025", "2026-01-01T00:00:00Z", "NONE"},
		{"a year without the day", "0 0 0 29 2 ? 2027", "2026-01-01T00:00:00Z", "NONE"},
		{"the 31st of short months", "0 0 0 31 4,6,9,11 ?", "2026-01-01T00:00:00Z", "NONE"},
		{"a fifth weekday of a common February only", "0 0 0 ? 2 MON#5 2025-2027", "2026-01-01T00:00:00Z", "NONE"},
		{"nW keeps its hours when it shifts", "0 0 8,20 15W 8 ?", "2026-08-01T00:00:00Z", "2026-08-14T08:00:00Z"},
		{"both hours of it", "0 0 8,20 15W 8 ?", "2026-08-14T08:00:00Z", "2026-08-14T20:00:00Z"},
		{"crontab: 30 February", "0 0 30 2 *", "2026-01-01T00:00:00Z", "NONE"},
		{"crontab: within the minute", "* * * * *", "2026-01-01T00:00:00.5Z", "2026-01-01T00:01:00Z"},
		{"crontab: day or weekday", "0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"crontab: a day field that begins with a star means and", "0 0 */2 * 1", "2026-01-13T00:00:00Z", "2026-01-19T00:00:00Z"},
		{"crontab: a weekday step means and", "0 0 15 * */2", "2026-01-15T00:00:00Z", "2026-02-15T00:00:00Z"},
		{"crontab: 7 is Sunday", "0 0 * * 7", "2026-01-15T00:00:00Z", "2026-01-18T00:00:00Z"},
		{"crontab: 0 is Sunday", "0 0 * * 0", "2026-01-15T00:00:00Z", "2026-01-18T00:00:00Z"},
		{"crontab: 07 is Sunday, from there in steps", "0 0 * * 07/2", "2026-01-15T00:00:00Z", "2026-01-17T00:00:00Z"},
		{"crontab: 007 is the end of a range", "0 0 * * 7-007", "2026-01-15T00:00:00Z", "2026-01-18T00:00:00Z"},
		{"crontab: 07 begins a range", "0 0 * * 07-1", "2026-01-16T00:00:00Z", "2026-01-18T00:00:00Z"},
		{"crontab: a week from Friday to Sunday", "0 0 * * 5-7", "2026-01-17T00:00:00Z", "2026-01-18T00:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from, err := time.Parse(time.RFC3339Nano, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			for _, loc := range []*time.Location{nil, time.UTC, time.FixedZone("zero", 0)} {
				if got := stamp(compile(t, tt.expr).Next(from, loc, Civil)); got != tt.want {
					t.Errorf("%s in %v: got %s, want %s", tt.expr, loc, got, tt.want)
				}
			}
		})
	}
}

// Instants no calendar holds have an answer too, and quickly.
func TestNextFarOutside(t *testing.T) {
	loc := zone(t, "Europe/Berlin")
	for _, expr := range []compiled{compile(t, "* * * * * ?"), compile(t, "* * * * *")} {
		for _, seconds := range []int64{math.MaxInt64, math.MaxInt64 / 2, 1 << 40} {
			if got := expr.Next(time.Unix(seconds, 0), loc, Civil); !got.IsZero() {
				t.Errorf("%v: next after %d is %v", expr, seconds, got)
			}
		}
		for _, at := range []time.Time{{}, time.Unix(-1<<50, 0)} {
			got := expr.Next(at, loc, Civil)
			if want := time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC); !got.Equal(want) {
				t.Errorf("%v: next after %v is %v, want %v", expr, at, got, want)
			}
		}
	}
}

func TestCivilDates(t *testing.T) {
	at := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := range civilDays {
		year, month, d := dateOf(day)
		if y, m, dd := at.Date(); y != year || int(m) != month || dd != d || int(at.Weekday()) != weekdayOf(day) {
			t.Fatalf("day %d is %d-%d-%d, want %s", day, year, month, d, at)
		}
		if firstOf(year, month) != day-d+1 {
			t.Fatalf("first of %d-%d is %d, want %d", year, month, firstOf(year, month), day-d+1)
		}
		if next := at.AddDate(0, 0, 1); next.Day() == 1 && daysIn(year, month) != d {
			t.Fatalf("%d-%d has %d days, want %d", year, month, daysIn(year, month), d)
		}
		at = at.AddDate(0, 0, 1)
	}
	if at.Year() != lastYear+1 || at.YearDay() != 1 {
		t.Errorf("the days end before %s", at)
	}
}
