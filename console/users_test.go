package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// shownSecret is the password or the token that a page shows once.
func (b *browser) shownSecret() string {
	b.Helper()
	m := regexp.MustCompile(`<code class="secret">([^<]+)</code>`).FindStringSubmatch(b.body)
	if m == nil {
		b.Fatalf("%s shows no secret: %s", b.at, b.text())
	}
	return m[1]
}

// TestUsers: an admin adds a user, whose first password is shown once and has to be changed, gives rights, sees
// the last login, ends the sessions, gives another password, disables and removes.
func TestUsers(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j, other := x.job("orders", "nightly"), x.job("billing", "theirs")
		root.get("users").is(200).has("root", "Admin", "active", "New user")
		root.get("users/new").is(200)
		root.post("users/new", url.Values{"name": {"Ann"}, "title": {"Ann <Li>"}, "app": {"orders", "", "ledger"}, "role": {"operator", "editor", "none"}, "rest": {"none"}, "password": {password}}).is(200).has("first login")
		secret := root.shownSecret()
		u := must1(x.store.User(t.Context(), "ann"))
		if u.Admin || len(u.Apps) != 1 || u.Apps["orders"] != "operator" || strings.Contains(u.Password, secret) {
			t.Errorf("added is %+v", u)
		}
		root.get("users").has("ann", "Ann <Li>", "orders: operator").lacks(secret)
		ann := x.browser()
		ann.post("login", url.Values{"name": {"ann"}, "password": {secret}}).is(200).has("Somebody else has chosen your password")
		ann.post("password", url.Values{"old": {secret}, "password": {"battery staple"}, "again": {"battery staple"}}).is(200)
		ann.get("jobs").is(200).has("nightly").lacks("theirs")
		ann.post("jobs/"+itoa(other.ID)+"/stop", nil).is(404)
		ann.get("users").is(403)
		root.get("users/edit?name=ann").is(200).has("User “ann”", "End it", "Last login")

		edit := func(form url.Values) url.Values {
			form.Set("name", "ann")
			form.Set("version", itoa(must1(x.store.User(t.Context(), "ann")).Version))
			return form
		}
		root.post("users/edit", edit(url.Values{"title": {"Ann"}, "app": {"billing"}, "role": {"none"}, "rest": {"viewer"}, "password": {password}})).is(200).has("has been saved", "All other apps: viewer")
		ann.get("jobs").is(200).has("nightly").lacks("theirs")
		ann.post("jobs/"+itoa(j.ID)+"/stop", nil).is(403)
		root.post("users/sessions", url.Values{"name": {"ann"}, "all": {"1"}}).is(200).has("have been ended", "not logged in")
		if ann.get("jobs"); !strings.Contains(ann.at, "login") {
			t.Errorf("the session goes on at %s", ann.at)
		}
		root.post("users/password", edit(url.Values{"password": {password}})).is(200).has("first login")
		again := root.shownSecret()
		x.browser().post("login", url.Values{"name": {"ann"}, "password": {"battery staple"}}).is(422)
		x.browser().post("login", url.Values{"name": {"ann"}, "password": {again}}).is(200).has("Somebody else has chosen your password")
		root.post("users/edit", edit(url.Values{"title": {"Ann"}, "disabled": {"1"}})).is(200).has("disabled")
		x.browser().post("login", url.Values{"name": {"ann"}, "password": {again}}).is(422)
		root.get("users/remove?name=ann").is(200).has("Remove the user “ann”?")
		root.post("users/remove", edit(url.Values{})).is(200).has("has been removed").lacks("Ann")
		root.post("users/remove", url.Values{"name": {"ann"}, "version": {"1"}}).is(422).has("no such user any more")
		root.get("changes?object=user").has("added", "edited", "removed", "user ann").lacks("argon2", secret, again)
		if log := x.log.String(); strings.Contains(log, secret) || strings.Contains(log, again) || !strings.Contains(log, "a user was added") {
			t.Error("the log has a password, or nothing of the user")
		}
	})
}

// TestAUserNeedsThePassword: who makes a user, or a password for one, has to say the own one, and does so no
// quicker than who tries to log in: a session that somebody else has got hold of makes neither.
func TestAUserNeedsThePassword(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		ann := func() store.User { return must1(x.store.User(t.Context(), "ann")) }
		was := ann()
		forms := map[string]url.Values{"users/new": {"name": {"bob"}, "admin": {"1"}}, "users/password": {"name": {"ann"}, "version": {itoa(was.Version)}}}
		root.get("users/new").is(200).has("The password you have now")
		root.get("users/edit?name=ann").is(200).has("The password you have now")
		for to, form := range forms {
			for _, says := range []string{"", "wrong"} {
				root.post(to, with(form, "password", says)).is(422).has("This is not your password.").lacks(`class="secret"`)
			}
		}
		for root.res.StatusCode == 422 {
			root.post("users/new", with(forms["users/new"], "password", "wrong"))
		}
		root.is(429).has("Too many")
		root.post("users/new", with(forms["users/new"], "password", password)).is(429)
		if now := ann(); now.Password != was.Password || now.Version != was.Version {
			t.Errorf("ann is %+v", now)
		}
		if list := must1(x.store.Users(t.Context(), "", 10)); len(list) != 2 {
			t.Errorf("the users are %+v", list)
		}
	})
}

// TestMoreRightsNeedThePassword: and so does who gives a user more rights, or lets one in again that was
// disabled. What takes rights away, or is none, is done without.
func TestMoreRightsNeedThePassword(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Operator, "billing": console.None, "*": console.Viewer}})
		ann := func() store.User { return must1(x.store.User(t.Context(), "ann")) }
		was := url.Values{"app": {"orders", "billing"}, "role": {"operator", "none"}, "rest": {"viewer"}}
		disabled := with(was, "disabled", "1")
		for _, c := range []struct {
			what string
			form url.Values
			more bool
		}{
			{"another name", with(was, "title", "Ann"), false},
			{"admin", with(was, "admin", "1"), true},
			{"no admin", was, false},
			{"scripts", with(was, "scripts", "1"), true},
			{"no scripts", was, false},
			{"disabled", disabled, false},
			{"enabled", was, true},
			{"a higher role in an app", url.Values{"app": {"orders", "billing"}, "role": {"editor", "none"}, "rest": {"viewer"}}, true},
			{"a lower one", was, false},
			{"a role in an app that had none", url.Values{"app": {"orders"}, "role": {"operator"}, "rest": {"viewer"}}, true},
			{"none there", was, false},
			{"a role in another app", url.Values{"app": {"orders", "billing", "stock"}, "role": {"operator", "none", "editor"}, "rest": {"viewer"}}, true},
			{"not in that", was, false},
			{"a role in all others", with(was, "rest", "editor"), true},
			{"a lower one there", was, false},
		} {
			before := ann()
			form := with(c.form, "name", "ann", "version", itoa(before.Version))
			if c.more {
				root.post("users/edit", form).is(422).has("This is not your password.")
				if now := ann(); now.Version != before.Version {
					t.Errorf("%s, without the password: %+v", c.what, now)
				}
				form.Set("password", password)
			}
			root.post("users/edit", form).is(200).has("has been saved")
		}
	})
}

// TestTheLastAdminStays: nobody takes the last one away, be it himself.
func TestTheLastAdminStays(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		version := func() string { return itoa(must1(x.store.User(t.Context(), "root")).Version) }
		for _, form := range []url.Values{{}, {"admin": {"1"}, "disabled": {"1"}}} {
			form.Set("name", "root")
			form.Set("version", version())
			root.post("users/edit", form).is(422).has("The last admin cannot be removed")
		}
		root.post("users/remove", url.Values{"name": {"root"}, "version": {version()}}).is(422).has("The last admin cannot be removed")
		root.post("users/password", url.Values{"name": {"root"}, "version": {version()}}).is(200).has("Your account")
		x.user(console.User{Name: "second", Admin: true})
		root.post("users/edit", url.Values{"name": {"root"}, "version": {version()}, "app": {"orders"}, "role": {"viewer"}}).is(403) // it was taken over, and root is no admin
		if u := must1(x.store.User(t.Context(), "root")); u.Admin || u.Apps["orders"] != "viewer" {
			t.Errorf("root is %+v", u)
		}
	})
}

// TestWhatIsNoUser is neither added nor changed, and what was typed stays.
func TestWhatIsNoUser(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.victims("users/edit")
		for _, c := range []struct {
			says string
			form url.Values
		}{
			{"required", url.Values{"name": {""}}}, {"not allowed", url.Values{"name": {"a b"}}}, {"too long", url.Values{"name": {strings.Repeat("n", 65)}}}, {"a user with this name", url.Values{"name": {"victim"}, "password": {password}}},
			{"too long", url.Values{"name": {"a"}, "title": {strings.Repeat("t", 256)}}}, {"Choose an option", url.Values{"name": {"a"}, "app": {"orders"}, "role": {"owner"}}}, {"Choose an option", url.Values{"name": {"a"}, "rest": {"owner"}}},
			{"is there twice", url.Values{"name": {"a"}, "app": {"orders", "orders"}, "role": {"viewer", "editor"}}}, {"is there twice", url.Values{"name": {"a"}, "app": {"*"}, "role": {"viewer"}}}, {"too long", url.Values{"name": {"a"}, "app": {strings.Repeat("a", 65)}, "role": {"viewer"}}},
		} {
			root.post("users/new", c.form).is(422).has(c.says).lacks(`class="secret"`)
			if app := c.form.Get("app"); app != "" && !strings.Contains(root.body, app) {
				t.Errorf("%q is not kept", app)
			}
		}
		root.post("users/edit", url.Values{"name": {"victim"}, "version": {"7"}, "title": {"Eve"}}).is(409)
		root.post("users/remove", url.Values{"name": {"victim"}, "version": {"7"}}).is(409)
		root.post("users/edit", url.Values{"name": {"none"}, "version": {"1"}}).is(422)
		root.get("users/edit?name=none").is(422)
		if list := must1(x.store.Users(t.Context(), "", 10)); len(list) != 2 || list[1].Title != "Victim" {
			t.Errorf("the users are %+v", list)
		}
	})
}

// TestUsersOfTheHost are the host's to change.
func TestUsersOfTheHost(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) {
			c.Auth = console.Func(func(*http.Request) (console.User, error) { return console.User{Name: "eve", Admin: true}, nil }, "")
		})
		b := x.browser()
		b.get("users").is(200).has("kept by the application that hosts this console").lacks("users/new")
		for _, to := range []string{"users/new", "users/edit", "users/password", "users/sessions", "users/remove"} {
			b.post(to, url.Values{"name": {"ann"}, "version": {"1"}}).is(404)
		}
		if list := must1(x.store.Users(t.Context(), "", 10)); len(list) > 0 {
			t.Errorf("the users are %+v", list)
		}
	})
}

// TestManyUsers are listed a page at a time.
func TestManyUsers(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		for i := range 120 {
			must1(x.store.AddUser(t.Context(), store.User{Name: "user-" + itoa(int64(1000+i))}))
		}
		root.get("users").is(200).has("user-1098").lacks("user-1099")
		root.get("users?after=user-1098").is(200).has("user-1099", "user-1119").lacks("user-1098<")
	})
}

// TestAUserOfManyApps: of one who has more apps than a form has fields for, the form has some, others are looked
// for, and what is not in the form stays as it is.
func TestAUserOfManyApps(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		apps := map[string]string{"*": "viewer"}
		for i := range 999 {
			apps[fmt.Sprintf("app-%03d", i)] = "operator"
		}
		must1(x.store.AddUser(t.Context(), store.User{Name: "ann", Password: hashed(), Grants: store.Grants{Apps: apps}}))
		root.get("users/edit?name=ann").is(200).has("100 of 999 apps are in this form")
		root.get("users/edit?name=ann&find=APP-99").is(200).has("9 of 999 apps").lacks("app-100")
		root.get("users/edit?name=ann&find=nowhere").is(200).has("0 of 999 apps")
		root.get("users/edit?name=ann&find=app-99").is(200)
		form := root.filled("userform")
		if got := strings.Join(form["shown"], " "); form.Get("some") != "1" || !strings.HasPrefix(got, "app-990 ") || len(form["shown"]) != 9 || len(form["app"]) != 9+3 {
			t.Fatalf("the form has %v", form)
		}
		form["app"][0], form["role"][1], form["app"][9], form["role"][9] = "", "editor", "a new one", "viewer"
		twice := url.Values{}
		for name, list := range form {
			twice[name] = slices.Clone(list)
		}
		twice["app"][9] = "app-000"
		root.post("users/edit", twice).is(422).has("is there twice", "9 of 999 apps")
		root.post("users/edit", with(form, "password", password)).is(200).has("has been saved")
		u := must1(x.store.User(t.Context(), "ann"))
		if len(u.Apps) != 1000 || u.Apps["app-990"] != "" || u.Apps["app-991"] != "editor" || u.Apps["app-992"] != "operator" || u.Apps["a new one"] != "viewer" || u.Apps["app-000"] != "operator" || u.Apps["*"] != "viewer" {
			t.Errorf("%d apps: %v", len(u.Apps), u.Apps["app-991"])
		}
		root.get("users/edit?name=root").is(200).lacks("are in this form", `name="shown"`)
	})
}

// TestAppsAreOffered while somebody types: those that the one may see.
func TestAppsAreOffered(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.job("orders", "a")
		x.job("billing", "b")
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		offered := func(b *browser, text string) string {
			b.live()
			defer func() { b.header = http.Header{} }()
			b.get("apps/find?text=" + text).is(200)
			return strings.TrimSpace(b.body)
		}
		if got := offered(root, "ILL"); got != `<option value="billing"></option>` {
			t.Errorf("%q", got)
		}
		if got := offered(ann, "ill"); got != "" {
			t.Errorf("to ann: %q", got)
		}
		if got := offered(ann, "o"); got != `<option value="orders"></option>` {
			t.Errorf("to ann: %q", got)
		}
	})
}

// TestCellsWithoutAValue are marked, so that on a phone, where rows have no headings, the style leaves them out.
func TestCellsWithoutAValue(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.user(console.User{Name: "ann", Title: "Ann <Li>"})
		root.get("users").is(200)
		for _, cell := range []string{`<td class="c-title drop1 no">–</td>`, `<td class="c-title drop1">Ann &lt;Li&gt;</td>`} {
			if !strings.Contains(root.body, cell) {
				t.Errorf("there is no %s", cell)
			}
		}
		if regexp.MustCompile(`<td class="[^"]*c-\w+[^"]*">–</td>`).FindAllString(strings.ReplaceAll(root.body, ` no">–</td>`, ""), -1) != nil {
			t.Error("a cell without a value is not marked")
		}
		if style := string(must1(os.ReadFile("asset/console.css"))); !strings.Contains(style, ".rows td:is(:empty, .no) { display: none; }") {
			t.Error("the style shows them on a phone")
		}
	})
}
