package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
)

const aDay = 24 * time.Hour

// TestWindow has the instants at which clocks are changed, and those about them.
func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		zone        string
		window      time.Duration
		at, want    string
		whatItShows string
	}{
		{"UTC", 0, "2026-03-01T23:59:59.999Z", "2026-03-01T00:00:00Z", "a day where nothing is said"},
		{"", aDay, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "no zone is UTC"},
		{"UTC", 1500 * time.Millisecond, "2026-03-01T00:00:02.999Z", "2026-03-01T00:00:01.5Z", "part of a second"},
		{"UTC", 7 * aDay, "1969-12-31T12:00:00Z", "1969-12-29T00:00:00Z", "a week before 1970 begins on a Monday too"},
		{"UTC", time.Hour, "1969-12-31T23:30:00Z", "1969-12-31T23:00:00Z", "an hour before 1970"},

		{"Europe/Berlin", 0, "2026-03-29T23:30:00+02:00", "2026-03-29T00:00:00+01:00", "a day of 23 hours"},
		{"Europe/Berlin", 0, "2026-10-25T23:59:59+01:00", "2026-10-25T00:00:00+02:00", "a day of 25 hours"},
		{"Europe/Berlin", 2 * time.Hour, "2026-03-29T03:30:00+02:00", "2026-03-29T03:00:00+02:00", "begins in the gap"},
		{"Europe/Berlin", 2 * time.Hour, "2026-03-29T01:59:59+01:00", "2026-03-29T00:00:00+01:00", "before the gap"},
		{"Europe/Berlin", 6 * time.Hour, "2026-03-29T05:59:59+02:00", "2026-03-29T00:00:00+01:00", "over the gap"},
		{"Europe/Berlin", time.Hour, "2026-03-29T03:30:00+02:00", "2026-03-29T03:00:00+02:00", "behind the gap"},
		{"Europe/Berlin", time.Hour, "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+02:00", "an hour that comes twice: the first"},
		{"Europe/Berlin", time.Hour, "2026-10-25T02:30:00+01:00", "2026-10-25T02:00:00+01:00", "and the second"},
		{"Europe/Berlin", 2 * time.Hour, "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+02:00", "three hours long, at first"},
		{"Europe/Berlin", 2 * time.Hour, "2026-10-25T02:30:00+01:00", "2026-10-25T02:00:00+02:00", "an hour later"},
		{"Europe/Berlin", 2 * time.Hour, "2026-10-25T03:59:59+01:00", "2026-10-25T02:00:00+02:00", "and at its end"},
		{"Europe/Berlin", 16 * time.Minute, "2026-03-29T03:05:00+02:00", "2026-03-29T03:00:00+02:00", "cut short by the gap"},
		{"Europe/Berlin", 31 * aDay, "2026-01-01T12:00:00+01:00", "2025-12-11T00:00:00+01:00", "31 days, counted from 1970"},

		{"America/New_York", 2 * time.Hour, "2026-03-08T03:30:00-04:00", "2026-03-08T03:00:00-04:00", "begins in the gap"},
		{"America/New_York", 2 * time.Hour, "2026-11-01T01:30:00-05:00", "2026-11-01T00:00:00-04:00", "three hours from midnight on"},
		{"America/New_York", 2 * time.Hour, "2026-11-01T02:00:00-05:00", "2026-11-01T02:00:00-05:00", "and the next"},
		{"America/New_York", time.Hour, "2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-04:00", "an hour that comes twice: the first"},
		{"America/New_York", time.Hour, "2026-11-01T01:30:00-05:00", "2026-11-01T01:00:00-05:00", "and the second"},

		{"Australia/Lord_Howe", time.Hour, "2026-10-04T01:59:00+10:30", "2026-10-04T01:00:00+10:30", "before half an hour is skipped"},
		{"Australia/Lord_Howe", time.Hour, "2026-10-04T02:40:00+11:00", "2026-10-04T02:30:00+11:00", "what is left of the hour"},
		{"Australia/Lord_Howe", time.Hour, "2026-04-05T01:45:00+11:00", "2026-04-05T01:00:00+11:00", "before half an hour is repeated"},
		{"Australia/Lord_Howe", time.Hour, "2026-04-05T01:45:00+10:30", "2026-04-05T01:30:00+10:30", "the half hour that is repeated"},
		{"Australia/Lord_Howe", 2 * time.Hour, "2026-04-05T01:45:00+10:30", "2026-04-05T00:00:00+11:00", "two hours and a half"},

		{"America/Sao_Paulo", 0, "2018-11-03T23:59:59-03:00", "2018-11-03T00:00:00-03:00", "before a midnight that is skipped"},
		{"America/Sao_Paulo", 0, "2018-11-04T12:00:00-02:00", "2018-11-04T01:00:00-02:00", "a day without its midnight"},
		{"America/Sao_Paulo", 2 * time.Hour, "2018-11-04T01:30:00-02:00", "2018-11-04T01:00:00-02:00", "and its first hour"},
		{"America/Sao_Paulo", 0, "2018-02-17T23:30:00-03:00", "2018-02-17T00:00:00-02:00", "the last hour comes twice"},
		{"America/Sao_Paulo", 2 * time.Hour, "2018-02-17T23:30:00-03:00", "2018-02-17T22:00:00-02:00", "and is in the same two hours"},
		{"America/St_Johns", 0, "2010-11-06T23:30:00-03:30", "2010-11-07T00:00:00-02:30", "put back over midnight: the day had begun"},
		{"Pacific/Apia", 0, "2011-12-31T12:00:00+14:00", "2011-12-31T00:00:00+14:00", "after a day that there was not"},
		{"Pacific/Apia", 0, "2011-12-29T23:59:59-10:00", "2011-12-29T00:00:00-10:00", "before it"},

		{"Asia/Kathmandu", time.Hour, "2026-03-01T12:10:00+05:45", "2026-03-01T12:00:00+05:45", "an hour of its clocks, not of UTC's"},
		{"Asia/Kathmandu", 0, "2026-03-01T00:00:00+05:45", "2026-03-01T00:00:00+05:45", "midnight is the new day's"},
		{"Asia/Shanghai", 7 * aDay, "2026-03-01T23:59:59+08:00", "2026-02-23T00:00:00+08:00", "Sunday ends the week"},
		{"Asia/Shanghai", 7 * aDay, "2026-03-02T00:00:00+08:00", "2026-03-02T00:00:00+08:00", "Monday begins one"},
		{"Asia/Shanghai", 15 * time.Minute, "2026-03-01T11:59:59+08:00", "2026-03-01T11:45:00+08:00", "a quarter"},
	} {
		job := store.Job{AfterZone: tt.zone, AfterWindow: tt.window}
		got, want := windowOf(t, job, stage.At(t, tt.at)), stage.At(t, tt.want)
		if !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s (%s): the window of %v that %s lies in begins at %v, want %v", tt.whatItShows, tt.zone, tt.window, tt.at, got, want.UTC())
		}
	}
}

func windowOf(t *testing.T, job store.Job, business time.Time) time.Time {
	t.Helper()
	begins, err := job.Window(business)
	stage.Must(t, err)
	return begins
}

// TestWindowsNeedTheirZone: one that this process has no data of is an error, and not UTC.
func TestWindowsNeedTheirZone(t *testing.T) {
	job := store.Job{AfterZone: "Mars/Olympus"}
	if begins, err := job.Window(time.Now()); err == nil {
		t.Errorf("the window begins at %v", begins)
	}
	if ends, err := job.WindowEnd(time.Now()); err == nil {
		t.Errorf("the window ends at %v", ends)
	}
}

// TestWindowsFollowEachOther goes through the days on which clocks are changed, and others: a
// window's beginning lies in it, they do not overlap, each instant lies in one, and that is the
// one which clocks show.
func TestWindowsFollowEachOther(t *testing.T) {
	windows := []time.Duration{time.Second, time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, aDay, 7 * aDay, 31 * aDay}
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"} {
		loc, err := time.LoadLocation(zone)
		stage.Must(t, err)
		for _, from := range changesOf(loc) {
			for _, window := range windows {
				job := store.Job{AfterZone: zone, AfterWindow: window}
				var last time.Time
				for at := from.Add(-30 * time.Hour); at.Before(from.Add(30 * time.Hour)); at = at.Add(15*time.Minute - 1500*time.Millisecond) {
					begin := windowOf(t, job, at)
					if again := windowOf(t, job, begin); !again.Equal(begin) {
						t.Fatalf("%s, %v: the window of %v begins at %v, and that lies in one of %v", zone, window, at.In(loc), begin.In(loc), again.In(loc))
					}
					if begin.After(at) || begin.Before(last) {
						t.Fatalf("%s, %v: the window of %v begins at %v, the one before at %v", zone, window, at.In(loc), begin.In(loc), last.In(loc))
					}
					if window <= time.Hour && at.Sub(begin) >= window {
						t.Fatalf("%s, %v: the window of %v begins at %v", zone, window, at.In(loc), begin.In(loc))
					}
					if zone != "America/St_Johns" && slot(at.In(loc), window) != slot(begin.In(loc), window) {
						t.Fatalf("%s, %v: the window of %v begins at %v, which is another one on the wall", zone, window, at.In(loc), begin.In(loc))
					}
					last = begin
				}
			}
		}
	}
}

// changesOf are the instants of some years at which clocks are changed, and one at which they
// are not.
func changesOf(loc *time.Location) []time.Time {
	changes := []time.Time{time.Date(2026, 7, 1, 12, 0, 0, 0, loc)}
	for _, year := range []int{2010, 2011, 2018, 2026} {
		at := time.Date(year, 1, 1, 12, 0, 0, 0, loc)
		for {
			_, end := at.ZoneBounds()
			if end.IsZero() || end.Year() > year {
				break
			}
			changes = append(changes, end)
			at = end
		}
	}
	return changes
}

// slot names a window of at most a day by what clocks show in it; longer ones by nothing.
func slot(at time.Time, window time.Duration) string {
	if window > aDay {
		return ""
	}
	since := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
	return fmt.Sprint(at.Format(time.DateOnly), since/window)
}

// TestWindowsOfADay counts them on days of 23, 24 and 25 hours.
func TestWindowsOfADay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	stage.Must(t, err)
	for _, day := range []struct {
		begin time.Time
		hours int
	}{
		{time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), 23},
		{time.Date(2026, 7, 1, 0, 0, 0, 0, berlin), 24},
		{time.Date(2026, 10, 25, 0, 0, 0, 0, berlin), 25},
	} {
		for window, want := range map[time.Duration]int{
			15 * time.Minute: day.hours * 4, time.Hour: day.hours, 2 * time.Hour: 12, 6 * time.Hour: 4, aDay: 1, 7 * aDay: 1,
		} {
			job := store.Job{AfterZone: "Europe/Berlin", AfterWindow: window}
			var begins []time.Time
			for at := day.begin; at.Day() == day.begin.Day(); at = at.Add(5 * time.Minute) {
				begins = append(begins, windowOf(t, job, at))
			}
			if got := len(slices.Compact(begins)); got != want {
				t.Errorf("%s has %d windows of %v, want %d", day.begin.Format(time.DateOnly), got, window, want)
			}
		}
	}
}

// TestWindowReadsNoFiles: a zone is read once, since stores ask for windows under their locks.
func TestWindowReadsNoFiles(t *testing.T) {
	at := time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)
	for _, zone := range []string{"", "UTC", "Europe/Berlin", "Australia/Lord_Howe"} {
		for _, window := range []time.Duration{time.Hour, 0} {
			job := store.Job{AfterZone: zone, AfterWindow: window}
			if n := testing.AllocsPerRun(100, func() { _, _ = job.Window(at) }); n != 0 {
				t.Errorf("%q, %v: Window allocates %v times", zone, window, n)
			}
		}
	}
}

// BenchmarkWindow is what a success costs for each job that joins behind it.
//
//	go test -run '^$' -bench 'Window$' -benchmem .
func BenchmarkWindow(b *testing.B) {
	at := time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)
	job := store.Job{AfterZone: "Europe/Berlin"}
	for b.Loop() {
		_, _ = job.Window(at)
	}
}

// TestMissing names jobs as definitions do.
func TestMissing(t *testing.T) {
	job := store.Job{After: []int64{7, 8}, AfterKeys: []string{"app/a", "app/b/c"}}
	for _, tt := range []struct {
		has  []string
		want []string
	}{
		{nil, []string{"#7", "#8", "app/a", "app/b/c"}},
		{[]string{"7//", "0/app/b/c"}, []string{"#8", "app/a"}},
		{[]string{"7//", "8//", "0/app/a", "0/app/b/c"}, nil},
	} {
		got := job.Missing(func(id int64, app, key string) bool {
			return slices.Contains(tt.has, fmt.Sprintf("%d/%s/%s", id, app, key))
		})
		if !slices.Equal(got, tt.want) {
			t.Errorf("of %q there are: missing are %q, want %q", tt.has, got, tt.want)
		}
	}
}
