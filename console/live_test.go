package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// live is a browser that asks for parts of pages, as the scripts of a page do.
func (b *browser) live() *browser {
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Request-Type", "partial")
	return b
}

// polls is the address at which the page asks for its region, or "".
func (b *browser) polls() string {
	m := regexp.MustCompile(`data-hx-get="\.?\.?/?([^"]*)"`).FindStringSubmatch(b.body)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

// TestPollsTellWhatIsNew, and nothing while nothing is.
func TestPollsTellWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		first := x.run(j)
		root.get("runs?app=orders").is(200)
		poll := root.polls()
		if !strings.HasPrefix(poll, "runs?app=orders&seen=") {
			t.Fatalf("polls %q", poll)
		}
		root.live()
		root.get(poll).is(204)
		if root.body != "" || root.res.Header.Get("X-Read") == "" || !strings.Contains(root.res.Header.Get("Vary"), "HX-Request") {
			t.Errorf("%q, %v", root.body, root.res.Header)
		}
		second := x.run(j)
		time.Sleep(time.Second)
		root.get(poll).is(200).has(itoa(first.ID), itoa(second.ID)).lacks("<html", "<form", "<main")
		again := root.polls()
		if again == poll || again == "" {
			t.Errorf("polls %q, after %q", again, poll)
		}
		root.get(again).is(204)
	})
}

// TestJobsAreRefreshed: the list and the page of a job say what has changed since.
func TestJobsAreRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		page := "jobs/" + itoa(j.ID)
		list, one := root.get("jobs?app=orders").polls(), root.get(page+"?said=saved").has("The job has been saved.").polls()
		one = "jobs/" + strings.TrimPrefix(one, "jobs/")
		if !strings.HasPrefix(list, "jobs?app=orders&seen=") || !strings.HasPrefix(one, page+"?seen=") {
			t.Fatalf("polls %q and %q", list, one)
		}
		root.live()
		root.get(list).is(204)
		root.get(one).is(204)
		run := x.run(j)
		must(t, x.s.StopJob(t.Context(), j.ID))
		time.Sleep(time.Second)
		root.get(list).is(200).has("stopped").lacks("<html", "<main")
		root.get(one).is(200).has("stopped", itoa(run.ID)).lacks("<html", "<main", "The job has been saved.", "<dialog")
	})
}

// TestWhatIsDoneFromAList leads back to it, and says what was done.
func TestWhatIsDoneFromAList(t *testing.T) { onBothStores(t, testWhatIsDoneFromAList) }

func testWhatIsDoneFromAList(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	root.get("jobs?app=orders")
	for _, want := range []string{"/stop", "/once", "/edit", "/remove", "jobs/new?copy=" + itoa(j.ID), "runs?job=" + itoa(j.ID)} {
		if !strings.Contains(root.body, want+`"`) {
			t.Errorf("the menu of a job does not lead to %s", want)
		}
	}
	root.post("jobs/"+itoa(j.ID)+"/stop", url.Values{"back": {"jobs?app=orders&said=added"}}).is(200).has("stopped")
	if root.at != "/console/jobs?app=orders&said=stopped" {
		t.Errorf("one is sent to %s", root.at)
	}
	for _, evil := range []string{"//evil.example", "https://evil.example/", "../../elsewhere", "\\evil"} {
		if root.post("jobs/"+itoa(j.ID)+"/start", url.Values{"back": {evil}}); root.at != "/console/jobs/"+itoa(j.ID)+"?said=started" {
			t.Errorf("%q leads to %s", evil, root.at)
		}
	}
	viewer := x.user(console.User{Name: "eve", Apps: map[string]console.Role{"orders": console.Viewer}})
	viewer.get("jobs").lacks("/stop", "/start", "/once", "/edit", "/remove")
	x.run(j)
	viewer.get("runs").lacks("/kill", "/again")
	root.get("runs").is(200)
	for _, want := range []string{"/kill", "/again", "/log"} {
		if !strings.Contains(root.body, want+`"`) {
			t.Errorf("the menu of a run does not lead to %s", want)
		}
	}
}

// TestColumnsAreNotShared: who has chosen to see no column sees none, and who has chosen nothing sees
// the usual ones, also where both see the same jobs at the same moment.
func TestColumnsAreNotShared(t *testing.T) {
	x := newSite(t)
	x.job("orders", "nightly")
	apps := map[string]console.Role{"orders": console.Viewer}
	usual, none := x.user(console.User{Name: "wang", Apps: apps}), x.user(console.User{Name: "eve", Apps: apps})
	none.post("look", url.Values{"list": {"jobs"}, "next": {"jobs"}})
	for _, b := range []*browser{usual, none} {
		want := b.get("jobs").headings()
		if got := b.live().get("jobs").headings(); !slices.Equal(got, want) {
			t.Errorf("a poll has the columns %q, the page %q", got, want)
		}
	}
}

// TestWhatIsPastIsNotPolled: only the newest page of a list, and a run that has not ended.
func TestWhatIsPastIsNotPolled(t *testing.T) { onBothStores(t, testWhatIsPastIsNotPolled) }

func testWhatIsPastIsNotPolled(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	for range 60 {
		x.run(j)
	}
	run := x.run(j)
	root.get("runs")
	if root.polls() == "" {
		t.Error("the newest page is not polled")
	}
	if root.get(root.link("Next page")); root.polls() != "" {
		t.Errorf("an older page polls %q", root.polls())
	}
	if root.get("runs?until=2020-01-01T00:00:00Z"); root.polls() != "" {
		t.Errorf("the past polls %q", root.polls())
	}
	page := "runs/" + itoa(run.ID)
	root.get(page + "?said=again")
	poll := "runs/" + strings.TrimPrefix(root.polls(), "runs/")
	if !strings.HasPrefix(poll, page+"?seen=") {
		t.Fatalf("polls %q", poll)
	}
	must(t, x.s.Kill(t.Context(), run.ID))
	root.live()
	if root.get(poll).is(200).has("cancelled"); root.polls() != "" {
		t.Errorf("a run that has ended polls %q", root.polls())
	}
}

// TestViewersDoNotMultiplyTheLoad: fifty who look at the same thing cause one reading.
func TestViewersDoNotMultiplyTheLoad(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		x := newSite(t, watch(w))
		root := x.admin()
		run := x.run(x.job("orders", "nightly"))
		all := func(page string) int64 {
			before := w.asked.Load()
			w.late.Store(int64(300 * time.Millisecond))
			var wg sync.WaitGroup
			for i := range 50 {
				b := x.browser()
				b.cookies = cloneCookies(root.cookies)
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
					b.live().get(page).is(200).has(itoa(run.ID))
				})
			}
			wg.Wait()
			return w.asked.Load() - before
		}
		for page, want := range map[string]int64{"runs": 1, "runs?state=waiting": 1, "runs/" + itoa(run.ID): 3} { // who it belongs with, who has asked for it, and which runs of the job have not ended
			if got := all(page); got != want {
				t.Errorf("%s: the store was asked %d times, want %d", page, got, want)
			}
			time.Sleep(time.Second)
			if got := all(page); got != want {
				t.Errorf("%s: the store was asked %d times a second later, want %d", page, got, want)
			}
		}
	})
}

// TestWhoSeesOtherAppsSharesNothing: what is read for one is never another's answer.
func TestWhoSeesOtherAppsSharesNothing(t *testing.T) {
	onBothStores(t, testWhoSeesOtherAppsSharesNothing)
}

func testWhoSeesOtherAppsSharesNothing(t *testing.T) {
	atOnce(t)
	w := &watched{}
	x := newSite(t, watch(w))
	x.admin()
	mine, other := x.job("orders", "mine"), x.job("billing", "theirs")
	x.run(mine)
	x.run(other)
	people := map[string]console.User{
		"mine":        {Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}},
		"theirs":      {Name: "bob", Apps: map[string]console.Role{"billing": console.Viewer}},
		"mine theirs": {Name: "eve", Apps: map[string]console.Role{"*": console.Viewer}},
		"":            {Name: "nil", Apps: map[string]console.Role{"other": console.Viewer}},
	}
	w.late.Store(int64(20 * time.Millisecond))
	var wg sync.WaitGroup
	for sees, u := range people {
		b := x.user(u).live()
		wg.Go(func() {
			for range 5 {
				for _, page := range []string{"runs", "runs?state=waiting", "runs?app=orders", "runs?app=billing"} {
					b.get(page).is(200)
					for _, name := range []string{"mine", "theirs"} {
						may := strings.Contains(sees, name) && (page == "runs" || strings.Contains(page, "waiting") || name == "mine" == strings.Contains(page, "orders"))
						if strings.Contains(b.text(), name) != may {
							t.Errorf("%s who sees %q: %s of %s, want %v", u.Name, sees, name, page, may)
						}
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestReadingsGoOnForOthers: one who leaves does not end a reading that others wait for, and what
// failed is not kept.
func TestReadingsGoOnForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		x := newSite(t, watch(w))
		root := x.admin()
		run := x.run(x.job("orders", "nightly"))
		w.late.Store(int64(time.Hour))
		root.live().get("runs").is(503)
		w.late.Store(0)
		root.get("runs").is(200).has(itoa(run.ID))
		fault := fmt.Errorf("away: %w", xxljob.ErrConflict)
		w.err.Store(&fault)
		time.Sleep(time.Second)
		root.get("runs").is(409)
		w.err.Store(nil)
		root.get("runs").is(200)
	})
}

// TestWhatIsSharedIsSmall: of what was read, that is kept which the page shows, and no address is kept
// that somebody has made long.
func TestWhatIsSharedIsSmall(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	big := strings.Repeat("<param>", 1000)
	j, err := x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "nightly", Handler: "work", Param: big, Schedule: xxljob.Manual()})
	must(t, err)
	_, err = x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "script", GlueType: "GLUE_SHELL", GlueSource: big, Schedule: xxljob.Manual()})
	must(t, err)
	var run xxljob.Run
	for range 30 {
		run = x.run(j)
	}
	regs := make([]xxljob.Registration, 1500)
	for i := range regs {
		regs[i] = xxljob.Registration{App: "orders", Address: fmt.Sprintf("http://10.0.0.1:80/%s/%d", strings.Repeat("a", 150), i)}
	}
	must(t, x.store.PutAddresses(t.Context(), regs))
	root.live()
	for _, page := range []string{"jobs?", "jobs?type=NONE&", "jobs/" + itoa(j.ID) + "?", "runs?", "runs/" + itoa(run.ID) + "?"} {
		root.get(page).is(http.StatusOK)
		root.get(page + "pad=" + strings.Repeat("p", 100_000)).is(http.StatusOK)
	}
	if all := console.Shared(x.console); !strings.Contains(all, "nightly") || strings.Contains(all, big) || len(all) > 200_000 {
		t.Errorf("%d bytes are kept, with the whole parameter or script: %t", len(all), strings.Contains(all, big))
	}
}

// TestPollsCostLittle: what is read for all who look at the same thing is made into a page once as
// well, for those who see it alike, and never for others.
func TestPollsCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		for range 60 {
			x.run(j)
		}
		root.get("runs").is(200)
		poll := root.polls()
		root.live().get(poll).is(204)
		if n := testing.AllocsPerRun(10, func() { root.get(poll) }); n > 1500 {
			t.Errorf("a poll without news costs %v allocations", n)
		}
		old := "runs?seen=none"
		if n := testing.AllocsPerRun(10, func() { root.get(old) }); n > 1500 {
			t.Errorf("a poll with news that others had costs %v allocations", n)
		}
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"*": console.Viewer}}).live()
		if root.get(old); !strings.Contains(root.body, `type="checkbox"`) {
			t.Error("the admin cannot choose a run")
		}
		if ann.get(old); strings.Contains(ann.body, `type="checkbox"`) {
			t.Error("a viewer can choose a run")
		}
		ann.header.Set("Accept-Language", "zh-CN")
		ann.get(old).has("执行结果").lacks("Parameter")
		root.get(old).has("Result")
		for range 3 { // other readings, that find the same
			time.Sleep(2 * time.Second)
			if n := testing.AllocsPerRun(1, func() { root.get(poll); time.Sleep(time.Second) }); n > 2500 || root.res.StatusCode != 204 {
				t.Errorf("a poll that reads and finds nothing new costs %v allocations: status %d", n, root.res.StatusCode)
			}
		}
		time.Sleep(time.Minute)
		root.get("runs").is(200) // runs that nobody starts are a cause by now, which the rail counts
		poll = root.polls()
		time.Sleep(time.Minute)
		root.live().get(poll).is(204)
		must(t, x.s.Kill(t.Context(), must1(x.store.Runs(t.Context(), xxljob.RunFilter{Limit: 1}))[0].ID))
		time.Sleep(time.Second)
		root.get(poll).is(200).has("cancelled")
	})
}
