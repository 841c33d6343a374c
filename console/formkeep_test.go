package console_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// TestConflict: of two tabs the second sees what the first has saved, and can apply its own.
func TestConflict(t *testing.T) { onBothStores(t, testConflict) }

func testConflict(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	first := root.get(edit).filled("jobform")
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}})
	ann.post(edit, with(first, "handler", "hers", "author", "ann")).is(200)
	root.post(edit, with(first, "handler", "mine", "param", "typed <here>")).is(409).has("ann has changed this job since you opened it.", "hers", "mine", "typed <here>").lacks("<here>")
	if now := must1(x.store.Job(t.Context(), j.ID)); now.Handler != "hers" {
		t.Errorf("handler %q", now.Handler)
	}
	again := root.filled("jobform")
	if again.Get("handler") != "mine" || again.Get("param") != "typed <here>" {
		t.Errorf("the form has lost what was typed: %v", again)
	}
	root.post(edit, again).is(200)
	if now := must1(x.store.Job(t.Context(), j.ID)); now.Handler != "mine" || now.Param != "typed <here>" || now.Author != "ann" {
		t.Errorf("%+v", now)
	}
}

// TestConflictOfThree: what somebody else has changed alone is taken over and said, what both have
// changed is said with how it was before, and a schedule is one thing.
func TestConflictOfThree(t *testing.T) { onBothStores(t, testConflictOfThree) }

func testConflictOfThree(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}})
	last := func(values []string) string { return append([]string{""}, values...)[len(values)] }
	for _, c := range []struct {
		name        string
		hers, mine  []string
		has, lacks  []string
		want        []string // of the form
		conflicting bool
	}{
		{"apart", []string{"timeout", "1m1s", "retryaside", "1"}, []string{"author", "me"},
			[]string{"ann has changed this job", "is in the form now", "Timeout", "1m1s"}, []string{"Apply to the current version", "The form below has what you typed"},
			[]string{"timeout", "1m1s", "retryaside", "1", "author", "me"}, false},
		{"the same field", []string{"handler", "hers", "timeout", "1m1s"}, []string{"handler", "mine"},
			[]string{"You both changed these fields", "Before", "work", "hers", "mine", "taken over", "1m1s"}, nil,
			[]string{"handler", "mine", "timeout", "1m1s"}, true},
		{"the same value", []string{"handler", "both", "timeout", "1m1s"}, []string{"handler", "both", "author", "me"},
			[]string{"is in the form now", "1m1s"}, []string{"<pre>both"},
			[]string{"handler", "both", "timeout", "1m1s", "author", "me"}, false},
		{"one schedule", []string{"type", "CRONTAB", "conf", "0 4 * * *"}, []string{"zone", "Asia/Shanghai"},
			[]string{"You both changed these fields", "0 4 * * *", "0 0 3 * * ?"}, nil,
			[]string{"type", "CRON", "conf", "0 0 3 * * ?", "zone", "Asia/Shanghai"}, true},
		{"her schedule", []string{"conf", "0 0 5 * * ?"}, []string{"author", "me"},
			[]string{"is in the form now", "0 0 5 * * ?", "at 05:00:00"}, nil,
			[]string{"conf", "0 0 5 * * ?", "author", "me"}, false},
	} {
		j := x.job("orders", c.name)
		edit := "jobs/" + itoa(j.ID) + "/edit"
		first := root.get(edit).filled("jobform")
		ann.post(edit, with(first, c.hers...)).is(200)
		root.post(edit, with(first, c.mine...)).is(409).has(c.has...).lacks(c.lacks...)
		form := root.filled("jobform")
		for i := 0; i < len(c.want); i += 2 {
			if got := last(form[c.want[i]]); got != c.want[i+1] {
				t.Errorf("%s: the form has %s %q, want %q", c.name, c.want[i], got, c.want[i+1])
			}
		}
		if strings.Contains(root.body, "What you typed") != c.conflicting {
			t.Errorf("%s: conflicting: %v", c.name, !c.conflicting)
		}
		if now := must1(x.store.Job(t.Context(), j.ID)); now.Version != j.Version+1 {
			t.Errorf("%s: something was saved", c.name)
		}
		root.post(edit, form).is(200).has("The job has been saved.")
		shown := root.get(edit).filled("jobform")
		for i := 0; i < len(c.want); i += 2 {
			if got := last(shown[c.want[i]]); got != c.want[i+1] {
				t.Errorf("%s: saved is %s %q, want %q", c.name, c.want[i], got, c.want[i+1])
			}
		}
	}
}

// TestLoggedOutWhileDoing: whoever does something without a session is told so, with the way to the
// login and back to the page where it is done again; what was typed comes back.
func TestLoggedOutWhileDoing(t *testing.T) { onBothStores(t, testLoggedOutWhileDoing) }

func testLoggedOutWhileDoing(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	r := x.run(j)
	job, run := "jobs/"+itoa(j.ID), "runs/"+itoa(r.ID)
	session := root.cookies
	root.cookies = map[string]*http.Cookie{}
	for to, back := range map[string]string{job + "/stop": job + "/stop", job + "/start": job + "/start", run + "/kill": run + "/kill", run + "/again": run + "/again", job + "/remove": job + "/remove"} {
		root.post(to, url.Values{"id": {"1"}}).is(401).has("You are not logged in.", "Nothing was done.", "Log in")
		if want := "login?next=" + url.QueryEscape(back) + `"`; !strings.Contains(root.body, want) {
			t.Errorf("%s does not lead to %s: %s", to, want, root.body)
		}
	}
	typed := url.Values{"param": {"typed <b>\n"}, "address": {"http://a.example/", "http://b.example/"}, "addresses": {"http://c.example/"}, "key": {"typed"}, "at": {"2030-01-02T03:04:05"}, "tz": {"Asia/Shanghai"}}
	root.post(job+"/trigger", typed).is(401).has("Log in to get back the form you submitted").lacks("<b>", "nightly")
	root.post("login", with(root.filled("main"), "name", "root", "password", password)).goesOn().is(200).has("Nothing has been run yet.", "nightly")
	form := root.filled("main")
	for name, want := range map[string]string{"param": "typed <b>\r\n", "key": "typed", "at": "2030-01-02T03:04:05", "tz": "Asia/Shanghai"} {
		if form.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, form.Get(name), want)
		}
	}
	for _, address := range []string{"a.example", "b.example", "c.example"} {
		if !strings.Contains(form.Get("addresses"), address) {
			t.Errorf("%s is lost: %q", address, form.Get("addresses"))
		}
	}
	if n := len(must1(x.store.Runs(t.Context(), xxljob.RunFilter{}))); n != 1 {
		t.Errorf("%d runs, want none but the first", n)
	}
	// What was meant for several jobs is asked again, also where it was said that it is meant.
	root.cookies = map[string]*http.Cookie{}
	other := x.job("orders", "another")
	for _, c := range []struct {
		do, has string
		typed   url.Values
	}{
		{"stop", "Stop 2 jobs?", nil}, {"remove", "type the number of jobs: 2", url.Values{"count": {"2"}}},
		{"tag", "Tags of 2 jobs", url.Values{"add": {"typed, twice"}, "off": {"x", "y"}}},
	} {
		form := url.Values{"do": {c.do}, "id": {itoa(j.ID), itoa(other.ID)}, "sure": {"yes"}, "back": {"jobs?app=orders"}}
		maps.Copy(form, c.typed)
		root.post("jobs/bulk", form).is(401).has("Log in to get back the form you submitted").lacks("another")
		root.post("login", with(root.filled("main"), "name", "root", "password", password)).goesOn().is(200).has("Nothing has been done yet.", c.has, "nightly", "another")
		if back := root.filled("main"); c.do == "tag" && back.Get("add") != "typed, twice" {
			t.Errorf("what was typed is lost: %v", back)
		}
		for _, id := range []int64{j.ID, other.ID} {
			if now := must1(x.store.Job(t.Context(), id)); now.Stopped || len(now.Tags) > 0 {
				t.Fatalf("%s was done by the login: %+v", c.do, now)
			}
		}
		root.cookies = map[string]*http.Cookie{}
	}
	// And so are runs, whether they were ticked or came from the page that asks.
	for _, asked := range []url.Values{{"id": {itoa(r.ID), "999999"}}, {"ids": {itoa(r.ID) + ",999999"}, "sure": {"yes"}}} {
		for do, has := range map[string]string{"kill": "Kill 2 runs?", "again": "Run 2 runs again?"} {
			root.post("runs/bulk", with(asked, "do", do)).is(401).has("Log in to get back the form you submitted").lacks("nightly")
			root.post("login", with(root.filled("main"), "name", "root", "password", password)).goesOn().is(200).has("Nothing has been done yet.", has, "nightly", "It does not exist.")
			if now := must1(x.store.Run(t.Context(), r.ID)); now.State.Ended() || len(must1(x.store.Runs(t.Context(), xxljob.RunFilter{}))) != 1 {
				t.Fatalf("%s was done by the login: %+v", do, now)
			}
			root.cookies = map[string]*http.Cookie{}
		}
	}
	root.cookies = session
	root.live().get("jobs").is(200)
}

// TestLoginsOfHosts: where the host says who somebody is, its login is where one is led.
func TestLoginsOfHosts(t *testing.T) {
	who := console.User{Name: "ann", Admin: true}
	var gone bool
	x := newSite(t, func(c *console.Config) {
		c.Auth = console.Func(func(*http.Request) (console.User, error) {
			if gone {
				return console.User{}, console.ErrNoUser
			}
			return who, nil
		}, "/host/login")
	})
	b := x.browser()
	j := x.job("orders", "nightly")
	b.get("jobs").is(200)
	if !strings.Contains(b.body, `data-login="/host/login"`) {
		t.Error("the page does not know where one logs in")
	}
	gone = true
	b.post("jobs/"+itoa(j.ID)+"/stop", nil).is(401)
	if !strings.Contains(b.body, `href="/host/login"`) {
		t.Error("it does not lead to the login of the host")
	}
	b.post("jobs/"+itoa(j.ID)+"/trigger", url.Values{"param": {"typed"}}).is(401).has("Log in in another tab", "typed").lacks("nightly")
	if !strings.Contains(b.body, `href="/host/login"`) || b.filled("main").Get("param") != "typed" {
		t.Errorf("the form is %v", b.filled("main"))
	}
}

// TestRestore: an older version comes back whole, by an ordinary edit.
func TestRestore(t *testing.T) { onBothStores(t, testRestore) }

func testRestore(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.fullJob()
	page, edit := "jobs/"+itoa(j.ID), "jobs/"+itoa(j.ID)+"/edit"
	root.post(edit, with(root.get(edit).filled("jobform"), "name", "other", "param", "other", "notbefore", "", "notafter", "", "retrypause", "3", "retryaside", "", "tags", "", "childkeys", "", "conf", "1 1 * * *", "zone", "UTC")).is(200)
	root.get(page).has("Restore")
	to := "jobs/" + itoa(j.ID) + "/edit?version=" + itoa(j.Version)
	if !strings.Contains(root.body, strings.TrimPrefix(to, "jobs/"+itoa(j.ID)+"/")) {
		t.Errorf("the page does not lead to %s", to)
	}
	form := root.get(to).is(200).has("The form shows version 1.").filled("jobform")
	root.post(edit, form).is(200).has("back as it was at that version")
	now := must1(x.store.Job(t.Context(), j.ID))
	sameJob(t, j, now)
	if now.Version != 3 {
		t.Errorf("version %d, want 3", now.Version)
	}
	root.post(edit, form).is(409)
	root.get(to + "99").is(404)
	script := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "script", GlueType: "GLUE_SHELL", GlueSource: "old source"}))
	script.GlueSource = "new source"
	script = must1(x.s.UpdateJob(t.Context(), script))
	edit = "jobs/" + itoa(script.ID) + "/edit"
	root.post(edit, with(root.get(edit+"?version=1").has("Its script is not restored.").lacks("source").filled("jobform"), "author", "me")).is(200)
	if now = must1(x.store.Job(t.Context(), script.ID)); now.GlueSource != "new source" || now.Author != "me" {
		t.Errorf("%+v", now)
	}
	operator := x.user(console.User{Name: "op", Apps: map[string]console.Role{"orders": console.Operator}})
	operator.get(page).is(200).lacks("Restore", "edit?version")
	operator.get(to).is(403)
}

// goesOn sends the form that the login has left for the address of the one that was kept, as its
// button and its script do.
func (b *browser) goesOn() *browser {
	b.Helper()
	b.is(200)
	action := regexp.MustCompile(`<form method="post" action="\./([^"]+)" id="goon"`).FindStringSubmatch(b.body)
	if action == nil || b.at != "/console/login" {
		b.Fatalf("%s does not go on to a form: %s", b.at, b.body)
	}
	b.lacks(password)
	return b.post(action[1], b.filled("goon"))
}

// TestLoggedOutMeanwhile: a form that comes without a session comes back after the login at its
// own address, to who may send it, and nothing is saved before it is sent again.
func TestLoggedOutMeanwhile(t *testing.T) { onBothStores(t, testLoggedOutMeanwhile) }

func testLoggedOutMeanwhile(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	for _, to := range []string{edit, "jobs/new"} {
		form := with(root.get(to).filled("jobform"), "name", `typed "so" <b>`, "app", "orders", "handler", "typed", "param", "\r\na\r\nb", "retryaside", "1")
		root.cookies = map[string]*http.Cookie{}
		root.post(to, form).is(401).has("Log in to get back the form you submitted").lacks("<b>")
		login := root.filled("main")
		if n := len(login); n < 40 || n > 60 {
			t.Errorf("%d fields are kept", n)
		}
		root.post("login", with(login, "name", "root", "password", "wrong horse")).is(422)
		login = root.filled("main")
		root.post("login", with(login, "name", "root", "password", password)).goesOn().is(200).has("It has not been saved yet.")
		if root.at != "/console/"+to {
			t.Errorf("the form of %s is at %s", to, root.at)
		}
		back := root.filled("jobform")
		for _, name := range []string{"name", "handler", "param", "version", "app"} {
			if back.Get(name) != form.Get(name) {
				t.Errorf("%s: %s is %q, was %q", to, name, back.Get(name), form.Get(name))
			}
		}
		if now := must1(x.store.Job(t.Context(), j.ID)); now.Handler != "work" {
			t.Fatal("it was saved by the login")
		}
		root.post(to, with(back, "key", "typed")).is(200)
		if now := must1(x.store.JobByKey(t.Context(), "orders", "typed")); now.Handler != "typed" || now.Param != "\na\nb" || !now.RetryAside {
			t.Errorf("%s: %+v", to, now)
		}
		must(t, x.s.RemoveJob(t.Context(), must1(x.store.JobByKey(t.Context(), "orders", "typed")).ID))
		if to == edit {
			j = x.job("orders", "another")
		}
	}
}

// TestKeptFormIsNotSaved: what goes on from the login is shown, however often it is sent, with a
// session and without one.
func TestKeptFormIsNotSaved(t *testing.T) { onBothStores(t, testKeptFormIsNotSaved) }

func testKeptFormIsNotSaved(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	kept := with(root.get(edit).filled("jobform"), "handler", "typed", "retries", "x", "show", "resumed")
	for range 2 {
		root.post(edit, kept).is(200).has("It has not been saved yet.").lacks(`class="fault"`)
		if root.filled("jobform").Get("handler") != "typed" || root.filled("jobform").Get("retries") != "x" {
			t.Errorf("the form is %v", root.filled("jobform"))
		}
	}
	root.post("jobs/new", with(root.newForm(), "show", "resumed")).is(200).has("It has not been saved yet.")
	if now := must1(x.store.Job(t.Context(), j.ID)); now.Version != j.Version || len(must1(x.store.Jobs(t.Context(), xxljob.JobFilter{}))) != 1 {
		t.Errorf("something was saved: %+v", now)
	}
	// Somebody else has saved in between: that is a conflict, as it would have been.
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}})
	ann.post(edit, with(ann.get(edit).filled("jobform"), "author", "ann")).is(200)
	back := with(root.post(edit, kept).is(200).filled("jobform"), "retries", "1")
	back.Del("show") // its button has another name
	root.post(edit, back).is(409)
	// A browser that keeps no cookies is asked again, and what was typed is not lost.
	nobody := x.browser()
	nobody.post(edit, kept).is(401).has("Log in to get back the form you submitted")
	if nobody.filled("main").Get("kept.handler") != "typed" || nobody.filled("main").Has("kept.show") {
		t.Errorf("kept is %v", nobody.filled("main"))
	}
	viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
	viewer.post(edit, kept).is(403)
	viewer.post("jobs/new", kept).is(403)
	root.header.Set("Sec-Fetch-Site", "cross-site")
	root.post(edit, kept).is(403).has("This request comes from another site.")
}

// TestLargestKeptForm: a form of as many bytes as are taken is kept whole by the login.
func TestLargestKeptForm(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	form := with(root.get(edit).filled("jobform"), "childkeys", "")
	form.Set("childkeys", strings.Repeat("k", 1<<20-len(form.Encode())))
	larger := with(form, "param", form.Get("param")+"x")
	root.post(edit, larger).is(413)
	root.cookies = map[string]*http.Cookie{}
	root.post(edit, larger).is(413)
	root.post(edit, form).is(401)
	root.post("login", with(root.filled("main"), "name", "root", "password", strings.Repeat("漢", 512))).is(422)
	root.post("login", with(root.filled("main"), "name", "root", "password", password)).goesOn().is(200)
	if back := root.filled("jobform"); back.Get("childkeys") != form.Get("childkeys") {
		t.Errorf("%d bytes have come back of %d", len(back.Get("childkeys")), len(form.Get("childkeys")))
	}
}

// TestNoFormOfOthers: the form of a login carries no other one than that of a job, and none into
// an app of others.
func TestNoFormOfOthers(t *testing.T) { onBothStores(t, testNoFormOfOthers) }

func testNoFormOfOthers(t *testing.T) {
	x := newSite(t)
	x.admin()
	j := x.job("billing", "secret one")
	x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}})
	for path, status := range map[string]int{"jobs/" + itoa(j.ID) + "/edit": 404, "jobs/4711/edit": 404} {
		b := x.browser()
		b.post("login", url.Values{"name": {"ann"}, "password": {password}, "kept": {path}, "kept.name": {"x"}}).is(status).lacks("secret")
	}
	for _, path := range []string{"jobs/" + itoa(j.ID) + "/remove", "runs/4711/kill", "logout", "//evil.example", "login", "nothing"} {
		b := x.browser()
		b.post("login", url.Values{"name": {"ann"}, "password": {password}, "kept": {path}, "kept.name": {"secret one"}}).is(200)
		if b.at != "/console/overview" {
			t.Errorf("%s leads to %s", path, b.at)
		}
	}
	must1(x.store.Job(t.Context(), j.ID))
	program := x.browser()
	program.header.Set("Authorization", "Bearer xj_1_wrong")
	program.post("jobs/new", url.Values{"name": {"x"}}).is(401).lacks("kept.name")
}

// halting is a store that fails, before or after it has done what it is asked for.
type halting struct {
	st            Store
	before, after error
}

func (h *halting) AddJob(ctx context.Context, j xxljob.Job, first store.FirstInstant) (xxljob.Job, error) {
	if h.before != nil {
		return xxljob.Job{}, h.before
	}
	j, err := h.st.AddJob(ctx, j, first)
	return j, errors.Join(err, h.after)
}

func (h *halting) EditJob(ctx context.Context, id int64, e xxljob.Edit) (xxljob.Job, error) {
	if h.before != nil {
		return xxljob.Job{}, h.before
	}
	j, err := h.st.EditJob(ctx, id, e)
	return j, errors.Join(err, h.after)
}

// TestStoreFailsWhileSaving: nobody is told that nothing was saved, the form is kept, and sent
// again it does not make a second job, nor overwrite what has come between.
func TestStoreFailsWhileSaving(t *testing.T) { onBothStores(t, testStoreFailsWhileSaving) }

func testStoreFailsWhileSaving(t *testing.T) {
	h := &halting{}
	x := newSite(t, func(c *console.Config) {
		h.st = c.Store.(Store)
		c.Store = bent.WholeOf(h.st, h)
		c.Scheduler = must1(xxljob.New(c.Store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)}))
	})
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	cable := errors.New("the cable <i>is</i> out")
	add := root.newForm("param", "typed & kept")
	change := with(root.get(edit).filled("jobform"), "param", "typed & kept")
	for _, c := range []struct {
		to            string
		form          url.Values
		before, after error
		again         int
	}{{"jobs/new", add, cable, nil, 200}, {"jobs/new", with(add, "name", "second"), nil, cable, 422}, {edit, change, cable, nil, 200}, {edit, with(change, "version", "2", "author", "ann"), nil, cable, 409}} {
		h.before, h.after = c.before, c.after
		root.post(c.to, c.form).is(503).has("the change may or may not have been made. Check before you try again", "the cable <i>is</i> out", "What you typed is kept below.", "typed & kept").lacks("<i>")
		kept := root.filled("jobform")
		h.before, h.after = nil, nil
		root.post(c.to, kept).is(c.again)
	}
	if n := len(must1(x.store.Jobs(t.Context(), xxljob.JobFilter{}))); n != 3 {
		t.Errorf("%d jobs, want 3", n)
	}
}

// TestHiddenParameter: what the host hides is shown nowhere, stays where nobody types anything,
// and goes to no other app.
func TestHiddenParameter(t *testing.T) { onBothStores(t, testHiddenParameter) }

func testHiddenParameter(t *testing.T) {
	const secret = "password=hunter2"
	x := newSite(t, func(c *console.Config) {
		c.Redact = func(_ string, _ console.Field, text string) string {
			return strings.ReplaceAll(text, "hunter2", "●●●")
		}
	})
	root := x.admin()
	j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "nightly", Handler: "work", Param: secret, Schedule: xxljob.Cron("0 0 3 * * ?")}))
	page, edit := "jobs/"+itoa(j.ID), "jobs/"+itoa(j.ID)+"/edit"
	for _, path := range []string{page, edit, page + "/once", "jobs/new?copy=" + itoa(j.ID), "changes"} {
		root.get(path).is(200).lacks("hunter2")
	}
	form := root.get(edit).filled("jobform")
	root.post(edit, with(form, "author", "me")).is(200).lacks("hunter2")
	param := func(id int64) string { return must1(x.store.Job(t.Context(), id)).Param }
	if param(j.ID) != secret {
		t.Errorf("the parameter is %q", param(j.ID))
	}
	root.post(edit, with(form, "author", "other")).is(409).lacks("hunter2")
	root.post(edit, with(root.filled("jobform"), "retries", "x")).is(422).lacks("hunter2")
	rows := func(param string) int {
		root.post(edit, with(form, "param", param, "author", "other")).is(409) // with what was typed
		return strings.Count(root.body, "<tr")
	}
	if right, wrong := rows(secret), rows("password=guess"); right != wrong {
		t.Errorf("a conflict names %d fields where the parameter was guessed, and %d where it was not", right, wrong)
	}
	changed := must1(x.store.Job(t.Context(), j.ID))
	changed.Param = "hunter2 of others"
	changed = must1(x.s.UpdateJob(t.Context(), changed.Definition()))
	root.post(edit, with(form, "param", "mine")).is(409).has("●●● of others", "mine").lacks("hunter2")
	changed.Param = secret
	must1(x.s.UpdateJob(t.Context(), changed.Definition()))
	root.post(page+"/trigger", url.Values{"param": {""}}).is(200).lacks("hunter2")
	if runs := must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: j.ID})); len(runs) != 1 || runs[0].ParamSet {
		t.Errorf("%+v", runs)
	}
	root.post(page+"/trigger", url.Values{"param": {""}, "own": {"1"}}).is(200)
	if runs := must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: j.ID})); len(runs) != 2 || !runs[0].ParamSet {
		t.Errorf("%+v", runs)
	}
	for app, want := range map[string]string{"orders": secret, "billing": ""} {
		root.post("jobs/new", with(root.get("jobs/new?copy="+itoa(j.ID)).filled("jobform"), "app", app, "name", "copy")).is(200).lacks("hunter2")
		if twin := must1(x.store.JobByKey(t.Context(), app, "copy")); twin.Param != want {
			t.Errorf("the copy in %s has %q", app, twin.Param)
		}
	}
	root.post(edit, with(root.get(edit).filled("jobform"), "param", "password=new hunter2")).is(200).lacks("hunter2")
	if param(j.ID) != "password=new hunter2" {
		t.Errorf("the parameter is %q", param(j.ID))
	}
	root.post(edit, with(root.get(edit).filled("jobform"), "paramempty", "1")).is(200)
	if param(j.ID) != "" {
		t.Errorf("the parameter is %q", param(j.ID))
	}
}

// TestEachChangeIsRecorded: by one entry with who, from where, before and after; and none where
// it was refused.
func TestEachChangeIsRecorded(t *testing.T) { onBothStores(t, testEachChangeIsRecorded) }

func testEachChangeIsRecorded(t *testing.T) {
	x := newSite(t)
	x.admin()
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}})
	viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
	entries := func() (list []xxljob.Change) {
		found := must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{}))
		return slices.DeleteFunc(found.Changes, func(c xxljob.Change) bool {
			return c.Object == store.ObjectLogin || c.Object == "user" || c.Object == "session"
		})
	}
	j := x.job("orders", "nightly")
	page := "jobs/" + itoa(j.ID)
	form := ann.get(page + "/edit").filled("jobform")
	add := ann.newForm()
	seen := len(entries())
	check := func(to string, form url.Values, verb, field string) {
		t.Helper()
		logged := x.log.Len()
		viewer.post(to, form).is(403)
		if n := len(entries()); n != seen || x.log.Len() != logged {
			t.Errorf("%s: %d entries of what was refused, %d bytes in the log", to, n-seen, x.log.Len()-logged)
		}
		defer func() { // the log has it as well: who, from where, which request
			line := x.log.String()[logged:]
			if strings.Count(line, "\n") != 1 || !strings.Contains(line, "user=ann client=192.0.2.1:1234 request=") || strings.Contains(line, "now") {
				t.Errorf("%s: the log has %q", to, line)
			}
		}()
		ann.post(to, form).is(200)
		list := entries()
		if len(list) != seen+1 {
			t.Fatalf("%s: %d entries, want one", to, len(list)-seen)
		}
		seen++
		c := list[0]
		if c.Verb != verb || c.Actor != "ann" || c.Client == "" || c.RequestID == "" || c.App != "orders" || field != "" && !strings.Contains(c.Before+c.After, `"`+field+`"`) {
			t.Errorf("%s: %+v", to, c)
		}
	}
	check(page+"/edit", with(form, "author", "me"), "update", "Author")
	check(page+"/stop", nil, "stop", "Stopped")
	check(page+"/start", nil, "start", "Stopped")
	check(page+"/trigger", url.Values{"param": {"now"}}, "trigger", "Param")
	check(page+"/remove", url.Values{"name": {"nightly"}}, "remove", "Handler")
	ann.post("jobs/new", with(add, "retries", "-1")).is(422)
	ann.post("jobs/new", with(add, "app", "billing")).is(422)
	viewer.post("jobs/new", add).is(422)
	if n := len(entries()); n != seen {
		t.Errorf("%d entries of what was refused", n-seen)
	}
	ann.post("jobs/new", add).is(200)
	if list := entries(); len(list) != seen+1 || list[0].Verb != "add" || list[0].Before != "" || list[0].Actor != "ann" {
		t.Errorf("%+v", list)
	}
}

// TestRemoveNeedsTheName: and says what becomes of what is planned.
func TestRemoveNeedsTheName(t *testing.T) { onBothStores(t, testRemoveNeedsTheName) }

func testRemoveNeedsTheName(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	x.run(j)
	remove := "jobs/" + itoa(j.ID) + "/remove"
	root.get(remove).is(200).has("1 planned run is cancelled.")
	for _, name := range []string{"", "Nightly", "nightl"} {
		root.post(remove, url.Values{"name": {name}}).is(422).has("That is not its name.")
	}
	must1(x.store.Job(t.Context(), j.ID))
	root.post(remove, url.Values{"name": {" nightly "}}).is(200).has("The job has been removed.")
	if root.at != "/console/jobs?said=removed" {
		t.Errorf("at %s", root.at)
	}
	root.get("jobs/" + itoa(j.ID)).is(404)
}

// TestManyFields: a form has 200 of them at most.
func TestManyFields(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	form := root.newForm()
	n := 0
	for _, values := range form {
		n += len(values)
	}
	for ; n < 201; n++ {
		form.Add("more", "x")
	}
	root.post("jobs/new", form).is(413).has("The form has 201 fields")
	form["more"] = form["more"][1:]
	root.post("jobs/new", form).is(200).has("The job has been added.")
}
