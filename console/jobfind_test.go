package console_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// TestFiltersThatAreNone are said to be so: no list is shown that is not what was asked for.
func TestFiltersThatAreNone(t *testing.T) { inMemory(t, testFiltersThatAreNone) }

func testFiltersThatAreNone(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	x.run(x.job("orders", "nightly"))
	long := strings.Repeat("x", 1025)
	for _, page := range []string{"jobs?state=sleeping", "jobs?type=OFTEN", "jobs?text=" + long, "jobs?app=%ff", "jobs?tag=a%00b", "jobs?handler=" + long, "runs?text=" + long, "runs?app=%ff", "runs?handler=a%00", "changes?actor=" + long, "changes?verb=%ff", "changes?id=%00", "runs?form=1&text=" + long} {
		root.get(page).is(400).lacks("nightly")
	}
	root.get("jobs?unknown=" + long).is(200).has("nightly")
}

// TestAnythingByItsNumber: the search of the frame leads to the run or the job whose number is
// typed, for who sees it.
func TestAnythingByItsNumber(t *testing.T) { onBothStores(t, testAnythingByItsNumber) }

func testAnythingByItsNumber(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	mine, other := x.job("orders", "mine"), x.job("billing", "other")
	for _, j := range []xxljob.Job{mine, other} {
		run := x.run(j)
		for at, id := range map[string]int64{"/console/jobs/": j.ID, "/console/runs/": run.ID} {
			if root.get("jobs?text=+" + itoa(id) + "+"); root.at != at+itoa(id) {
				t.Errorf("%d leads to %s", id, root.at)
			}
			if ann.get("jobs?text=" + itoa(id)); (ann.at == at+itoa(id)) != (j.ID == mine.ID) || ann.res.StatusCode != 200 {
				t.Errorf("%d leads ann to %s", id, ann.at)
			}
		}
	}
	x.job("orders", "report 2024")
	root.get("jobs?text=2024").is(200).has("report 2024")
	if root.at != "/console/jobs?text=2024" {
		t.Errorf("at %s", root.at)
	}
}

// TestAllOfIt: where a page of a job or a run shows a part of a list, it leads to the rest or says
// that there is one.
func TestAllOfIt(t *testing.T) { onBothStores(t, testAllOfIt) }

func testAllOfIt(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	for range 25 {
		must(t, x.s.StopJob(t.Context(), j.ID))
		must(t, x.s.StartJob(t.Context(), j.ID))
	}
	root.get("jobs/" + itoa(j.ID))
	root.get(root.link("All changes of this job")).is(200)
	if n := strings.Count(root.body, `<td class="c-at`); n != 50 {
		t.Errorf("%d entries on the first page of all, want 50", n)
	}
}

// TestFailingJobsThatAreMany: the list says that not all runs that have failed were looked at.
func TestFailingJobsThatAreMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.s.Handle("work", func(context.Context, *xxljob.Task) error { return errors.New("no luck") })
		must(t, x.s.Start(t.Context()))
		for i := range 60 {
			j := x.job("orders", "bad "+itoa(int64(100+i)))
			for range 3 {
				must1(x.s.Trigger(t.Context(), j.ID, xxljob.Trigger{}))
			}
		}
		time.Sleep(time.Minute)
		root.get("jobs?failing=yes").is(200).has("bad 100", "bad 149", "There may be more").lacks("bad 150")
		root.get("jobs?failing=yes&rows=200").is(200).has("bad 159").lacks("There may be more")
		must(t, x.s.Stop(context.Background()))
	})
}
