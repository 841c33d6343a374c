package console

// The account of who is logged in: the own password and sessions, and how pages look.

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// accountPage is the page of the own account.
type accountPage struct {
	Said, Name string
	Rights     []right
	Own        bool // there is a password here, and a session
	Must       bool // the password has to be changed first
	Faults     map[string]string
	Sessions   []sessionRow
	Others     int // of these, but for the one that asks
}

// right is what somebody may do in an app; App is "*" for all that are not named.
type right struct{ App, Role string }

// sessionRow is a session as a list shows it.
type sessionRow struct {
	store.Session
	Browser string
	This    bool // it is the one that asks
}

// rightsOf are the rights of a user in words; none for an admin, who has all.
func rightsOf(u *User) (list []right) {
	for _, app := range sortedApps(u.Apps) {
		list = append(list, right{app, string(u.Apps[app])})
	}
	return list
}

// mustChange is the key in the settings of an account whose password somebody else has chosen: it is to be
// changed before anything else is done.
const mustChange = "passwordOfAnother"

// mustChangeIt reports whether the user has to choose a password before anything else.
func (q *request) mustChangeIt() bool {
	return q.user != nil && q.user.session != nil && look.SettingsIn(q.user.account.Settings)[mustChange] == true
}

// browsers and systems are what a browser says of itself, by the words that it says so with; the first that is
// there counts.
var (
	browsers = [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"Safari/", "Safari"}}
	systems  = [][2]string{{"Windows", "Windows"}, {"Android", "Android"}, {"iPhone", "iOS"}, {"iPad", "iPadOS"}, {"Macintosh", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// browserOf is what a browser says it is, in a few words.
func browserOf(agent string) string {
	var words []string
	for _, list := range [][][2]string{browsers, systems} {
		for _, known := range list {
			if strings.Contains(agent, known[0]) {
				words = append(words, known[1])
				break
			}
		}
	}
	if len(words) == 0 {
		return web.CutTo(agent, 40)
	}
	return strings.Join(words, " · ")
}

// sessionsOf are the sessions of a user, as a list shows them.
func (q *request) sessionsOf(user string) (rows []sessionRow, err error) {
	list, err := q.logins.Sessions(q.ctx, user)
	for _, s := range list {
		rows = append(rows, sessionRow{s, browserOf(s.Agent), q.user.session != nil && s.ID == q.user.session.ID})
	}
	return rows, err
}

// account shows the own account.
func (q *request) account() error { return q.showAccount(http.StatusOK, nil) }

func (q *request) showAccount(status int, faults map[string]string) error {
	p := accountPage{Said: q.said(), Name: q.user.Name, Rights: rightsOf(q.user), Own: q.user.session != nil, Must: q.mustChangeIt(), Faults: faults}
	if p.Own {
		var err error
		if p.Sessions, err = q.sessionsOf(q.user.Name); err != nil {
			return err
		}
		p.Others = len(p.Sessions) - 1
	}
	return q.show("account", status, p)
}

// errNoLogin is the answer to a program that shows a token, where a person has to be.
var errNoLogin = &web.Problem{Status: http.StatusForbidden, Key: "problem.nologin"}

// checkOwn checks the password that a field has of who is logged in, and says in words what is wrong with it.
// Tries count as those to log in do.
func (q *request) checkOwn(field string) (checked login.Checked, fault string, err error) {
	checked, err = q.logins.Check(q.ctx, q.Exchange, q.user.Name, q.user.account, q.Field(field))
	switch {
	case err != nil:
	case checked.Wait > 0:
		q.W.Header().Set("Retry-After", strconv.Itoa(web.Seconds(checked.Wait)))
		fault = q.text("login.wait", "n", web.Seconds(checked.Wait))
	case !checked.Is:
		fault = q.text("account.wrong")
	}
	return checked, fault, err
}

// password gives the user another password, who has to say the one there is. Other sessions end by that.
func (q *request) password() error {
	account := *q.user.account
	checked, fault, err := q.checkOwn("old")
	faults := map[string]string{}
	if fault != "" {
		faults["old"] = fault
	}
	switch {
	case err != nil:
		return err
	case checked.Wait > 0:
		return q.showAccount(http.StatusTooManyRequests, faults)
	}
	var weak login.WeakPassword
	switch {
	case errors.As(login.CheckPassword(account.Name, q.Field("password")), &weak):
		faults["password"] = q.text(string(weak))
	case q.Field("password") != q.Field("again"):
		faults["again"] = q.text("password.again")
	case q.Field("password") == q.Field("old"):
		faults["password"] = q.text("password.same")
	}
	if len(faults) > 0 {
		return q.showAccount(http.StatusUnprocessableEntity, faults)
	}
	if account.Password, err = q.logins.Hasher.Hash(q.ctx, checked.By, q.Field("password")); err != nil {
		return err
	}
	if account, err = q.accounts.UpdateUser(q.ctx, account); err != nil {
		return err
	}
	q.Logger.Info("console: a password was changed", "user", account.Name, "client", q.Client.Text, "request", q.ID)
	if err := q.keepSetting(&account, mustChange, nil); err != nil {
		return err
	}
	if _, err := q.logins.Begin(q.ctx, q.Exchange, &account, q.Field("password"), checked.By); err != nil {
		return err
	}
	return q.Redirect(saying("account", "password"))
}

// endSessions ends a session of the user's own, or all but the one that asks.
func (q *request) endSessions() error { return q.endSessionsOf(q.user.Name, "account") }

// endSessionsOf ends what the form says of the sessions of a user: one, or all but the one that asks.
func (q *request) endSessionsOf(user, back string) error {
	list, err := q.sessionsOf(user)
	if err != nil {
		return err
	}
	var ends []int64
	for _, s := range list {
		if !s.This && (q.Field("all") != "" || q.Field("id") == strconv.FormatInt(s.ID, 10)) {
			ends = append(ends, s.ID)
		}
	}
	if err := q.logins.EndSessions(q.ctx, user, ends); err != nil {
		return err
	}
	return q.Redirect(saying(back, "ended"))
}

// EndsSessions is where a form is sent that ends sessions, of who is logged in or of another user.
func (p *page) EndsSessions() string {
	if _, is := p.Body.(accountPage); is {
		return "sessions"
	}
	return "users/sessions"
}
