package scenario_test

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// cronLine is a crontab expression as this test understands it: five sets, and
// nothing shared with internal/cron or gronx.
type cronLine struct {
	name, text                             string
	minutes, hours, days, months, weekdays map[int]bool
	anyDay, anyWeekday                     bool
	fixedHours                             bool // no wildcard, range or step
}

func parseCronLine(t *testing.T, name, text string) cronLine {
	t.Helper()
	tag, ok := map[string]string{"@daily": "0 0 * * *", "@hourly": "0 * * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}[text]
	if !ok {
		tag = text
	}
	f := strings.Fields(tag)
	if len(f) != 5 {
		t.Fatalf("%s: %q has %d fields", name, text, len(f))
	}
	c := cronLine{
		name: name, text: text,
		minutes: cronSet(t, f[0], 0, 59), hours: cronSet(t, f[1], 0, 23), days: cronSet(t, f[2], 1, 31),
		months: cronSet(t, f[3], 1, 12), weekdays: cronSet(t, f[4], 0, 7),
		anyDay: f[2] == "*", anyWeekday: f[4] == "*",
		fixedHours: !strings.ContainsAny(f[1], "*-/"),
	}
	if c.weekdays[7] {
		c.weekdays[0] = true
	}
	return c
}

// cronSet reads lists of *, n, a-b, and each with /step; n/step goes to the end.
func cronSet(t *testing.T, field string, least, most int) map[int]bool {
	t.Helper()
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			t.Fatalf("field %q: %q", field, s)
		}
		return n
	}
	set := map[int]bool{}
	for _, item := range strings.Split(field, ",") {
		span, step, stepped := strings.Cut(item, "/")
		by := 1
		if stepped {
			by, _ = strconv.Atoi(step)
		}
		from, to := least, most
		if most == 7 && span == "*" {
			to = 6
		}
		if a, b, ranged := strings.Cut(span, "-"); ranged {
			from, to = number(a), number(b)
		} else if span != "*" {
			from = number(span)
			if !stepped {
				to = from
			}
		}
		for n := from; n <= to; n += by {
			set[n] = true
		}
	}
	return set
}

// matches looks at the wall clock only.
func (c *cronLine) matches(wall time.Time) bool {
	if !c.minutes[wall.Minute()] || !c.hours[wall.Hour()] || !c.months[int(wall.Month())] {
		return false
	}
	day, weekday := c.days[wall.Day()], c.weekdays[int(wall.Weekday())]
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday // crontab(5)
}

// wallOf is what the clock on the wall shows at an instant, dressed as UTC.
func wallOf(instant time.Time, zone *time.Location) time.Time {
	l := instant.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
}

// instants walks minute by minute over (from, to] and applies the rules for days
// on which clocks change: schedules of fixed hours fire once, in a gap at the
// first instant after it and in an overlap at the first of the two; the others
// follow the wall clock.
func (c *cronLine) instants(from, to time.Time, zone *time.Location) map[int64]bool {
	fires := map[int64]bool{}
	before := wallOf(from, zone)
	reached := before // the latest that the wall clock has shown
	for at := from.Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
		wall := wallOf(at, zone)
		repeated := !wall.After(reached)
		fire := c.matches(wall) && !(c.fixedHours && repeated)
		if c.fixedHours {
			for gone := before.Add(time.Minute); gone.Before(wall); gone = gone.Add(time.Minute) {
				fire = fire || c.matches(gone)
			}
		}
		if fire {
			fires[at.Unix()] = true
		}
		before = wall
		if wall.After(reached) {
			reached = wall
		}
	}
	return fires
}

// TestCronLineMatcher checks the matcher itself against days whose instants can
// be counted by hand.
func TestCronLineMatcher(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	stage.Must(t, err)
	day := func(text string) (time.Time, time.Time) {
		d, err := time.ParseInLocation("2006-01-02", text, zone)
		stage.Must(t, err)
		return d.Add(-time.Minute), d.AddDate(0, 0, 1).Add(-time.Minute)
	}
	for _, tt := range []struct {
		text, day string
		want      int
		first     string
	}{
		{"* * * * *", "2000-03-25", 24 * 60, "2000-03-24T23:00:00Z"},
		{"* * * * *", "2000-03-26", 23 * 60, "2000-03-25T23:00:00Z"},
		{"* * * * *", "2000-10-29", 25 * 60, "2000-10-28T22:00:00Z"},
		{"30 2 * * *", "2000-03-26", 1, "2000-03-26T01:00:00Z"},
		{"30 2 * * *", "2000-10-29", 1, "2000-10-29T00:30:00Z"},
		{"*/15 2 * * *", "2000-03-26", 1, "2000-03-26T01:00:00Z"},
		{"*/15 2 * * *", "2000-10-29", 4, "2000-10-29T00:00:00Z"},
		{"30 */2 * * *", "2000-03-26", 11, "2000-03-25T23:30:00Z"},
		{"30 */2 * * *", "2000-10-29", 13, "2000-10-28T22:30:00Z"},
		{"0 2,3 * * *", "2000-03-26", 1, "2000-03-26T01:00:00Z"},
		{"0 12 1 * 0", "2000-10-29", 1, "2000-10-29T11:00:00Z"},
		{"0 12 1 * 7", "2000-10-28", 0, ""},
	} {
		c := parseCronLine(t, "test", tt.text)
		fires := c.instants(first(day(tt.day)), second(day(tt.day)), zone)
		if len(fires) != tt.want {
			t.Errorf("%s on %s: %d instants, want %d", tt.text, tt.day, len(fires), tt.want)
		}
		if tt.first != "" && !fires[stage.At(t, tt.first).Unix()] {
			t.Errorf("%s on %s: not at %s", tt.text, tt.day, tt.first)
		}
	}
}

func first(a, _ time.Time) time.Time  { return a }
func second(_, b time.Time) time.Time { return b }

// readCrontab reads the schedules of a real server: name, tab, expression.
func readCrontab(t *testing.T) []cronLine {
	t.Helper()
	file, err := os.Open("../../cron/testdata/gitlab_crontab.tsv")
	stage.Must(t, err)
	defer file.Close()
	var lines []cronLine
	for in := bufio.NewScanner(file); in.Scan(); {
		if name, text, ok := strings.Cut(in.Text(), "\t"); ok && !strings.HasPrefix(name, "#") {
			lines = append(lines, parseCronLine(t, name, text))
		}
	}
	if len(lines) != 111 {
		t.Fatalf("%d schedules, want 111", len(lines))
	}
	return lines
}

// TestTwoDays runs the 111 schedules of a real server for two simulated days, in
// UTC and in Berlin across both changes of its clocks, and compares what the
// handlers saw, and what the store recorded, with the matcher: missing 0, extra
// 0, early 0. Under the race detector, which makes this ten times as long, each
// pair of days has every fifth schedule.
func TestTwoDays(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		name, zone, from, to string // local midnights
		long                 bool   // left out with -short: it differs from another by its days only
	}{
		{"UTC", "UTC", "2000-01-05", "2000-01-07", false},
		{"Berlin, clocks forward", "Europe/Berlin", "2000-03-25", "2000-03-27", true},
		{"Berlin, clocks back", "Europe/Berlin", "2000-10-28", "2000-10-30", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long && testing.Short() {
				t.Skip("two days more of the same; leave out -short")
			}
			t.Parallel()
			zone, err := time.LoadLocation(tt.zone)
			stage.Must(t, err)
			from, err := time.ParseInLocation("2006-01-02", tt.from, zone)
			stage.Must(t, err)
			to, err := time.ParseInLocation("2006-01-02", tt.to, zone)
			stage.Must(t, err)
			lines := readCrontab(t)
			if stage.Detector {
				some := lines[:0]
				for k := i; k < len(lines); k += 5 {
					some = append(some, lines[k])
				}
				lines = some
			}
			synctest.Test(t, func(t *testing.T) { twoDays(t, lines, zone, from.Add(-time.Minute), to.Add(-time.Minute)) })
		})
	}
}

// dayRun is a run as a handler saw it.
type dayRun struct{ scheduled, at int64 }

func twoDays(t *testing.T, lines []cronLine, zone *time.Location, from, to time.Time) {
	ctx := t.Context()
	time.Sleep(time.Until(from))
	var mu sync.Mutex
	seen := map[int64][]dayRun{}
	st := memory.New()
	s, err := xxljob.New(st, xxljob.Config{App: "here", Location: zone, Logger: slog.New(slog.DiscardHandler)})
	stage.Must(t, err)
	stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
		mu.Lock()
		defer mu.Unlock()
		seen[task.JobID] = append(seen[task.JobID], dayRun{task.ScheduledAt.UnixMilli(), time.Now().UnixMilli()})
		return nil
	}))
	jobs := make([]int64, len(lines))
	for i, line := range lines {
		job, err := s.AddJob(ctx, xxljob.Job{Name: line.name, Handler: "work", Schedule: xxljob.Crontab(line.text)})
		stage.Must(t, err)
		jobs[i] = job.ID
	}
	stage.Must(t, s.Start(ctx))
	time.Sleep(time.Until(to) + time.Second) // the instant to belongs to the days
	synctest.Wait()
	stage.Must(t, s.Stop(ctx))

	var missing, extra, early, late, total int
	for i, line := range lines {
		want := line.instants(from, to, zone)
		total += len(want)
		handled := map[int64]int{}
		for _, r := range seen[jobs[i]] {
			handled[r.scheduled/1000]++
			early += stage.One(r.at < r.scheduled)
			late += stage.One(r.at > r.scheduled)
		}
		recorded := map[int64]int{}
		for _, r := range stage.Succeeded(t, st, jobs[i]) {
			recorded[r.Scheduled.Unix()]++
			early += stage.One(r.Started.Before(r.Scheduled))
		}
		for _, got := range []map[int64]int{handled, recorded} {
			for at, n := range got {
				extra += n - stage.One(want[at])
				if !want[at] && extra < 10 {
					t.Errorf("%s %q: extra run for %v", line.name, line.text, time.Unix(at, 0).In(zone))
				}
			}
			for at := range want {
				missing += stage.One(got[at] == 0)
				if got[at] == 0 && missing < 10 {
					t.Errorf("%s %q: no run for %v", line.name, line.text, time.Unix(at, 0).In(zone))
				}
			}
		}
	}
	t.Logf("%d runs of %d jobs: missing %d, extra %d, early %d, late %d", total, len(lines), missing, extra, early, late)
	if missing != 0 || extra != 0 || early != 0 || late != 0 {
		t.Fail()
	}
	if all := stage.AllRuns(t, st); len(all) != total {
		t.Errorf("the store has %d runs in all, want %d", len(all), total)
	}
}
