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
	"github.com/xxljob/xxljob/store"
)

// forgeries are requests that another site has the browser of somebody send who is logged in.
func forgeries() []attack {
	return []attack{
		{"forms and fetches of another site", func(x *site) found {
			return x.forge(forged{"POST", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}},
				forged{"POST", http.Header{"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://other.host.example"}}},
				forged{"POST", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"http://host.example"}}}, // whatever it says there
				forged{"POST", http.Header{"Sec-Fetch-Site": nil, "Origin": {"https://evil.example"}}},           // an old browser
				forged{"POST", http.Header{"Sec-Fetch-Site": nil, "Origin": {"http://host.example:8080"}}},
				forged{"POST", http.Header{"Sec-Fetch-Site": nil, "Origin": {"null"}}}, // a frame without an origin, a file
				forged{"POST", http.Header{"Sec-Fetch-Site": {""}, "Origin": {"http://evil.example"}}})
		}, map[string]func(*testing.T) *site{"nobody looks at the origin": weak(console.WithoutOrigins)}, 0},
		{"fetches without a preflight, of types that are no forms of ours", func(x *site) found {
			return x.forge(forged{"POST", http.Header{"Content-Type": {"text/plain"}}}, forged{"POST", http.Header{"Content-Type": {"application/json"}}}, forged{"POST", http.Header{"Content-Type": nil}},
				forged{"POST", http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}}, forged{"POST", http.Header{"Content-Type": {"application/x-www-form-urlencoded, text/plain"}}})
		}, map[string]func(*testing.T) *site{"any type will do": behind(rewritten(func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }))}, 0},
		{"links and pictures: reads that change something", func(x *site) found {
			return x.forge(forged{"GET", nil}, forged{"HEAD", nil})
		}, map[string]func(*testing.T) *site{"a route that can be read": weak(console.WithReadsThatChange)}, 0},
		{"another method than that of the request", func(x *site) found {
			header := http.Header{"X-Http-Method-Override": {"POST"}, "X-Http-Method": {"POST"}, "X-Method-Override": {"POST"}, "Content-Type": {"application/x-www-form-urlencoded"}}
			return x.forge(forged{"GET", header}, forged{"PUT", header}, forged{"DELETE", header}, forged{"PATCH", header}, forged{"OPTIONS", header}, forged{"TRACE", header}, forged{"post", header})
		}, map[string]func(*testing.T) *site{"a router that lets a header choose": behind(rewritten(func(r *http.Request) {
			if m := r.Header.Get("X-Http-Method-Override"); m != "" {
				r.Method = m
			}
		}))}, 0},
	}
}

// forged is a request that an attacker may have sent, but for where it goes.
type forged struct {
	method string
	header http.Header
}

// forge sends each request to each route that changes something, with what that needs, and says
// which have changed anything. One that is sent as our own pages do has to.
func (x *site) forge(list ...forged) (faults found) {
	x.admin()
	for _, f := range list {
		for to, form := range x.changing() {
			b := x.browser().alone()
			b.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: "root is logged in"}
			before := x.whole()
			b.header = f.header
			query := url.Values{"_method": {"POST"}}
			for name, values := range form {
				query[name] = values
			}
			address := "/console/" + to
			if f.method != http.MethodPost {
				address += "?" + query.Encode()
			}
			b.send(f.method, address, form)
			after := x.whole()
			faults.add(before != after, "%s %s with %v has changed something: %s, was %s", f.method, to, f.header, after, before)
			faults.add(f.method == http.MethodPost && b.res.StatusCode < 400, "%s %s with %v: status %d", f.method, to, f.header, b.res.StatusCode)
			faults.add(b.cookies["xxljob_session"] == nil || b.cookies["xxljob_session"].Value != "root is logged in" || b.cookies["xxljob_look"] != nil, "%s %s with %v has set a cookie", f.method, to, f.header)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, rt := range console.Routes() { // those that the above is about do change something
		if rt.Changes && rt.Pattern != "setup" {
			before, b := x.whole(), x.browser().alone()
			b.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: "root is logged in"}
			if slices.Contains([]string{"logout", "login", "password", "sessions"}, rt.Pattern) {
				name := "u" + itoa(int64(len(before))) + rt.Pattern
				b = x.user(console.User{Name: name}).alone()
				x.session(name, "another of "+name)
				before = x.whole()
			}
			to, form := x.changingOne(rt.Pattern)
			if b.post(to, form); b.res.StatusCode >= 400 || x.whole() == before {
				x.Errorf("POST %s has changed nothing: status %d, %s", to, b.res.StatusCode, b.text())
			}
		}
	}
	return nil
}

// changing are the routes that change something, with forms that do so.
func (x *site) changing() map[string]url.Values {
	list := map[string]url.Values{}
	for _, rt := range console.Routes() {
		if rt.Changes {
			to, form := x.changingOne(rt.Pattern)
			list[to] = form
		}
	}
	return list
}

// changingOne is where a form is sent that changes something by the route, and the form. What it
// is about is there for each, and made once.
func (x *site) changingOne(pattern string) (string, url.Values) {
	x.Helper()
	name := "victim of " + pattern
	job, err := x.store.JobByKey(x.Context(), "orders", name)
	if err != nil {
		job = x.job("orders", name)
		x.run(job)
		if strings.HasSuffix(pattern, "start") {
			must(x.T, x.s.StopJob(x.Context(), job.ID))
		}
	}
	token := x.victims(pattern)
	run := must1(x.store.Runs(x.Context(), xxljob.RunFilter{JobID: job.ID, Limit: 1}))[0]
	id, about := itoa(job.ID), job.ID
	if strings.HasPrefix(pattern, "runs/") {
		id, about = itoa(run.ID), run.ID
	}
	forms := map[string]url.Values{
		"setup":                 setupForm("AAAA", "eve", password),
		"login":                 {"name": {"root"}, "password": {password}},
		"logout":                {},
		"password":              newPassword,
		"sessions":              {"all": {"1"}},
		"users/new":             {"name": {"planted"}, "title": {"Eve"}, "admin": {"1"}, "password": {password}},
		"users/edit":            {"name": {"victim"}, "version": {"1"}, "admin": {"1"}, "password": {password}},
		"users/password":        {"name": {"victim"}, "version": {"1"}, "password": {password}},
		"users/sessions":        {"name": {"victim"}, "all": {"1"}},
		"users/remove":          {"name": {"victim"}, "version": {"1"}},
		"users/tokens/remove":   {"name": {"victim"}},
		"account/tokens":        {"name": {"planted"}, "for": {"720h0m0s"}, "password": {password}},
		"account/tokens/remove": {},
		"tokens":                {"name": {"planted"}, "apps": {"orders"}, "for": {"720h0m0s"}, "password": {password}},
		"tokens/remove":         {"name": {"victim"}},
		"look":                  {"language": {"zh-TW"}, "theme": {"dark"}},
		"jobs/new":              {"name": {"planted"}, "app": {"orders"}, "handler": {"work"}, "type": {"NONE"}},
		"jobs/bulk":             {"do": {"stop"}, "sure": {"yes"}, "id": {id}},
		"runs/bulk":             {"do": {"kill"}, "id": {id}, "sure": {"yes"}},
		"jobs/{id}/edit":        {"version": {itoa(job.Version)}, "author": {"eve"}},
		"jobs/{id}/remove":      {"name": {job.Name}},
		"jobs/{id}/mute":        {"for": {"1h0m0s"}},
		"mute":                  {"for": {"1h0m0s"}, "key": {"no-executor/orders"}},
	}
	form, known := forms[pattern]
	if !known {
		form = url.Values{}
	}
	if token != "" {
		form.Set("id", token)
	}
	return pathOf(pattern, about), form
}

// whole is all that a changing route may change.
func (x *site) whole() string {
	x.Helper()
	ctx := x.Context()
	var b strings.Builder
	for _, m := range must1(x.store.(store.MuteKeeper).Mutes(ctx)) {
		fmt.Fprintf(&b, "mute %s until %v ", m.Key, m.Until)
	}
	for _, k := range x.appTokens() {
		fmt.Fprintf(&b, "token %s until %v ", k.Name, k.Expires)
	}
	for _, j := range must1(x.store.Jobs(ctx, xxljob.JobFilter{Limit: 1000})) {
		fmt.Fprintf(&b, "job %d v%d %v ", j.ID, j.Version, j.Stopped)
	}
	for _, r := range must1(x.store.Runs(ctx, xxljob.RunFilter{Limit: 1000})) {
		fmt.Fprintf(&b, "run %d %v ", r.ID, r.State)
	}
	for _, u := range must1(x.store.Users(ctx, "", 100)) {
		fmt.Fprintf(&b, "user %s v%d %s ", u.Name, u.Version, u.Settings)
		for _, s := range must1(x.store.Sessions(ctx, u.Name, anHour)) {
			fmt.Fprintf(&b, "session %d ", s.ID)
		}
		for _, k := range must1(x.store.Tokens(ctx, u.Name)) {
			fmt.Fprintf(&b, "token %d ", k.ID)
		}
	}
	fmt.Fprintf(&b, "entries %d", len(must1(x.store.SearchChanges(ctx, xxljob.ChangeSearch{Limit: 1000})).Changes))
	return b.String()
}
