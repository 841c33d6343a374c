package console_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// TestFactsOfARun: the version of its job then and now, codes, JSON folded, and what is left of
// it once the job is gone.
func TestFactsOfARun(t *testing.T) { onBothStores(t, testFactsOfARun) }

func testFactsOfARun(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Links = func(r xxljob.Run) []console.Link {
			return []console.Link{{Text: "Trace", URL: "https://traces.example/" + itoa(r.ID)}, {Text: "Bad", URL: "javascript:alert(1)"}}
		}
	})
	root := x.admin()
	run := x.ran(true, func(context.Context, *xxljob.Task) error { return errors.New(`{"code":7,"list":[1,2]}`) })
	page := "runs/" + itoa(run.ID)
	root.get(page).is(200).has("failed", "200 / 500", "Version of the job 1", "Trace", `"code": 7`).lacks("javascript:", "now 2")
	if !strings.Contains(root.body, "<details") {
		t.Error("JSON is not folded")
	}
	now := must1(x.store.Job(t.Context(), run.JobID))
	now.Author = "ann"
	must1(x.s.UpdateJob(t.Context(), now))
	root.get(page).has("Version of the job 1 now 2")
	must(t, x.s.RemoveJob(t.Context(), run.JobID))
	root.get(page).is(200).has("removed").lacks(`/jobs/`+itoa(run.JobID), "/again")
	root.get("runs").is(200).lacks(`/jobs/` + itoa(run.JobID))
}

// TestKinOfARun: what led to a run, and what it has led to, as far as one may see it.
func TestKinOfARun(t *testing.T) { onBothStores(t, testKinOfARun) }

func testKinOfARun(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	x.s.Handle("work", func(context.Context, *xxljob.Task) error { return nil })
	must(t, x.s.Start(t.Context()))
	t.Cleanup(func() { _ = x.s.Stop(context.Background()) })
	child := x.job("billing", "secret child")
	parent := x.job("orders", "the parent")
	parent.Children = []int64{child.ID}
	parent = must1(x.s.UpdateJob(t.Context(), parent))
	id := must1(x.s.TriggerOne(t.Context(), parent.ID, xxljob.Trigger{}))
	must1(x.s.Wait(t.Context(), id))
	var led []xxljob.Run
	await.Until(t, "the run that its success leads to", func() bool {
		led = must1(x.store.Children(t.Context(), id, 0, 10))
		return len(led) > 0
	})
	root.get("runs/"+itoa(id)).is(200).has("Child runs", "secret child", itoa(led[0].ID))
	root.get("runs/"+itoa(led[0].ID)).is(200).has("Parent run", "the parent", itoa(id))
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	bob := x.user(console.User{Name: "bob", Apps: map[string]console.Role{"billing": console.Viewer}})
	for range 2 { // the page, and its region, which is shared
		ann.get("runs/"+itoa(id)).is(200).lacks("secret child", itoa(led[0].ID))
		bob.get("runs/"+itoa(led[0].ID)).is(200).lacks("the parent", itoa(id))
		root.get("runs/" + itoa(id)).has("secret child")
		ann.live()
		bob.live()
		root.live()
	}
}

// TestBranchesOfARun: attempts, with who of them it is, and bars within their bounds.
func TestBranchesOfARun(t *testing.T) { onBothStores(t, testBranchesOfARun) }

func testBranchesOfARun(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	x.s.Handle("work", func(context.Context, *xxljob.Task) error { return errors.New("not today") })
	must(t, x.s.Start(t.Context()))
	t.Cleanup(func() { _ = x.s.Stop(context.Background()) })
	j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "retried", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Retries: 2, Route: route.ShardingBroadcast}))
	id := must1(x.s.Trigger(xxljob.WithActor(t.Context(), "wang"), j.ID, xxljob.Trigger{}))[0]
	var tree []xxljob.Run
	await.Until(t, "the end of the last of three attempts", func() bool {
		tree = must1(x.store.Tree(t.Context(), id))
		return len(tree) == 3 && tree[2].State.Ended()
	})
	root.get("runs/"+itoa(tree[1].ID)).is(200).has("retry 1", "retry 2", "part 1 of 1", "ran once: wang,")
	if strings.Count(root.body, `<tr aria-current="true">`) != 1 {
		t.Error("it is not said which of them it is")
	}
	bars := regexp.MustCompile(`<rect class="bar state-failed" x="(\d+)" width="(\d+)"`).FindAllStringSubmatch(root.body, -1)
	if len(bars) != 3 {
		t.Errorf("%d bars, want 3", len(bars))
	}
	for _, b := range bars {
		if from, wide := must1(parse(b[1])), must1(parse(b[2])); from < 0 || wide < 1 || from+wide > 1000 {
			t.Errorf("a bar from %d, %d wide", from, wide)
		}
	}
}

// TestEntriesOfNoAppAreLeftOut of a list for one who sees all apps, and those behind them are
// found.
func TestEntriesOfNoAppAreLeftOut(t *testing.T) { onBothStores(t, testEntriesOfNoAppAreLeftOut) }

func testEntriesOfNoAppAreLeftOut(t *testing.T) {
	x := newSite(t)
	x.admin()
	j := x.job("orders", "the oldest")
	for range 130 {
		must1(x.store.RecordChange(t.Context(), xxljob.Change{Verb: "login", Object: store.ObjectLogin, ObjectID: "somebody"}))
	}
	all := x.user(console.User{Name: "all", Apps: map[string]console.Role{"*": console.Viewer}})
	all.get("changes").is(200).has("the oldest").lacks("somebody", ">Next page</a>")
	for range 70 {
		must1(x.store.RecordChange(t.Context(), xxljob.Change{Verb: "odd", Object: store.ObjectJob, JobID: j.ID, App: "orders"}))
		must1(x.store.RecordChange(t.Context(), xxljob.Change{Verb: "login", Object: store.ObjectLogin, ObjectID: "somebody"}))
	}
	n := 0
	for all.get("changes").is(200); ; all.get(all.link("Next page")).is(200) {
		n += strings.Count(all.body, `<td class="c-at`)
		if !strings.Contains(all.body, ">Next page</a>") {
			break
		}
	}
	if n != 71 {
		t.Errorf("%d entries, want 71", n)
	}
}
