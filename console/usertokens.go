package console

// Tokens of users: secrets that programs show to the console in the place of a session. They can do what their
// user may, in some apps or in all, and no more; they are kept by their hashes, and each is shown once, in the
// answer to the form that has made it.

import (
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

// userTokensPage is the list of the own tokens, with the form for another one.
type userTokensPage struct {
	Said   string
	Secret string // of the one that was just made
	Made   string // its name
	Tokens []userTokenRow
	Form   tokenForm
}

// userTokenRow is a token as a list shows it.
type userTokenRow struct {
	store.Token
	All     bool     // it is for all that its user may
	Apps    []string // that it is for, where it has as much there as its user; none where its roles are to be told
	Expired bool
	Ends    string // where it is revoked
}

// userTokensOf are the tokens of a user, and where each is revoked.
func (q *request) userTokensOf(user, ends string) (rows []userTokenRow, err error) {
	list, err := q.accounts.Tokens(q.ctx, user)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	now, err := q.storeNow()
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		of := map[string][]string{"id": {strconv.FormatInt(t.ID, 10)}}
		if strings.HasPrefix(ends, "users/") {
			of["name"] = []string{user}
		}
		row := userTokenRow{Token: t, Expired: !t.Expires.After(now), Ends: ends + web.QueryOf(of)}
		switch apps := sortedApps(t.Apps); {
		case t.Admin:
			row.All = true
		case slices.ContainsFunc(apps, func(app string) bool { return t.Apps[app] != string(Editor) }): // a program has made it
		case slices.Equal(apps, []string{"*"}):
			row.All = true
		case t.Apps["*"] == "":
			row.Apps = apps
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// RolesOf are the roles of a token in a line.
func (p *page) RolesOf(t store.Token) string {
	if len(t.Apps) == 0 {
		return p.T("roleshort.none")
	}
	return web.CutTo(p.rolesIn(t.Apps), mostInACell)
}

// longestUserToken is how long a token of a user lasts at most: the longest year.
const longestUserToken = 366 * 24 * time.Hour

// grantsFor are what a token has for the apps, or for all where none is named: as much there as its user has,
// who is looked at whenever it is used.
func (q *request) grantsFor(apps []string) store.Grants {
	g := store.Grants{Apps: map[string]string{}, Scripts: q.user.Scripts}
	for _, app := range apps {
		g.Apps[app] = string(Editor)
	}
	if len(apps) == 0 {
		g.Apps["*"], g.Admin = string(Editor), q.user.Admin
	}
	return g
}

func (q *request) userTokens() error {
	return q.showUserTokens(http.StatusOK, userTokensPage{Said: q.said()}, "2160h0m0s")
}

func (q *request) showUserTokens(status int, p userTokensPage, lasts string) (err error) {
	if p.Tokens, err = q.userTokensOf(q.user.Name, "account/tokens/remove"); err != nil && p.Secret == "" { // which is not lost for that
		return err
	}
	q.offer(&p.Form, lasts)
	return q.show("usertokens", status, p)
}

// addUserToken makes a token of the user, who has to say the password (prove), and shows it, which
// nobody sees again.
func (q *request) addUserToken() error {
	f, ends, err := q.typedToken(longestUserToken)
	if err != nil {
		return err
	}
	apps := listed(f.Apps)
	if i := slices.IndexFunc(apps, func(app string) bool { return app == "*" || !allowed(q.user, see, app) }); i >= 0 {
		f.Faults["apps"] = q.text("usertokens.fault.rights", "app", web.CutTo(apps[i], mostInACell))
	}
	if len(apps) > store.MostTokenApps || len(apps) == 0 && f.Apps != "" { // which are not all
		f.Faults["apps"] = q.text("tokens.fault.apps")
	}
	status, err := q.prove(f.Faults)
	if err != nil {
		return err
	}
	refuse := func() error { return q.showUserTokens(status, userTokensPage{Form: f}, q.Field("for")) }
	if len(f.Faults) > 0 {
		return refuse()
	}
	t, secret, err := q.logins.AddToken(q.ctx, store.Token{User: q.user.Name, Name: f.Name, Grants: q.grantsFor(apps), Expires: ends})
	switch list := xxljob.FieldErrors(err); {
	case err == nil:
		q.sayOfToken("made", &t)
		return q.showUserTokens(http.StatusOK, userTokensPage{Secret: secret, Made: t.Name}, q.Field("for"))
	case errors.Is(err, store.ErrTooManyTokens):
		f.Faults["name"] = q.text("tokens.fault.many", "n", store.MostTokens)
	case len(list) == 0:
		return err
	default:
		for _, e := range list {
			switch {
			case e.Field == "Name":
				f.Faults["name"] = q.text("tokens.fault.name")
			case strings.HasPrefix(e.Field, "Apps"):
				f.Faults["apps"] = q.text("tokens.fault.apps")
			default:
				f.Faults["until"] = q.text("mute.fault.time")
			}
		}
	}
	return refuse()
}

// sayOfToken writes a line about what was done with a token of a user.
func (q *request) sayOfToken(done string, t *store.Token) {
	q.Logger.Info("console: a token of a user was "+done, "token", t.Name, "id", t.ID, "of", t.User, "user", q.user.Name, "client", q.Client.Text, "request", q.ID)
}

// revokeOwnForm and revokeUsersForm ask whether a token of one's own, or of another user, is to go.
func (q *request) revokeOwnForm() error {
	return q.askRevoke(q.user.Name, revokeView{To: "account/tokens/remove", Back: "account/tokens"})
}

func (q *request) revokeUsersForm() error {
	user := q.Query("name")
	if user == "" {
		return q.Redirect("users")
	}
	return q.askRevoke(user, revokeView{To: "users/tokens/remove", Back: pageOfUserNamed(user), User: user})
}

func (q *request) askRevoke(user string, v revokeView) error {
	if v.ID = q.Query("id"); v.ID == "" {
		return q.Redirect(v.Back)
	}
	t, err := q.userToken(user, v.ID)
	if err != nil {
		return err
	}
	v.Name, v.Used, v.By, v.Help = t.Name, t.Used, t.User, q.text("usertokens.revoke.help", "user", t.User)
	return q.show("revoke", http.StatusOK, v)
}

// pageOfUserNamed is the page of a user.
func pageOfUserNamed(name string) string {
	return "users/edit" + web.QueryOf(map[string][]string{"name": {name}})
}

// userToken finds a token of a user.
func (q *request) userToken(user, id string) (store.Token, error) {
	list, err := q.accounts.Tokens(q.ctx, user)
	at := slices.IndexFunc(list, func(t store.Token) bool { return strconv.FormatInt(t.ID, 10) == id })
	switch {
	case err != nil:
		return store.Token{}, err
	case at < 0:
		return store.Token{}, &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.notoken"}
	}
	return list[at], nil
}

// revokeOwn and revokeUsers delete a token of one's own, or of another user.
func (q *request) revokeOwn() error { return q.revokeOf(q.user.Name, "account/tokens") }
func (q *request) revokeUsers() error {
	return q.revokeOf(q.Field("name"), pageOfUserNamed(q.Field("name")))
}

func (q *request) revokeOf(user, back string) error {
	t, err := q.userToken(user, q.Field("id"))
	if err != nil {
		return err
	}
	if err := q.accounts.RemoveToken(q.ctx, t.User, t.ID); err != nil && !errors.Is(err, xxljob.ErrNotFound) { // it is gone by now
		return err
	}
	q.sayOfToken("revoked", &t)
	return q.Redirect(saying(back, "revoked"))
}
