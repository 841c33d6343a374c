package console_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/memory"
)

// TestConfigFaults: all of them come at once, each by its field.
func TestConfigFaults(t *testing.T) {
	_, err := console.New(console.Config{})
	for _, field := range []string{"Store is missing", "Scheduler is missing", "Auth is missing"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v, want %q", err, field)
		}
	}
	st := memory.New()
	s := must1(xxljob.New(st, xxljob.Config{App: "orders"}))
	good := console.Config{Store: st, Scheduler: s, Auth: console.Accounts()}
	must1(console.New(good))
	must1(console.New(console.Config{Store: st, ReadOnly: true, Auth: console.Loopback(console.Viewer)}))
	for field, spoil := range map[string]func(*console.Config){
		"Store is missing":        func(c *console.Config) { c.Store = nil },
		"Accounts":                func(c *console.Config) { c.Store = struct{ xxljob.Store }{st} }, // which keeps no users
		"Prefix":                  func(c *console.Config) { c.Prefix = "console" },
		`Prefix "/a/../b"`:        func(c *console.Config) { c.Prefix = "/a/../b?" },
		"Title":                   func(c *console.Config) { c.Title = strings.Repeat("x", 81) },
		"Label.Text":              func(c *console.Config) { c.Label.Text = strings.Repeat("x", 21) },
		"Label.Color":             func(c *console.Config) { c.Label.Color = "pink" },
		"Language":                func(c *console.Config) { c.Language = "tlh" },
		"TrustedOrigins":          func(c *console.Config) { c.TrustedOrigins = []string{"https://a.example/path"} },
		"FrameAncestors":          func(c *console.Config) { c.FrameAncestors = []string{"https://a.example; script-src *"} },
		"FrameAncestors \"*\"":    func(c *console.Config) { c.FrameAncestors = []string{"*"} },
		"TrustedOrigins \"evil\"": func(c *console.Config) { c.TrustedOrigins = []string{"evil"} },
	} {
		bad := good
		spoil(&bad)
		if _, err := console.New(bad); err == nil || !strings.Contains(strings.TrimSuffix(err.Error(), "?"), strings.TrimSuffix(field, `b"`)) {
			t.Errorf("%v, want %s", err, field)
		}
		bad.Auth = console.Auth{}
		if _, err := console.New(bad); err == nil || !strings.Contains(err.Error(), "Auth is missing") {
			t.Errorf("%s: %v does not say that Auth is missing too", field, err)
		}
	}
	for _, auth := range []console.Auth{console.Basic(nil), console.Func(nil, "")} {
		if _, err := console.New(console.Config{Store: st, Scheduler: s, Auth: auth}); err == nil {
			t.Error("nobody is asked who a request is from")
		}
	}
}

// TestBasic: browsers are asked for a name and a password, which the host checks.
func TestBasic(t *testing.T) {
	away := false
	x := newSite(t, func(c *console.Config) {
		c.Auth = console.Basic(func(user, password string) (console.User, error) {
			switch {
			case away:
				return console.User{}, errors.New("the directory is away")
			case user == "ann" && password == "right":
				return console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Operator}}, nil
			}
			return console.User{}, console.ErrNoUser
		})
	})
	j := x.job("orders", "nightly")
	ask := func(user, password string) *browser {
		b := x.browser().alone()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, password)
		if user != "" {
			b.header.Set("Authorization", r.Header.Get("Authorization"))
		}
		return b
	}
	for _, b := range []*browser{ask("", ""), ask("ann", "wrong"), ask("eve", "right"), ask("ann", "")} {
		b.get("jobs").is(401).lacks("nightly")
		if got := b.res.Header.Get("WWW-Authenticate"); got != `Basic realm="xxljob", charset="UTF-8"` {
			t.Errorf("browsers are asked %q", got)
		}
	}
	ann := ask("ann", "right")
	ann.get("jobs").is(200).has("nightly", "ann").lacks("logout")
	ann.post("jobs/"+itoa(j.ID)+"/stop", nil).is(303)
	ann.get("jobs/new").is(403)
	ann.get("login").is(404)
	if c := must1(x.store.Changes(t.Context(), j.ID, 1)); c[0].Actor != "ann" || c[0].Verb != "stop" {
		t.Errorf("%+v", c)
	}
	away = true
	ann.get("jobs").is(503).lacks("directory")
	if ann.res.Header.Get("WWW-Authenticate") != "" {
		t.Error("a service that is away has the browser ask for another password")
	}
}

// TestARewritingProxy: behind a proxy that gives the console another name and another path, pages
// lead to pages, forms count, and cookies come back.
func TestARewritingProxy(t *testing.T) {
	x := newSite(t, func(c *console.Config) { c.TrustedOrigins = []string{"https://jobs.example"} })
	must(t, console.CreateUser(t.Context(), x.store, console.User{Name: "root", Admin: true}, password))
	j := x.job("orders", "nightly")
	proxy := &httputil.ReverseProxy{Transport: inProcess{x.host}, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "inner.example", "inner.example"
		r.Out.URL.Path = "/console" + strings.TrimPrefix(r.In.URL.Path, "/ops/jobs")
		r.Out.Header.Set("X-Forwarded-Proto", "https")
	}}
	y := *x
	y.host = proxy
	b := y.browser()
	b.header.Set("Origin", "https://jobs.example")
	b.send(http.MethodGet, "/ops/jobs/jobs/"+itoa(j.ID), nil).is(200).has("Log in")
	if want := "/ops/jobs/login?next=" + url.QueryEscape("jobs/"+itoa(j.ID)); b.at != want {
		t.Fatalf("at %s, want %s", b.at, want)
	}
	b.send(http.MethodPost, "/ops/jobs/login", url.Values{"name": {"root"}, "password": {password}, "next": {"jobs/" + itoa(j.ID)}}).is(200).has("nightly")
	if c := b.cookies["xxljob_session"]; b.at != "/ops/jobs/jobs/"+itoa(j.ID) || c == nil || c.Path != "" || !c.Secure {
		t.Errorf("at %s with %+v", b.at, c)
	}
	for _, m := range regexp.MustCompile(`(?:href|src|action)="([^"#]+)"`).FindAllStringSubmatch(b.body, -1) {
		to := must1(must1(url.Parse("https://jobs.example" + b.at)).Parse(strings.ReplaceAll(m[1], "&amp;", "&")))
		if to.Host != "jobs.example" || !strings.HasPrefix(to.Path, "/ops/jobs/") {
			t.Errorf("%s leads to %s", m[1], to)
		}
	}
	b.send(http.MethodPost, "/ops/jobs/jobs/"+itoa(j.ID)+"/stop", nil).is(200).has("stopped")
}

// inProcess sends requests to a handler.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.RemoteAddr, r.RequestURI = "192.0.2.7:1", r.URL.RequestURI()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestWhatMayNotBeDoneIsNotDrawn: a console that is read-only has no form and no link that changes
// a job or a run, and neither has a page for who may not do that.
func TestWhatMayNotBeDoneIsNotDrawn(t *testing.T) {
	controls := regexp.MustCompile(`(?:action|href)="[./]*([^"?#]*(?:/(?:edit|once|remove|trigger|start|stop|kill|again)|jobs/new|/bulk))["?]|name="do"`)
	for _, c := range []struct {
		readOnly bool
		user     console.User
		draws    bool
	}{
		{true, console.User{Name: "root", Admin: true}, false}, {true, console.User{Name: "ed", Apps: map[string]console.Role{"*": console.Editor}}, false},
		{false, console.User{Name: "vi", Apps: map[string]console.Role{"*": console.Viewer}}, false}, {false, console.User{Name: "root", Admin: true}, true},
	} {
		x := newSite(t, func(cfg *console.Config) { cfg.ReadOnly = c.readOnly })
		b := x.user(c.user)
		j := x.job("orders", "nightly")
		j.Author = "ann"
		must1(x.s.UpdateJob(t.Context(), j))
		run := x.run(j)
		for _, page := range []string{"jobs", "jobs/" + itoa(j.ID), "runs", "runs/" + itoa(run.ID), "runs/" + itoa(run.ID) + "/log", "changes"} {
			b.get(page).is(200)
			found := controls.FindAllString(strings.NewReplacer(`action="./runs/bulk"`, "", `action="./jobs/bulk"`, "").Replace(b.body), -1) // of a form without anything in it
			if wants := c.draws && !strings.HasSuffix(page, "/log") && page != "changes"; (len(found) > 0) != wants {
				t.Errorf("%s for %s, read-only %v: %q", page, c.user.Name, c.readOnly, found)
			}
			if c.readOnly && !strings.Contains(b.body, "read-only") {
				t.Errorf("%s does not say that it is read-only", page)
			}
		}
	}
}

// TestEachPageHasOneHeading, which is what its title says first.
func TestEachPageHasOneHeading(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	run := x.run(x.job("orders", "nightly"))
	ids := map[string]int64{"jobs": run.JobID, "runs": run.ID}
	heading := regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)
	for _, rt := range console.Routes() {
		kind, _, _ := strings.Cut(rt.Pattern, "/")
		if rt.Method != http.MethodGet || kind == "asset" || kind == "health" || kind == "setup" || strings.HasSuffix(rt.Pattern, "file") || strings.HasSuffix(rt.Pattern, "export") {
			continue
		}
		for _, b := range []*browser{root, x.browser()} {
			b.get(pathOf(rt.Pattern, ids[kind]))
			found := heading.FindAllStringSubmatch(b.body, -1)
			if len(found) != 1 || tags.ReplaceAllString(found[0][1], "") == "" || strings.Count(b.body, "<main") != 1 || !strings.Contains(b.body, `<a class="skip" href="#main">`) {
				t.Errorf("%s has %d headings", rt.Pattern, len(found))
			}
		}
	}
}

// TestTitleLabelAndZone of the config are on each page, for who has chosen nothing.
func TestTitleLabelAndZone(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Title, c.Label = "Orders <ops>", console.Label{Text: "PROD", Color: "red"}
		c.Location, c.Language, c.FrameAncestors = must1(time.LoadLocation("Asia/Tokyo")), "zh-TW", []string{"https://portal.example"}
	})
	root := x.admin()
	x.job("orders", "nightly")
	for _, page := range []string{"jobs", "runs", "changes", "jobs/4711"} {
		root.get(page).has("Orders <ops>", "PROD", "UTC+9", "任務")
		if !strings.Contains(root.body, `class="label label-red"`) || !strings.HasSuffix(root.res.Header.Get("Content-Security-Policy"), "frame-ancestors https://portal.example") {
			t.Errorf("%s: %v", page, root.res.Header)
		}
	}
	root.header.Set("Accept-Language", "fr, en;q=0.5")
	root.get("jobs").has("Jobs")
}
