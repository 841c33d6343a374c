package console_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
)

// TestNextInstants: those of the job as it is, with its phase and within its bounds; and those
// that it would have for one that is stopped.
func TestNextInstants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is the first of January 2000
		x := newSite(t)
		root := x.admin()
		add := func(name string, change func(*xxljob.Job)) string {
			j := xxljob.Job{App: "orders", Name: name, Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}
			change(&j)
			return "jobs/" + itoa(must1(x.s.AddJob(t.Context(), j)).ID)
		}
		instants := func(page string) []string {
			body := root.get(page).is(200).body
			_, list, _ := strings.Cut(body, `<ol class="instants">`)
			list, _, _ = strings.Cut(list, "</ol>")
			var all []string
			for item := range strings.SplitSeq(list, "<li>") {
				if _, at, ok := strings.Cut(item, `datetime="`); ok {
					all = append(all, at[:16])
				}
			}
			return all
		}
		check := func(page, first string, n int) {
			t.Helper()
			got := instants(page)
			if len(got) != n || n > 0 && got[0] != first {
				t.Errorf("%s: %q, want %d from %s on", page, got, n, first)
			}
		}
		hourly := add("hourly", func(*xxljob.Job) {})
		three := add("three", func(j *xxljob.Job) { j.MaxRuns = 3 })
		soon := add("soon", func(j *xxljob.Job) { j.NotBefore = time.Now().Add(100 * time.Hour) })
		short := add("short", func(j *xxljob.Job) { j.NotAfter = time.Now().Add(150 * time.Minute) })
		stopped := add("stopped", func(j *xxljob.Job) { j.Stopped = true })
		late := add("late", func(j *xxljob.Job) {
			j.Stopped, j.Schedule, j.NotBefore = true, xxljob.Cron("0 0 3 * * ?"), time.Date(2000, 5, 1, 0, 0, 0, 0, time.UTC)
		})
		manual := add("manual", func(j *xxljob.Job) { j.Schedule = xxljob.Manual() })
		time.Sleep(30 * time.Minute)
		check(hourly, "2000-01-01T01:00", 10) // not half past one
		check(three, "2000-01-01T01:00", 3)
		check(short, "2000-01-01T01:00", 2)
		check(stopped, "2000-01-01T01:30", 10)
		check(late, "2000-05-01T03:00", 10)
		check(manual, "", 0)
		if got := instants(soon); len(got) != 10 || got[0] < "2000-01-05T04:00" {
			t.Errorf("soon: %q", got)
		}
	})
}

// TestNextOfAList: the list shows when a job runs next, which is what is planned already where
// something is, and not what is planned next.
func TestNextOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is the first of January 2000
		x := newSite(t)
		root := x.admin()
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "hourly", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}))
		must(t, x.s.Start(t.Context()))
		defer func() { must(t, x.s.Stop(t.Context())) }()
		for _, c := range []struct {
			wait time.Duration
			next string
		}{{30 * time.Minute, "2000-01-01T01:00"}, {30*time.Minute - 2*time.Second, "2000-01-01T01:00"}, {3 * time.Second, "2000-01-01T02:00"}} {
			time.Sleep(c.wait)
			synctest.Wait()
			body := root.get("jobs").is(200).body
			_, cell, _ := strings.Cut(body, `class="c-next`)
			_, at, _ := strings.Cut(cell, `datetime="`)
			if len(at) < 16 || at[:16] != c.next {
				t.Errorf("at %v: %.60q, want %s", time.Now(), at, c.next)
			}
		}
	})
}
