package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// expected is what each of the people below is answered, in their order; a digit for the status,
// as 2 for 200 to 303 within the console, L for the login, 3 for 403, 4 for 404, 5 for 422 and 6
// for 400, to who sends an empty form.
type expected struct{ method, pattern, of, answers string }

// people are who asks: nobody, a viewer, an operator and an editor of the app, an editor of
// another app, an admin, the tokens of the viewer, the operator, the editor and the admin with all
// of their rights, one of the admin that has a viewer's, that of the editor of another app, and one
// that there is not.
var people = []string{"nobody", "viewer", "operator", "editor", "stranger", "admin", "viewer token", "operator token", "editor token", "admin token", "weak token", "stranger token", "unknown token"}

// rights is what they are answered by each route. A route that is not here fails the test.
var rights = []expected{
	{"GET", "health", "", "2222222222222"},
	{"GET", "setup", "", "4444444444444"},
	{"POST", "setup", "", "4444444444444"},
	{"GET", "login", "", "2222222222222"},
	{"POST", "login", "", "5555555555555"}, // 422: the password is wrong
	{"POST", "logout", "", "LLLLLLLLLLLLL"},
	{"POST", "look", "", "2222222222222"},
	{"GET", "account", "", "L222222222221"},
	{"POST", "password", "", "1555553333331"}, // 422: the password is wrong; 403: a token is no person
	{"POST", "sessions", "", "1222223333331"},
	{"GET", "account/tokens", "", "L222223333331"},  // 403: a program does not see the others
	{"POST", "account/tokens", "", "1555553333331"}, // 422: it is not said for how long; 403: a program makes none
	{"GET", "account/tokens/remove", "", "L222223333331"},
	{"POST", "account/tokens/remove", "", "1555553333331"}, // 422: there is no such token
	{"GET", "", "", "L222222222221"},
	{"GET", "overview", "", "L222222222221"},
	{"GET", "jobs", "", "L222222222221"},
	{"GET", "jobs/new", "", "L332223322321"},
	{"POST", "jobs/new", "", "1555555555551"},
	{"POST", "jobs/bulk", "", "1555555555551"}, // 422: nothing is ticked
	{"GET", "jobs/find", "", "L222222222221"},
	{"GET", "jobs/export", "", "L222222222221"},
	{"POST", "jobs/export", "", "1555555555551"},
	{"GET", "jobs/{id}/export", "job", "L222422222241"},
	{"GET", "preview", "", "L222222222221"},
	{"GET", "jobs/{id}/edit", "job", "L332423322341"},
	{"POST", "jobs/{id}/edit", "job", "1336463366341"},
	{"GET", "jobs/{id}/remove", "job", "L332423322341"},
	{"POST", "jobs/{id}/remove", "job", "1335453355341"},
	{"GET", "jobs/{id}", "job", "L222422222241"},
	{"GET", "jobs/{id}/start", "job", "L322423222341"},
	{"POST", "jobs/{id}/start", "job", "1322423222341"},
	{"GET", "jobs/{id}/stop", "job", "L322423222341"},
	{"POST", "jobs/{id}/stop", "job", "1322423222341"},
	{"GET", "jobs/{id}/once", "job", "L322423222341"},
	{"POST", "jobs/{id}/trigger", "job", "1322423222341"},
	{"GET", "jobs/{id}/mute", "job", "L322423222341"},
	{"POST", "jobs/{id}/mute", "job", "1355453555341"}, // 422: no time is chosen
	{"GET", "mute", "", "L222222222221"},
	{"POST", "mute", "", "1555555555551"}, // 422: there is no such cause
	{"GET", "runs", "", "L222222222221"},
	{"POST", "runs/bulk", "", "1555555555551"},
	{"GET", "runs/{id}/previous", "run", "L222422222241"},
	{"GET", "runs/{id}/next", "run", "L222422222241"},
	{"GET", "runs/{id}/kill", "run", "L322423222341"},
	{"GET", "runs/{id}", "run", "L222422222241"},
	{"GET", "runs/{id}/again", "run", "L322423222341"},
	{"POST", "runs/{id}/kill", "run", "1322423222341"},
	{"POST", "runs/{id}/again", "run", "1322423222341"},
	{"GET", "runs/{id}/log", "run", "L222422222241"},
	{"GET", "runs/{id}/log/file", "run", "L444444444441"}, // the run was never started
	{"GET", "timetable", "", "L222222222221"},
	{"GET", "executors", "", "L222222222221"},
	{"GET", "settings", "", "L222222222221"},
	{"GET", "apps/find", "", "L222222222221"},
	{"GET", "users", "", "L333323332331"},
	{"GET", "users/new", "", "L333323332331"},
	{"POST", "users/new", "", "1333353333331"}, // 422: the name is taken; 403 for a token
	{"GET", "users/edit", "", "L333323332331"},
	{"POST", "users/edit", "", "1333363333331"}, // 400: there is no version
	{"POST", "users/password", "", "1333323333331"},
	{"POST", "users/sessions", "", "1333323333331"},
	{"GET", "users/tokens/remove", "", "L333323332331"},
	{"POST", "users/tokens/remove", "", "1333353333331"}, // 422: there is no such token
	{"GET", "users/remove", "", "L333323332331"},
	{"POST", "users/remove", "", "1333363333331"},
	{"GET", "tokens", "", "L333323332331"},
	{"POST", "tokens", "", "1333353333331"}, // 403 for the admin's token: a program makes none
	{"GET", "tokens/remove", "", "L333323332331"},
	{"POST", "tokens/remove", "", "1333353333331"}, // 422: there is no such token
	{"GET", "changes", "", "L222222222221"},
	{"GET", "troubles", "", "L222222222221"},
}

// answered is the status of an answer as a letter of the table.
func answered(b *browser) string {
	switch status := b.res.StatusCode; {
	case status == 400:
		return "6"
	case status == 401:
		return "1"
	case status == 403:
		return "3"
	case status == 404:
		return "4"
	case status == 422:
		return "5"
	case status == 303 && strings.Contains(b.res.Header.Get("Location"), "login"):
		return "L"
	case status < 400:
		return "2"
	default:
		return fmt.Sprint(status)
	}
}

// asks makes the people, each of whom asks as a program or a browser does.
func (x *site) asks() []*browser {
	grants := map[string]console.User{
		"viewer": {Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}}, "operator": {Name: "operator", Apps: map[string]console.Role{"orders": console.Operator}},
		"editor": {Name: "editor", Apps: map[string]console.Role{"orders": console.Editor}}, "stranger": {Name: "stranger", Apps: map[string]console.Role{"billing": console.Editor}},
		"admin": {Name: "admin", Admin: true},
	}
	var list []*browser
	for _, who := range people {
		b := x.browser()
		owner, token := strings.CutSuffix(who, " token")
		all := store.Grants{Admin: true, Apps: map[string]string{"*": "editor"}}
		switch {
		case who == "nobody":
		case who == "unknown token":
			b.header.Set("Authorization", "Bearer xj_4711_secret-of-the-token")
		case who == "weak token":
			b = x.bearer("admin", store.Grants{Apps: map[string]string{"orders": "viewer"}})
		case token:
			b = x.bearer(owner, all)
		default:
			b = x.user(grants[who])
		}
		list = append(list, b)
	}
	return list
}

// bearer is a program with a token of a user.
func (x *site) bearer(user string, grants store.Grants) *browser {
	x.Helper()
	const secret = "secret-of-the-token"
	t, err := x.store.AddToken(context.Background(), store.Token{User: user, Name: "ci", Grants: grants, Hash: console.HashOf(secret), Expires: time.Now().Add(time.Hour)})
	must(x.T, err)
	b := x.browser()
	b.header.Set("Authorization", fmt.Sprintf("Bearer xj_%d_%s", t.ID, secret))
	return b
}

var variable = regexp.MustCompile(`\{\w+\}`)

// TestRights: each route by each of the people; and one that is about what they do not see is
// answered as one that is about nothing.
func TestRights(t *testing.T) { inMemory(t, testRights) }

func testRights(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		x := newSite(t, func(c *console.Config) { c.ReadOnly = readOnly })
		list := x.asks()
		job := x.job("orders", "nightly")
		run := x.run(job)
		ids := map[string]int64{"job": job.ID, "run": run.ID}
		for _, rt := range console.Routes() {
			if rt.Pattern == "asset/{name}" {
				continue // TestAssets
			}
			row := rowOf(t, rt.Method, rt.Pattern)
			if len(row.answers) != len(people) {
				t.Fatalf("%s %s: %d answers, want %d", rt.Method, rt.Pattern, len(row.answers), len(people))
			}
			for i, b := range list {
				b.follows = false
				who := fmt.Sprintf("%s %s by %s, read-only %v", rt.Method, rt.Pattern, people[i], readOnly)
				cookies := cloneCookies(b.cookies)
				b.send(rt.Method, "/console/"+variable.ReplaceAllString(rt.Pattern, itoa(ids[row.of])), url.Values{"name": {people[i]}})
				b.cookies = cookies // a login or logout is not to matter for what follows
				want := string(row.answers[i])
				if readOnly && (rt.Changes && !rt.Own && strings.Contains("256", want) || rt.Control && want == "2") {
					want = "3"
				}
				if got := answered(b); got != want {
					t.Errorf("%s: %s (%d), want %s", who, got, b.res.StatusCode, want)
				}
				if strings.HasPrefix(people[i], "stranger") && row.of != "" {
					hidden := b.body
					b.send(rt.Method, "/console/"+variable.ReplaceAllString(rt.Pattern, "4711"), url.Values{})
					if b.res.StatusCode != 404 || withoutRequest(hidden) != withoutRequest(strings.ReplaceAll(b.body, "4711", itoa(ids[row.of]))) {
						t.Errorf("%s: the answer is not that for what is not there", who)
					}
				}
			}
			if row.pattern == "logout" { // which has ended sessions
				x = newSite(t, func(c *console.Config) { c.ReadOnly = readOnly })
				list = x.asks()
				job = x.job("orders", "nightly")
				ids = map[string]int64{"job": job.ID, "run": x.run(job).ID}
			}
		}
	}
}

func rowOf(t *testing.T, method, pattern string) expected {
	t.Helper()
	for _, row := range rights {
		if row.method == method && row.pattern == pattern {
			return row
		}
	}
	t.Fatalf("%s %s is not in the table of rights", method, pattern)
	return expected{}
}

func cloneCookies(m map[string]*http.Cookie) map[string]*http.Cookie {
	out := map[string]*http.Cookie{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

var (
	requestID = regexp.MustCompile(`Request [A-Z0-9]{12}`)
	clockOf   = regexp.MustCompile(`Read at [0-9:]+|data-now="\d+"`)
)

// withoutRequest is a page without what differs by the request.
func withoutRequest(body string) string {
	return clockOf.ReplaceAllString(requestID.ReplaceAllString(body, "Request"), "Read")
}

// TestListsAreFiltered: nobody sees in a list what belongs to an app of others.
func TestListsAreFiltered(t *testing.T) { onBothStores(t, testListsAreFiltered) }

func testListsAreFiltered(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	mine, other := x.job("orders", "mine"), x.job("billing", "secret one")
	ctx := xxljob.WithActor(t.Context(), "root")
	for _, j := range []xxljob.Job{mine, other} {
		must1(x.s.Trigger(ctx, j.ID, xxljob.Trigger{}))
	}
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	most := x.user(console.User{Name: "most", Apps: map[string]console.Role{"*": console.Viewer, "billing": console.None}})
	for _, page := range []string{"jobs", "jobs?app=billing", "jobs?text=secret", "runs", "runs?app=billing", "runs?job=" + itoa(other.ID), "changes", "changes?app=billing", "changes?actor=root", "timetable", "timetable?app=billing", "timetable?range=7d&order=name", "executors", "executors?tab=nodes", "executors?tab=shards"} {
		root.get(page).is(200)
		for _, b := range []*browser{ann, most} {
			b.get(page).is(200).lacks("secret one", "/"+itoa(other.ID), "param of secret one")
		}
	}
	root.get("jobs").has("mine", "secret one")
	ann.get("jobs").has("mine")
	most.get("jobs").has("mine")
	ann.get("runs").has("mine")
	none := x.user(console.User{Name: "none"})
	for _, page := range []string{"jobs", "runs", "changes"} {
		none.get(page).is(200).lacks("mine")
	}
}

// TestATokenIsWithinItsUser: it loses what its user loses, at once, and cookies beside it do not count.
func TestATokenIsWithinItsUser(t *testing.T) { onBothStores(t, testATokenIsWithinItsUser) }

func testATokenIsWithinItsUser(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}})
	job := x.job("orders", "nightly")
	b := x.bearer("ann", store.Grants{Admin: true, Apps: map[string]string{"*": "editor"}})
	stop := func() int { return b.post("jobs/"+itoa(job.ID)+"/stop", nil).res.StatusCode }
	if got := stop(); got != 200 {
		t.Errorf("status %d", got)
	}
	u := must1(x.store.User(t.Context(), "ann"))
	u.Apps = map[string]string{"orders": "viewer"}
	u = must1(x.store.UpdateUser(t.Context(), u))
	if got := stop(); got != 403 {
		t.Errorf("status %d for one whose user is a viewer", got)
	}
	b.cookies = root.cookies
	if got := stop(); got != 403 {
		t.Errorf("status %d with a cookie beside it", got)
	}
	u.Disabled = true
	must1(x.store.UpdateUser(t.Context(), u))
	if got := stop(); got != 401 {
		t.Errorf("status %d for one whose user is disabled", got)
	}
	for _, bad := range []string{"", "xj_", "xj_1", "xj_1_", "xj_x_y", "xj_1_wrong", "1_secret-of-the-token", "xj_-1_a", "xj_" + strings.Repeat("9", 30) + "_a", "xj_1_" + strings.Repeat("x", 10000)} {
		b.header.Set("Authorization", "Bearer "+bad)
		if got := stop(); got != 401 {
			t.Errorf("status %d for the token %.20q", got, bad)
		}
	}
	c := must1(x.store.Changes(t.Context(), job.ID, 1))
	if len(c) != 1 || c[0].Actor != "token ci of ann" {
		t.Errorf("the record says %+v", c)
	}
}

// TestWhoMaySeeNothing: who has a right in no app is told so on each page, and sees nothing of what there is;
// who has one in any app, of which there may be nothing yet, is not.
func TestWhoMaySeeNothing(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		x.run(x.job("orders", "nightly"))
		const told = "No right in any app. You see no jobs and no runs."
		list := []string{"overview", "runs", "jobs", "timetable", "executors", "changes", "account"}
		for name, apps := range map[string]map[string]console.Role{"new": nil, "former": {"*": console.None, "orders": console.None}} {
			who := x.user(console.User{Name: name, Apps: apps})
			for _, page := range list {
				who.get(page).is(200).has(told).lacks("nightly")
			}
		}
		for name, apps := range map[string]map[string]console.Role{"elsewhere": {"billing": console.Viewer}, "others": {"*": console.Viewer, "orders": console.None}} {
			who := x.user(console.User{Name: name, Apps: apps})
			for _, page := range list {
				who.get(page).is(200).lacks("You see no jobs", "nightly")
			}
		}
		x.admin().get("jobs").is(200).has("nightly").lacks(told)
	})
}
