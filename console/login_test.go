package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
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

func setupForm(code, name, pass string) url.Values {
	return url.Values{"code": {code}, "name": {name}, "title": {""}, "password": {pass}, "again": {pass}}
}

// TestFirstUser: nobody gets in without the code of the log, which is of use once.
func TestFirstUser(t *testing.T) { onBothStores(t, testFirstUser) }

func testFirstUser(t *testing.T) {
	x := newSite(t)
	b := x.browser()
	b.get("jobs").is(200)
	if b.at != "/console/setup" {
		t.Fatalf("at %s", b.at)
	}
	b.post("setup", setupForm("WRONG", "root", password)).is(422).has("This code is not valid")
	b.post("setup", setupForm(x.code(), "root", "short")).is(422).has("At least 10 characters")
	b.post("setup", setupForm(x.code(), "Ro ot", password)).is(422).has("characters that are not allowed")
	other := x.browser()
	b.post("setup", setupForm(strings.ToLower(x.code()), " Root", password)).is(200)
	if b.at != "/console/overview" {
		t.Fatalf("at %s after the setup", b.at)
	}
	b.has("root")
	other.post("setup", setupForm(x.code(), "eve", password)).is(404)
	other.get("setup").is(404)
	other.get("jobs").is(200).has("Log in")
	if u, err := x.store.User(context.Background(), "root"); err != nil || !u.Admin {
		t.Errorf("%+v, %v", u, err)
	}
	if n := strings.Count(x.log.String(), "code="); n != 1 {
		t.Errorf("the code is in the log %d times", n)
	}
}

func TestLogin(t *testing.T) { onBothStores(t, testLogin) }

func testLogin(t *testing.T) {
	x := newSite(t)
	x.admin()
	j := x.job("orders", "nightly")
	b := x.browser()
	page := "/console/jobs/" + itoa(j.ID) + "?said=started"
	b.send("GET", page, nil).is(200).has("Log in")
	login := b.at
	b.post("login", url.Values{"name": {"root"}, "password": {"wrong horse"}, "next": {"jobs"}}).is(422).has("Wrong name or password.")
	b.post("login", url.Values{"name": {"nobody"}, "password": {password}}).is(422).has("Wrong name or password.")
	next := must1(url.Parse(login)).Query().Get("next")
	b.post("login", url.Values{"name": {" ROOT "}, "password": {password}, "next": {next}}).is(200)
	if b.at != page {
		t.Errorf("at %s after the login, want %s", b.at, page)
	}
	c := b.cookies["xxljob_session"]
	if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "" || c.Secure {
		t.Errorf("cookie %+v", c)
	}
	old := b.cookies["xxljob_session"]
	b.post("logout", nil).is(200).has("Log in")
	b.cookies["xxljob_session"] = old // as somebody who has kept it
	b.get("jobs").has("Log in").lacks("nightly")
	want := []string{"root logout", "root login", "nobody login-failed", "root login-failed"}
	found, err := x.store.SearchChanges(context.Background(), xxljob.ChangeSearch{Object: store.ObjectLogin})
	must(t, err)
	var got []string
	for _, c := range found.Changes {
		got = append(got, c.ObjectID+" "+c.Verb)
		if c.Client == "" || c.RequestID == "" {
			t.Errorf("entry %+v", c)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("entries %q, want %q", got, want)
	}
}

// TestAfterTheLogin: one is sent to a page of the console and to nothing else.
func TestAfterTheLogin(t *testing.T) { onBothStores(t, testAfterTheLogin) }

func testAfterTheLogin(t *testing.T) {
	x := newSite(t)
	x.admin()
	for _, next := range []string{"//evil.example", "https://evil.example/", "/etc", "../../evil", `\\evil.example`, "javascript:alert(1)", "jobs/../../x", "x:y", " //evil.example", "\t//evil.example"} {
		b := x.browser()
		b.follows = false
		b.post("login", url.Values{"name": {"root"}, "password": {password}, "next": {next}}).is(303)
		if to := must1(url.Parse("http://host.example/console/login")); true {
			to, err := to.Parse(b.res.Header.Get("Location"))
			if err != nil || to.Host != "host.example" || !strings.HasPrefix(to.Path, "/console/") {
				t.Errorf("next %q leads to %v, %v", next, to, err)
			}
		}
	}
}

// TestBrowserWithoutCookies is told why it is not logged in.
func TestBrowserWithoutCookies(t *testing.T) { inMemory(t, testBrowserWithoutCookies) }

func testBrowserWithoutCookies(t *testing.T) {
	x := newSite(t)
	x.admin()
	b := x.browser()
	b.follows = false
	b.post("login", url.Values{"name": {"root"}, "password": {password}, "next": {"runs"}}).is(303)
	to := must1(must1(url.Parse("http://host.example/console/login")).Parse(b.res.Header.Get("Location")))
	clear(b.cookies)
	b.send("GET", to.RequestURI(), nil).is(200).has("Your browser does not keep cookies")
	b.get("login").lacks("keeps no cookies")
}

// TestTriesWait: by name, whoever tries, and by address, whatever is tried; nobody is locked out.
func TestTriesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		b := x.browser()
		wrong := url.Values{"name": {"root"}, "password": {"wrong horse"}}
		for range store.FreeTries {
			b.post("login", wrong).is(422)
		}
		b.post("login", wrong).is(429).has("Too many attempts. Try again in 1 second.")
		b.post("login", url.Values{"name": {"root"}, "password": {password}}).is(429)
		time.Sleep(1100 * time.Millisecond)
		b.post("login", wrong).is(422)
		b.post("login", wrong).is(429)
		time.Sleep(30 * time.Second)
		b.post("login", url.Values{"name": {"root"}, "password": {password}}).is(200)
		b.get("jobs").has("Jobs")
		time.Sleep(time.Hour) // all of it is forgotten
		out := x.browser()
		n := 0
		for ; n < 100; n++ {
			out.post("login", url.Values{"name": {"user" + itoa(int64(n))}, "password": {password}})
			if out.res.StatusCode == 429 {
				break
			}
		}
		if n != 20 {
			t.Errorf("%d names were tried from one address, want 20", n)
		}
	})
}

// TestSessionsEnd: unused, after a week, with the password, and with the user.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		in := func(b *browser) bool { b.get("jobs"); return b.at == "/console/jobs" }
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		time.Sleep(11 * time.Hour)
		if !in(ann) {
			t.Error("ended after 11 h")
		}
		time.Sleep(12*time.Hour + time.Second)
		if in(ann) {
			t.Error("goes on unused")
		}
		ann.post("login", url.Values{"name": {"ann"}, "password": {password}})
		for h := range 7 * 24 {
			if time.Sleep(time.Hour); !in(ann) && h != 7*24-1 {
				t.Fatalf("ended after %d h of use", h)
			}
		}
		time.Sleep(time.Second)
		if in(ann) {
			t.Error("goes on after a week")
		}
		ann.post("login", url.Values{"name": {"ann"}, "password": {password}})
		u := must1(x.store.User(t.Context(), "ann"))
		u.Disabled = true
		u = must1(x.store.UpdateUser(t.Context(), u))
		if in(ann) {
			t.Error("goes on without its user")
		}
		ann.post("login", url.Values{"name": {"ann"}, "password": {password}}).is(422)
	})
}

func TestPasswordsThatAreWeak(t *testing.T) {
	x := newSite(t)
	x.browser().get("jobs")
	for pass, says := range map[string]string{
		"123456789":              "At least 10",
		"1234567890":             "pattern",
		"0987654321":             "pattern",
		"aaaaaaaaaaaa":           "pattern",
		"abcabcabcabc":           "pattern",
		"abcdefghijkl":           "pattern",
		"administrator":          "similar to the name",
		strings.Repeat("äx", 65): "At most 128",
	} {
		x.browser().post("setup", setupForm(x.code(), "administrator", pass)).is(422).has(says)
	}
	x.browser().post("setup", setupForm(x.code(), "administrator", "密码密码正确的马电池订书")).is(200).has("Jobs")
}

// TestHashesAreMadeAnew: a hash that costs less than those of today is replaced at a login.
func TestHashesAreMadeAnew(t *testing.T) { onBothStores(t, testHashesAreMadeAnew) }

func testHashesAreMadeAnew(t *testing.T) {
	x := newSite(t)
	other := x.admin()
	u := must1(x.store.User(t.Context(), "root"))
	kept := u.Password
	if !strings.HasPrefix(kept, today) {
		t.Fatalf("kept is %s", kept)
	}
	must(t, x.store.RehashPassword(t.Context(), "root", kept, cheapHash))
	b := x.browser()
	b.post("login", rootLogin).is(200)
	now := must1(x.store.User(t.Context(), "root"))
	if !strings.HasPrefix(now.Password, today) || now.Password == kept {
		t.Errorf("kept is %s", now.Password)
	}
	u.Password = now.Password
	if !reflect.DeepEqual(now, u) {
		t.Errorf("the user is %+v, want %+v", now, u)
	}
	b.isIn("who has logged in")
	other.isIn("a session from before")
	// So is one with more memory and fewer passes.
	must(t, x.store.RehashPassword(t.Context(), "root", now.Password, hashOf(19456, 2)))
	b.post("login", rootLogin).is(200)
	if kept := must1(x.store.User(t.Context(), "root")).Password; !strings.HasPrefix(kept, today) {
		t.Errorf("kept is %s", kept)
	}
	found := must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{Object: store.ObjectUser, ObjectID: "root"}))
	if len(found.Changes) != 1 || found.Changes[0].Verb != "add" {
		t.Errorf("entries about the user: %+v", found.Changes)
	}
	for _, bad := range []string{"", "x", "$argon2id$", "$argon2id$v=19$m=9999999999,t=1,p=1$c29t$c29t", "$argon2id$v=19$m=64,t=1,p=0$c29t$c29t", "$2y$10$abc"} {
		u.Password = bad
		u = must1(x.store.UpdateUser(t.Context(), u))
		must(t, x.store.PassLogin(t.Context(), console.PairKey("root", "192.0.2.1")))
		x.browser().post("login", url.Values{"name": {"root"}, "password": {password}}).is(422)
	}
}

const today = "$argon2id$v=19$m=7168,t=5,p=1$" // what hashes of today begin with

var (
	cheapHash = hashOf(64, 1) // one that costs less
	rootLogin = url.Values{"name": {"root"}, "password": {password}}
)

// isIn checks that somebody is logged in.
func (b *browser) isIn(who string) {
	b.Helper()
	if b.get("jobs"); b.at != "/console/jobs" {
		b.Errorf("%s is at %s", who, b.at)
	}
}

// TestLoginsThatMakeOneHashAnew: each of several at once is let in, though another has replaced
// the hash that it has checked.
func TestLoginsThatMakeOneHashAnew(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		const logins = 3
		var ready, done sync.WaitGroup
		ready.Add(logins)
		l := &late{rehash: func() error { ready.Done(); ready.Wait(); return nil }}
		x := newSite(t, func(c *console.Config) { l.st = c.Store.(Store); c.Store = bent.WholeOf(l.st, l) })
		x.admin()
		must(t, x.store.RehashPassword(t.Context(), "root", hashed(), cheapHash))
		var browsers []*browser
		for range logins {
			b := x.browser()
			browsers = append(browsers, b)
			done.Go(func() { b.post("login", rootLogin).is(200) })
		}
		done.Wait()
		for i, b := range browsers {
			b.isIn("login " + itoa(int64(i)))
		}
		if u := must1(x.store.User(t.Context(), "root")); !strings.HasPrefix(u.Password, today) {
			t.Errorf("kept is %s", u.Password)
		}
		if strings.Contains(x.log.String(), "anew") {
			t.Errorf("the log has %s", x.log)
		}
	})
}

// TestAHashThatIsNotMadeAnew keeps nobody out, be it that the store fails, and that another login
// makes it anew a moment later; and one that is made anew undoes no change of the password.
func TestAHashThatIsNotMadeAnew(t *testing.T) { onBothStores(t, testAHashThatIsNotMadeAnew) }

func testAHashThatIsNotMadeAnew(t *testing.T) {
	l := &late{}
	x := newSite(t, func(c *console.Config) { l.st = c.Store.(Store); c.Store = bent.WholeOf(l.st, l) })
	x.admin()
	cheap := func() {
		must(t, x.store.RehashPassword(t.Context(), "root", must1(x.store.User(t.Context(), "root")).Password, cheapHash))
	}
	cheap()
	l.rehash = func() error { return errors.New("the cable is out") }
	b := x.browser()
	b.post("login", rootLogin).is(200)
	b.isIn("who was there when the store failed")
	if !strings.Contains(x.log.String(), "the cable is out") {
		t.Errorf("the log has %s", x.log)
	}
	l.before = func() { must(t, x.store.RehashPassword(t.Context(), "root", cheapHash, hashed())) }
	b = x.browser()
	b.post("login", rootLogin).is(200)
	b.isIn("who was there when another made the hash anew")
	cheap()
	l.before = nil
	changed := console.Hashed("another horse")
	l.rehash = func() error {
		u := must1(x.store.User(t.Context(), "root"))
		u.Password = changed
		must1(x.store.UpdateUser(t.Context(), u))
		return nil
	}
	b = x.browser()
	b.post("login", rootLogin).is(422).has("Wrong name or password.")
	if u := must1(x.store.User(t.Context(), "root")); u.Password != changed {
		t.Errorf("kept is %s", u.Password)
	}
	if list := must1(x.store.Sessions(t.Context(), "root", store.SessionLimits{Idle: time.Hour, Most: time.Hour})); len(list) > 0 {
		t.Errorf("%d sessions are left", len(list))
	}
}
