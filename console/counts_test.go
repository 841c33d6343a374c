package console_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/storetest"
)

// presets are the links above a list with their counts, as "Failed 2", and the number in the rail.
func (b *browser) presets() string {
	_, rest, _ := strings.Cut(b.body, `class="presets"`)
	nav, _, _ := strings.Cut(rest, "</nav>")
	_, rail, _ := strings.Cut(b.body, `data-count="overview">`)
	n, _, _ := strings.Cut(rail, "<")
	return strings.TrimSpace(strings.Join(strings.Fields(tags.ReplaceAllString(nav[strings.Index(nav, ">")+1:], " ")), " ") + " | " + n)
}

// TestCounts: lists say how many there are behind the questions that are asked often, and the rail how
// much needs attention, of what somebody sees; where something else is asked as well, that is not known.
func TestCounts(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		root.get("runs")
		if got := root.presets(); got != "Running 0 Waiting 0 Failed 0 Skipped 0 By hand |" {
			t.Errorf("nothing is there, and the presets are %q", got)
		}
		must(t, x.s.Handle("work", func(_ context.Context, task *xxljob.Task) error { return errors.New("no") }))
		must(t, x.s.Start(t.Context()))
		t.Cleanup(func() { _ = x.s.Stop(context.WithoutCancel(t.Context())) })
		bad := x.job("orders", "bad")
		for range 3 {
			x.ends(bad, xxljob.StateFailed)
		}
		must1(x.store.AddRun(t.Context(), x.job("billing", "later").ID, xxljob.Trigger{At: time.Now().Add(time.Hour)}))
		root.post("jobs/"+itoa(x.job("orders", "off").ID)+"/stop", url.Values{}).is(200)
		stopped := must1(x.store.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "broken", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Stopped: true, StopReason: "never-fires"}, nil))
		root.post("jobs/"+itoa(x.job("orders", "off too").ID)+"/stop", url.Values{}).is(200) // what was changed here is counted anew
		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"billing": console.Viewer}})
		for _, c := range []struct {
			who        *browser
			page, want string
		}{
			{root, "runs", "Running 0 Waiting 1 Failed 3 Skipped 0 By hand | 3"}, // bad fails, nobody serves billing, and one has stopped by itself
			{root, "runs?state=bad", "Running 0 Waiting 1 Failed 3 Skipped 0 By hand | 3"},
			{root, "runs?state=bad&app=orders", "Running Waiting Failed Skipped By hand | 3"},
			{root, "jobs", "Failing 1 Stopped 3 Stopped by the scheduler 1 | 3"},
			{root, "jobs/" + itoa(bad.ID), "| 3"}, // as counted a moment ago
			{viewer, "runs", "Running 0 Waiting 1 Failed 0 Skipped 0 By hand | 1"},
			{viewer, "jobs", "Failing 0 Stopped 0 Stopped by the scheduler 0 | 1"},
		} {
			c.who.get(c.page).is(200)
			if got := c.who.presets(); !strings.HasSuffix(got, c.want) {
				t.Errorf("%s: %q, want %q", c.page, got, c.want)
			}
		}
		for _, link := range []string{"jobs?failing=yes", "jobs?state=self"} {
			root.get(link).has(map[bool]string{true: "bad", false: stopped.Name}[link == "jobs?failing=yes"])
		}
	})
}

// TestCountsAreShared: however many look at lists, and however often pages are refreshed, they are
// counted once in a while, no more than so many of a kind; and lists are there where they cannot be.
func TestCountsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, f := faulty(t)
		root, other := x.admin(), x.user(console.User{Name: "other", Admin: true})
		j := x.job("orders", "busy")
		for range 1100 {
			must1(x.store.AddRun(t.Context(), j.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)}))
		}
		time.Sleep(time.Minute)
		counted := 0
		f.Observe(func(_ context.Context, method string) {
			if method == "OpenRuns" {
				counted++
			}
		})
		for range 3 {
			root.get("runs").has("1,000+")
			other.get("jobs").is(200)
			time.Sleep(time.Second)
		}
		other.get("settings").is(200)
		x.browser().post("look", url.Values{"theme": {"dark"}}) // what is no change of a job or run has nobody count again
		root.get("runs").is(200)
		if counted != 1 {
			t.Errorf("counted %d times, want once", counted)
		}
		f.Observe(nil)
		time.Sleep(time.Minute)
		defer f.Inject("OpenRuns", storetest.Fault{Delay: time.Hour})()
		for i := range 2 {
			begun := time.Now()
			root.get("runs").is(200).has("busy").lacks("1,000+")
			if took := time.Since(begun); took > 3*time.Second || i == 1 && took > 0 {
				t.Errorf("a list took %v while nothing could be counted", took)
			}
		}
	})
}

// TestListsDoNotWaitForCounts: a list is there a moment later at most, and shows what was counted last
// while others are counted.
func TestListsDoNotWaitForCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, f := faulty(t)
		console.CountsWithin(x.console, 100*time.Millisecond)
		root := x.admin()
		j := x.job("orders", "busy")
		add := func() { must1(x.store.AddRun(t.Context(), j.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})) }
		add()
		time.Sleep(2 * time.Minute) // since the list after the login
		defer f.Inject("OpenRuns", storetest.Fault{Delay: time.Second})()
		for _, c := range []struct {
			after time.Duration // the list before
			want  string
			most  time.Duration
		}{
			{0, "Waiting Failed", 100 * time.Millisecond}, {2 * time.Second, "Waiting 1 Failed", 0},
			{10 * time.Second, "Waiting 1 Failed", 0}, {2 * time.Second, "Waiting 2 Failed", 0},
			{2 * time.Minute, "Waiting Failed", 100 * time.Millisecond},
		} {
			if time.Sleep(c.after); c.after > 5*time.Second {
				add()
			}
			begun := time.Now()
			root.get("runs").is(200)
			if took := time.Since(begun); took > c.most {
				t.Errorf("after %v a list took %v, at most %v", c.after, took, c.most)
			}
			if got := root.presets(); !strings.Contains(got, c.want) {
				t.Errorf("after %v: %q, want %q", c.after, got, c.want)
			}
		}
		time.Sleep(2 * time.Second) // until nobody counts
	})
}

// TestCountsOfSeveral: who may see something else does not wait until those for others are counted, and no
// more are counted at once than two.
func TestCountsOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, f := faulty(t)
		console.CountsWithin(x.console, 0)
		x.job("orders", "nightly")
		who := []*browser{x.admin()}
		for _, app := range []string{"orders", "billing"} {
			who = append(who, x.user(console.User{Name: app, Apps: map[string]console.Role{app: console.Viewer}}))
		}
		time.Sleep(2 * time.Minute)
		counting := 0
		f.Observe(func(_ context.Context, method string) {
			if method == "OpenRuns" {
				counting++
			}
		})
		remove := f.Inject("OpenRuns", storetest.Fault{Delay: time.Second})
		for _, b := range who {
			b.get("runs").is(200)
		}
		synctest.Wait()
		if counting != 2 {
			t.Errorf("%d are counted at once, want 2", counting)
		}
		time.Sleep(2 * time.Second)
		remove()
		f.Observe(nil)
		for i, b := range who {
			if got, want := b.get("runs").presets(), i < 2; strings.Contains(got, "Waiting 0") != want {
				t.Errorf("of %d: %q", i, got)
			}
		}
		time.Sleep(2 * time.Second) // until nobody counts
	})
}
