package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/store"
)

// TestSecret: what a secret job and its runs are given, and what they return, is on no page, in no
// form and no file, for nobody: of the job as it is, as it was, as a copy of it, and once it is removed.
// Nobody but an admin takes the mark away.
func TestSecret(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		ctx := xxljob.WithActor(t.Context(), "host")
		j := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Key: "open", Name: "open", Handler: "work", Param: "canary one"}))
		first := j.Version
		d := j.Definition()
		d.Param, d.Secret = "canary two", true
		j = must1(x.s.UpdateJob(ctx, d))
		run := must1(x.s.Trigger(ctx, j.ID, xxljob.Trigger{Param: new("canary three")}))[0]
		editor := x.user(console.User{Name: "editor", Apps: map[string]console.Role{"orders": console.Editor, "billing": console.Editor}})
		root := x.admin()
		at := func(format string, id any) string { return fmt.Sprintf(format, id) }
		look := func(b *browser, pages ...string) {
			t.Helper()
			for _, p := range pages {
				b.get(p).is(200).lacks("canary")
			}
		}
		pages := []string{at("jobs/%d", j.ID), at("jobs/%d/edit", j.ID), at("jobs/%d/edit", j.ID) + at("?version=%d", first), at("jobs/new?copy=%d", j.ID), at("jobs/%d/once", j.ID),
			at("jobs/%d/export", j.ID), "jobs/export", at("runs/%d", run), "runs", "changes", at("changes?id=%d", j.ID)}
		look(editor, pages...)
		look(root, pages...)
		editor.get(at("jobs/%d/export", j.ID)).is(200).has(`"secret": true`, `"leftOut": [`)
		editor.get("runs?text=three").is(200).lacks(at("runs/%d", run))
		// Nor does it show in where the list goes on, or how far it was looked.
		for range 60 {
			must1(x.s.Trigger(ctx, j.ID, xxljob.Trigger{Param: new("canary three")}))
		}
		for _, p := range []string{"runs?text=%s", at("runs?job=%d", j.ID) + "&text=%s"} {
			found, absent := editor.get(at(p, "three")).is(200).lacks("before=").text(), editor.get(at(p, "sixty")).is(200).text()
			found, absent = clockOf.ReplaceAllString(strings.ReplaceAll(found, "three", "sixty"), ""), clockOf.ReplaceAllString(absent, "")
			if found != absent {
				t.Errorf("%s differs where the text is that of a secret:\n%s\n%s", p, found, absent)
			}
		}
		edit := at("jobs/%d/edit", j.ID)
		stored := func() xxljob.Job { return must1(x.store.Job(t.Context(), j.ID)) }
		version := func() string { return fmt.Sprint(stored().Version) }

		editor.post(edit, url.Values{"version": {version()}, "author": {"me"}}).is(200)
		if now := stored(); now.Param != "canary two" || now.Author != "me" || !now.Secret {
			t.Errorf("an edit of something else: %+v", now)
		}
		editor.post(edit, url.Values{"version": {version()}, "secret": {""}}).is(422).has("Only an admin may show what is hidden.").lacks("canary")
		editor.post(edit, url.Values{"version": {"1"}, "param": {"canary two"}}).is(409).lacks("canary one")
		editor.post(edit, url.Values{"version": {"1"}, "author": {"another"}}).is(409).lacks("canary")
		for _, form := range []url.Values{{"secret": {""}, "name": {"copy"}}, {"app": {"billing"}, "name": {"copy elsewhere"}}} {
			form.Set("copyof", fmt.Sprint(j.ID))
			editor.post("jobs/new", form).is(200).lacks("canary")
		}
		for _, c := range must1(x.store.Jobs(t.Context(), xxljob.JobFilter{Limit: 100})) {
			if c.ID != j.ID && c.Param != "" {
				t.Errorf("a copy has the parameter %q: %+v", c.Param, c)
			}
		}
		must(t, x.s.RemoveJob(ctx, j.ID))
		look(editor, at("runs/%d", run), "runs", "changes", at("changes?id=%d", j.ID))
	})
}

// TestGivenBeforeItWasSecret: what a run has given to others shows in none of these any more once its job is
// secret, however many have handed it on, and whatever it was then: not on their pages, in lists, or in what
// is said of jobs that fail with it. Nor does a search tell of it, or anything that an editor may do.
func TestGivenBeforeItWasSecret(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		ctx := xxljob.WithActor(t.Context(), "host")
		add := func(name string, children ...int64) xxljob.Job {
			return must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Key: name, Name: name, Handler: "work", Param: "param of " + name, Schedule: xxljob.Cron("0 0 3 * * ?"), Children: children, ChildParam: xxljob.ChildParamParent}))
		}
		last := add("last")
		middle := add("middle", last.ID)
		first := add("canary", middle.ID)
		must(t, x.s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
			if task.JobID == last.ID {
				return errors.New("fails with the " + task.Param)
			}
			return nil
		}))
		must(t, x.s.Start(t.Context()))
		given := x.ends(first, xxljob.StateSucceeded)
		var runs []xxljob.Run
		await.Until(t, "the last one has run", func() bool {
			runs = must1(x.store.Runs(ctx, xxljob.RunFilter{JobID: last.ID}))
			return len(runs) == 1 && runs[0].State == xxljob.StateFailed
		})
		runs = append(runs, must1(x.store.Runs(ctx, xxljob.RunFilter{JobID: middle.ID}))...)
		editor := x.user(console.User{Name: "editor", Apps: map[string]console.Role{"orders": console.Editor}})
		root := x.admin()
		pages := []string{"runs", "overview", "jobs/" + itoa(last.ID)}
		for _, r := range runs {
			pages = append(pages, "runs/"+itoa(r.ID))
		}
		for _, by := range []*browser{editor, root} {
			by.post("look", url.Values{"list": {"runs"}, "column": {"job", "param", "result"}, "next": {"runs"}})
			for _, page := range pages {
				by.get(page).is(200).has("param of canary")
			}
		}
		shared := regexp.MustCompile(`key=failing%2Forders%2F[0-9a-f]{16}`)
		if !shared.MatchString(root.get("overview").body) {
			t.Error("the key of the mute has no error in it that anybody sees")
		}
		hidden := func(what string) {
			t.Helper()
			for _, by := range []*browser{editor, root} {
				for _, page := range pages {
					if by.get(page).is(200); strings.Contains(by.body, "param of canary") {
						t.Errorf("%s: %s shows it", what, page)
					}
				}
			}
			if shared.MatchString(root.get("overview").body) {
				t.Errorf("%s: the key of a mute goes by the error", what)
			}
			for _, text := range []string{"param of c", "fails with the param"} {
				found := editor.get("runs?" + url.Values{"text": {text}, "app": {"orders"}}.Encode()).is(200)
				for _, r := range runs {
					found.lacks("runs/" + itoa(r.ID))
				}
				found.lacks("before=")
			}
		}
		d := first.Definition()
		d.Secret = true
		must1(x.s.UpdateJob(ctx, d))
		hidden("the job is secret")
		editor.post("jobs/"+itoa(first.ID)+"/remove", url.Values{"name": {first.Name}}).is(200)
		hidden("the job is removed")
		must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Key: "other", Name: "other", Handler: "work", Secret: true}))
		if dropped := must1(x.store.(store.RunDropper).DropEnded(ctx, xxljob.RunDrop{JobIDs: []int64{first.ID}, All: true})); dropped.Runs != 1 {
			t.Fatalf("run %d is there: %+v", given.ID, dropped)
		}
		hidden("its run is deleted, and another job is secret")
	})
}

// TestHiddenStaysInItsApp: who is not shown a parameter has it handed to no job of another app, by
// whatever way, though both are theirs to edit.
func TestHiddenStaysInItsApp(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) { c.Redact = func(string, console.Field, string) string { return "hidden" } })
		both := x.user(console.User{Name: "both", Apps: map[string]console.Role{"orders": console.Editor, "billing": console.Editor}})
		other, beside := x.job("billing", "other"), x.job("orders", "beside")
		j := x.job("orders", "j")
		for _, c := range []struct {
			fields url.Values
			status int
		}{{url.Values{"children": {fmt.Sprint(other.ID)}, "childparam": {"PARENT"}}, 422}, {url.Values{"childkeys": {"billing/later"}, "childparam": {"PARENT"}}, 422},
			{url.Values{"children": {fmt.Sprint(beside.ID)}, "childparam": {"PARENT"}}, 200}, {url.Values{"children": {fmt.Sprint(other.ID)}, "childparam": {""}}, 200},
			{url.Values{"childparam": {"PARENT"}}, 422}} {
			c.fields.Set("version", fmt.Sprint(must1(x.store.Job(t.Context(), j.ID)).Version))
			both.post(fmt.Sprintf("jobs/%d/edit", j.ID), c.fields).is(c.status)
		}
	})
}

// TestSecretByAnAdmin: an admin takes the mark away, and the parameter that nobody has seen goes with it.
func TestSecretByAnAdmin(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Key: "j", Name: "j", Handler: "work", Param: "canary", Secret: true}))
		x.admin().post(fmt.Sprintf("jobs/%d/edit", j.ID), url.Values{"version": {fmt.Sprint(j.Version)}, "secret": {""}}).is(200).lacks("canary")
		if now := must1(x.store.Job(t.Context(), j.ID)); now.Secret || now.Param != "" {
			t.Errorf("%+v", now)
		}
	})
}

// TestUnseenGuesses: who is not shown a parameter finds out by no number of guesses what it is: edits
// that give another one are paced, a copy has what was typed, and a script is run, or saved, with no
// guess, whether it is right or not, nor is what hands its own on to a script.
func TestUnseenGuesses(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		editor := x.user(console.User{Name: "editor", Apps: map[string]console.Role{"orders": console.Editor, "billing": console.Editor}})
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Key: "j", Name: "j", Handler: "work", Param: "canary", Secret: true}))
		edit := fmt.Sprintf("jobs/%d/edit", j.ID)
		let := 0
		for i := range 12 {
			now := must1(x.store.Job(t.Context(), j.ID))
			if editor.post(edit, url.Values{"version": {fmt.Sprint(now.Version)}, "param": {[]string{"canary", "guess"}[i%2]}}); editor.res.StatusCode == 200 {
				let++
			} else {
				editor.is(429)
			}
		}
		if let != 10 {
			t.Errorf("%d guesses were let through", let)
		}
		editor.post(edit, url.Values{"version": {fmt.Sprint(must1(x.store.Job(t.Context(), j.ID)).Version)}, "author": {"me"}}).is(200)
		d := must1(x.store.Job(t.Context(), j.ID)).Definition()
		d.Param = "canary"
		must1(x.s.UpdateJob(t.Context(), d))
		for _, guess := range []string{"canary", "guess"} {
			for _, form := range []url.Values{{"app": {"billing"}}, {"secret": {""}}} {
				name := fmt.Sprint("copy ", guess, len(form["app"]))
				form.Set("copyof", fmt.Sprint(j.ID))
				form.Set("name", name)
				form.Set("key", keyLike(name))
				form.Set("param", guess)
				editor.post("jobs/new", form).is(200)
				app := form.Get("app")
				if app == "" {
					app = "orders"
				}
				if c := must1(x.store.JobByKey(t.Context(), app, keyLike(name))); c.Param != guess {
					t.Errorf("a copy with %q has %q", guess, c.Param)
				}
			}
		}
		script := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Key: "s", Name: "s", GlueType: "GLUE_SHELL", GlueSource: "eval $1", Param: "canary", Secret: true}))
		for _, guess := range []string{"canary", "guess"} {
			editor.post(fmt.Sprintf("jobs/%d/trigger", script.ID), url.Values{"param": {guess}, "own": {"1"}})
			if runs := must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: script.ID})); len(runs) != 0 {
				t.Errorf("the script runs with %q", guess)
			}
		}
		editor.post(fmt.Sprintf("jobs/%d/trigger", script.ID), url.Values{"param": {""}}).is(200)
		another := x.user(console.User{Name: "another", Apps: map[string]console.Role{"orders": console.Editor}})
		parent := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Key: "p", Name: "p", Handler: "work", Param: "canary", Secret: true, Children: []int64{script.ID}, ChildParam: xxljob.ChildParamParent}))
		for _, j := range []xxljob.Job{script, parent} {
			edit := fmt.Sprintf("jobs/%d/edit", j.ID)
			said := map[string]string{}
			for _, guess := range []string{"canary", "guess"} {
				another.post(edit, url.Values{"version": {fmt.Sprint(j.Version)}, "param": {guess}}).is(422)
				said[guess] = strings.ReplaceAll(another.text(), guess, "")
			}
			if said["canary"] != said["guess"] {
				t.Errorf("%s: the right guess is answered with\n%s\nanother with\n%s", j.Name, said["canary"], said["guess"])
			}
			another.post(edit, url.Values{"version": {fmt.Sprint(j.Version)}, "author": {"me"}}).is(200)
			another.post("jobs/bulk", url.Values{"do": {"tag"}, "sure": {"yes"}, "id": {fmt.Sprint(j.ID)}, "add": {"one"}}).is(200)
			if now := must1(x.store.Job(t.Context(), j.ID)); now.Param != "canary" || now.Author != "me" || len(now.Tags) != 1 {
				t.Errorf("an edit of something else: %+v", now)
			}
		}
	})
}
