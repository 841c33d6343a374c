package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// TestLoopback: only who is on this machine, and meant to ask it, is let in.
func TestLoopback(t *testing.T) {
	x := newSite(t, func(c *console.Config) { c.Auth = console.Loopback(console.Viewer) })
	for _, c := range []struct {
		from, host string
		header     http.Header
		status     int
	}{
		{"127.0.0.1:1234", "localhost:8080", nil, 200},
		{"127.1.2.3:1234", "127.0.0.1", nil, 200},
		{"[::1]:1234", "[::1]:8080", nil, 200},
		{"[::ffff:127.0.0.1]:1234", "LOCALHOST", nil, 200},
		{"192.0.2.1:1234", "localhost", nil, 401},
		{"", "localhost", nil, 401},
		{"@", "localhost", nil, 401},
		{"127.0.0.1:1234", "evil.example", nil, 401},
		{"127.0.0.1:1234", "localhost.evil.example", nil, 401},
		{"127.0.0.1:1234", "127.0.0.1.evil.example", nil, 401},
		{"127.0.0.1:1234", "", nil, 401},
		{"127.0.0.1:1234", "localhost", http.Header{"X-Forwarded-For": {"192.0.2.1"}}, 401},
		{"127.0.0.1:1234", "localhost", http.Header{"X-Forwarded-For": {"", "192.0.2.1"}}, 401}, // of the client, and of the proxy
		{"127.0.0.1:1234", "localhost", http.Header{"Forwarded": {""}}, 401},
		{"127.0.0.1:1234", "localhost", http.Header{"X-Forwarded-Proto": {"https"}}, 401},
		{"127.0.0.1:1234", "localhost", http.Header{"Via": {"1.1 proxy"}}, 401},
		{"127.0.0.1:1234", "localhost", http.Header{"X-Real-Ip": {"192.0.2.1"}}, 401},
	} {
		r := httptest.NewRequest(http.MethodGet, "/console/jobs", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		for name, values := range c.header {
			r.Header[name] = values
		}
		w := httptest.NewRecorder()
		x.host.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("from %q for %q with %v: status %d, want %d", c.from, c.host, c.header, w.Code, c.status)
		}
	}
}

// late is a store in which something happens before a session begins, before its users are
// listed, before a try to log in is counted, or before a hash is made anew, which may fail.
type late struct {
	st     Store
	before func()
	listed func(context.Context)
	rehash func() error
	try    func(name string)
}

func (l *late) TryLogin(ctx context.Context, name string) (time.Duration, error) {
	if l.try != nil {
		l.try(name)
	}
	return l.st.TryLogin(ctx, name)
}

func (l *late) RehashPassword(ctx context.Context, name, old, hash string) error {
	if l.rehash != nil {
		if err := l.rehash(); err != nil {
			return err
		}
	}
	return l.st.RehashPassword(ctx, name, old, hash)
}

func (l *late) AddSession(ctx context.Context, s store.Session, limits store.SessionLimits) (store.Session, error) {
	if l.before != nil {
		l.before()
	}
	return l.st.AddSession(ctx, s, limits)
}

func (l *late) Users(ctx context.Context, after string, limit int) ([]store.User, error) {
	if l.listed != nil {
		l.listed(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.st.Users(ctx, after, limit)
}

// TestAPasswordThatHasJustBeenChanged lets nobody in with the one before, though that was right
// when it was looked at.
func TestAPasswordThatHasJustBeenChanged(t *testing.T) {
	onBothStores(t, testAPasswordThatHasJustBeenChanged)
}

func testAPasswordThatHasJustBeenChanged(t *testing.T) {
	l := &late{}
	x := newSite(t, func(c *console.Config) { l.st = c.Store.(Store); c.Store = bent.WholeOf(l.st, l) })
	x.admin()
	ann := console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}}
	x.user(ann).get("jobs").is(200)
	change := func(f func(*store.User)) {
		u := must1(x.store.User(t.Context(), "ann"))
		f(&u)
		must1(x.store.UpdateUser(t.Context(), u))
	}
	for what, f := range map[string]func(*store.User){
		"another password": func(u *store.User) { u.Password += "x" },
		"disabled":         func(u *store.User) { u.Disabled = true },
	} {
		u := must1(x.store.User(t.Context(), "ann"))
		l.before = func() { change(f) }
		b := x.browser()
		b.post("login", url.Values{"name": {"ann"}, "password": {password}}).is(422)
		l.before = nil
		if b.follows = false; b.get("jobs").res.StatusCode != http.StatusSeeOther || len(b.cookies) > 0 {
			t.Errorf("%s: is let in", what)
		}
		if list := must1(x.store.Sessions(t.Context(), "ann", store.SessionLimits{Idle: time.Hour, Most: time.Hour})); len(list) > 0 {
			t.Errorf("%s: a session is left", what)
		}
		change(func(now *store.User) { now.Password, now.Disabled = u.Password, false })
	}
	x.browser().post("login", url.Values{"name": {"ann"}, "password": {password}}).is(200)
}

// TestASlowStoreHoldsNobodyForLong: who waits for others that ask whether there are users has no
// more time than they.
func TestASlowStoreHoldsNobodyForLong(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		l := &late{listed: func(ctx context.Context) { <-ctx.Done() }}
		x := newSite(t, func(c *console.Config) { l.st = c.Store.(Store); c.Store = bent.WholeOf(l.st, l) })
		begun := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				w := httptest.NewRecorder()
				x.host.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/login", nil))
				if w.Code != http.StatusServiceUnavailable {
					t.Errorf("status %d", w.Code)
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); took > 11*time.Second {
			t.Errorf("the last has waited for %v", took)
		}
	})
}

// TestFilesAskNobody: styles, scripts and the word of health need nobody to say who asks.
func TestFilesAskNobody(t *testing.T) {
	asked := 0
	x := newSite(t, func(c *console.Config) {
		c.Auth = console.Func(func(*http.Request) (console.User, error) {
			asked++
			return console.User{}, errors.New("the directory is away")
		}, "")
	})
	b := x.browser()
	b.get("health").is(200)
	b.get("jobs").is(503)
	at := strings.Index(b.body, "asset/")
	b.get(b.body[at : at+strings.Index(b.body[at:], `"`)]).is(200)
	if asked != 1 {
		t.Errorf("it was asked %d times who asks", asked)
	}
}

// TestATokenGoesBeforeACookie, however its scheme is written.
func TestATokenGoesBeforeACookie(t *testing.T) { onBothStores(t, testATokenGoesBeforeACookie) }

func testATokenGoesBeforeACookie(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	root.get("jobs/new").is(200)
	weak := x.bearer("root", store.Grants{Apps: map[string]string{"orders": "viewer"}})
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		root.header.Set("Authorization", strings.Replace(weak.header.Get("Authorization"), "Bearer", scheme, 1))
		root.get("jobs/new").is(403)
	}
}

// TestAWrongTokenIsNotUsed: the record of when a token was used last is not made by who guesses.
func TestAWrongTokenIsNotUsed(t *testing.T) { onBothStores(t, testAWrongTokenIsNotUsed) }

func testAWrongTokenIsNotUsed(t *testing.T) {
	x := newSite(t)
	x.admin()
	b := x.bearer("root", store.Grants{Admin: true})
	right := b.header.Get("Authorization")
	b.header.Set("Authorization", right+"x")
	b.get("jobs").is(401)
	if list := must1(x.store.Tokens(t.Context(), "root")); !list[0].Used.IsZero() {
		t.Error("it is said to have been used")
	}
	b.header.Set("Authorization", right)
	b.get("jobs").is(200)
}

// TestScriptsAreNotInTheRecord: the source of a script is not for all who see changes of an app.
func TestScriptsAreNotInTheRecord(t *testing.T) { onBothStores(t, testScriptsAreNotInTheRecord) }

func testScriptsAreNotInTheRecord(t *testing.T) {
	x := newSite(t)
	x.admin()
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	j := must1(x.s.AddJob(xxljob.WithActor(t.Context(), "root"), xxljob.Job{App: "orders", Name: "script", GlueType: "GLUE_SHELL", GlueSource: "export KEY=hunter2\n", Schedule: xxljob.Manual()}))
	j.GlueSource = "export KEY=hunter3\n"
	must1(x.s.UpdateJob(xxljob.WithActor(t.Context(), "root"), j))
	for _, page := range []string{"changes", "jobs/" + itoa(j.ID)} {
		ann.get(page).is(200).has("GlueSource", "19 bytes").lacks("hunter")
	}
}

// TestALoginForgivesNoOtherTry: who has an account does not try the names of others without a
// wait, by a login of its own now and then.
func TestALoginForgivesNoOtherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		b := x.browser()
		right := url.Values{"name": {"root"}, "password": {password}}
		tried := 0
		for i := range 60 {
			b.cookies = map[string]*http.Cookie{}
			if i%10 == 9 {
				b.post("login", right)
			} else if b.post("login", url.Values{"name": {"user" + itoa(int64(i))}, "password": {password}}); b.res.StatusCode == 422 {
				tried++
			}
		}
		if tried != 20 {
			t.Errorf("%d names were tried without a wait, want 20", tried)
		}
		time.Sleep(30 * time.Second)
		for range 5 { // others from there do not wait for those that succeed
			b.post("login", right).is(200)
		}
	})
}

// TestATryThatWasNotMade does not count for the address that it came from: who has to wait since
// others try the name from elsewhere has as many tries left.
func TestATryThatWasNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		attacker, b := x.browser(), x.browser()
		b.from = "198.51.100.7:1"
		wrong := func(n int) url.Values {
			return url.Values{"name": {"user" + itoa(int64(n))}, "password": {"wrong horse"}}
		}
		for i := range 20 * store.FreeTries { // of the name alone, from twenty networks
			attacker.from = "203.0.113." + itoa(int64(i%20)) + ":1"
			attacker.post("login", url.Values{"name": {"root"}, "password": {"wrong horse"}}).is(422)
		}
		for range 50 {
			b.post("login", rootLogin).is(429).has("Too many attempts. Try again in 1 second.")
		}
		for i := range 20 {
			b.post("login", wrong(i)).is(422)
		}
		b.post("login", wrong(20)).is(429)
		time.Sleep(time.Second)
		for i := range 20 { // each of the counters of the name
			attacker.from = "203.0.113." + itoa(int64(100+i)) + ":1"
			attacker.post("login", url.Values{"name": {"root"}, "password": {"wrong horse"}}).is(422)
		}
		b.post("login", rootLogin).is(429)
		b.post("login", wrong(21)).is(422)
		b.post("login", wrong(22)).is(429)
		time.Sleep(30 * time.Second)
		b.post("login", rootLogin).is(200)
		b.get("jobs").is(200)
	})
}

// TestTriesFromOneAddressAtOnce: one that comes to nothing takes back neither another's count nor
// the time from which the next has to wait.
func TestTriesFromOneAddressAtOnce(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := &late{try: func(name string) {
			if strings.HasPrefix(name, "slow\x00network") {
				<-release
			}
		}}
		x := newSite(t, func(c *console.Config) { l.st = c.Store.(Store); c.Store = bent.WholeOf(l.st, l) })
		x.admin()
		login := func(name string) *browser {
			return x.browser().post("login", url.Values{"name": {name}, "password": {"wrong horse"}})
		}
		names := 0
		try := func(status int) {
			t.Helper()
			names++
			login("user" + itoa(int64(names))).is(status)
		}
		for range 20 {
			try(422)
		}
		try(429)
		time.Sleep(time.Second)
		var slow sync.WaitGroup
		slow.Go(func() { login("slow").is(429) }) // the 21st, after which the next waits for 2 s
		synctest.Wait()
		try(429)
		time.Sleep(2 * time.Second)
		try(422) // and after the 22nd the next for 4 s
		for range store.FreeTries {
			must1(x.store.TryLogin(t.Context(), console.PairKey("slow", "192.0.2.1")))
		}
		close(release)
		slow.Wait()
		try(429) // it waits for 2 s: there were 21
		time.Sleep(2*time.Second - time.Millisecond)
		try(429)
		time.Sleep(time.Millisecond)
		try(422)
		try(429)
	})
}
