package console_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// TestNobodyIsKeptOut: tries from elsewhere keep no user out of their account, from however many
// addresses they come where the browser has been logged in before, and there are bounds for guesses
// all the same.
func TestNobodyIsKeptOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		eve := x.user(console.User{Name: "eve"})
		wrong := url.Values{"name": {"root"}, "password": {"wrong horse"}}
		guess := func(from string, cookies map[string]*http.Cookie) int {
			b := x.browser()
			b.from = from + ":1"
			for name, c := range cookies {
				b.cookies[name] = c
			}
			b.post("login", wrong)
			return b.res.StatusCode
		}
		home := x.browser()
		home.from = "198.51.100.7:1"
		home.post("login", rootLogin).is(200)
		home.post("logout", nil).is(200)
		if c := home.cookies["xxljob_session"]; c == nil || !strings.Contains(c.Value, "~") {
			t.Fatalf("after a logout the cookie is %v", c)
		}
		// One address, all the time.
		let := 0
		for i := range 290 {
			if guess("203.0.113.9", nil) == 422 {
				let++
			}
			if i%10 == 0 {
				stranger := x.browser() // no cookie, and another address each time
				stranger.from = fmt.Sprintf("192.0.2.%d:1", 100+i/10)
				stranger.post("login", rootLogin).is(200)
			}
			time.Sleep(time.Second)
		}
		if let > 20 {
			t.Errorf("%d guesses from one address were let through in five minutes", let)
		}
		// Very many addresses: the name has its bound, and the browser that was logged in gets in.
		time.Sleep(2 * time.Hour)
		let = 0
		for i := range 300 {
			if guess(fmt.Sprintf("10.0.%d.%d", i/200, i%200), nil) == 422 {
				let++
			}
		}
		if let != 20*store.FreeTries {
			t.Errorf("%d guesses from 300 addresses were let through, want %d", let, 20*store.FreeTries)
		}
		home.post("login", rootLogin).is(200)
		home.isIn("who was logged in before")
		// That cookie, in whose hands ever, has a bound of its own, and is of no use for other names.
		home.post("logout", nil)
		let = 0
		for range 50 {
			if guess("203.0.113.77", home.cookies) == 422 {
				let++
			}
		}
		if let != store.FreeTries {
			t.Errorf("%d guesses with a cookie, want %d", let, store.FreeTries)
		}
		mine := x.browser()
		mine.from = "203.0.113.78:1"
		mine.post("login", url.Values{"name": {"eve"}, "password": {password}}).is(200)
		for _, cookie := range []string{eve.cookies["xxljob_session"].Value, mine.cookies["xxljob_session"].Value, strings.Repeat("x", 43) + "~", "~" + strings.Repeat("x", 43), home.cookies["xxljob_session"].Value + "x"} {
			if code := guess("203.0.113.79", map[string]*http.Cookie{"xxljob_session": {Name: "xxljob_session", Value: cookie}}); code != 429 {
				t.Errorf("a cookie %q goes by a counter of its own: %d", cookie, code)
			}
		}
		// Another password makes it worthless.
		u := must1(x.store.User(t.Context(), "root"))
		u.Password = console.HashedBy(x.console, "another horse of mine")
		must1(x.store.UpdateUser(t.Context(), u))
		if code := guess("203.0.113.80", home.cookies); code != 429 {
			t.Errorf("a cookie of a former password: %d", code)
		}
	})
}

// TestCookiesOfAWholeHost: where the console has the host, and TLS, its cookies are ones that nobody
// else can set; a session from before goes on.
func TestCookiesOfAWholeHost(t *testing.T) {
	x := newSite(t)
	x.admin()
	h := must1(console.NewAlike(console.Config{Store: x.store, Scheduler: x.s, Auth: console.Accounts()}))
	console.RememberHashes(h)
	proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // rewrites /ops/ to /
		r.URL.Path = "/" + strings.TrimPrefix(r.URL.Path, "/ops/")
		r.RequestURI = r.URL.RequestURI()
		h.ServeHTTP(w, r)
	})
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", h))
	ask := func(h http.Handler, method, path string, isTLS bool, cookies ...*http.Cookie) *http.Response {
		r := httptest.NewRequest(method, path, strings.NewReader(rootLogin.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Referer", "https://host.example"+path)
		if isTLS {
			r.TLS = &tls.ConnectionState{}
		}
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	const name = "__Host-xxljob_session"
	for what, tt := range map[string]struct {
		h    http.Handler
		path string
		tls  bool
		want string
	}{
		"the whole host":           {h, "/login", true, name},
		"in clear":                 {h, "/login", false, "xxljob_session"},
		"below a path":             {mux, "/console/login", true, "xxljob_session"},
		"behind one that rewrites": {proxy, "/ops/login", true, "xxljob_session"},
	} {
		res := ask(tt.h, http.MethodPost, tt.path, tt.tls)
		list := res.Cookies()
		if res.StatusCode != http.StatusSeeOther || len(list) != 1 || list[0].Name != tt.want {
			t.Errorf("%s: %d, %v", what, res.StatusCode, list)
			continue
		}
		c := list[0]
		if whole := tt.want == name; c.Domain != "" || (c.Path == "/") != whole || whole && !c.Secure || !c.HttpOnly {
			t.Errorf("%s: %v", what, c)
		}
		jobs := strings.TrimSuffix(tt.path, "login") + "jobs"
		if res := ask(tt.h, http.MethodGet, jobs, tt.tls, c); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d with its cookie", what, res.StatusCode)
		}
	}
	old := &http.Cookie{Name: "xxljob_session", Value: "root is logged in"} // as x.admin has it
	if res := ask(h, http.MethodGet, "/jobs", true, old); res.StatusCode != http.StatusOK {
		t.Errorf("%d with a session from before", res.StatusCode)
	}
	if res := ask(h, http.MethodGet, "/jobs", true, &http.Cookie{Name: name, Value: "of another console"}, old); res.StatusCode != http.StatusOK {
		t.Errorf("%d beside a cookie of another console", res.StatusCode)
	}
	if list := ask(h, http.MethodPost, "/login", true, old).Cookies(); len(list) != 2 || list[0].Name != "xxljob_session" || list[0].MaxAge >= 0 || list[1].Name != name {
		t.Errorf("a login with a session from before: %v", list)
	}
}

// TestLoginsAtOnce: of sixty users who log in at once from sixty addresses, from which they have
// logged in before, or with the cookie of that, all come in, while passwords are tried from sixty
// others, on a machine on which a hash takes twice as long as elsewhere.
func TestLoginsAtOnce(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		const users = 60
		browsers := make([]*browser, users)
		login := func(b *browser, name string) int {
			b.follows = false
			b.post("login", url.Values{"name": {name}, "password": {password}})
			return b.res.StatusCode
		}
		for i := range browsers {
			x.user(console.User{Name: fmt.Sprint("user", i)})
			b := x.browser()
			b.from = fmt.Sprintf("198.51.100.%d:1", i)
			login(b, fmt.Sprint("user", i))
			b.post("logout", nil)
			if i%2 == 0 {
				b.from = fmt.Sprintf("203.0.113.%d:1", i) // somewhere else, and the cookie
			} else {
				b.cookies = map[string]*http.Cookie{}
			}
			browsers[i] = b
		}
		console.WithHashesThatTake(x.console, 100*time.Millisecond)
		var all sync.WaitGroup
		codes := make([]int, 2*users)
		for i := range users {
			all.Go(func() {
				b := x.browser()
				b.from = fmt.Sprintf("192.0.2.%d:1", i)
				codes[users+i] = login(b, fmt.Sprint("nobody", i))
			})
		}
		synctest.Wait() // they are first
		for i, b := range browsers {
			all.Go(func() { codes[i] = login(b, fmt.Sprint("user", i)) })
		}
		all.Wait()
		in, judged := 0, 0
		for i, code := range codes {
			switch {
			case i < users && code == http.StatusSeeOther:
				in++
			case i >= users && code == http.StatusUnprocessableEntity:
				judged++
			}
		}
		if in != users || judged < users/2 {
			t.Errorf("%d of %d came in, and %d of as many strangers were answered: %v", in, users, judged, codes)
		}
	})
}

// TestTokensTriedOut: tokens that are nobody's are counted where those of executors are, said once a
// minute and address, and answered at most ten times a second and address; a good one is not slowed.
func TestTokensTriedOut(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		const secret = "a secret of a program"
		token := must1(x.store.AddToken(t.Context(), store.Token{User: "root", Name: "ci", Hash: console.HashOf(secret), Expires: time.Now().Add(time.Hour), Grants: store.Grants{Admin: true}}))
		ask := func(from, shown string) (status int) {
			defer func() {
				if v := recover(); v != nil && v != http.ErrAbortHandler {
					panic(v)
				}
			}()
			b := x.browser()
			b.from = from
			b.header.Set("Authorization", "Bearer "+shown)
			b.get("jobs")
			return b.res.StatusCode
		}
		began := time.Now()
		var mu sync.Mutex
		answered := map[time.Duration]int{} // by second
		var guesses sync.WaitGroup
		for i := range 100 {
			guesses.Go(func() {
				shown := []string{fmt.Sprintf("xj_%d_guess%d", token.ID, i), fmt.Sprint("guess", i), ""}[i%3]
				if ask(fmt.Sprintf("192.0.2.1:%d", 1000+i), shown) == http.StatusUnauthorized {
					mu.Lock()
					answered[time.Since(began)/time.Second]++
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		if code := ask("192.0.2.1:1", fmt.Sprintf("xj_%d_%s", token.ID, secret)); code != http.StatusOK || time.Since(began) != 0 {
			t.Errorf("a good token: %d after %v", code, time.Since(began))
		}
		if code := ask("192.0.2.2:1", "wrong"); code != http.StatusUnauthorized || time.Since(began) != 0 {
			t.Errorf("elsewhere: %d after %v", code, time.Since(began))
		}
		guesses.Wait()
		if len(answered) != 2 || answered[0] != 10 || answered[1] != 10 {
			t.Errorf("answers by second: %v", answered)
		}
		if n := x.s.Stats().TokensRefused; n != 101 {
			t.Errorf("%d are counted", n)
		}
		if n := strings.Count(x.log.String(), "a token was refused"); n != 2 || strings.Contains(x.log.String(), "guess") {
			t.Errorf("%d lines: %s", n, x.log)
		}
	})
}
