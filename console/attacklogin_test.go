package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// loginAttacks are about getting in, and about staying.
func loginAttacks() []attack {
	return []attack{
		{"a session that somebody has planted", fixation, map[string]func(*testing.T) *site{"a login that keeps the session of the browser": knowing(keptSession)}, 0},
		{"a cookie that is shown again after its end", replay, map[string]func(*testing.T) *site{"a store that ends no session": keeping(func(m Store) xxljob.Store { return bent.WholeOf(m, deathless{}) })}, 0},
		{"a name found out by how the login answers", guessedNames, map[string]func(*testing.T) *site{
			"no hash for a name that nobody has":  weak(console.WithoutHashesForNobody),
			"another answer for a disabled user":  behind(telling(http.StatusForbidden)),
			"another answer for an unknown name":  knowing(toldUnknown),
			"a password that is not even checked": knowing(longUnchecked),
		}, 0},
		{"many passwords for a name, all at the same time", func(x *site) found { return x.tries("root", func(int, *http.Request) {}, store.FreeTries) },
			map[string]func(*testing.T) *site{"a store that counts nothing": keeping(func(m Store) xxljob.Store { return bent.WholeOf(m, countless{}) })}, 0},
		{"many names from an address", func(x *site) found {
			return x.tries("", func(n int, r *http.Request) { r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n)) }, 20)
		}, map[string]func(*testing.T) *site{"a host that believes whoever says where it comes from": behind(rewritten(func(r *http.Request) {
			if from := r.Header.Get("X-Forwarded-For"); from != "" {
				r.RemoteAddr = from + ":1"
			}
		}))}, 0},
		{"many names from a network that somebody has all of", func(x *site) found {
			return x.tries("", func(n int, r *http.Request) { r.RemoteAddr = fmt.Sprintf("[2001:db8::%x]:%d", n+1, 1000+n) }, 20)
		}, map[string]func(*testing.T) *site{"each address by itself": behind(rewritten(func(r *http.Request) {
			_, rest, _ := strings.Cut(r.RemoteAddr, "::")
			if part, _, found := strings.Cut(rest, "]"); found {
				r.RemoteAddr = "[2001:db8:0:" + part + "::1]:1"
			}
		}))}, 0},
		{"very many passwords at once", hashFlood, map[string]func(*testing.T) *site{"room for all of them": weak(console.WithRoomForHashes)}, manyAtOnce},
	}
}

// fixation: who knows the cookie of a browser before somebody logs in there does not know that of
// the session.
func fixation(x *site) (faults found) {
	x.admin()
	eve := x.user(console.User{Name: "eve", Apps: map[string]console.Role{"orders": console.Viewer}})
	for what, planted := range map[string]string{"that is nobody's": "planted by eve", "of the attacker's own": "eve is logged in"} {
		victim := x.browser()
		victim.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: planted}
		victim.post("login", url.Values{"name": {"root"}, "password": {password}})
		c := victim.cookies["xxljob_session"]
		faults.add(c == nil || c.Value == planted, "a cookie %s is kept by a login", what)
		attacker := x.browser().alone()
		attacker.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: planted}
		faults.add(attacker.get("jobs").res.StatusCode == http.StatusOK, "a cookie %s is good after a login of somebody else's", what)
	}
	faults.add(eve.alone().get("jobs").res.StatusCode == http.StatusOK, "the session that the browser had before goes on")
	return faults
}

// keptSession is a login that has the browser keep the secret that it came with.
func keptSession(x *site, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		had, err := r.Cookie("xxljob_session")
		if err == nil && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/login") {
			_, _ = x.store.AddSession(r.Context(), store.Session{User: "root", Hash: console.HashOf(had.Value)}, anHour)
			http.SetCookie(w, had)
			w.Header().Set("Location", "./")
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// replay: a secret is of no use after a logout, another password, and the end of its user.
func replay(x *site) (faults found) {
	x.admin()
	change := func(f func(*store.User)) {
		u := must1(x.store.User(x.Context(), "ann"))
		f(&u)
		must1(x.store.UpdateUser(x.Context(), u))
	}
	x.user(console.User{Name: "ann"})
	for what, end := range map[string]func(*browser){
		"a logout":         func(b *browser) { b.post("logout", nil) },
		"another login":    func(b *browser) { b.post("login", url.Values{"name": {"ann"}, "password": {password}}) },
		"another password": func(*browser) { change(func(u *store.User) { u.Password += " " }) },
		"a user's end":     func(*browser) { change(func(u *store.User) { u.Disabled = true }) },
	} {
		change(func(u *store.User) { u.Password, u.Disabled = hashed(), false })
		b := x.browser().alone()
		b.post("login", url.Values{"name": {"ann"}, "password": {password}})
		kept := b.cookies["xxljob_session"]
		if kept == nil || b.get("jobs").res.StatusCode != http.StatusOK {
			x.Fatalf("ann is not logged in: %s", b.text())
		}
		end(b)
		again := x.browser().alone()
		again.cookies["xxljob_session"] = kept
		again.get("jobs")
		faults.add(again.res.StatusCode == http.StatusOK, "a cookie is good after %s", what)
	}
	return faults
}

// deathless is a store that ends no session when it is told to.
type deathless struct{}

func (deathless) EndSession(context.Context, string, int64) error { return nil }

// guessedNames: whether there is a user is told neither by the answer to a wrong password nor by
// what it has cost.
func guessedNames(x *site) (faults found) {
	x.admin()
	x.user(console.User{Name: "off"})
	u := must1(x.store.User(x.Context(), "off"))
	u.Disabled = true
	must1(x.store.UpdateUser(x.Context(), u))
	x.user(console.User{Name: "passless"})
	u = must1(x.store.User(x.Context(), "passless"))
	u.Password = ""
	must1(x.store.UpdateUser(x.Context(), u))
	var cost []string
	console.WithHashes(x.console, func(passes, memory uint32) { cost = append(cost, fmt.Sprintf("%d passes of %d KiB", passes, memory)) })
	answers := map[string]string{}
	for what, form := range map[string][2]string{"a wrong password": {"root", "wrong horse"}, "a name that nobody has": {"nobody", "wrong horse"}, "no name": {"", "wrong horse"}, "a name that is too long": {strings.Repeat("n", 65), "wrong horse"},
		"a disabled user": {"off", "wrong horse"}, "a user without a password": {"passless", ""}, "a password that is too long": {"root", strings.Repeat("x", 129)}, "a name with a zero": {"ro ot", "wrong horse"}} {
		cost = nil
		b := x.browser().alone()
		b.post("login", url.Values{"name": {form[0]}, "password": {form[1]}})
		faults.add(b.res.StatusCode != http.StatusUnprocessableEntity, "%s: status %d", what, b.res.StatusCode)
		answers[what] = fmt.Sprintf("%d: %s (%s)", b.res.StatusCode, strings.ReplaceAll(withoutRequest(b.text()), form[0], ""), strings.Join(cost, ", "))
		faults.add(len(b.res.Cookies()) > 0, "%s: a cookie is set", what)
	}
	for what, got := range answers {
		if want := answers["a wrong password"]; got != want {
			faults.add(true, "%s is answered %q, and a wrong password %q", what, got, want)
		}
	}
	return faults
}

// telling answers a login of the user who is disabled with a status of its own.
func telling(status int) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return asLogin(h, func(w http.ResponseWriter, _ *http.Request, name string) bool {
			if name == "off" {
				w.WriteHeader(status)
			}
			return name == "off"
		})
	}
}

// toldUnknown says more of names that nobody has.
func toldUnknown(x *site, h http.Handler) http.Handler {
	return asLogin(h, func(w http.ResponseWriter, r *http.Request, name string) bool {
		if _, err := x.store.User(r.Context(), name); err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte("There is no such user."))
			return true
		}
		return false
	})
}

// longUnchecked refuses what is too long before anything else.
func longUnchecked(_ *site, h http.Handler) http.Handler {
	return asLogin(h, func(w http.ResponseWriter, r *http.Request, _ string) bool {
		if len(r.PostFormValue("password")) > 128 {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return true
		}
		return false
	})
}

// asLogin has a login answered by something else, where that likes.
func asLogin(h http.Handler, answer func(http.ResponseWriter, *http.Request, string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/login") {
			if _ = r.ParseForm(); answer(w, r, r.PostForm.Get("name")) {
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// countless is a store that counts no tries.
type countless struct{}

func (countless) TryLogin(context.Context, string) (time.Duration, error) { return 0, nil }

// tries sends wrong passwords, for one name or for a name after the other, and says whether more
// are let through than may be.
func (x *site) tries(name string, dress func(int, *http.Request), most int) (faults found) {
	x.admin()
	console.WithHashes(x.console, func(uint32, uint32) {})
	let := 0
	for n := range 60 {
		as := name
		if as == "" {
			as = "user" + itoa(int64(n))
		}
		r := httptest.NewRequest(http.MethodPost, "http://host.example/console/login", strings.NewReader(url.Values{"name": {as}, "password": {"guess " + itoa(int64(n))}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		dress(n, r)
		w := httptest.NewRecorder()
		x.host.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusUnprocessableEntity:
			let++
		case http.StatusTooManyRequests:
			faults.add(w.Header().Get("Retry-After") == "", "it is not said when to try again")
		default:
			faults.add(true, "try %d: status %d", n, w.Code)
		}
	}
	faults.add(let != most, "%d tries were let through, want %d", let, most)
	return faults
}

// hashFlood: no more than two passwords are checked at once, each of which takes 7 MiB, and of
// strangers one; those who wait in vain are told to come again, and who has logged in before does not
// wait for strangers.
func hashFlood(x *site) (faults found) {
	x.admin()
	known := x.browser()
	known.from = "198.51.100.7:1"
	known.post("login", url.Values{"name": {"root"}, "password": {password}})
	known.post("logout", nil)
	var mu sync.Mutex
	busy, most, free := 0, 0, make(chan struct{})
	console.WithHashes(x.console, func(uint32, uint32) {
		mu.Lock()
		busy++
		most = max(most, busy)
		mu.Unlock()
		<-free
		mu.Lock()
		busy--
		mu.Unlock()
	})
	var all sync.WaitGroup
	codes := make(chan int, 14)
	for n := range 14 {
		all.Go(func() {
			form := url.Values{"name": {"user" + itoa(int64(n))}, "password": {"guess"}}
			from := fmt.Sprintf("203.0.113.%d:1", n)
			if n >= 12 { // from where somebody has logged in, and with a cookie of that
				time.Sleep(time.Second)
				from = []string{known.from, "203.0.113.99:1"}[n-12]
				form.Set("name", []string{"somebody", "root"}[n-12])
			}
			r := httptest.NewRequest(http.MethodPost, "http://host.example/console/login", strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.RemoteAddr = from
			if n == 13 {
				r.AddCookie(known.cookies["xxljob_session"])
			}
			w := httptest.NewRecorder()
			x.host.ServeHTTP(w, r)
			if w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
				w.Code = 0
			}
			codes <- w.Code
		})
	}
	time.Sleep(9500 * time.Millisecond) // the eight seconds that somebody waits who comes a second later, too
	close(free)
	all.Wait()
	close(codes)
	var list []int
	for code := range codes {
		list = append(list, code)
	}
	slices.Sort(list)
	faults.add(most != 2, "%d passwords were checked at once, want 2", most)
	faults.add(fmt.Sprint(list) != "[422 422 503 503 503 503 503 503 503 503 503 503 503 503]", "they were answered %v", list)
	return faults
}
