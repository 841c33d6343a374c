package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store/memory"
)

// clockAt lets the virtual clock go on to a time of its second day, in UTC.
func clockAt(hour, minute int) time.Time {
	at := time.Now().UTC().Truncate(24 * time.Hour).Add(24*time.Hour + time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	time.Sleep(time.Until(at))
	return at
}

// TestTimetableShowsHoles: what was due against what was run. A time whose run is not in the store is seen
// as one without a run, with when that was; those that have failed, were late or skipped, or are due and
// not planned, each in words.
func TestTimetableShowsHoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		clockAt(0, 1)
		fail := false
		must(t, x.s.Handle("work", func(context.Context, *xxljob.Task) error {
			if fail {
				return errors.New("no")
			}
			return nil
		}))
		must(t, x.s.Start(t.Context()))
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "each ten", Handler: "work", Schedule: xxljob.Cron("0 0/10 * * * ?").In("UTC")}))
		rate := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "by rate", Handler: "work", Schedule: xxljob.FixedRate(20 * time.Minute)}))
		time.Sleep(4 * time.Minute)
		root := x.session("root", "soon")
		root.get("timetable").has("not due in this range", "looked at since").lacks("Missing at") // a rate has no time at which it was defined
		time.Sleep(60 * time.Minute)
		sessions := 0
		see := func(page string) *browser { // by a new session: they end after an hour
			sessions++
			return x.session("root", fmt.Sprint("again ", sessions)).get(page).is(http.StatusOK)
		}
		see("timetable").has("6 succeeded", "3 succeeded").lacks("Missing at")

		// A run that is gone is a hole, whatever has become of it.
		runs := must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: j.ID}))
		x = x.seeing(bent.WholeOf(x.store, lacking{x.store, runs[2].ID}))
		see("timetable").has("1 no run, 5 succeeded", "Missing at "+runs[2].Scheduled.UTC().Format(time.TimeOnly))
		see("timetable?range=24h").has("1 no run, 5 succeeded")

		fail = true
		time.Sleep(10 * time.Minute)
		see("timetable").has("1 no run, 1 failed, 4 succeeded")
		must(t, x.s.Stop(context.WithoutCancel(t.Context())))
		time.Sleep(10 * time.Minute)
		see("timetable").has("1 no run, 1 due and not planned, 1 failed, 3 succeeded")

		// What was due before the definition is not missing, and neither is what was due of one that is new.
		rate = must1(x.store.Job(t.Context(), rate.ID))
		rate.Schedule = xxljob.Cron("0 * * * * ?").In("UTC")
		must1(x.s.UpdateJob(t.Context(), rate.Definition()))
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "new", Handler: "work", Schedule: xxljob.Cron("0 * * * * ?").In("UTC")}))
		see("timetable?text=rate").lacks("no run,").has("looked at since")
		see("timetable?text=new").has("not due in this range")
	})
}

// seeing is the site with a console that has another store.
func (x *site) seeing(st Store) *site {
	x.Helper()
	y := *x
	h := must1(console.NewAlike(console.Config{Store: st, Scheduler: x.s, Auth: console.Accounts()}))
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", h))
	y.host = mux
	return &y
}

// lacking is a store that has lost a run.
type lacking struct {
	st  Store
	run int64
}

func (l lacking) LastRuns(ctx context.Context, jobs []int64, n int) (kept []xxljob.Run, err error) {
	runs, err := l.st.LastRuns(ctx, jobs, n)
	for _, r := range runs {
		if r.ID != l.run {
			kept = append(kept, r)
		}
	}
	return kept, err
}

// TestTimetableOfAnAbsence: times that nobody has run while no node lived are late, where they are caught
// up, or skipped, where they are left out, and none is missing.
func TestTimetableOfAnAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSiteOn(t, memory.New())
		x.admin()
		clockAt(0, 1)
		root := x.session("root", "later")
		must(t, x.s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		must(t, x.s.Start(t.Context()))
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "caught up", Handler: "work", Schedule: xxljob.Cron("0 0/10 * * * ?").In("UTC"), Misfire: xxljob.MisfireFireOnceNow}))
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "left out", Handler: "work", Schedule: xxljob.Cron("0 0/10 * * * ?").In("UTC"), Misfire: xxljob.MisfireDoNothing}))
		time.Sleep(10 * time.Minute)
		must(t, x.s.Stop(context.WithoutCancel(t.Context())))
		time.Sleep(30 * time.Minute)
		s := must1(xxljob.New(x.store, xxljob.Config{App: "orders"}))
		must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		must(t, s.Start(t.Context()))
		time.Sleep(5 * time.Minute)
		root.get("timetable?text=caught").has("3 late, 1 succeeded").lacks("Missing at")
		root.get("timetable?text=left").has("3 skipped, 1 succeeded").lacks("Missing at")
		must(t, s.Stop(context.WithoutCancel(t.Context())))
	})
}

// TestTimetableAhead: how often each is due in the range, the fullest second with who is due in it, jobs that
// are due more often than is counted, and those that never are; what changes of clocks make of it.
func TestTimetableAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2024, 10, 26, 20, 30, 0, 0, time.UTC)))
		x := newSite(t)
		root := x.admin()
		add := func(app, name string, s xxljob.Schedule) xxljob.Job {
			return must1(x.s.AddJob(t.Context(), xxljob.Job{App: app, Name: name, Handler: "work", Schedule: s, Tags: []string{"of " + app}}))
		}
		for i := range 5 {
			add("orders", fmt.Sprint("hourly ", i), xxljob.Cron("0 0 * * * ?").In("UTC"))
		}
		add("orders", "night", xxljob.Cron("0 30 2 * * ?").In("Europe/Berlin"))
		add("billing", "each second", xxljob.Cron("* * * * * ?").In("UTC"))
		add("billing", "in a year", xxljob.Cron("0 0 0 1 1 ?").In("UTC"))
		add("billing", "by its end", xxljob.FixedDelay(10*time.Minute))
		root.get("timetable").is(http.StatusOK).has("6 times ahead", "Fullest seconds: 21:00:00 × 5 hourly ", "and 2 more", "1 job is due more than 300 times and not in the bars: each second",
			"more than 300 ×", "hourly 4 orders", "not in this range, next 2025-01-01 00:00:00", "again after its run ends").lacks("Clocks go back")
		root.get("timetable?range=24h").has("24 × ", "Clocks go back at 10-27 01:00:00 +02:00 → +01:00", "2024-10-27 02:30:00 +02:00 first of two")
		for _, of := range []string{"1h", "6h", "24h", "7d"} {
			if root.get("timetable?range=" + of).is(http.StatusOK); !strings.Contains(root.body, `range=`+of+`" aria-current="true"`) {
				t.Errorf("%s is not the present one", of)
			}
		}
		for _, bad := range []string{"10y", "0", "-1h", "24H"} {
			root.get("timetable?range=" + bad).is(http.StatusUnprocessableEntity).has("There is no such range")
		}
		root.get("timetable?app=billing").has("each second").lacks("hourly 1")
		root.get("timetable?tag=of+orders&order=name").has("night").lacks("each second")

		never := must1(x.store.Job(t.Context(), add("orders", "never more", xxljob.Cron("0 0 3 * * ?").In("UTC")).ID))
		x = x.seeing(bent.WholeOf(x.store, spent{x.store, never.ID}))
		x.session("root", "again").get("timetable?order=name").has("never more orders", "never due")

		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"billing": console.Viewer}})
		viewer.get("timetable?range=24h").has("each second").lacks("hourly", "night", "orders")
		viewer.get("timetable?app=orders").is(http.StatusOK).lacks("hourly", "night")
		x.user(console.User{Name: "none"}).get("timetable").is(http.StatusOK).has("No job is enabled here").lacks("each second")
	})
}

// spent is a store in which a job has no next time.
type spent struct {
	st  Store
	job int64
}

func (s spent) SearchJobs(ctx context.Context, q xxljob.JobSearch) ([]xxljob.Job, error) {
	jobs, err := s.st.SearchJobs(ctx, q)
	for i := range jobs {
		if jobs[i].ID == s.job {
			jobs[i].Next = time.Time{}
		}
	}
	return jobs, err
}

// TestTimetableOfManyJobs: a page has so many jobs and so many bytes however many there are, in both stores,
// and leads to the next.
func TestTimetableOfManyJobs(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		for i := range 620 {
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprintf("j%04d %s", i, strings.Repeat("汇", 60)), Handler: "work", Schedule: xxljob.Cron("0 0/5 * * * ?")}))
		}
		root := x.admin()
		root.get("timetable").is(http.StatusOK).has("Next", "The bars are of the 500 jobs")
		if n := strings.Count(root.body, `class="row"`); n != 25 {
			t.Errorf("%d jobs", n)
		}
		if n := len(root.body); n > 76<<10 {
			t.Errorf("%d bytes", n)
		}
		first := root.body
		i := strings.LastIndex(first[:strings.Index(first, `" rel="next"`)], `href="./`)
		root.get(strings.ReplaceAll(first[i+len(`href="./`):strings.Index(first, `" rel="next"`)], "&amp;", "&")).is(http.StatusOK).has("Previous")
		if strings.Contains(root.body, first[strings.Index(first, `class="row" href`):][:40]) {
			t.Error("the next page begins as the first one")
		}
		root.get("timetable?text=j0007&order=name").is(http.StatusOK).has("j0007").lacks("j0008")
		for _, bad := range []string{"after=x", "text=a%00", "app=a%00"} {
			root.get("timetable?" + bad).is(http.StatusBadRequest)
		}
	})
}

// searched counts the searches for jobs, and the jobs that they find.
type searched struct {
	st       *memory.Store
	n, found int
}

func (s *searched) SearchJobs(ctx context.Context, q xxljob.JobSearch) ([]xxljob.Job, error) {
	s.n++
	jobs, err := s.st.SearchJobs(ctx, q)
	s.found += len(jobs)
	return jobs, err
}

// TestTimetableOfAHundredThousandJobs: a page of the timetable is as long, and reads as many jobs, as where there
// are a thousand of them, whatever range or order is asked for, and what is not looked at is said.
func TestTimetableOfAHundredThousandJobs(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		st := &searched{st: memory.New()}
		x := newSiteOn(t, bent.AllOf(st.st, st))
		x.job("orders", "the last one") // behind which the store knows its shards
		for i := range 100_000 {
			must1(x.store.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprintf("job %06d", i), Handler: "work", Schedule: xxljob.Cron("0 0/5 * * * ?").In("UTC"), Next: time.Now().Add(time.Duration(i) * time.Second)}, nil))
		}
		root := x.admin()
		for _, page := range []string{"timetable", "timetable?range=7d", "timetable?range=7d&order=name", "timetable?app=orders&order=name"} {
			st.n, st.found = 0, 0
			root.get(page).is(http.StatusOK).has("The bars are of the 500 jobs", "job 000024", "Next").lacks("job 000025")
			if n := strings.Count(root.body, `class="row"`); n != 25 || len(root.body) > 76<<10 || st.n > 2 || st.found > 600 {
				t.Errorf("%s: %d jobs in %d bytes, of %d that %d searches have found", page, n, len(root.body), st.found, st.n)
			}
		}
		root.get("timetable?text=job+0777&order=name").is(http.StatusOK).has("job 077700", "job 077724").lacks("job 000001")
	})
}

// TestTimetableIsReadOnce: where the page begins with the jobs that are due first, these are read once, for the
// page and for its chart; another order or page has its own.
func TestTimetableIsReadOnce(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		st := &searched{st: memory.New()}
		x := newSiteOn(t, bent.AllOf(st.st, st))
		root := x.admin()
		for i := range 30 {
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprintf("job %02d", i), Handler: "work", Schedule: xxljob.FixedRate(40*time.Minute + time.Duration(i)*10*time.Second)}))
		}
		for _, c := range []struct {
			page     string
			searches int
		}{{"timetable", 1}, {"timetable?text=job", 1}, {"timetable?order=name", 2}} {
			before := st.n
			root.get(c.page).is(http.StatusOK).has("30 times ahead", "job 24").lacks("job 25")
			if n := st.n - before; n != c.searches {
				t.Errorf("%s: %d searches, want %d", c.page, n, c.searches)
			}
		}
		older := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(root.get("timetable").body)
		if older == nil {
			t.Fatal("no second page")
		}
		root.get(strings.TrimPrefix(html.UnescapeString(older[1]), "./")).is(http.StatusOK).has("30 times ahead", "job 25", "job 29").lacks("job 24")
	})
}
