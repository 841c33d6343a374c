package console

// Deciding who may do what: the one place for it.

import (
	"maps"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/console/internal/web"
)

// action is what somebody wants to do.
type action int

const (
	see     action = iota + 1 // jobs, runs, logs and changes of an app
	operate                   // start, stop, run once, run again, kill
	edit                      // add, edit, copy, remove, restore
	govern                    // apps, users, all changes, cleaning: of no app
)

// ranks are what each role may do at most.
var ranks = map[Role]action{Viewer: see, Operator: operate, Editor: edit}

// allowed reports whether a user may do something to what belongs to an app. The app is that of
// the stored job or run, never one that a request names.
func allowed(u *User, do action, app string) bool {
	switch {
	case u == nil:
		return false
	case u.Admin:
		return true
	case do == govern:
		return false
	}
	return ranks[u.roleIn(app)] >= do
}

// refused says why a route is refused to a user, nil where it is not. The app is that of what the route
// is about; what the user may not see is answered as what is not there.
func (rt *route) refused(u *User, app string, readOnly bool) *web.Problem {
	do := rt.needs.action()
	switch {
	case rt.of != nothing && !allowed(u, see, app):
		return errNotThere
	case do != 0 && !allowed(u, do, app):
		return forbidden(do)
	case rt.person && u.token != "":
		return errNoLogin
	case (rt.changes() && !rt.own && !rt.reads || rt.control) && readOnly:
		return errReadOnly
	}
	return nil
}

// roleIn is the user's role in an app.
func (u *User) roleIn(app string) Role {
	if role, named := u.Apps[app]; named {
		return role
	}
	return u.Apps["*"]
}

// visible are the apps whose jobs and runs the user sees, and whether that are all there are: a
// list of a store is to be filtered by them. known are the apps that there are.
func visible(u *User, known []string) (apps []string, all bool) {
	if u == nil {
		return nil, false
	}
	if u.Admin || ranks[u.Apps["*"]] >= see && !slices.ContainsFunc(slices.Collect(maps.Values(u.Apps)), func(r Role) bool { return ranks[r] < see }) {
		return nil, true
	}
	for _, app := range known {
		if allowed(u, see, app) {
			apps = append(apps, app)
		}
	}
	return apps, false
}

// within are the rights that both a token and its user have.
func within(token, user *User) User {
	u := *user
	u.Admin, u.Scripts = token.Admin && user.Admin, token.Scripts && user.Scripts
	u.Apps = map[string]Role{}
	for _, apps := range []map[string]Role{token.Apps, user.Apps} {
		for app := range apps {
			u.Apps[app] = lesser(token, user, app)
		}
	}
	u.Apps["*"] = lesser(token, user, "*")
	return u
}

// lesser is the lower role of the two in an app.
func lesser(a, b *User, app string) Role {
	role := func(u *User) Role {
		if u.Admin {
			return Editor
		}
		return u.roleIn(app)
	}
	if ranks[role(a)] < ranks[role(b)] {
		return role(a)
	}
	return role(b)
}

// sortedApps are the apps that roles name, "*" last.
func sortedApps[R ~string](apps map[string]R) []string {
	return slices.SortedFunc(maps.Keys(apps), func(a, b string) int {
		if (a == "*") != (b == "*") {
			return strings.Compare(b, a)
		}
		return strings.Compare(a, b)
	})
}
