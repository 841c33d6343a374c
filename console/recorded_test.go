package console_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// recorded is what each route that changes anything leaves in the record: the object, the verb, and
// of which fields there is a value before and after. A route that is not here fails the test.
var recorded = map[string]string{
	"setup":                 "user add: - → Admin PasswordSet", // with the name that was typed; the session that begins is a part of it
	"login":                 "login login: - → -",
	"logout":                "login logout: - → -",
	"account/tokens":        "token add: - → all",
	"account/tokens/remove": "token remove: all → -",
	"users/tokens/remove":   "token remove: all → -",
	"look":                  "", // how pages look to somebody is nobody else's business
	"password":              "user update: PasswordSet → PasswordSet",
	"users/new":             "user add: - → Apps PasswordSet Title",
	"users/edit":            "user update: Title → Title",
	"users/password":        "user update: PasswordSet → PasswordSet",
	"users/sessions":        "session end: Sessions → -",
	"users/remove":          "user remove: PasswordSet Title → -",
	"tokens":                "apptoken add: - → Apps Expires",
	"tokens/remove":         "apptoken remove: Apps Expires → -",
	"sessions":              "session end: Sessions → -",
	"jobs/new":              "job add: - → all",
	"jobs/bulk":             "job stop: Stopped → Stopped",
	"jobs/{id}/edit":        "job update: Author → Author",
	"jobs/{id}/remove":      "job remove: all → -",
	"jobs/{id}/start":       "job start: Stopped → Stopped",
	"jobs/{id}/stop":        "job stop: Stopped → Stopped",
	"jobs/{id}/trigger":     "run trigger: - → Type",
	"jobs/{id}/mute":        "mute mute: - → Until",
	"mute":                  "mute mute: - → Until",
	"runs/bulk":             "run kill: Reason State → Reason State",
	"runs/{id}/kill":        "run kill: Reason State → Reason State",
	"runs/{id}/again":       "run again: - → Again Type",
}

// TestEachRouteIsRecorded: what changes anything leaves one entry, with who, from where, for which
// request, before and after; what is refused leaves none, and neither does what only reads.
func TestEachRouteIsRecorded(t *testing.T) { onBothStores(t, testEachRouteIsRecorded) }

func testEachRouteIsRecorded(t *testing.T) {
	seen := 0
	for _, rt := range console.Routes() {
		if !rt.Changes {
			continue
		}
		seen++
		t.Run(rt.Pattern, func(t *testing.T) {
			want, known := recorded[rt.Pattern]
			if !known {
				t.Fatal("it is not said what this leaves in the record")
			}
			x := newSite(t)
			to, form, asks := x.aChange(rt.Pattern)
			others := x.refused(rt.Pattern)
			entries := len(x.recorded())
			for _, b := range others {
				b.follows = false
				if b.post(to, form); b.res.StatusCode < 400 {
					t.Errorf("%s is answered %d", b.at, b.res.StatusCode)
				}
				if n := len(x.recorded()) - entries; n != 0 {
					t.Errorf("%d entries of what was refused with %d", n, b.res.StatusCode)
				}
			}
			asks.follows = false
			if asks.post(to, form); asks.res.StatusCode >= 400 {
				t.Fatalf("status %d: %s", asks.res.StatusCode, asks.text())
			}
			list := x.recorded()
			list = list[:len(list)-entries]
			if want == "" && len(list) == 0 {
				return
			}
			if len(list) != 1 {
				t.Fatalf("%d entries, want one: %+v", len(list), list)
			}
			c := list[0]
			if got := c.Object + " " + c.Verb + ": " + fieldNames(c.Before) + " → " + fieldNames(c.After); got != want {
				t.Errorf("the entry is %s, want %s", got, want)
			}
			if c.Actor == "" || c.Client == "" || c.RequestID != asks.res.Header.Get("X-Request-Id") || c.ObjectID == "" || c.At.IsZero() {
				t.Errorf("the entry is %+v", c)
			}
			for _, secret := range []string{password, "argon2", "secret"} {
				if strings.Contains(c.Before+c.After, secret) {
					t.Errorf("the entry has %s", secret)
				}
			}
		})
	}
	if seen != len(recorded) {
		t.Errorf("%d routes, %d of them in the table", seen, len(recorded))
	}
}

// aChange is where a route changes something, what is sent there, and by whom.
func (x *site) aChange(pattern string) (to string, form url.Values, asks *browser) {
	x.Helper()
	if pattern == "setup" {
		code := must1(console.SetupCode(x.Context(), x.store))
		return pattern, url.Values{"code": {code}, "name": {"root"}, "password": {password}, "again": {password}}, x.browser()
	}
	root := x.admin()
	own := map[string]url.Values{"login": {"name": {"root"}, "password": {password}}, "logout": {}, "look": {"theme": {"dark"}}, "password": newPassword, "sessions": {"all": {"1"}}}
	if pattern == "sessions" {
		x.session("root", "another session")
	}
	if form, is := own[pattern]; is {
		return pattern, form, root
	}
	j := x.job("orders", "nightly")
	r := x.run(j)
	token := x.victims(pattern)
	if pattern == "jobs/{id}/start" {
		must(x.T, x.s.StopJob(x.Context(), j.ID))
	}
	form, known := formsOf(root, j, r)[pattern]
	if !known {
		x.Fatalf("%s: no form", pattern)
	}
	if token != "" {
		form.Set("id", token)
	}
	id := itoa(j.ID)
	if strings.HasPrefix(pattern, "runs/") {
		id = itoa(r.ID)
	}
	return variable.ReplaceAllString(pattern, id), form, root
}

// refused are browsers of those to whom a route refuses a form.
func (x *site) refused(pattern string) (list []*browser) {
	x.Helper()
	foreign := x.browser()
	foreign.header.Set("Sec-Fetch-Site", "cross-site")
	list = append(list, foreign)
	switch pattern {
	case "setup", "login", "logout", "look", "jobs/bulk", "runs/bulk": // who may do less is told so for each row
		return list
	case "password", "sessions", "account/tokens", "account/tokens/remove": // which are everybody's own
		return append(list, x.browser())
	}
	return append(list, x.browser(), x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}}),
		x.user(console.User{Name: "stranger", Apps: map[string]console.Role{"billing": console.Editor}}))
}

// TestRowsThatAreRefusedAreNotRecorded: of many at once, those that somebody may not change.
func TestRowsThatAreRefusedAreNotRecorded(t *testing.T) {
	onBothStores(t, testRowsThatAreRefusedAreNotRecorded)
}

func testRowsThatAreRefusedAreNotRecorded(t *testing.T) {
	for _, pattern := range []string{"jobs/bulk", "runs/bulk"} {
		x := newSite(t)
		to, form, _ := x.aChange(pattern)
		entries := len(x.recorded())
		for _, apps := range []map[string]console.Role{{"orders": console.Viewer}, {"billing": console.Editor}} {
			b := x.user(console.User{Name: "user" + itoa(int64(len(apps["billing"]))), Apps: apps})
			b.post(to, form)
			if n := len(x.recorded()) - entries - 1; n != 0 { // that of the user
				t.Errorf("%s: %d entries of what was refused", pattern, n)
			}
			entries = len(x.recorded())
		}
	}
}

// recorded are the entries of the record, the last one first.
func (x *site) recorded() []xxljob.Change {
	x.Helper()
	return must1(x.store.SearchChanges(x.Context(), xxljob.ChangeSearch{Limit: 1000})).Changes
}

// fieldNames are the names of the fields of an object; "all" for more than a few.
func fieldNames(object string) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(object), &fields) // what is none has no fields
	switch n := len(fields); {
	case n == 0:
		return "-"
	case n > 3:
		return "all"
	}
	return strings.Join(slices.Sorted(maps.Keys(fields)), " ")
}
