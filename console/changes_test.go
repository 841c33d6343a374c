package console_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

func TestChangesAreFiltered(t *testing.T) { onBothStores(t, testChangesAreFiltered) }

func testChangesAreFiltered(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	x.browser().post("login", url.Values{"name": {"root"}, "password": {password}})
	j, k := x.job("orders", "nightly"), x.job("billing", "rates")
	ctx := xxljob.WithActor(t.Context(), "ann")
	run := must1(x.s.TriggerOne(ctx, k.ID, xxljob.Trigger{}))
	must(t, x.s.StopJob(ctx, j.ID))
	must(t, x.s.RemoveJob(ctx, j.ID))
	n := func() int { return strings.Count(root.body, `<td class="c-at`) }
	for query, want := range map[string]int{
		"":                                  6, // two jobs, a run, a stop, a removal and a user, without a login
		"actor=ann":                         3,
		"app=billing":                       2,
		"verb=stop":                         1,
		"object=run":                        1,
		"object=run&id=" + itoa(run):        1,
		"id=" + itoa(j.ID):                  3, // an ID alone is a job's
		"object=login":                      1,
		"since=2020-01-01T00:00:00Z":        6,
		"until=2020-01-01T00:00:00Z":        0,
		"actor=ann&verb=remove&app=billing": 0,
	} {
		root.get("changes?" + query).is(200)
		if got := n(); got != want {
			t.Errorf("%q: %d entries, want %d", query, got, want)
		}
		if want == 0 {
			root.has("No entries match these filters.")
		}
	}
	for _, bad := range []string{"since=x", "until=99999-01-01T00:00:00Z", "before=x", "before=eyJvIjoibmFtZSIsImEiOjF9"} {
		root.get("changes?" + bad).is(400)
	}
	root.get("changes?verb=remove").lacks(`href="./jobs/` + itoa(j.ID))
	if root.get("changes?object=run"); !strings.Contains(root.body, `href="./runs/`+itoa(run)+`"`) {
		t.Error("an entry does not lead to its run")
	}
	// Who sees some apps sees nothing of others, and nothing that belongs to none.
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	for _, u := range []*browser{ann, x.user(console.User{Name: "all", Apps: map[string]console.Role{"*": console.Editor, "billing": console.None}})} {
		for _, query := range []string{"", "?app=billing", "?object=run", "?object=login", "?actor=ann", "?id=" + itoa(k.ID)} {
			u.get("changes"+query).is(200).lacks("rates", itoa(run), ">logged in</td>")
		}
		u.get("changes").has("nightly", "removed")
	}
	if root.get("changes?object=login"); !strings.Contains(root.body, ">logged in</td>") {
		t.Error("the test above looks for what is not there")
	}
}

// TestLongTextsAreComparedByLine, and those that are too long are not.
func TestLongTextsAreComparedByLine(t *testing.T) { inMemory(t, testLongTextsAreComparedByLine) }

func testLongTextsAreComparedByLine(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := func(param string) {
		t.Helper()
		now := must1(x.store.Job(t.Context(), j.ID))
		now.Param = param
		must1(x.s.UpdateJob(xxljob.WithActor(t.Context(), "root"), now))
	}
	edit("one\ntwo\nthree\nfour\nfive\nsix\nseven")
	edit("one\ntwo\nthree\nfour\nfive\nSIX\nseven")
	root.get("changes").is(200).has("… 3 unchanged lines", "− six", "+ SIX")
	edit(strings.Repeat("\n", 4000))
	root.get("changes").is(200).has("− seven")
	after := func(lines int) string {
		return `{"Script":"` + strings.Repeat(`x\n`, lines) + `"}`
	}
	must1(x.store.RecordChange(t.Context(), xxljob.Change{Verb: "update", Object: store.ObjectJob, JobID: j.ID, App: "orders", Before: after(5000), After: after(1)}))
	root.get("changes").is(200).has("Too long to compare.")
}

// TestTextsAreHidden: whatever a run or the record says passes through Redact, and nothing can be
// found by a text that is hidden.
func TestTextsAreHidden(t *testing.T) { onBothStores(t, testTextsAreHidden) }

func testTextsAreHidden(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Redact = func(app string, field console.Field, text string) string {
			return strings.ReplaceAll(text, "secret", "●●●")
		}
	})
	root := x.admin()
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Operator}})
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		task.Log().Info("a secret line")
		return errors.New("a secret result")
	})
	now := must1(x.store.Job(t.Context(), run.JobID))
	now.Param = "a secret parameter"
	must1(x.s.UpdateJob(t.Context(), now))
	param := "secret of the trigger"
	again := must1(x.s.TriggerOne(xxljob.WithActor(t.Context(), "root"), run.JobID, xxljob.Trigger{Param: &param, At: time.Now().Add(time.Hour)}))
	page := "runs/" + itoa(run.ID)
	for _, b := range []*browser{root, ann} {
		for _, p := range []string{page, page + "/log", page + "/log/file", "runs", "runs/" + itoa(again), "changes", "runs?text=x"} {
			b.get(p).is(200).lacks("secret")
		}
		b.get(page).has("●●● line", "●●● result")
		b.get("changes").has("a ●●● parameter", "●●● of the trigger")
		if b == root {
			b.get(page + "/log?find=line").is(200).has("●●● line").lacks("secret")
			b.get("runs?text=secret")
			continue
		}
		b.get(page + "/log?find=secret").is(403).has("This log cannot be searched")
		b.get(page + "/log").lacks("Search the whole log")
		b.get("runs?text=trigger").is(200).has(itoa(run.ID)) // the text was not looked for
		b.get("runs").has(" Run ID App ").lacks("Run ID or text")
	}
}
