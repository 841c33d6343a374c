package console_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// TestOnce: with all that a trigger has, by a page that needs no scripts.
func TestOnce(t *testing.T) { onBothStores(t, testOnce) }

func testOnce(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	must(t, x.s.SaveGroup(t.Context(), xxljob.Group{App: "orders", Manual: true, Addresses: []string{"http://a.example:9999", "http://b.example:9999"}}))
	j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "parts", Handler: "work", Route: xxljob.RouteShardingBroadcast, Param: "own\nlines"}))
	once, do := "jobs/"+itoa(j.ID)+"/once", "jobs/"+itoa(j.ID)+"/trigger"
	root.post("look", url.Values{"zone": {"Asia/Shanghai"}})
	form := root.get(once).is(200).has("http://a.example:9999", "http://b.example:9999").filled("main")
	if form.Get("param") != "own\r\nlines" {
		t.Errorf("param %q", form.Get("param"))
	}
	root.post(do, form).is(200)
	runs := func() []xxljob.Run {
		return must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: j.ID, Limit: 100}))
	}
	if r := runs()[0]; r.ParamSet || len(r.Addresses) > 0 {
		t.Errorf("%+v", r)
	}
	at := time.Now().Add(26 * time.Hour).In(must1(time.LoadLocation("Asia/Shanghai"))).Truncate(time.Second)
	full := with(form, "param", "other", "addresses", "http://c.example:1, http://b.example:9999", "part", "1", "parts", "3", "at", at.Format("2006-01-02T15:04:05"), "key", "k1")
	full["address"] = []string{"http://b.example:9999"}
	root.post(do, full).is(200)
	r := runs()[0]
	if !r.ParamSet || r.Param != "other" || !slices.Equal(r.Addresses, []string{"http://b.example:9999", "http://c.example:1"}) || r.Sharding != (xxljob.Sharding{Index: 1, Total: 3}) || !r.Scheduled.Equal(at) {
		t.Errorf("%+v, want it at %v", r, at)
	}
	page := root.at
	if root.post(do, full).is(200); root.at != page || len(runs()) != 2 {
		t.Errorf("the key has led to %s, not to %s", root.at, page)
	}
	for field, bad := range map[string]string{"part": "3", "at": "tomorrow", "key": "xxljob/mine", "param": strings.Repeat("x", 64<<10+1), "addresses": strings.Repeat("a", 300)} {
		form := with(full, "key", "new", field, bad)
		root.post(do, form).is(422)
		if !strings.Contains(root.body, `id="once-`+field+`-fault"`) {
			t.Errorf("%s: no fault: %s", field, root.text())
		}
		back := root.filled("main")
		for name, values := range form {
			if !slices.Equal(back[name], values) && name != "addresses" {
				t.Errorf("%s: %s is %.40q, was %.40q", field, name, back[name], values)
			}
		}
	}
	root.post(do, with(full, "at", "2059-01-01T12:00", "key", "far")).is(422)
	if len(runs()) != 2 {
		t.Errorf("%d runs", len(runs()))
	}
	root.get("jobs/"+itoa(j.ID)).has("Run “parts” once", "Addresses").lacks("a.example") // they are asked for when the dialog is opened
	if !strings.Contains(root.body, `data-offered="../`+once+`"`) {
		t.Error("the dialog does not say where addresses are offered")
	}
	root.live().get(once).is(200).has("http://a.example:9999", "http://b.example:9999").lacks("<form", "<h1", "<html")
	viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
	viewer.get("jobs/"+itoa(j.ID)).is(200).lacks("a.example", "data-offered")
	viewer.live().get(once).is(403).lacks("a.example")
}

// TestJobPage: what it says beside the definition, and what it does not say to whom.
func TestJobPage(t *testing.T) { onBothStores(t, testJobPage) }

func testJobPage(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	mine, other := x.job("orders", "mine"), x.job("billing", "secret one")
	parent := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "parent job", Handler: "work", Children: []int64{mine.ID, other.ID}}))
	join := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "billing", Name: "secret join", Handler: "work", AfterKeys: []string{"orders/mine"}}))
	page := "jobs/" + itoa(mine.ID)
	root.get(page).is(200).has("Parent jobs", "parent job", "Child jobs", "secret join", "waits for all")
	root.get("jobs/"+itoa(parent.ID)).has("mine", "secret one")
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	ann.get(page).is(200).has("parent job").lacks("secret", itoa(join.ID), "/once", "/trigger")
	ann.get("jobs/" + itoa(parent.ID)).is(200).has("mine").lacks("secret")
	script := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "script", GlueType: "GLUE_SHELL", GlueSource: "rm -rf /tmp/x", LateAfter: time.Minute}))
	root.get("jobs/"+itoa(script.ID)).has("This job is a script (GLUE_SHELL)", "stored, not used", "13 bytes", "Alarm when late by").lacks("rm -rf")
	full := x.fullJob()
	root.get("jobs/"+itoa(full.ID)).is(200).has("Later runs may overtake one", "the result of this run", "orders/not, yet")
	ensured := must1(x.s.EnsureJob(t.Context(), xxljob.Job{App: "orders", Name: "by code", Handler: "work"}))
	root.get("jobs/" + itoa(ensured.Job.ID)).has("defined in code (EnsureJob)")
}
