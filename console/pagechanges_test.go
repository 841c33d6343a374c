package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/storetest"
)

// formsOf is what is sent by each route that changes jobs or runs, for a job and a run of it. Those
// that are about users are in the tests of logins.
func formsOf(b *browser, j xxljob.Job, r xxljob.Run) map[string]url.Values {
	job, run := itoa(j.ID), itoa(r.ID)
	return map[string]url.Values{
		"jobs/new":              with(b.newForm(), "name", "added beside "+job),
		"jobs/{id}/edit":        with(b.get("jobs/"+job+"/edit").filled("jobform"), "author", "somebody"),
		"jobs/{id}/remove":      {"name": {j.Name}},
		"jobs/{id}/start":       {},
		"jobs/{id}/stop":        {},
		"jobs/{id}/trigger":     {},
		"jobs/bulk":             {"do": {"stop"}, "sure": {"yes"}, "id": {job}},
		"runs/bulk":             {"do": {"kill"}, "ids": {run}, "sure": {"yes"}},
		"runs/{id}/kill":        {},
		"runs/{id}/again":       {},
		"jobs/{id}/mute":        {"for": {"1h0m0s"}},
		"users/new":             {"name": {"user-" + job}, "title": {"Somebody"}, "app": {"orders", ""}, "role": {"viewer", "none"}, "password": {password}},
		"users/edit":            {"name": {"victim"}, "version": {"1"}, "title": {"Another"}},
		"users/password":        {"name": {"victim"}, "version": {"1"}, "password": {password}},
		"users/sessions":        {"name": {"victim"}, "all": {"1"}},
		"users/remove":          {"name": {"victim"}, "version": {"1"}},
		"users/tokens/remove":   {"name": {"victim"}}, // and the id that victims returns
		"account/tokens":        {"name": {"token of " + job}, "apps": {"orders"}, "for": {"720h0m0s"}, "password": {password}},
		"account/tokens/remove": {},
		"tokens":                {"name": {"token of " + job}, "apps": {"orders"}, "for": {"720h0m0s"}, "password": {password}},
		"tokens/remove":         {"name": {"victim"}},
		"mute":                  {"for": {"1h0m0s"}, "key": {"no-executor/orders"}},
	}
}

// TestEachChangeWhileTheStoreFails: whichever call fails, before it is done or after, nobody is
// told that nothing was done, nothing is done by halves, and there is an entry where there is a
// change.
func TestEachChangeWhileTheStoreFails(t *testing.T) {
	inMemory(t, testEachChangeWhileTheStoreFails)
}

func testEachChangeWhileTheStoreFails(t *testing.T) {
	inTurn(t)
	x, f := faulty(t)
	root := x.admin()
	root.follows = false
	n := 0
	for _, rt := range console.Routes() {
		if rt.Method != http.MethodPost || rt.Own {
			continue
		}
		// send has a route change a job of its own and its run.
		send := func() (changed func() bool, do func()) {
			n++
			j := x.job("orders", fmt.Sprintf("job %d", n))
			r := x.run(j)
			x.victims(rt.Pattern)
			if rt.Pattern == "jobs/{id}/start" {
				must(t, x.s.StopJob(t.Context(), j.ID))
			}
			form, known := formsOf(root, j, r)[rt.Pattern]
			if !known {
				t.Fatalf("%s: no form", rt.Pattern)
			}
			id := itoa(j.ID)
			if strings.HasPrefix(rt.Pattern, "runs/") {
				id = itoa(r.ID)
			}
			before, entries := x.state(), x.noted()
			changed = func() bool {
				is := x.state() != before
				if is != (x.noted() > entries) {
					t.Errorf("%s: changed %v, %d entries", rt.Pattern, is, x.noted()-entries)
				}
				return is
			}
			return changed, func() { root.post(variable.ReplaceAllString(rt.Pattern, id), form) }
		}
		changed, do := send()
		methods := calling(f, do)
		if !changed() {
			t.Errorf("%s has changed nothing: %d %s", rt.Pattern, root.res.StatusCode, root.text())
		}
		for _, method := range methods {
			for _, fault := range []storetest.Fault{{Before: true}, {After: true}} {
				changed, do := send()
				remove := f.Inject(method, fault)
				do()
				remove()
				what := fmt.Sprintf("%s while %s fails, before %v", rt.Pattern, method, fault.Before)
				writes := slices.Contains([]string{"AddJob", "EditJob", "RemoveJob", "AddRun", "AddAhead", "Kill", "PutMute", "AddAppToken", "RemoveAppToken", "AddToken", "AddUser", "UpdateUser", "RemoveUser"}, method)
				said := strings.Contains(root.text(), "may or may not have been")
				done := root.res.StatusCode == http.StatusSeeOther || strings.Contains(root.body, `class="secret"`) // what has failed was no more than a warning's
				if is := changed(); is != (writes && fault.After || done) || said == done {
					t.Errorf("%s: changed %v, status %d: %s", what, is, root.res.StatusCode, root.text())
				}
			}
		}
	}
}

// state is what jobs, runs, mutes, tokens and users there are.
func (x *site) state() string {
	x.Helper()
	jobs := must1(x.store.Jobs(x.Context(), xxljob.JobFilter{Limit: 1000}))
	runs := must1(x.store.Runs(x.Context(), xxljob.RunFilter{Limit: 1000}))
	users := ""
	for _, u := range must1(x.store.Users(x.Context(), "", 1000)) {
		users += fmt.Sprint(u.Name, u.Version, len(must1(x.store.Tokens(x.Context(), u.Name))))
	}
	return fmt.Sprint(jobs, runs, x.mutes(), x.appTokens(), users)
}

// noted is how many of them the record has about jobs and runs.
func (x *site) noted() int {
	x.Helper()
	return len(must1(x.store.SearchChanges(x.Context(), xxljob.ChangeSearch{Limit: 1000})).Changes)
}
