package console

// The table of all routes: what is asked, by whom, and what answers.

import (
	"net/http"
	"strings"
	"time"
)

// The bounds of a form.
const (
	mostBody   = 1 << 20 // bytes
	mostBeside = 8 << 10 // bytes of what is sent beside a form that is kept: the login, and longer names
	mostFields = 200
	mostRows   = 500 // of a list, of which a form has a field each
)

// object is what a route is about; it is read before anything else is done.
type object int

const (
	nothing object = iota
	aJob           // {id} is a job's
	aRun           // {id} is a run's
)

// needs is who may ask.
type needs int

const (
	open     needs = iota // it is not asked who asks
	anybody               // also who is not logged in
	newcomer              // who makes the first user
	somebody              // any user; lists show what that one may see
	seeing                // of the object's app
	operating
	editing
	governing
)

// route is a line of the table.
type route struct {
	method, pattern string
	needs           needs
	of              object
	serve           func(*request) error
	long            bool // it may take minutes
	own             bool // it changes what is the user's own, or ends sessions or tokens: not refused where the console is read-only
	reads           bool // it changes nothing, and is no GET since its form is too long for an address: not refused either
	only            bool // there with Accounts only
	keeps           bool // what its form says is kept where it cannot be taken
	carries         bool // its form has another one in it that is kept
	rows            bool // its form has a field for each row of a list
	several         bool // it is about several of a list, which its page looks up: of what it says no more than that is kept
	rate            rateKind
	views           ViewKind // what is shown that a host may want to know of
	person          bool     // refused to a program that shows a token
	control         bool     // its page is there to change something: refused where the console is read-only
}

// action is what a user has to be allowed; zero for no more than being one.
func (n needs) action() action {
	switch n {
	case seeing:
		return see
	case operating:
		return operate
	case editing:
		return edit
	case governing:
		return govern
	}
	return 0
}

func (rt *route) timeout() time.Duration {
	if rt.long {
		return 5 * time.Minute
	}
	return 10 * time.Second
}

// fields is how many its form may have.
func (rt *route) fields() int {
	if rt.rows {
		return mostRows + mostFields
	}
	return mostFields
}

// takesKept reports whether its form may be one that was kept, with what belongs to that.
func (rt *route) takesKept() bool { return rt.keeps || rt.carries }

// changes reports whether the route changes anything.
func (rt *route) changes() bool { return rt.method != http.MethodGet }

// routes is the table.
func routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{method: get, pattern: "asset/{name}", serve: (*request).asset},
		{method: get, pattern: "health", serve: (*request).health, rate: healths},

		{method: get, pattern: "setup", needs: newcomer, serve: (*request).setupForm, only: true},
		{method: post, pattern: "setup", needs: newcomer, serve: (*request).setup, own: true, only: true},
		{method: get, pattern: "login", needs: anybody, serve: (*request).loginForm, only: true},
		{method: post, pattern: "login", needs: anybody, serve: (*request).login, own: true, only: true, carries: true},
		{method: post, pattern: "logout", needs: anybody, serve: (*request).logout, own: true, only: true},
		{method: get, pattern: "account", needs: somebody, serve: (*request).account},
		{method: post, pattern: "password", needs: somebody, serve: (*request).password, own: true, only: true, person: true},
		{method: post, pattern: "sessions", needs: somebody, serve: (*request).endSessions, own: true, only: true, person: true},
		{method: get, pattern: "account/tokens", needs: somebody, serve: (*request).userTokens, only: true, person: true},
		{method: post, pattern: "account/tokens", needs: somebody, serve: (*request).addUserToken, only: true, person: true},
		{method: get, pattern: "account/tokens/remove", needs: somebody, serve: (*request).revokeOwnForm, only: true, person: true},
		{method: post, pattern: "account/tokens/remove", needs: somebody, serve: (*request).revokeOwn, own: true, only: true, person: true},
		{method: post, pattern: "look", needs: anybody, serve: (*request).setLook, own: true},

		{method: get, pattern: "", needs: somebody, serve: (*request).home},
		{method: get, pattern: "overview", needs: somebody, serve: (*request).overview, views: ViewRuns},
		{method: get, pattern: "jobs", needs: somebody, serve: (*request).jobs},
		{method: get, pattern: "jobs/new", needs: somebody, serve: (*request).newJob, control: true, views: ViewJob},
		{method: post, pattern: "jobs/new", needs: somebody, serve: (*request).addJob, keeps: true},
		{method: post, pattern: "jobs/bulk", needs: somebody, serve: (*request).bulk, rows: true, long: true, keeps: true, several: true},
		{method: get, pattern: "jobs/find", needs: somebody, serve: (*request).offerJobs, rate: previews},
		{method: get, pattern: "jobs/export", needs: somebody, serve: (*request).exportList, long: true, rate: wholes, views: ViewExport},
		{method: post, pattern: "jobs/export", needs: somebody, serve: (*request).exportTicked, rows: true, long: true, reads: true, rate: wholes, views: ViewExport},
		{method: get, pattern: "preview", needs: somebody, serve: (*request).preview, rate: previews},
		{method: get, pattern: "jobs/{id}", needs: seeing, of: aJob, serve: (*request).jobPage, views: ViewJob},
		{method: get, pattern: "jobs/{id}/export", needs: seeing, of: aJob, serve: (*request).exportJob, views: ViewExport},
		{method: get, pattern: "jobs/{id}/edit", needs: editing, of: aJob, serve: (*request).editJob, control: true, views: ViewJob},
		{method: post, pattern: "jobs/{id}/edit", needs: editing, of: aJob, serve: (*request).saveJob, keeps: true},
		{method: get, pattern: "jobs/{id}/remove", needs: editing, of: aJob, serve: (*request).removeForm, control: true},
		{method: post, pattern: "jobs/{id}/remove", needs: editing, of: aJob, serve: (*request).removeJob},
		{method: get, pattern: "jobs/{id}/start", needs: operating, of: aJob, serve: (*request).askStart, control: true},
		{method: post, pattern: "jobs/{id}/start", needs: operating, of: aJob, serve: (*request).startJob},
		{method: get, pattern: "jobs/{id}/stop", needs: operating, of: aJob, serve: (*request).askStop, control: true},
		{method: post, pattern: "jobs/{id}/stop", needs: operating, of: aJob, serve: (*request).stopJob},
		{method: get, pattern: "jobs/{id}/once", needs: operating, of: aJob, serve: (*request).oncePage, control: true, views: ViewJob},
		{method: post, pattern: triggerPattern, needs: operating, of: aJob, serve: (*request).triggerJob, keeps: true},
		{method: get, pattern: "jobs/{id}/mute", needs: operating, of: aJob, serve: (*request).muteJobForm, control: true},
		{method: post, pattern: "jobs/{id}/mute", needs: operating, of: aJob, serve: (*request).muteJob},
		{method: get, pattern: "mute", needs: somebody, serve: (*request).muteCauseForm, control: true},
		{method: post, pattern: "mute", needs: somebody, serve: (*request).muteCause},
		{method: get, pattern: "runs", needs: somebody, serve: (*request).runs, views: ViewRuns},
		{method: post, pattern: "runs/bulk", needs: somebody, serve: (*request).bulkRuns, long: true, keeps: true, several: true},
		{method: get, pattern: "runs/{id}", needs: seeing, of: aRun, serve: (*request).runPage, views: ViewRun},
		{method: get, pattern: "runs/{id}/previous", needs: seeing, of: aRun, serve: (*request).previousRun},
		{method: get, pattern: "runs/{id}/next", needs: seeing, of: aRun, serve: (*request).nextRun},
		{method: get, pattern: "runs/{id}/kill", needs: operating, of: aRun, serve: (*request).killForm, control: true},
		{method: post, pattern: "runs/{id}/kill", needs: operating, of: aRun, serve: (*request).killRun},
		{method: get, pattern: "runs/{id}/again", needs: operating, of: aRun, serve: (*request).againForm, control: true},
		{method: post, pattern: "runs/{id}/again", needs: operating, of: aRun, serve: (*request).againRun},
		{method: get, pattern: "runs/{id}/log", needs: seeing, of: aRun, serve: (*request).runLog, views: ViewLog},
		{method: get, pattern: "runs/{id}/log/file", needs: seeing, of: aRun, serve: (*request).logFile, long: true, rate: wholes, views: ViewLogFile},
		{method: get, pattern: "troubles", needs: somebody, serve: (*request).troubles},
		{method: get, pattern: "timetable", needs: somebody, serve: (*request).timetable},
		{method: get, pattern: "executors", needs: somebody, serve: (*request).executors},
		{method: get, pattern: "settings", needs: somebody, serve: (*request).settings},
		{method: get, pattern: "apps/find", needs: somebody, serve: (*request).offerApps, rate: previews},
		{method: get, pattern: "users", needs: governing, serve: (*request).users},
		{method: get, pattern: "users/new", needs: governing, serve: (*request).newUser, only: true, control: true},
		{method: post, pattern: "users/new", needs: governing, serve: (*request).addUser, only: true, person: true, rows: true},
		{method: get, pattern: "users/edit", needs: governing, serve: (*request).editUser, only: true},
		{method: post, pattern: "users/edit", needs: governing, serve: (*request).saveUser, only: true, person: true, rows: true},
		{method: post, pattern: "users/password", needs: governing, serve: (*request).resetPassword, only: true, person: true},
		{method: post, pattern: "users/sessions", needs: governing, serve: (*request).endUsersSessions, own: true, only: true, person: true},
		{method: get, pattern: "users/tokens/remove", needs: governing, serve: (*request).revokeUsersForm, only: true},
		{method: post, pattern: "users/tokens/remove", needs: governing, serve: (*request).revokeUsers, own: true, only: true, person: true},
		{method: get, pattern: "users/remove", needs: governing, serve: (*request).removeUserForm, only: true, control: true},
		{method: post, pattern: "users/remove", needs: governing, serve: (*request).removeUser, only: true, person: true},
		{method: get, pattern: "tokens", needs: governing, serve: (*request).tokens},
		{method: post, pattern: "tokens", needs: governing, serve: (*request).addToken, person: true},
		{method: get, pattern: "tokens/remove", needs: governing, serve: (*request).revokeForm, control: true},
		{method: post, pattern: "tokens/remove", needs: governing, serve: (*request).revokeToken, person: true},
		{method: get, pattern: "changes", needs: somebody, serve: (*request).changes, views: ViewChanges},
	}
}

// match finds the route of a path, and the values of what is variable in it. known says that
// there is one by another method.
func match(table []route, method, path string) (found *route, values map[string]string, known bool) {
	parts := strings.Split(path, "/")
	for i := range table {
		rt := &table[i]
		got, fits := fitting(strings.Split(rt.pattern, "/"), parts)
		if !fits {
			continue
		}
		if rt.method == method || rt.method == http.MethodGet && method == http.MethodHead {
			return rt, got, true
		}
		known = true
	}
	return nil, nil, known
}

func fitting(pattern, parts []string) (values map[string]string, fits bool) {
	if len(pattern) != len(parts) {
		return nil, false
	}
	for i, p := range pattern {
		name, variable := strings.CutPrefix(p, "{")
		switch {
		case variable && parts[i] != "":
			if values == nil {
				values = map[string]string{}
			}
			values[strings.TrimSuffix(name, "}")] = parts[i]
		case variable || p != parts[i]:
			return nil, false
		}
	}
	return values, true
}
