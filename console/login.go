package console

// The page where one logs in, and how one comes there and back. Who is logged in is said by
// internal/login.

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// loginPage is what the form of the login shows.
type loginPage struct {
	Name, Next string
	Fault      string      // a text
	Kept       []keptField // a form that goes on after the login, to KeptFor
	KeptFor    string
}

func (q *request) loginForm() error {
	if err := q.wantsUsers(); err != nil {
		return err
	}
	next := web.OwnPage(q.Query("next"))
	if q.user != nil {
		return q.Redirect(next)
	}
	p := loginPage{Next: next}
	if q.Query("in") != "" { // it comes from the login, without the cookie that it was given there
		p.Fault = q.text("login.cookies")
	}
	return q.show("login", http.StatusOK, p)
}

func (q *request) login() error {
	if err := q.wantsUsers(); err != nil {
		return err
	}
	name, next := strings.ToLower(strings.TrimSpace(q.Field("name"))), web.OwnPage(q.Field("next"))
	if len(name) > store.MostUserName {
		name = ""
	}
	form := loginPage{Name: name, Next: next}
	if q.keepsForm() {
		form.Kept, form.KeptFor = kept(q.R.PostForm, keptPrefix, keptPrefix), q.Field(keptFor)
	}
	refuse := func(p *web.Problem) error {
		if p.After > 0 {
			q.W.Header().Set("Retry-After", strconv.Itoa(web.Seconds(p.After)))
		}
		form.Fault = q.text(p.Key, p.Values...)
		return q.show("login", p.Status, form)
	}
	account, err := q.accounts.User(q.ctx, name)
	if err != nil && !errors.Is(err, xxljob.ErrNotFound) {
		return err
	}
	checked, err := q.logins.Check(q.ctx, q.Exchange, name, &account, q.Field("password"))
	switch {
	case err != nil:
		return err
	case checked.Wait > 0:
		return refuse(&web.Problem{Status: http.StatusTooManyRequests, Key: "login.wait", Values: []any{"n", web.Seconds(checked.Wait)}, After: checked.Wait})
	case !checked.Is:
		return refuse(&web.Problem{Status: http.StatusUnprocessableEntity, Key: "login.wrong"})
	}
	var former *store.Session
	if q.user != nil {
		former = q.user.session
	}
	q.ctx = xxljob.WithActor(q.ctx, name)
	session, err := q.logins.LogIn(q.ctx, q.Exchange, &account, q.Field("password"), checked, former)
	switch {
	case errors.Is(err, login.ErrOvertaken), errors.Is(err, xxljob.ErrNotFound): // it is not so any more
		return refuse(&web.Problem{Status: http.StatusUnprocessableEntity, Key: "login.wrong"})
	case err != nil:
		return err
	case form.KeptFor != "":
		return q.goOn(account, session)
	}
	return q.Redirect("login?in=1&next=" + url.QueryEscape(next)) // where it is seen whether the browser keeps cookies
}

func (q *request) logout() error {
	var account *store.User
	var session *store.Session
	if q.user != nil {
		account, session = q.user.account, q.user.session
	}
	if err := q.logins.LogOut(q.ctx, q.Exchange, account, session); err != nil {
		return err
	}
	return q.Redirect("login")
}

// sendsToLogin sends a browser that nobody is logged in with to where one logs in, and back
// afterwards. A program, or a part of a page, is told.
func (q *request) sendsToLogin() bool {
	if q.R.Method != http.MethodGet || q.IsPart() || q.R.Header.Get("Authorization") != "" {
		return false
	}
	switch {
	case q.accounts != nil:
		return q.Redirect(loginTo(q.PathAndQuery())) == nil
	case q.Auth.login != "":
		q.RedirectOut(q.Auth.login)
		return true
	}
	return false
}

// loginTo is the login that leads to a page of ours.
func loginTo(page string) string {
	if page = web.OwnPage(page); page == "" {
		return "login"
	}
	return "login?next=" + url.QueryEscape(page)
}

// loginFrom is where one logs in and, where the login is ours, comes to a page from; "" where the
// host has no page for it.
func (q *request) loginFrom(page string) string {
	if q.accounts != nil {
		return q.Root() + loginTo(page)
	}
	return q.Auth.login
}

// wayBack is the page that a request is about: its own, or the nearest above the address that a
// form was sent to.
func (q *request) wayBack() string {
	if q.R.Method == http.MethodGet {
		return q.PathAndQuery()
	}
	for at := q.Path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '/'))] {
		rt, values, _ := match(q.table, http.MethodGet, at)
		if _, err := strconv.ParseInt(values["id"], 10, 64); rt != nil && rt.needs > newcomer && (rt.of == nothing || err == nil) {
			return at
		}
	}
	return ""
}
