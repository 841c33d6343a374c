package console_test

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// site is a console on a store, mounted at /console/ of a host.
type site struct {
	*testing.T
	store Store
	s     xxljob.Scheduler
	host  http.Handler
	log   *logBook

	console  http.Handler                    // what New has made
	weakened func(http.Handler) http.Handler // what was taken from it, if anything
	taken    []store.Shard                   // by parts
	beside   Store                           // that of another console on the host, where it is not one of its own
}

// logBook has the lines of a logger.
type logBook struct{ strings.Builder }

// password is that of all users here.
const password = "correct horse"

func newSite(t *testing.T, change ...func(*console.Config)) *site {
	t.Helper()
	inTurn(t) // before a server is started
	return newSiteOn(t, newStore(t), change...)
}

// newSiteOn is newSite on a store.
func newSiteOn(t *testing.T, st Store, change ...func(*console.Config)) *site {
	t.Helper()
	inTurn(t)
	x := &site{T: t, store: st, log: &logBook{}}
	logger := slog.New(slog.NewTextHandler(x.log, nil))
	s, err := xxljob.New(x.store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	x.s = s
	cfg := console.Config{Store: x.store, Scheduler: s, Auth: console.Accounts(), Logger: logger}
	for _, f := range change {
		f(&cfg)
	}
	h, err := console.NewAlike(cfg)
	must(t, err)
	console.RememberHashes(h)
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", h))
	console.CountsWithin(h, 10*time.Second) // however slow the machine is
	x.host, x.console = mux, h
	return x
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hashed is the hash of password, which takes a while: so it is made once.
var hashed = sync.OnceValue(func() string { return console.Hashed(password) })

// user adds a user and returns a browser in which that one is logged in.
func (x *site) user(u console.User) *browser {
	x.Helper()
	apps := map[string]string{}
	for app, role := range u.Apps {
		apps[app] = string(role)
	}
	_, err := x.store.AddUser(context.Background(), store.User{Name: u.Name, Title: u.Title, Password: hashed(), Grants: store.Grants{Admin: u.Admin, Apps: apps, Scripts: u.Scripts}})
	must(x.T, err)
	return x.session(u.Name, u.Name+" is logged in")
}

// session is a browser in which a user is logged in, with a session of its own.
func (x *site) session(user, secret string) *browser {
	x.Helper()
	b := x.browser()
	_, err := x.store.AddSession(context.Background(), store.Session{User: user, Hash: console.HashOf(secret)}, store.SessionLimits{Idle: time.Hour, Most: time.Hour})
	must(x.T, err)
	b.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: secret}
	b.get("jobs")
	if b.at != "/console/jobs" {
		x.Fatalf("%s is at %s after the login: %s", user, b.at, b.text())
	}
	return b
}

// admin is a browser of an admin.
func (x *site) admin() *browser { return x.user(console.User{Name: "root", Admin: true}) }

// job adds a job.
func (x *site) job(app, name string) xxljob.Job {
	x.Helper()
	j, err := x.s.AddJob(context.Background(), xxljob.Job{App: app, Name: name, Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Param: "param of " + name})
	must(x.T, err)
	return j
}

// run plans a run of the job.
func (x *site) run(j xxljob.Job) xxljob.Run {
	x.Helper()
	r, err := x.store.AddRun(context.Background(), j.ID, xxljob.Trigger{})
	must(x.T, err)
	return r
}

// browser is what a person sees the console in.
type browser struct {
	*site
	cookies map[string]*http.Cookie
	header  http.Header
	at      string // the path of the page, and its query
	res     *http.Response
	body    string
	follows bool
	from    string // address and port; empty: what httptest has
}

func (x *site) browser() *browser {
	return &browser{site: x, cookies: map[string]*http.Cookie{}, header: http.Header{}, at: "/console/", follows: true}
}

// get goes to a page, whose address is seen from the mount.
func (b *browser) get(to string) *browser {
	b.Helper()
	return b.send(http.MethodGet, "/console/"+to, nil)
}

// post sends a form.
func (b *browser) post(to string, form url.Values) *browser {
	b.Helper()
	return b.send(http.MethodPost, "/console/"+to, form)
}

// send sends a request and follows where it leads, as browsers do.
func (b *browser) send(method, to string, form url.Values) *browser {
	b.Helper()
	var body io.Reader
	if method != http.MethodGet {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "http://host.example"+to, body)
	r.RemoteAddr = cmp.Or(b.from, r.RemoteAddr)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range b.header {
		r.Header[name] = values
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	b.host.ServeHTTP(w, r)
	b.res = w.Result()
	b.body = w.Body.String()
	b.at = to
	for _, c := range b.res.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c
		}
	}
	if location := b.res.Header.Get("Location"); location != "" && b.follows {
		next, err := r.URL.Parse(location)
		must(b.T, err)
		if next.Host != "host.example" {
			b.Fatalf("sent to %s", next)
		}
		return b.send(http.MethodGet, next.RequestURI(), nil)
	}
	return b
}

// is checks the status of the answer.
func (b *browser) is(status int) *browser {
	b.Helper()
	if b.res.StatusCode != status {
		b.Errorf("%s: status %d, want %d: %s", b.at, b.res.StatusCode, status, b.text())
	}
	return b
}

// has checks that the page says something, to who reads it.
func (b *browser) has(texts ...string) *browser {
	b.Helper()
	said := b.text()
	for _, text := range texts {
		if !strings.Contains(said, text) {
			b.Errorf("%s does not say %q:\n%s", b.at, text, said)
		}
	}
	return b
}

// lacks checks that the page has nothing of the kind, not even where nobody reads it.
func (b *browser) lacks(texts ...string) *browser {
	b.Helper()
	for _, text := range texts {
		if strings.Contains(b.body, text) {
			b.Errorf("%s has %q:\n%s", b.at, text, b.body)
		}
	}
	return b
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

// text is what the page says, without what it looks like. Most tests ask for it, of pages of a
// hundred kilobytes: it goes through them once.
func (b *browser) text() string {
	var s strings.Builder
	for rest := b.body; rest != ""; {
		before, tag, _ := strings.Cut(rest, "<")
		end := strings.IndexByte(tag, '>')
		if end < 0 { // no tag begins any more
			s.WriteString(rest)
			break
		}
		s.WriteString(before)
		s.WriteByte(' ')
		rest = tag[end+1:]
	}
	return blanksAsOne(entities.Replace(s.String()))
}

var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&#43;", "+")

// blanksAsOne has a space in place of each row of blanks, as blanks has it replaced.
func blanksAsOne(text string) string {
	var s strings.Builder
	blank := false
	for _, c := range []byte(text) {
		was := blank
		switch blank = strings.IndexByte(" \t\n\f\r", c) >= 0; {
		case !blank:
			s.WriteByte(c)
		case !was:
			s.WriteByte(' ')
		}
	}
	return s.String()
}

// code is the code for the first user that the process has logged.
func (x *site) code() string {
	x.Helper()
	m := regexp.MustCompile(`code=(\w+)`).FindStringSubmatch(x.log.String())
	if m == nil {
		x.Fatalf("no code in the log: %s", x.log)
	}
	return m[1]
}
