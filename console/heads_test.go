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
	root.get(page).is(200).has("The last run failed", "no route to host")
	fails = errors.New("connection refused")
	last := again()
	root.get(page).is(200).has("The last 2 runs failed", "connection refused")
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

// TestLateRunsAreSaid: how many wait for longer than they should, and since when the first does.
func TestLateRunsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		page := "jobs/" + itoa(j.ID)
		first := x.run(j)
		root.get(page).is(200).lacks(`class="alert why"`)
		time.Sleep(5 * time.Minute)
		x.run(j)
		root.get(page).is(200).has("1 run is late")
		time.Sleep(time.Minute)
		root.get(page).is(200).has("2 runs are late")
		if !strings.Contains(root.body, `the first was due <a href="../runs/`+itoa(first.ID)) {
			t.Errorf("it does not lead to the first: %s", root.body)
		}
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
	a.list = []xxljob.Trouble{{Cause: xxljob.TroubleNoExecutor, App: "orders", Since: time.Now().Add(-time.Minute)}}
	why := `class="alert why"`
	if root.get("jobs/" + itoa(j.ID)).is(200); strings.Count(root.body, why) != 1 {
		t.Error("that no executor lives is not said")
	}
	root.get("jobs/" + itoa(other.ID)).is(200).lacks(why)
	a.list[0] = xxljob.Trouble{Cause: xxljob.TroubleUnknownZone, App: "orders", JobID: other.ID, Since: time.Now()}
	root.get("jobs/" + itoa(j.ID)).is(200).lacks(why)
}
