package console_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// cookieAttacks are about what browsers are told: of cookies, and of what pages may do.
func cookieAttacks() []attack {
	cookies := func(change func(*http.Cookie)) func(*testing.T) *site {
		return behind(answering(func(_ *http.Request, h http.Header) {
			list := (&http.Response{Header: h}).Cookies()
			h.Del("Set-Cookie")
			for _, c := range list {
				change(c)
				h.Add("Set-Cookie", c.String())
			}
		}))
	}
	return []attack{
		{"a session of another console of the host", sessionElsewhere, map[string]func(*testing.T) *site{
			"cookies for the whole host": cookies(func(c *http.Cookie) { c.Path = "/" }),
			"sessions that all share":    func(t *testing.T) *site { x := newSite(t); x.beside = x.store; return x },
		}, 0},
		{"a cookie that scripts, other sites or listeners get", cookieAttributes, map[string]func(*testing.T) *site{
			"for scripts":     cookies(func(c *http.Cookie) { c.HttpOnly = false }),
			"for other sites": cookies(func(c *http.Cookie) { c.SameSite = http.SameSiteNoneMode }),
			"for subdomains":  cookies(func(c *http.Cookie) { c.Domain = "host.example" }),
			"in clear":        cookies(func(c *http.Cookie) { c.Secure = false }),
		}, 0},
		{"a page in a frame, with scripts of others, or kept on the way", answersHeaders, map[string]func(*testing.T) *site{
			"no policy":         weak(console.WithoutPolicy),
			"types are guessed": behind(answering(func(_ *http.Request, h http.Header) { h.Del("X-Content-Type-Options") })),
			"caches keep pages": behind(answering(func(_ *http.Request, h http.Header) { h.Set("Cache-Control", "max-age=60") })),
			"addresses leak":    behind(answering(func(_ *http.Request, h http.Header) { h.Set("Referrer-Policy", "unsafe-url") })),
		}, 0},
		{"a token in an address", tokenInAddress, map[string]func(*testing.T) *site{"a host that helps": behind(rewritten(func(r *http.Request) {
			if token := r.URL.Query().Get("token"); token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
		}))}, 0},
		{"a log or a style that is taken for a page", typesOfFiles, map[string]func(*testing.T) *site{"logs as pages": behind(answering(func(r *http.Request, h http.Header) {
			if strings.HasSuffix(r.URL.Path, "/file") {
				h.Set("Content-Type", "text/html; charset=utf-8")
			}
		}))}, 0},
	}
}

// sessionElsewhere: of two consoles on a host neither gets the session of the other, nor would
// take it, as browsers go about cookies.
func sessionElsewhere(x *site) (faults found) {
	other := x.beside
	if other == nil {
		other = memory.New()
	}
	h := must1(console.NewAlike(console.Config{Store: other, Scheduler: must1(xxljob.New(other, xxljob.Config{App: "orders"})), Auth: console.Accounts()}))
	x.admin()
	if other != x.store {
		_, err := other.AddUser(context.Background(), store.User{Name: "root", Password: hashed(), Grants: store.Grants{Admin: true}})
		must(x.T, err)
	}
	first := x.host
	mux := http.NewServeMux()
	mux.Handle("/", first)
	mux.Handle("/consoles/", http.StripPrefix("/consoles", h)) // whose path begins alike
	mux.Handle("/console/inner/", http.StripPrefix("/console/inner", h))
	mux.Handle("/b/", http.StripPrefix("/b", h))
	y := *x
	y.host = mux
	jar := must1(cookiejar.New(nil))
	at := func(path string) *url.URL { return must1(url.Parse("http://host.example" + path)) }
	b := y.browser().alone()
	b.send(http.MethodPost, "/console/login", url.Values{"name": {"root"}, "password": {password}})
	jar.SetCookies(at("/console/login"), b.res.Cookies())
	secret := b.cookies["xxljob_session"]
	faults.add(len(jar.Cookies(at("/console/jobs"))) == 0, "the console itself does not get its cookie")
	for _, path := range []string{"/consoles/jobs", "/b/jobs", "/", "/other"} {
		faults.add(len(jar.Cookies(at(path))) > 0, "%s gets the cookie of /console/", path)
	}
	for _, path := range []string{"/consoles/jobs", "/b/jobs", "/console/inner/jobs"} { // this one gets it, since it is below
		c := y.browser().alone()
		c.cookies["xxljob_session"] = secret
		c.send(http.MethodGet, path, nil)
		faults.add(c.res.StatusCode == http.StatusOK, "%s takes the session of /console/", path)
	}
	return faults
}

// cookieAttributes: cookies are for the mount and for nobody else, and go by TLS where that is
// used.
func cookieAttributes(x *site) (faults found) {
	x.admin()
	ask := func(h http.Handler, header http.Header, tls bool) []*http.Cookie {
		address := "http://host.example/console/login"
		if tls {
			address = "https://host.example/console/login"
		}
		r := httptest.NewRequest(http.MethodPost, address, strings.NewReader(url.Values{"name": {"root"}, "password": {password}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, values := range header {
			r.Header[name] = values
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result().Cookies()
	}
	clear, proxied, direct := ask(x.host, nil, false), ask(x.host, http.Header{"X-Forwarded-Proto": {"https"}}, false), ask(x.host, nil, true)
	always := ask(http.StripPrefix("/console", must1(console.NewAlike(console.Config{Store: x.store, Scheduler: x.s, Auth: console.Accounts(), SecureCookies: true, Logger: slog.New(slog.DiscardHandler)}))), nil, false)
	for what, list := range map[string][]*http.Cookie{"in clear": clear, "behind a proxy": proxied, "by TLS": direct, "that are always secure": always} {
		if len(list) != 1 {
			x.Fatalf("%s: %d cookies", what, len(list))
		}
		c := list[0]
		faults.add(!c.HttpOnly, "cookies %s are for scripts", what)
		faults.add(c.SameSite != http.SameSiteLaxMode, "cookies %s are for other sites", what)
		faults.add(c.Path != "" || c.Domain != "", "cookies %s are for %q of %q", what, c.Path, c.Domain)
		faults.add(c.Secure != (what != "in clear"), "cookies %s: secure is %v", what, c.Secure)
		faults.add(len(c.Value) < 43, "a secret of %d characters", len(c.Value))
		faults.add(c.MaxAge <= 0 || time.Duration(c.MaxAge)*time.Second > 7*24*time.Hour, "cookies %s are kept for %d s", what, c.MaxAge)
		for _, s := range must1(x.store.Sessions(x.Context(), "root", anHour)) {
			faults.add(strings.Contains(s.Hash, c.Value), "the store has the secret")
		}
	}
	return faults
}

// answersHeaders: each answer of each route to anybody says what pages may do.
func answersHeaders(x *site) (faults found) {
	root := x.admin()
	run := x.run(x.job("orders", "nightly"))
	ids := map[string]int64{"jobs": run.JobID, "runs": run.ID}
	root.get("login")
	part := x.browser().live()
	part.cookies = root.cookies
	for _, b := range []*browser{root.alone(), x.browser().alone(), part.alone()} {
		for _, rt := range console.Routes() {
			kind, _, _ := strings.Cut(rt.Pattern, "/")
			for _, path := range []string{pathOf(rt.Pattern, ids[kind]), pathOf(rt.Pattern, 4711), strings.TrimPrefix(rt.Pattern+"/x", "/")} {
				b.send(rt.Method, "/console/"+path, url.Values{})
				h := b.res.Header
				policy := strings.Split(h.Get("Content-Security-Policy"), "; ")
				for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
					faults.add(!slices.Contains(policy, want), "%s %s (%d): the policy is %q", rt.Method, path, b.res.StatusCode, policy)
				}
				for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store"} {
					faults.add(h.Get(name) != want, "%s %s (%d): %s is %q", rt.Method, path, b.res.StatusCode, name, h.Get(name))
				}
				faults.add(h.Get("Access-Control-Allow-Origin") != "", "%s %s is for other origins", rt.Method, path)
				faults.add(strings.Contains(h.Get("Content-Type"), "html") && !strings.Contains(h.Get("Vary"), "Cookie"), "%s %s: it varies by %q", rt.Method, path, h.Get("Vary"))
			}
			if rt.Pattern == "logout" {
				_, _ = x.store.AddSession(context.Background(), sessionOf("root"), anHour)
			}
		}
	}
	return faults
}

// tokenInAddress: addresses are logged, kept and sent on, and so no token in one counts.
func tokenInAddress(x *site) (faults found) {
	x.admin()
	token := strings.TrimPrefix(x.bearer("root", store.Grants{Admin: true}).header.Get("Authorization"), "Bearer ")
	b := x.browser().alone()
	for _, query := range []string{"token=", "access_token=", "Authorization=Bearer+", "xxljob_session="} {
		faults.add(b.get("jobs?"+query+token).res.StatusCode == http.StatusOK, "%s in an address counts", query)
	}
	for name, value := range map[string]string{"Authorization": "Basic " + token, "X-Token": token, "Cookie": "xxljob_session=" + token, "Xxl-Job-Access-Token": token} {
		b.header = http.Header{name: {value}}
		faults.add(b.get("jobs").res.StatusCode == http.StatusOK, "%s: %.8s counts", name, value)
	}
	b.header = http.Header{"Authorization": {"Bearer " + token}}
	if b.get("jobs"); b.res.StatusCode != http.StatusOK {
		x.Errorf("the token is of no use: status %d", b.res.StatusCode)
	}
	return faults
}

// typesOfFiles: what others have written is never taken for a page, and is no page's name.
func typesOfFiles(x *site) (faults found) {
	root := x.admin()
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		task.Log().Info(strings.Join(hostile, " "))
		return nil
	})
	for path, want := range map[string]string{"runs/" + itoa(run.ID) + "/log/file": "text/plain; charset=utf-8", "health": "text/plain; charset=utf-8"} {
		root.get(path)
		h := root.res.Header
		faults.add(h.Get("Content-Type") != want || h.Get("X-Content-Type-Options") != "nosniff", "%s is %q", path, h.Get("Content-Type"))
		faults.add(strings.HasSuffix(path, "file") && !strings.HasPrefix(h.Get("Content-Disposition"), `attachment; filename="run-`), "%s: %q", path, h.Get("Content-Disposition"))
	}
	return faults
}

// anHour is how long sessions of tests last.
var anHour = store.SessionLimits{Idle: time.Hour, Most: time.Hour}

// sessionOf is a session of a user who is logged in.
func sessionOf(user string) store.Session {
	return store.Session{User: user, Hash: console.HashOf(user + " is logged in")}
}
