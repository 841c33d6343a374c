package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// program is a program that shows a token to the console.
func (x *site) program(token string) *browser {
	b := x.browser()
	b.follows = false
	b.header.Set("Authorization", "Bearer "+token)
	return b
}

// TestUserTokens: a user makes a token for some apps or for all, is shown it once, and revokes it; a program
// does with it what the user may there, and from then on nothing.
func TestUserTokens(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		mine, other := x.job("orders", "nightly"), x.job("billing", "theirs")
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Operator, "billing": console.Viewer}})
		ann.get("account").is(200).has("Tokens for programs")
		ann.get("account/tokens").is(200).has("You have no tokens", "New token", "Authorization: Bearer")
		ann.post("account/tokens", url.Values{"name": {"ci"}, "apps": {"orders"}, "for": {"720h0m0s"}, "password": {password}}).is(200).has("has been made", "shown this once", "ci", "orders", "never")
		some := ann.shownSecret()
		ann.post("account/tokens", url.Values{"name": {"ci of all"}, "for": {"720h0m0s"}, "password": {password}}).is(200).has("all that the user may")
		all := ann.shownSecret()
		list := must1(x.store.Tokens(t.Context(), "ann"))
		if len(list) != 2 || !strings.HasPrefix(some, "xj_"+itoa(list[0].ID)+"_") || list[0].Admin || list[1].Admin || time.Until(list[0].Expires).Round(time.Hour) != 720*time.Hour {
			t.Fatalf("%d tokens: %+v", len(list), list)
		}
		ann.get("account/tokens").is(200).has("ci of all").lacks(some, all)
		ci, whole := x.program(some), x.program(all)
		ci.get("jobs").is(200).has("nightly").lacks("theirs")
		ci.get("jobs/" + itoa(other.ID)).is(404)
		ci.post("jobs/"+itoa(mine.ID)+"/stop", nil).is(303)
		ci.get("jobs/" + itoa(mine.ID) + "/edit").is(403)
		whole.get("jobs").is(200).has("nightly", "theirs")
		whole.post("jobs/"+itoa(other.ID)+"/stop", nil).is(403)
		ci.get("account/tokens").is(403).lacks("ci of all")
		ci.get("account/tokens/remove?id=" + itoa(list[1].ID)).is(403).lacks("ci of all")
		whole.post("account/tokens", url.Values{"name": {"another"}, "for": {"720h0m0s"}}).is(403)
		whole.post("account/tokens/remove", url.Values{"id": {itoa(list[0].ID)}}).is(403)
		if c := must1(x.store.Changes(t.Context(), mine.ID, 1)); len(c) != 1 || c[0].Actor != "token ci of ann" {
			t.Errorf("the record says %+v", c)
		}
		for _, k := range must1(x.store.Tokens(t.Context(), "ann")) {
			if k.Used.IsZero() {
				t.Errorf("that %s was used is not known", k.Name)
			}
		}
		ann.get("account/tokens/remove?id="+itoa(list[0].ID)).is(200).has("Revoke the token “ci”?", "from the next request on")
		ann.post("account/tokens/remove", url.Values{"id": {itoa(list[0].ID)}}).is(200).has("has been revoked", "ci of all")
		ci.get("jobs").is(401)
		whole.get("jobs").is(200)
		ann.post("account/tokens/remove", url.Values{"id": {itoa(list[0].ID)}}).is(422).has("no such token any more")
		ann.get("account/tokens/remove").is(200).has("New token")
		if log := x.log.String(); strings.Contains(log, some[10:]) || strings.Contains(log, all[10:]) || !strings.Contains(log, "a token of a user was made") || !strings.Contains(log, "a token of a user was revoked") {
			t.Error("the log has a secret, or nothing of the tokens")
		}
	})
}

// TestTokensOfOthers: an admin sees the tokens of each user and revokes them; nobody else does, and nobody makes
// one for another.
func TestTokensOfOthers(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		bob := x.user(console.User{Name: "bob", Apps: map[string]console.Role{"*": console.Editor}})
		ann.post("account/tokens", url.Values{"name": {"ci of ann"}, "for": {"168h0m0s"}, "user": {"root"}, "password": {password}}).is(200)
		token := x.program(ann.shownSecret())
		id := itoa(must1(x.store.Tokens(t.Context(), "ann"))[0].ID)
		token.get("jobs").is(200)
		token.get("users").is(403)
		to := url.Values{"name": {"ann"}, "id": {id}}
		bob.get("account/tokens").lacks("ci of ann")
		bob.get("account/tokens/remove?id=" + id).is(422).lacks("ci of ann")
		bob.post("account/tokens/remove", to).is(422)
		bob.get("users/tokens/remove?" + to.Encode()).is(403)
		bob.post("users/tokens/remove", to).is(403)
		root.get("users/edit?name=ann").is(200).has("Tokens for programs", "ci of ann")
		root.get("users/edit?name=bob").is(200).has("no tokens for programs")
		root.get("users/tokens/remove?" + to.Encode()).is(200).has("Revoke the token “ci of ann”?")
		root.get("users/tokens/remove?name=bob&id=" + id).is(422)
		root.get("users/tokens/remove?name=ann").is(200).has("User “ann”")
		token.get("jobs").is(200)
		root.post("users/tokens/remove", to).is(200).has("has been revoked", "no tokens for programs")
		token.get("jobs").is(401)
		root.post("users/tokens/remove", to).is(422)
		root.get("changes?object=token").is(200).has("added", "removed", "token ci of ann", "user", "ann", "All other apps: editor").lacks("Hash", "{&#34;*")
		if n := len(must1(x.store.Tokens(t.Context(), "root"))); n != 0 {
			t.Errorf("%d tokens of root", n)
		}
	})
}

// TestWhatIsNoUserToken is not kept, what was typed stays, and nothing is shown of apps that one may not see.
func TestWhatIsNoUserToken(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		x.job("billing", "theirs")
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		if ann.get("account/tokens").is(200).lacks("billing"); !strings.Contains(ann.body, `<option value="orders">`) {
			t.Error("the apps that there are to choose from are not offered")
		}
		for _, c := range []struct{ field, value, says string }{
			{"name", "", "1 to 64 bytes"}, {"name", strings.Repeat("n", 65), "1 to 64 bytes"},
			{"apps", "billing", "no role in the app billing"}, {"apps", "none", "no role in the app none"}, {"apps", "*", "no role in the app *"}, {"apps", ",", "names of apps"}, {"apps", "，、 ,", "names of apps"},
			{"for", "1h", "for how long"}, {"for", "", "for how long"}, {"until", "2020-01-01T00:00", "a time to come"}, {"until", "soon", "This is no time"},
			{"until", time.Now().UTC().Add(367 * 24 * time.Hour).Format("2006-01-02T15:04"), "at most 366 days"},
		} {
			form := url.Values{"name": {"a"}, "apps": {"orders"}, "for": {"168h0m0s"}, "tz": {"UTC"}, "password": {password}}
			form.Set(c.field, c.value)
			ann.post("account/tokens", form).is(422).has(c.says).lacks(`class="secret"`)
			if c.field != "for" && c.value != "" && !strings.Contains(ann.body, c.value) {
				t.Errorf("%q is not kept", c.value)
			}
		}
		for i := range store.MostTokens {
			must1(x.store.AddToken(t.Context(), store.Token{User: "ann", Name: "t" + itoa(int64(i)), Hash: console.HashOf(itoa(int64(i))), Expires: time.Now().Add(time.Hour)}))
		}
		ann.post("account/tokens", url.Values{"name": {"a"}, "for": {"168h0m0s"}, "password": {password}}).is(422).has("There are 50 tokens")
		if n := len(must1(x.store.Tokens(t.Context(), "ann"))); n != store.MostTokens {
			t.Errorf("%d tokens", n)
		}
	})
}

// TestATokenNeedsThePassword: who has got hold of a session makes no token that outlives it, neither of the user
// nor of an app, and guesses the password as slowly as one who logs in; that tokens outlive a password is said
// where one is changed.
func TestATokenNeedsThePassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		form := func(given string) url.Values {
			return url.Values{"name": {"ci " + given}, "apps": {"orders"}, "until": {time.Now().UTC().Add(365 * 24 * time.Hour).Format("2006-01-02T15:04")}, "tz": {"UTC"}, "password": {given}}
		}
		ann.get("account").has("Tokens for programs go on")
		root.get("users/edit?name=ann").has("Tokens of the user for programs go on")
		for _, c := range []struct {
			b    *browser
			to   string
			kept func() int
		}{
			{ann, "account/tokens", func() int { return len(must1(x.store.Tokens(t.Context(), "ann"))) }},
			{root, "tokens", func() int { return len(x.appTokens()) }},
		} {
			c.b.post(c.to, form(password)).is(200).has("has been made")
			without := form("")
			without.Del("password")
			c.b.post(c.to, without).is(422).has("This is not your password")
			for range store.FreeTries - 1 {
				wrong := form("wrong horse")
				wrong.Set("name", "ci")
				c.b.post(c.to, wrong).is(422).has("This is not your password").lacks("wrong horse", `class="secret"`)
			}
			if c.b.post(c.to, form(password)).is(429).has("Too many attempts").lacks(`class="secret"`); c.b.res.Header.Get("Retry-After") == "" {
				t.Errorf("%s: it is not said for how long", c.to)
			}
			if n := c.kept(); n != 1 {
				t.Errorf("%s: %d tokens", c.to, n)
			}
		}
	})
}

// otherClock is a store whose clock is not that of the process.
type otherClock struct {
	st    Store
	ahead atomic.Int64 // counts are read beside
}

func (o *otherClock) Now(context.Context) (time.Time, error) {
	return time.Now().Add(time.Duration(o.ahead.Load())), nil
}

// TestUserTokensByTheStoresClock: it decides when a token ends, and so does what the form refuses and what the
// page says of it.
func TestUserTokensByTheStoresClock(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		o := &otherClock{}
		x := newSite(t, func(c *console.Config) { o.st = c.Store.(Store); c.Store = bent.WholeOf(o.st, o) })
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		in := func(d time.Duration) url.Values {
			return url.Values{"name": {"ci"}, "until": {time.Now().UTC().Add(d).Format("2006-01-02T15:04:05")}, "tz": {"UTC"}, "password": {password}}
		}
		o.ahead.Store(int64(2 * time.Hour))
		ann.post("account/tokens", in(time.Hour)).is(422).has("a time to come")
		ann.post("account/tokens", in(3*time.Hour)).is(200).lacks("expired")
		ann.post("account/tokens", url.Values{"name": {"week"}, "for": {"168h0m0s"}, "password": {password}}).is(200)
		if list := must1(x.store.Tokens(t.Context(), "ann")); len(list) != 2 || time.Until(list[1].Expires).Round(time.Hour) != 170*time.Hour {
			t.Errorf("kept is %+v", list)
		}
		o.ahead.Store(int64(4 * time.Hour))
		ann.get("account/tokens").is(200).has("expired")
		o.ahead.Store(int64(-2 * time.Hour))
		ann.post("account/tokens", in(-time.Hour)).is(200)
	})
}

// TestTokensThatProgramsHaveMade: what such a token may is told, which need not be all that its user may.
func TestTokensThatProgramsHaveMade(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"*": console.Editor}})
		for i, c := range []struct {
			apps map[string]string
			says string
		}{
			{map[string]string{"*": "viewer"}, "All other apps: viewer"}, {nil, "no right"}, {map[string]string{"orders": "operator"}, "orders: operator"},
			{map[string]string{"orders": "none", "*": "editor"}, "orders: no right, All other apps: editor"},
		} {
			k := must1(x.store.AddToken(t.Context(), store.Token{User: "ann", Name: "ci", Grants: store.Grants{Apps: c.apps}, Hash: console.HashOf(itoa(int64(i))), Expires: time.Now().Add(time.Hour)}))
			ann.get("account/tokens").is(200).has(c.says).lacks("all that the user may")
			must(t, x.store.RemoveToken(t.Context(), "ann", k.ID))
		}
	})
}

// TestUserTokensWhereNothingChanges: in a console that is read-only none is made, and each is revoked; who has a
// password of another's makes none; and where users are the host's there are none.
func TestUserTokensWhereNothingChanges(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) { c.ReadOnly = true })
		root := x.admin()
		x.bearer("root", store.Grants{Admin: true})
		id := itoa(must1(x.store.Tokens(t.Context(), "root"))[0].ID)
		root.get("account/tokens").is(200).has("ci").lacks("New token")
		root.post("account/tokens", url.Values{"name": {"a"}, "for": {"168h0m0s"}}).is(403)
		root.post("account/tokens/remove", url.Values{"id": {id}}).is(200).has("has been revoked")

		x = newSite(t)
		root = x.admin()
		root.post("users/new", url.Values{"name": {"ann"}, "rest": {"editor"}, "password": {password}}).is(200)
		ann := x.browser()
		ann.post("login", url.Values{"name": {"ann"}, "password": {root.shownSecret()}}).is(200)
		ann.post("account/tokens", url.Values{"name": {"a"}, "for": {"168h0m0s"}}).is(403)
		if n := len(must1(x.store.Tokens(t.Context(), "ann"))); n != 0 {
			t.Errorf("%d tokens", n)
		}

		x = newSite(t, func(c *console.Config) {
			c.Auth = console.Func(func(*http.Request) (console.User, error) { return console.User{Name: "eve", Admin: true}, nil }, "")
		})
		b := x.browser()
		b.get("account").is(200).lacks("account/tokens")
		b.get("account/tokens").is(404)
		b.post("account/tokens", url.Values{"name": {"a"}, "for": {"168h0m0s"}}).is(404)
	})
}

// TestATokenOfAnAdmin: one that is for all does what an admin may, and one for some apps does not, in either.
func TestATokenOfAnAdmin(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		root.post("account/tokens", url.Values{"name": {"all"}, "for": {"168h0m0s"}, "password": {password}}).is(200)
		all := x.program(root.shownSecret())
		root.post("account/tokens", url.Values{"name": {"some"}, "apps": {"orders"}, "for": {"168h0m0s"}, "password": {password}}).is(200)
		some := x.program(root.shownSecret())
		all.get("users").is(200)
		some.get("users").is(403)
		some.post("jobs/"+itoa(j.ID)+"/stop", nil).is(303)
		if b := all.get("jobs/export").is(200).body; !strings.Contains(b, "nightly") {
			t.Errorf("the export is %.200s", b)
		}
	})
}
