package console

// The users that the store keeps, for admins: who there is, what they may do, and since when they are logged
// in. What each method of the store refuses is its own to know.

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// Users on a page, entries of logins that are looked through for the last ones, and rows of the form for
// apps that are not named yet.
const (
	usersOnAPage = 100
	loginsLooked = 1000
	freeRows     = 3
	appsOfUser   = 100 // rows with apps of a user at once
)

// userRow is a user as the list shows it.
type userRow struct {
	store.User
	LastLogin time.Time // zero where the record has none
}

// usersPage is the list.
type usersPage struct {
	Kept  bool // they are in the store, and not the host's
	Said  string
	Users []userRow
	Next  string // where there are more
}

// userPage is the form of a user, with the sessions.
type userPage struct {
	New       bool
	Said      string
	User      store.User
	Rows      []right  // of the form
	Some      bool     // that are not all: the others stay as they are
	Find      string   // the text that those have
	Shown     []string // the apps of these
	Of        int      // how many apps the user has by name
	Rest      string   // the role in all other apps
	Roles     []string
	Faults    map[string]string
	Secret    string // the first password, which is shown this once
	Sessions  []sessionRow
	Tokens    []userTokenRow
	LastLogin time.Time
	Own       bool
}

// rolesToGive are those that the form offers, the least first.
func rolesToGive() []string {
	return []string{string(None), string(Viewer), string(Operator), string(Editor)}
}

func (q *request) users() error {
	p := usersPage{Kept: q.accounts != nil, Said: q.said()}
	if !p.Kept {
		return q.show("users", http.StatusOK, p)
	}
	list, err := q.accounts.Users(q.ctx, q.Query("after"), usersOnAPage+1)
	if err != nil {
		return err
	}
	if len(list) > usersOnAPage {
		list = list[:usersOnAPage]
		p.Next = "users" + web.QueryOf(map[string][]string{"after": {list[usersOnAPage-1].Name}})
	}
	last, err := q.lastLogins("")
	if err != nil {
		return err
	}
	for _, u := range list {
		p.Users = append(p.Users, userRow{u, last[u.Name]})
	}
	return q.show("users", http.StatusOK, p)
}

// lastLogins are the last logins of all users, or of one, as far as the newest entries of the record say.
func (q *request) lastLogins(of string) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	if q.record == nil {
		return last, nil
	}
	search := xxljob.ChangeSearch{Object: store.ObjectLogin, Verb: "login", ObjectID: of, Limit: loginsLooked, Brief: true}
	if of != "" {
		search.Limit = 1
	}
	found, err := q.record.SearchChanges(q.ctx, search)
	for _, c := range found.Changes { // the newest first
		if last[c.ObjectID].IsZero() {
			last[c.ObjectID] = c.At
		}
	}
	return last, err
}

func (q *request) newUser() error {
	return q.showUser(http.StatusOK, userPage{New: true, Rest: string(None)})
}

// userNamed reads the user that a request names.
func (q *request) userNamed(name string) (store.User, error) {
	u, err := q.accounts.User(q.ctx, name)
	if errors.Is(err, xxljob.ErrNotFound) {
		err = &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.nouser"}
	}
	return u, err
}

func (q *request) editUser() error {
	if q.Query("name") == "" {
		return q.Redirect("users")
	}
	u, err := q.userNamed(q.Query("name"))
	if err != nil {
		return err
	}
	return q.showUser(http.StatusOK, pageOfUser(u, strings.TrimSpace(q.Query("find"))))
}

// pageOfUser is the form with what a user has. Of one who has a great many apps, or where a text is looked
// for, it has those alone that have the text in them, and no more than there is room for.
func pageOfUser(u store.User, find string) userPage {
	p := userPage{User: u, Rest: string(None), Find: find}
	for _, app := range sortedApps(u.Apps) {
		if app == "*" {
			p.Rest = u.Apps[app]
			continue
		}
		if p.Of++; len(p.Rows) < appsOfUser && strings.Contains(strings.ToLower(app), strings.ToLower(find)) {
			p.Rows, p.Shown = append(p.Rows, right{app, u.Apps[app]}), append(p.Shown, app)
		}
	}
	p.Some = len(p.Shown) < p.Of
	return p
}

func (q *request) showUser(status int, p userPage) error {
	p.Said, p.Roles, p.Own = q.said(), rolesToGive(), p.User.Name == q.user.Name && !p.New
	p.Rows = append(p.Rows, make([]right, freeRows)...)
	if !p.New {
		last, err := q.lastLogins(p.User.Name)
		if err == nil {
			p.LastLogin = last[p.User.Name]
			p.Sessions, err = q.sessionsOf(p.User.Name)
		}
		if err == nil {
			p.Tokens, err = q.userTokensOf(p.User.Name, "users/tokens/remove")
		}
		if err != nil && p.Secret == "" { // which is not lost for that
			return err
		}
	}
	return q.show("user", status, p)
}

// takeUser takes over what the form says of a user, but for the name.
func (q *request) takeUser(p *userPage) {
	u := &p.User
	u.Title, u.Admin, u.Scripts, u.Disabled = strings.TrimSpace(q.Field("title")), q.Field("admin") != "", q.Field("scripts") != "", q.Field("disabled") != ""
	p.Rest, p.Faults, p.Rows = q.Field("rest"), map[string]string{}, nil
	had := u.Apps
	u.Apps = map[string]string{}
	if p.Some = q.Field("some") != ""; p.Some {
		p.Find, p.Shown = q.Field("find"), q.R.PostForm["shown"]
		for app, role := range had {
			if app == "*" {
				continue
			}
			if p.Of++; !slices.Contains(p.Shown, app) {
				u.Apps[app] = role
			}
		}
	}
	apps, roles := q.R.PostForm["app"], q.R.PostForm["role"]
	for i, app := range apps {
		role := ""
		if i < len(roles) {
			role = roles[i]
		}
		if app = strings.TrimSpace(app); app == "" {
			continue
		}
		p.Rows = append(p.Rows, right{app, role})
		switch {
		case u.Apps[app] != "" || app == "*":
			p.Faults["apps"] = q.text("users.fault.twice", "app", app)
		case Role(role) != None && ranks[Role(role)] == 0:
			p.Faults["apps"] = q.text("fault.choice")
		}
		u.Apps[app] = role
	}
	switch Role(p.Rest) {
	case None, "":
	case Viewer, Operator, Editor:
		u.Apps["*"] = p.Rest
	default:
		p.Faults["rest"] = q.text("fault.choice")
	}
	for app, role := range u.Apps { // what is none where nothing else is given says nothing
		if Role(role) == None && u.Apps["*"] == "" {
			delete(u.Apps, app)
		}
	}
	for _, e := range xxljob.FieldErrors(xxljob.ValidateUser(u)) {
		field, _, _ := strings.Cut(strings.ToLower(e.Field), "[")
		p.Faults[field] = q.text("fault." + e.Code)
	}
}

// firstPassword is one that somebody else gets, and changes at the first login.
func firstPassword() string { return strings.ToLower(rand.Text()[:16]) }

func (q *request) addUser() error {
	p := userPage{New: true, User: store.User{Name: strings.ToLower(strings.TrimSpace(q.Field("name"))), Settings: `{"` + mustChange + `":true}`}}
	q.takeUser(&p)
	status, err := q.prove(p.Faults)
	if err != nil {
		return err
	}
	if len(p.Faults) > 0 {
		return q.showUser(status, p)
	}
	secret := firstPassword()
	if p.User.Password, err = q.logins.HashFrom(q.ctx, q.Exchange, secret); err != nil {
		return err
	}
	added, err := q.accounts.AddUser(q.ctx, p.User)
	if errors.Is(err, store.ErrUserExists) {
		p.Faults["name"] = q.text("users.fault.taken")
		return q.showUser(http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	q.sayOfUser("added", added.Name)
	p = pageOfUser(added, "")
	p.Secret = secret
	return q.showUser(http.StatusOK, p)
}

// sayOfUser writes a line about what was done with a user.
func (q *request) sayOfUser(done, name string) {
	q.Logger.Info("console: a user was "+done, "name", name, "user", q.user.Name, "client", q.Client.Text, "request", q.ID)
}

func (q *request) saveUser() error {
	u, err := q.userNamed(q.Field("name"))
	if err != nil {
		return err
	}
	p := userPage{User: u}
	q.takeUser(&p)
	if p.User.Version, err = strconv.ParseInt(q.Field("version"), 10, 64); err != nil {
		return web.BadRequest(err)
	}
	status := http.StatusUnprocessableEntity
	if proof := map[string]string{}; len(p.Faults) == 0 && givesMore(&u, &p.User) {
		if status, err = q.prove(proof); err != nil {
			return err
		}
		if fault := proof["password"]; fault != "" { // of this form, and not of the one for another password
			p.Faults["own"] = fault
		}
	}
	if len(p.Faults) == 0 {
		_, err := q.accounts.UpdateUser(q.ctx, p.User)
		if err == nil {
			q.sayOfUser("changed", u.Name)
			return q.Redirect(saying("users", "user"))
		}
		if !errors.Is(err, store.ErrLastAdmin) {
			return err
		}
		p.Faults["admin"] = q.text("users.fault.last")
	}
	return q.showUser(status, p)
}

// givesMore reports whether an edit gives a user any right that the user had not, or lets in one who was not
// let in: as a new user does, that outlives a session which somebody else has got hold of.
func givesMore(was, now *store.User) bool {
	more := func(had, has bool) bool { return has && !had }
	switch {
	case more(!was.Disabled, !now.Disabled):
		return true
	case was.Admin: // who may do everything
		return false
	case more(was.Admin, now.Admin) || more(was.Scripts, now.Scripts):
		return true
	}
	rank := func(u *store.User, app string) action {
		role, named := u.Apps[app]
		if !named {
			role = u.Apps["*"]
		}
		return ranks[Role(role)]
	}
	for _, apps := range []map[string]string{was.Apps, now.Apps} {
		for app := range apps {
			if rank(now, app) > rank(was, app) {
				return true
			}
		}
	}
	return rank(now, "*") > rank(was, "*")
}

// resetPassword gives a user a first password anew, which ends all sessions. One's own is changed on the
// page of the account.
func (q *request) resetPassword() error {
	u, err := q.userNamed(q.Field("name"))
	if err != nil {
		return err
	}
	if u.Name == q.user.Name {
		return q.Redirect("account")
	}
	if u.Version, err = strconv.ParseInt(q.Field("version"), 10, 64); err != nil {
		return web.BadRequest(err)
	}
	p := pageOfUser(u, "")
	p.Faults = map[string]string{}
	status, err := q.prove(p.Faults)
	if err != nil {
		return err
	}
	if len(p.Faults) > 0 {
		return q.showUser(status, p)
	}
	secret := firstPassword()
	if u.Password, err = q.logins.HashFrom(q.ctx, q.Exchange, secret); err != nil {
		return err
	}
	// The setting first: whoever has to choose a password without need has lost nothing.
	if err := q.keepSetting(&u, mustChange, true); err != nil {
		return err
	}
	if u, err = q.accounts.UpdateUser(q.ctx, u); err != nil {
		return err
	}
	q.sayOfUser("changed", u.Name)
	p = pageOfUser(u, "")
	p.Secret = secret
	return q.showUser(http.StatusOK, p)
}

// endUsersSessions ends sessions of another user.
func (q *request) endUsersSessions() error {
	u, err := q.userNamed(q.Field("name"))
	if err != nil {
		return err
	}
	return q.endSessionsOf(u.Name, "users/edit"+web.QueryOf(map[string][]string{"name": {u.Name}}))
}

func (q *request) removeUserForm() error {
	if q.Query("name") == "" {
		return q.Redirect("users")
	}
	u, err := q.userNamed(q.Query("name"))
	if err != nil {
		return err
	}
	return q.show("removeuser", http.StatusOK, u)
}

func (q *request) removeUser() error {
	u, err := q.userNamed(q.Field("name"))
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(q.Field("version"), 10, 64)
	if err != nil {
		return web.BadRequest(err)
	}
	switch err := q.accounts.RemoveUser(q.ctx, u.Name, version); {
	case errors.Is(err, store.ErrLastAdmin):
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "users.fault.last"}
	case err != nil:
		return err
	}
	q.sayOfUser("removed", u.Name)
	return q.Redirect(saying("users", "userremoved"))
}

// RightsOf are the rights of a user in a line.
func (p *page) RightsOf(u store.User) string {
	if u.Admin {
		return p.T("users.admin.short")
	}
	if len(u.Apps) == 0 {
		return "–"
	}
	return web.CutTo(p.rolesIn(u.Apps), mostInACell)
}

// rolesIn are roles by app in a line.
func (p *page) rolesIn(apps map[string]string) string {
	var words []string
	for _, app := range sortedApps(apps) {
		name := app
		if app == "*" {
			name = p.T("rights.others")
		}
		words = append(words, name+": "+p.T("roleshort."+roleWord(apps[app])))
	}
	return strings.Join(words, ", ")
}

// roleWord is a role that there are texts of.
func roleWord(role string) string {
	if ranks[Role(role)] == 0 {
		return string(None)
	}
	return role
}
