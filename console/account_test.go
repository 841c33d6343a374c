package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// newPassword is what somebody sends who changes the password of all users here.
var newPassword = url.Values{"old": {password}, "password": {"battery staple"}, "again": {"battery staple"}}

// sessionsOf are the sessions of a user.
func (x *site) sessionsOf(name string) []store.Session {
	x.Helper()
	return must1(x.store.Sessions(x.Context(), name, anHour))
}

// TestOwnPassword: who knows the password changes it, stays logged in here and nowhere else, and logs in with
// the new one from then on.
func TestOwnPassword(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		ann := x.user(console.User{Name: "ann", Title: "Ann", Apps: map[string]console.Role{"orders": console.Operator, "*": console.Viewer}})
		other := x.session("ann", "on another machine")
		was := ann.cookies["xxljob_session"].Value
		ann.get("account").is(200).has("Your account", "Password", "orders", "Operator", "All other apps", "Viewer", "This one", "End it")
		for field, c := range map[string]struct{ value, says string }{
			"old": {"wrong horse", "This is not your password"}, "password": {"short", "At least 10 characters"}, "again": {"another one", "do not match"},
		} {
			form := url.Values{}
			for name := range newPassword {
				form.Set(name, newPassword.Get(name))
			}
			form.Set(field, c.value)
			ann.post("password", form).is(422).has(c.says).lacks("wrong horse", "battery staple")
		}
		ann.post("password", url.Values{"old": {password}, "password": {password}, "again": {password}}).is(422).has("the one you have now")
		other.get("jobs").is(200)
		ann.post("password", newPassword).is(200).has("Your password has been changed")
		if ann.at != "/console/account?said=password" || ann.cookies["xxljob_session"].Value == was {
			t.Errorf("at %s, with the cookie of before: %v", ann.at, ann.cookies["xxljob_session"].Value == was)
		}
		if other.get("jobs"); !strings.Contains(other.at, "login") {
			t.Errorf("another session goes on at %s", other.at)
		}
		if list := x.sessionsOf("ann"); len(list) != 1 {
			t.Errorf("%d sessions", len(list))
		}
		x.browser().post("login", url.Values{"name": {"ann"}, "password": {password}}).is(422)
		x.browser().post("login", url.Values{"name": {"ann"}, "password": {"battery staple"}}).is(200)
		root.get("changes?actor=ann").has("edited", "user ann", "Password set").lacks("argon2", "battery")
	})
}

// TestAnotherPasswordIsGuessedSlowly: whoever has got hold of a session tries no more passwords than one who
// logs in.
func TestAnotherPasswordIsGuessedSlowly(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		ann := x.user(console.User{Name: "ann"})
		for range store.FreeTries {
			ann.post("password", url.Values{"old": {"wrong horse"}, "password": {"battery staple"}, "again": {"battery staple"}}).is(422)
		}
		ann.post("password", newPassword).is(429).has("Too many attempts")
		if ann.res.Header.Get("Retry-After") == "" {
			t.Error("it is not said for how long")
		}
	})
}

// TestOwnSessions: one ends sessions of one's own, and nobody else's.
func TestOwnSessions(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		ann := x.user(console.User{Name: "ann"})
		firefox := x.browser()
		firefox.header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
		firefox.post("login", url.Values{"name": {"ann"}, "password": {password}}).is(200)
		x.session("ann", "the third one")
		ann.get("account").has("Firefox · Linux", "End all others").lacks("Gecko")
		id := func(b string) (id string) {
			for _, s := range x.sessionsOf("ann") {
				if s.Hash == console.HashOf(b) {
					id = itoa(s.ID)
				}
			}
			return id
		}
		ann.post("sessions", url.Values{"id": {id("the third one")}}).is(200).has("have been ended")
		if list := x.sessionsOf("ann"); len(list) != 2 {
			t.Errorf("%d sessions, want 2", len(list))
		}
		own := ann.cookies["xxljob_session"].Value
		for _, form := range []url.Values{{"id": {itoa(x.sessionsOf("root")[0].ID)}}, {"id": {id(own)}}, {"id": {"x"}}, {}} {
			ann.post("sessions", form).is(200)
		}
		root.get("jobs").is(200)
		ann.get("jobs").is(200)
		ann.post("sessions", url.Values{"all": {"1"}, "name": {"root"}}).is(200).lacks("End all others")
		if firefox.get("jobs"); !strings.Contains(firefox.at, "login") {
			t.Errorf("the other one is at %s", firefox.at)
		}
		root.get("changes?object=session").has("ended", "session ann", "Sessions")
		root.get("jobs").is(200)
	})
}

// TestAccountOfTheHost: who is known by the host has neither password nor sessions here, and chooses how pages
// look all the same.
func TestAccountOfTheHost(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) {
			c.Auth = console.Func(func(*http.Request) (console.User, error) {
				return console.User{Name: "eve", Apps: map[string]console.Role{"orders": console.Editor}}, nil
			}, "")
		})
		b := x.browser()
		b.get("account").is(200).has("kept by the application", "eve", "Editor", "Time zone").lacks(`type="password"`, `action="./sessions"`)
		b.post("password", newPassword).is(404)
		b.post("sessions", url.Values{"all": {"1"}}).is(404)
		b.post("look", url.Values{"language": {"zh-CN"}, "next": {"account"}}).is(200).has("我的账户")
	})
}

// TestAPasswordOfAnother is changed before anything else is seen.
func TestAPasswordOfAnother(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		must1(x.store.AddUser(xxljob.WithActor(t.Context(), "root"), store.User{Name: "ann", Password: hashed(), Settings: `{"passwordOfAnother":true,"theme":"dark"}`, Grants: store.Grants{Admin: true}}))
		j := x.job("orders", "nightly")
		ann := x.browser()
		ann.post("login", url.Values{"name": {"ann"}, "password": {password}, "next": {"jobs"}}).is(200).has("Somebody else has chosen your password")
		if ann.at != "/console/account" {
			t.Errorf("one is at %s", ann.at)
		}
		ann.post("jobs/"+itoa(j.ID)+"/stop", nil).is(403).has("Choose a password of your own first")
		ann.post("users/sessions", url.Values{"name": {"root"}, "all": {"1"}}).is(403).has("Choose a password of your own first")
		if left := x.sessionsOf("root"); len(left) != 1 {
			t.Errorf("%d sessions of another user are left", len(left))
		}
		ann.header = http.Header{"Hx-Request": {"true"}, "Hx-Request-Type": {"partial"}}
		ann.get("jobs").is(403)
		ann.header = http.Header{}
		ann.post("look", url.Values{"language": {"zh-CN"}, "next": {"account"}}).is(200).has("请先改成自己的密码")
		ann.post("look", url.Values{"language": {"en"}, "next": {"account"}})
		ann.post("password", newPassword).is(200).has("has been changed").lacks("Somebody else")
		ann.get("jobs").is(200).has("nightly")
		if got := must1(x.store.User(t.Context(), "ann")).Settings; !strings.Contains(got, "dark") {
			t.Errorf("the other settings are %s", got)
		}
		if must1(x.store.Job(t.Context(), j.ID)).Stopped {
			t.Error("the job was stopped")
		}
	})
}
