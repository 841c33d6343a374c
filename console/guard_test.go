package console_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// TestHeaders: every answer has them, whatever it is.
func TestHeaders(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	job := x.job("orders", "nightly")
	for _, page := range []string{"", "jobs", "jobs/" + itoa(job.ID), "jobs/4711", "nothing", "asset/nothing", "login", "health", "//evil", "jobs/../.."} {
		root.follows = false
		root.get(page)
		h := root.res.Header
		if policy := h.Get("Content-Security-Policy"); policy != "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'" && root.res.StatusCode != 307 { // the host's mux
			t.Errorf("%s: policy %q, status %d", page, policy, root.res.StatusCode)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store"} {
			if h.Get(name) != want && root.res.StatusCode != 307 { // the host's mux
				t.Errorf("%s: %s is %q, want %q", page, name, h.Get(name), want)
			}
		}
	}
}

// TestForgedRequests: what another site has a browser send changes nothing.
func TestForgedRequests(t *testing.T) {
	x := newSite(t, func(c *console.Config) { c.TrustedOrigins = []string{"https://friend.example"} })
	root := x.admin()
	job := x.job("orders", "nightly")
	stop := "jobs/" + itoa(job.ID) + "/stop"
	stopped := func() bool { return must1(x.store.Job(t.Context(), job.ID)).Stopped }
	for name, header := range map[string]http.Header{
		"a form of another site":   {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}},
		"a form of a sibling":      {"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://other.example"}},
		"an old browser":           {"Sec-Fetch-Site": nil, "Origin": {"https://evil.example"}},
		"a page without an origin": {"Sec-Fetch-Site": nil, "Origin": {"null"}},
		"no-cors text":             {"Content-Type": {"text/plain"}},
		"json":                     {"Content-Type": {"application/json"}},
		"multipart":                {"Content-Type": {"multipart/form-data; boundary=x"}},
		"no type":                  {"Content-Type": nil},
	} {
		root.header = header
		if root.post(stop, nil); root.res.StatusCode < 400 || stopped() {
			t.Errorf("%s: status %d, stopped %v", name, root.res.StatusCode, stopped())
		}
	}
	root.header = http.Header{"X-Http-Method-Override": {"POST"}}
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "PUT": 405, "DELETE": 405, "OPTIONS": 405, "TRACE": 405} { // GET asks whether it is meant
		if root.send(method, "/console/"+stop+"?_method=POST", nil); root.res.StatusCode != status || stopped() {
			t.Errorf("%s: status %d, stopped %v", method, root.res.StatusCode, stopped())
		}
	}
	root.header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://friend.example"}}
	root.post(stop, nil).is(200)
	if !stopped() {
		t.Error("a trusted origin is not trusted")
	}
}

func TestBodies(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	job := x.job("orders", "nightly")
	trigger := "jobs/" + itoa(job.ID) + "/trigger"
	many := url.Values{}
	for i := range 201 {
		many.Add("param", itoa(int64(i)))
	}
	root.post(trigger, many).is(413).has("The form has 201 fields; at most 200 are allowed.")
	root.post(trigger, url.Values{"param": {strings.Repeat("x", 1<<20)}}).is(413).has("too large")
	root.post(trigger, url.Values{"param": {"\xff\xfe"}}).is(400)
	root.post(trigger, url.Values{"param": {"a\x00b"}}).is(400)
	root.post(trigger, url.Values{"param": {strings.Repeat("x", 64<<10+1)}}).is(422)
	root.post(trigger, url.Values{"param": {"fine"}}).is(200).has("fine")
	if runs := must1(x.store.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID, Limit: 10})); len(runs) != 1 {
		t.Errorf("%d runs, want 1", len(runs))
	}
}

// TestPaths: tricks with paths and ids lead nowhere.
func TestPaths(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	job := x.job("orders", "nightly")
	root.follows = false
	for _, page := range []string{"jobs/0", "jobs/-1", "jobs/+1", "jobs/01", "jobs/1.0", "jobs/9223372036854775808", "jobs/%31%00", "jobs/" + itoa(job.ID) + "/", "jobs//stop", "jobs/x", "runs/1e3",
		"asset/..%2f..%2fgo.mod", "asset/console.css", "asset/", "template/frame.html", "lang/en.json", "JOBS", "jobs;a=b", ".", "index.html"} {
		if root.get(page); root.res.StatusCode != 404 && root.res.StatusCode != 307 { // the host's mux
			t.Errorf("%s: status %d", page, root.res.StatusCode)
		}
	}
	for _, query := range []string{"jobs?after=x", "jobs?after=e30", "runs?before=" + "%00", "runs?job=x", "changes?before=eyJvIjoiaWQiLCJhIjoieCJ9", "jobs?after=" + strings.Repeat("A", 9000)} {
		root.get(query).is(400)
	}
	root.get("runs?state=nothing").is(404)
	root.get("jobs?text=" + strings.Repeat("x", 5000)).is(400) // it is no text that could be looked for
}

// broken is a store that fails, or panics, where it is asked for jobs.
type broken struct {
	st    Store
	err   error
	panic any
}

func (b *broken) Job(ctx context.Context, id int64) (xxljob.Job, error) {
	if b.panic != nil {
		panic(b.panic)
	}
	if b.err != nil {
		return xxljob.Job{}, b.err
	}
	return b.st.Job(ctx, id)
}

// TestFaultsAreSaid: a store that is away is no empty page, and a panic is no stack.
func TestFaultsAreSaid(t *testing.T) { onBothStores(t, testFaultsAreSaid) }

func testFaultsAreSaid(t *testing.T) {
	b := &broken{}
	x := newSite(t, func(c *console.Config) { b.st = c.Store.(Store); c.Store = bent.WholeOf(b.st, b) })
	root := x.admin()
	job := x.job("orders", "nightly")
	page := "jobs/" + itoa(job.ID)
	b.err = errors.New("the cable <b>is</b> out")
	root.get(page).is(503).has("The store has reported an error.", "the cable <b>is</b> out", "Retry").lacks("<b>is</b>")
	if root.res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	b.err = context.DeadlineExceeded
	root.get(page).is(503).has("did not answer in time", "It last answered this console at")
	root.post(page+"/stop", nil).is(503).has("did not answer in time", "the change may or may not have been made")
	b.err, b.panic = nil, "out of <i>cheese</i>"
	root.get(page).is(500).has("Something went wrong here.", "Request "+root.res.Header.Get("X-Request-Id")).lacks("cheese", "goroutine", ".go:")
	if !strings.Contains(x.log.String(), root.res.Header.Get("X-Request-Id")) || !strings.Contains(x.log.String(), "cheese") {
		t.Error("the log does not say it")
	}
	b.panic = nil
	root.get(page).is(200)
}

// TestAssets: pages refer to files by what is in them, and these may be kept for ever.
func TestAssets(t *testing.T) {
	x := newSite(t)
	b := x.browser()
	b.get("login")
	names := regexp.MustCompile(`(?:href|src)="\./(asset/[^"]+)"`).FindAllStringSubmatch(b.body, -1)
	if len(names) != 5 { // the icon, styles, htmx, our script, and that of the setup
		t.Fatalf("the page refers to %q", names)
	}
	kinds := map[string]string{"css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	for _, name := range names {
		b.get(name[1]).is(200)
		h := b.res.Header
		if kind := kinds[name[1][len(name[1])-3:]]; h.Get("Content-Type") != kind || h.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %v", name[1], h)
		}
		sum := sha256.Sum256([]byte(b.body))
		if !strings.HasPrefix(name[1], "asset/"+hex.EncodeToString(sum[:8])+"-") {
			t.Errorf("%s is not named by what is in it", name[1])
		}
	}
}

// TestVendoredFiles are those of their list.
func TestVendoredFiles(t *testing.T) {
	var list []struct{ File, Package, Version, Licence, LicenceFile, SHA256 string }
	must(t, json.Unmarshal(must1(os.ReadFile("asset/vendor/vendor.json")), &list))
	known := map[string]bool{"vendor.json": true}
	for _, v := range list {
		sum := sha256.Sum256(must1(os.ReadFile("asset/vendor/" + v.File)))
		if hex.EncodeToString(sum[:]) != v.SHA256 || v.Package == "" || v.Version == "" || v.Licence == "" {
			t.Errorf("%+v has the hash %x", v, sum)
		}
		must1(os.Stat("asset/vendor/" + v.LicenceFile))
		known[v.File], known[v.LicenceFile] = true, true
	}
	for _, f := range must1(os.ReadDir("asset/vendor")) {
		if !known[f.Name()] {
			t.Errorf("%s is not in vendor.json", f.Name())
		}
	}
}

// TestMounts: the console is whole wherever it is, with the prefix stripped or not.
func TestMounts(t *testing.T) {
	inTurn(t)
	for _, mount := range []string{"", "/a", "/a/b.c"} {
		for _, strip := range []bool{true, false} {
			st := newStore(t)
			s := must1(xxljob.New(st, xxljob.Config{App: "orders"}))
			cfg := console.Config{Store: st, Scheduler: s, Auth: console.Accounts()}
			if !strip {
				cfg.Prefix = mount + "/"
			}
			h := must1(console.New(cfg))
			if strip && mount != "" {
				h = http.StripPrefix(mount, h)
			}
			must(t, console.CreateUser(t.Context(), st, console.User{Name: "root", Admin: true}, password))
			j := must1(s.AddJob(t.Context(), xxljob.Job{Name: "nightly", Handler: "h", Schedule: xxljob.Cron("0 0 3 * * ?")}))
			b := (&site{T: t, store: st, host: h}).browser()
			b.send("GET", mount+"/jobs/"+itoa(j.ID), nil)
			if want := mount + "/login?next=" + url.QueryEscape("jobs/"+itoa(j.ID)); b.at != want {
				t.Fatalf("%q, stripped %v: at %s, want %s", mount, strip, b.at, want)
			}
			b.send("POST", mount+"/login", url.Values{"name": {"root"}, "password": {password}, "next": {"jobs/" + itoa(j.ID)}}).is(200).has("nightly")
			for _, m := range regexp.MustCompile(`(?:href|src|action)="([^"#]+)"`).FindAllStringSubmatch(b.body, -1) {
				to := must1(must1(url.Parse("http://host.example" + b.at)).Parse(strings.ReplaceAll(m[1], "&amp;", "&")))
				if !strings.HasPrefix(to.Path, mount+"/") || strings.Contains(to.Path, "..") {
					t.Errorf("%q: %s leads to %s", mount, m[1], to)
				}
				if strings.Contains(to.Path, "/asset/") {
					if b.send("GET", to.RequestURI(), nil); b.res.StatusCode != 200 {
						t.Errorf("%q: %s: status %d", mount, to, b.res.StatusCode)
					}
				}
			}
		}
	}
}

// hostile are texts that would do something if they were not texts.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `" autofocus onfocus="alert(1)`, `javascript:alert(1)`, `<svg onload=alert(1)>`, `</title><script>alert(1)</script>`,
	`</textarea><script>alert(1)</script>`, `{{.Root}}`, `<a href="javascript:alert(1)">x</a>`, `<style>*{display:none}</style>`, `<!--`, `]]><script>`, `&lt;script&gt;`, `%3Cscript%3E`, `\u003cscript\u003e`,
	"<scr\tipt>", "<iframe src=//evil.example>", `<form action=//evil.example><button>`, `<base href=//evil.example>`, `<meta http-equiv=refresh content=0;url=//evil.example>`,
}

// TestHostileTexts: whoever has written them, and wherever they are shown, they are texts.
func TestHostileTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so many previews a second are answered
		x := newSite(t)
		root := x.admin()
		for i, evil := range hostile {
			time.Sleep(time.Second)
			n := itoa(int64(i))
			ctx := xxljob.WithClient(xxljob.WithActor(t.Context(), evil), evil, evil)
			job := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: n + evil, Key: keyLike(n + evil), Handler: n + evil, Author: evil, Param: evil, Schedule: xxljob.Cron("0 0 3 * * ?")}))
			run := must1(x.s.TriggerOne(ctx, job.ID, xxljob.Trigger{Param: &evil}))
			must1(x.store.RecordChange(ctx, xxljob.Change{Verb: "odd", Object: store.ObjectJob, ObjectID: itoa(job.ID), After: string(must1(json.Marshal(map[string]string{evil: evil})))}))
			q := url.QueryEscape(evil)
			for _, page := range []string{"jobs", "jobs?text=" + q + "&app=" + q + "&handler=" + q + "&author=" + q + "&tag=" + q, "jobs/" + itoa(job.ID), "jobs/" + itoa(job.ID) + "?said=" + q, "runs", "runs?text=" + q + "&handler=" + q + "&address=" + q,
				"runs/" + itoa(run), "changes", "changes?actor=" + q + "&verb=" + q} {
				root.get(page)
				inert(t, page, evil, root.body)
			}
			for _, page := range []string{"jobs/" + itoa(job.ID) + "/edit", "jobs/" + itoa(job.ID) + "/once", "jobs/" + itoa(job.ID) + "/remove", "jobs/new?app=" + q + "&copy=" + itoa(job.ID), "preview?type=CRON&conf=" + q + "&zone=" + q} {
				root.get(page)
				inert(t, page, evil, root.body)
			}
			typed := url.Values{"id": {itoa(job.ID)}, "do": {"remove"}, "version": {"1"}, "back": {evil}, "address": {evil}, "zone": {evil}, "tz": {evil}, "at": {evil}, "part": {evil}}
			for _, name := range []string{"name", "app", "key", "handler", "param", "type", "conf", "author", "tags", "childkeys", "route", "addresses", "count"} {
				typed.Set(name, evil)
			}
			for _, page := range []string{"jobs/bulk", "jobs/new", "jobs/" + itoa(job.ID) + "/edit", "jobs/" + itoa(job.ID) + "/remove", "jobs/" + itoa(job.ID) + "/trigger"} {
				root.post(page, typed)
				inert(t, page, evil, root.body)
				out := x.browser()
				out.post(page, typed)
				inert(t, page+" by nobody", evil, out.body)
			}
			b := x.browser()
			b.post("login", url.Values{"name": {evil}, "password": {evil}, "next": {evil}})
			inert(t, "login", evil, b.body)
			b.get("login?next=" + q)
			inert(t, "login?next", evil, b.body)
			b.post("look", url.Values{"language": {evil}, "zone": {evil}, "next": {evil}})
			inert(t, "look", evil, b.body)
		}
	})
}

// elements are those that pages have, in the order of the alphabet; an attribute that is run is
// none of them.
var (
	element = regexp.MustCompile(`<([a-zA-Z!/][^\s>/]*)([^>]*)>`)
	known   = map[string]bool{}
)

func init() {
	for _, name := range strings.Fields("!doctype a body br button code datalist dd del details dialog div dl dt fieldset footer form h1 h2 h3 head header html input ins kbd label legend li link main meta nav noscript ol option p path polyline pre rect script section select span strong summary svg symbol table tbody td textarea th thead time title tr ul use") {
		known[name] = true
	}
}

// inert checks that a page has only what pages are made of, with the attributes that they have.
func inert(t *testing.T, page, evil, body string) {
	t.Helper()
	if list := active(body); len(list) > 0 {
		t.Errorf("%s with %q has %q", page, evil, list)
	}
}

// active are the tags of a page that do something which ours do not.
func active(body string) (list []string) {
	for _, m := range element.FindAllStringSubmatch(body, -1) {
		name, attrs := strings.TrimPrefix(strings.ToLower(m[1]), "/"), m[2]
		bad := !known[name] || name == "script" && m[1][0] != '/' && !strings.Contains(attrs, `src="`)
		for _, a := range attribute.FindAllStringSubmatch(attrs, -1) {
			bad = bad || strings.HasPrefix(strings.ToLower(a[1]), "on") || leading[strings.ToLower(a[1])] && away.MatchString(strings.Trim(a[2], `"`))
		}
		if bad {
			list = append(list, m[0])
		}
	}
	return list
}

var (
	attribute = regexp.MustCompile(`([a-zA-Z:_-]+)(?:\s*=\s*("[^"]*"|[^\s>]*))?`)
	leading   = map[string]bool{"href": true, "src": true, "action": true, "formaction": true, "xlink:href": true, "data-hx-get": true}
	away      = regexp.MustCompile(`(?i)^\s*(?:javascript|data|//|https?:)`)
)

// TestInertFindsWhatIsNot: the check above finds what it is for.
func TestInertFindsWhatIsNot(t *testing.T) {
	for _, evil := range []string{`<script>alert(1)</script>`, `<img src=x>`, `<a onclick="x">`, `<a href="javascript:x">`, `<a href=//evil>`, `<p/onload=x>`} {
		if len(active("<p>"+evil+"</p>")) == 0 {
			t.Errorf("%s is not found", evil)
		}
	}
}
