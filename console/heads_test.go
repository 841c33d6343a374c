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

// before reports whether one text stands before another in what a page says.
func (b *browser) before(first, second string) bool {
	i, j := strings.Index(b.text(), first), strings.Index(b.text(), second)
	return i >= 0 && j > i
}

// TestAFailedRunSaysWhy before anything else, with its log behind that; secrets in the reason are hidden
// there too.
func TestAFailedRunSaysWhy(t *testing.T) { onBothStores(t, testAFailedRunSaysWhy) }

func testAFailedRunSaysWhy(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Redact = func(_ string, field console.Field, text string) string {
			if field == console.FieldResult {
				return strings.ReplaceAll(text, "s3cret", "•••")
			}
			return text
		}
	})
	root := x.admin()
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		task.Log().Warn("the rates do not answer")
		return errors.New("dial <tcp> s3cret: i/o timeout\nsecond line")
	})
	root.get("runs/"+itoa(run.ID)).is(200).has("dial <tcp> •••: i/o timeout", "the rates do not answer").lacks("s3cret")
	for _, pair := range [][2]string{{"dial <tcp>", "the rates do not answer"}, {"the rates do not answer", "Timeline"}} {
		if !root.before(pair[0], pair[1]) {
			t.Errorf("%q is not before %q: %s", pair[0], pair[1], root.text())
		}
	}
	if n := strings.Count(root.body, `id="log"`); n != 1 {
		t.Errorf("%d logs", n)
	}
	waits := must1(x.store.AddRun(t.Context(), x.job("orders", "waits").ID, xxljob.Trigger{At: time.Now().Add(time.Hour)}))
	root.get("runs/" + itoa(waits.ID)).is(200).lacks(`class="alert why"`)
}

// TestAJobSaysHowItIs: how many runs have failed in a row, since when, and why the last did; nothing of it
// where all is well.
func TestAJobSaysHowItIs(t *testing.T) { onBothStores(t, testAJobSaysHowItIs) }

func testAJobSaysHowItIs(t *testing.T) {
	fails := errors.New("no route to host")
	x := newSite(t)
	root := x.admin()
	first := x.ran(true, func(context.Context, *xxljob.Task) error { return fails })
	page := "jobs/" + itoa(first.JobID)
	again := func() xxljob.Run {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return must1(x.s.Wait(ctx, must1(x.s.TriggerOne(ctx, first.JobID, xxljob.Trigger{}))))
	}
	root.get(page).is(200).has("Failing", "1 of the last 1", "no route to host", "Look into the log of the newest run", "Due next")
	fails = errors.New("connection refused")
	last := again()
	root.get(page).is(200).has("Failing", "2 of the last 2", "connection refused")
	_, alert, _ := strings.Cut(root.body, `class="alert why"`)
	if alert, _, _ = strings.Cut(alert, "</p>"); strings.Contains(alert, "no route to host") {
		t.Errorf("the reason of a run before is said: %s", alert)
	}
	for _, reason := range []string{"connection refused", "no route to host"} { // each at its run
		if !strings.Contains(root.body, `<td class="c-result mono">`+reason+`</td>`) {
			t.Errorf("no run has the reason %q: %s", reason, root.body)
		}
	}
	if n := strings.Count(root.body, `<rect class="state-failed"`); n != 2 {
		t.Errorf("%d bars of failed runs, want 2", n)
	}
	if !strings.Contains(root.body, `runs/`+itoa(last.ID)+`"><code>connection refused`) || !root.before("connection refused", "Definition") {
		t.Errorf("the reason does not lead to the run: %s", root.body)
	}
	fails = nil
	again()
	root.get(page).is(200).lacks(`class="alert why"`)
}

// TestLateRunsAreSaid: how many wait for longer than they should, for how long the first does, and what for;
// the page of the run says the same of that one.
func TestLateRunsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		page := "jobs/" + itoa(j.ID)
		first := x.run(j)
		root.get(page).is(200).has("Shards without a scheduler", "Start a scheduler on this store", "No executor").lacks("wait, the oldest")
		time.Sleep(5 * time.Minute)
		x.run(j)
		root.get(page).is(200).has("1 wait, the oldest for 5 min")
		time.Sleep(time.Minute)
		root.get(page).is(200).has("2 wait, the oldest for 6 min")
		root.get("runs/"+itoa(first.ID)).is(200).has("No executor", "Start an executor of the app")
		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
		x.job("billing", "not theirs")
		viewer.get(page).is(200).has("No executor", "2 wait").lacks("billing", "not theirs")
	})
}

// TestARunSaysWhatItWaitsFor: for its time, or for another run of its job, and then by how much it is late.
func TestARunSaysWhatItWaitsFor(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		let := make(chan struct{})
		must(t, x.s.Handle("work", func(ctx context.Context, _ *xxljob.Task) error {
			select {
			case <-let:
			case <-ctx.Done():
			}
			return nil
		}))
		must(t, x.s.Start(t.Context()))
		t.Cleanup(func() { _ = x.s.Stop(context.WithoutCancel(t.Context())) })
		defer close(let)
		j := x.job("orders", "slow")
		first := x.ends(j, xxljob.StateStarted)
		second := must1(x.s.TriggerOne(t.Context(), j.ID, xxljob.Trigger{}))
		root.get("runs/" + itoa(first.ID)).is(200).has("Under way since").lacks(`class="alert why"`)
		root.get("runs/"+itoa(second)).is(200).has("Waits for the end of run "+itoa(first.ID), "late by").lacks(`class="alert why"`)
		later := must1(x.store.AddRun(t.Context(), j.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)}))
		root.get("runs/"+itoa(later.ID)).is(200).has("Not due before").lacks(`class="alert why"`, "late by")
	})
}

// seesTroubles is a scheduler that sees troubles.
type seesTroubles struct {
	xxljob.Scheduler
	list []xxljob.Trouble
}

func (a *seesTroubles) Troubles() []xxljob.Trouble { return a.list }

// TestTroublesOfAJob: those of the job and of its app are said on its page, others are not.
func TestTroublesOfAJob(t *testing.T) {
	a := &seesTroubles{}
	x := newSite(t, func(c *console.Config) { a.Scheduler, c.Scheduler = c.Scheduler, a })
	root := x.admin()
	j, other := x.job("orders", "nightly"), x.job("billing", "other")
	unknown := "Unknown time zone"
	a.list = []xxljob.Trouble{{Cause: xxljob.TroubleUnknownZone, App: "orders", JobID: j.ID, Since: time.Now().Add(-time.Minute), Detail: "no data of Mars/Olympus"}}
	root.get("jobs/"+itoa(j.ID)).is(200).has(unknown, "Mars/Olympus", "import time/tzdata")
	if n := strings.Count(root.text(), "import time/tzdata"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	root.get("jobs/" + itoa(other.ID)).is(200).lacks("Mars/Olympus")
	must(t, x.s.StopJob(t.Context(), j.ID))
	root.get("jobs/" + itoa(j.ID)).is(200).lacks("Mars/Olympus")
}

// TestAJobSaysItsLastChange: who did it and what it was, with no value that is hidden or has no room.
func TestAJobSaysItsLastChange(t *testing.T) { onBothStores(t, testAJobSaysItsLastChange) }

func testAJobSaysItsLastChange(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Redact = func(_ string, _ console.Field, text string) string {
			return strings.ReplaceAll(text, "s3cret", "•••")
		}
	})
	root := x.admin()
	j := x.job("orders", "nightly")
	page := "jobs/" + itoa(j.ID)
	root.get(page).has("Last change", "Add").lacks("→")
	edit := func(change func(*xxljob.Job)) {
		t.Helper()
		change(&j)
		j = must1(x.s.UpdateJob(xxljob.WithActor(t.Context(), "ops-bot"), j))
	}
	edit(func(j *xxljob.Job) { j.Timeout, j.Retries = 30*time.Second, 3 })
	root.get(page).has("Last change", "ops-bot", "Timeout", "30 s", "0 → 3")
	edit(func(j *xxljob.Job) { j.Param = "with s3cret" })
	root.get(page).has("•••").lacks("s3cret")
	edit(func(j *xxljob.Job) { j.Param = strings.Repeat("long ", 100) })
	if line, _, _ := strings.Cut(root.get(page).body[strings.Index(root.body, "lastchange"):], "</p>"); strings.Count(line, "long") > 15 {
		t.Errorf("a value that is too long for a line: %s", line)
	}
	edit(func(j *xxljob.Job) { j.Timeout, j.Retries, j.Author, j.Param = 0, 0, "wang", "" })
	root.get(page).has("+2")
	root.post(page+"/stop", nil)
	root.get(page).has("Last change", "Stop")
}

// TestRunningAgainAsks: the page of a run and a cause lead to the question first, which names the run.
func TestRunningAgainAsks(t *testing.T) {
	x := newSite(t)
	root, viewer := x.admin(), x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"*": console.Viewer}})
	r := x.ran(true, func(context.Context, *xxljob.Task) error { return errors.New("no route to host") })
	for range 2 {
		must1(x.s.Again(t.Context(), r.ID))
	}
	again := "runs/" + itoa(r.ID) + "/again"
	if !strings.Contains(root.get("runs/"+itoa(r.ID)).body, again) {
		t.Error("the page of the run does not lead there")
	}
	root.get(again).is(200).has("Run "+itoa(r.ID)+" again?", r.JobName, "orders", "stands for the same instant", "Cancel")
	viewer.get(again).is(403)
	viewer.get("runs/" + itoa(r.ID)).lacks("/again")
	viewer.get("overview").lacks("/again", "/stop")
	if n := len(must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: r.JobID}))); n != 3 {
		t.Errorf("%d runs: a question has started one", n)
	}
	root.post(again, nil).is(200).has("this is the new run")
}
