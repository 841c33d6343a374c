package console_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// entries are those of the record about runs, as "actor verb id", the oldest first.
func (x *site) entries() string {
	x.Helper()
	found := must1(x.store.SearchChanges(x.Context(), xxljob.ChangeSearch{Object: store.ObjectRun}))
	var list []string
	for _, c := range found.Changes {
		list = append([]string{c.Actor + " " + c.Verb + " " + c.ObjectID}, list...)
	}
	return strings.Join(list, ", ")
}

// TestKillAndAgain leave one entry each, with who it was, and none where they were refused.
func TestKillAndAgain(t *testing.T) { onBothStores(t, testKillAndAgain) }

func testKillAndAgain(t *testing.T) {
	x := newSite(t)
	x.admin()
	j := x.job("orders", "nightly")
	run := x.run(j)
	page := "runs/" + itoa(run.ID)
	viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
	stranger := x.user(console.User{Name: "stranger", Apps: map[string]console.Role{"billing": console.Editor}})
	for _, act := range []string{"/kill", "/again"} {
		viewer.post(page+act, nil).is(403)
		stranger.post(page+act, nil).is(404)
		viewer.get(page + act)
	}
	viewer.get(page).is(200).lacks("/kill", "/again")
	if got := x.entries(); got != "" {
		t.Errorf("entries %q of what was refused", got)
	}
	op := x.user(console.User{Name: "op", Apps: map[string]console.Role{"orders": console.Operator}})
	op.get(page).is(200)
	op.get(op.link("Kill")).is(200).has("Kill run "+itoa(run.ID)+"?", "A planned run is cancelled.")
	op.post(page+"/kill", nil).is(200).has("The run has been asked to stop.", "cancelled")
	if want := "op kill " + itoa(run.ID); x.entries() != want {
		t.Errorf("entries %q, want %q", x.entries(), want)
	}
	op.has("killed: op,")
	op.post(page+"/kill", nil).is(200)
	op.get(page + "/kill").is(200).has("It has already ended.")
	op.post(page+"/again", nil).is(200).has("this is the new run")
	again := strings.TrimSuffix(strings.TrimPrefix(op.at, "/console/runs/"), "?said=again")
	if want := "op kill " + itoa(run.ID) + ", op again " + again; x.entries() != want {
		t.Errorf("entries %q, want %q", x.entries(), want)
	}
	op.has("ran again: op,")
}

// TestManyRunsAtOnce: it is asked first, and each run has its own result; the app is that of the
// stored run, whatever else is chosen beside it.
func TestManyRunsAtOnce(t *testing.T) { onBothStores(t, testManyRunsAtOnce) }

func testManyRunsAtOnce(t *testing.T) {
	x := newSite(t)
	x.admin()
	mine, seen, other := x.job("orders", "mine"), x.job("shown", "seen"), x.job("billing", "secret one")
	a, b, c, d := x.run(mine), x.run(mine), x.run(seen), x.run(other)
	op := x.user(console.User{Name: "op", Apps: map[string]console.Role{"orders": console.Operator, "shown": console.Viewer}})
	form := url.Values{"do": {"kill"}, "id": {itoa(a.ID), itoa(b.ID), itoa(c.ID), itoa(d.ID), "4711", itoa(a.ID)}}
	op.get("runs").is(200).has("With the selected runs")
	if n := strings.Count(op.body, `type="checkbox" name="id"`); n != 2 {
		t.Errorf("%d runs can be chosen, want 2", n)
	}
	op.post("runs/bulk", form).is(200).has("Kill 5 runs?", "Kill 2 runs", "that needs the role").lacks("secret one")
	if n := strings.Count(op.text(), "It does not exist."); n != 2 {
		t.Errorf("%d are said not to be there, want 2", n)
	}
	if got := x.entries(); got != "" {
		t.Errorf("entries %q before it was meant", got)
	}
	form.Set("sure", "yes")
	op.post("runs/bulk", form).is(200).has("Asked to stop", "The run has been asked to stop.").lacks("secret one")
	for r, want := range map[int64]xxljob.State{a.ID: xxljob.StateCancelled, b.ID: xxljob.StateCancelled, c.ID: xxljob.StatePlanned, d.ID: xxljob.StatePlanned} {
		if got := must1(x.store.Run(t.Context(), r)).State; got != want {
			t.Errorf("run %d is %v, want %v", r, got, want)
		}
	}
	if got := x.entries(); strings.Count(got, "op kill") != 2 || strings.Count(got, ",") != 1 {
		t.Errorf("entries %q", got)
	}
	op.post("runs/bulk", form).is(200).has("It has already ended.")
	op.post("runs/bulk", url.Values{"do": {"again"}, "ids": {itoa(a.ID) + "," + itoa(b.ID) + " " + itoa(d.ID)}, "sure": {"yes"}}).is(200).has("Started again", "It does not exist.")
	if n := len(must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: mine.ID, Limit: 10}))); n != 4 {
		t.Errorf("%d runs, want 4", n)
	}
	op.post("runs/bulk", url.Values{"do": {"remove"}, "id": {itoa(a.ID)}}).is(422)
	op.post("runs/bulk", url.Values{"do": {"kill"}}).is(422)
	op.post("runs/bulk", url.Values{"do": {"kill"}, "id": {"x"}}).is(400)
	op.post("runs/bulk", url.Values{"do": {"kill"}, "id": {"-1"}}).is(400)
	var many []string
	for i := range 501 {
		many = append(many, itoa(int64(i+1)))
	}
	op.post("runs/bulk", url.Values{"do": {"kill"}, "ids": {strings.Join(many, ",")}}).is(422).has("501 runs selected; at most 500 are allowed at once.")
	op.post("runs/bulk", url.Values{"do": {"kill"}, "ids": {strings.Join(many[:500], ",")}}).is(200).has("There is nothing to do here.")
}

// TestTheRunsOfAJobInOrder: from one to the next, and back.
func TestTheRunsOfAJobInOrder(t *testing.T) { onBothStores(t, testTheRunsOfAJobInOrder) }

func testTheRunsOfAJobInOrder(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j, k := x.job("orders", "nightly"), x.job("orders", "other")
	var list []xxljob.Run
	for range 3 {
		list = append(list, x.run(j))
		x.run(k)
	}
	at := func(i int) string { return "/console/runs/" + itoa(list[i].ID) }
	root.send("GET", at(0), nil).get(root.link("Next run"))
	for _, step := range []struct{ link, want string }{{"Next run", at(2)}, {"Next run", at(2) + "?said=nonext"}, {"Previous run", at(1)}, {"Previous run", at(0)}, {"Previous run", at(0) + "?said=noprevious"}} {
		if root.get(root.link(step.link)); root.at != step.want {
			t.Errorf("%s leads to %s, want %s", step.link, root.at, step.want)
		}
	}
	root.has("This job has no earlier run.")
}
