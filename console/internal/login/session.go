package console

// Who is logged in, and how one comes to be: sessions of the users in the store, and tokens.

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/store"
)

// limits say when a session ends.
var limits = store.SessionLimits{Idle: 12 * time.Hour, Most: 7 * 24 * time.Hour, Note: 10 * time.Minute}

// limits are those at this moment: by a clock that is doubted no session is deleted.
func (q *request) sessionLimits() store.SessionLimits {
	l := limits
	l.Doubted = q.Scheduler != nil && slices.ContainsFunc(q.Scheduler.Troubles(), func(x xxljob.Trouble) bool { return x.Cause == xxljob.TroubleClock })
	return l
}

// identify sets the user of the request, if it has one.
func (q *request) identify() error {
	u, err := q.who()
	var wait *web.Problem
	switch {
	case errors.As(err, &wait):
		return wait
	case errors.Is(err, ErrNoUser), errors.Is(err, xxljob.ErrNotFound):
		if _, is := q.Bearer(); is && q.accounts != nil {
			q.refuse()
		}
		return nil
	case err != nil:
		if q.accounts != nil {
			return err // of the store
		}
		return &web.Problem{Status: http.StatusServiceUnavailable, Key: "problem.auth", Cause: err, After: 5 * time.Second}
	}
	q.user = &u
	q.ctx = xxljob.WithActor(q.ctx, u.actor())
	q.R = q.R.WithContext(q.ctx)
	if u.account != nil {
		q.looks.OfSettings(&q.look, u.account.Settings)
	}
	return nil
}

func (q *request) who() (User, error) {
	if q.accounts == nil {
		return q.Auth.called(q.ctx, q.R)
	}
	shown, is := q.Bearer()
	cookies := q.Cookies(sessionCookie)
	if is || len(cookies) > 0 { // the store is asked for whoever comes
		who := slots.Holder{Named: q.Client.Network().String()}
		if !q.lookups.Take(q.ctx, who) {
			return User{}, web.TooOften(slots.Patience)
		}
		defer q.lookups.Give(who)
	}
	if is {
		return q.byToken(shown)
	}
	err := ErrNoUser
	for _, cookie := range cookies {
		if len(cookie) > mostOfASession {
			continue
		}
		var s store.Session
		var account store.User
		if s, account, err = q.accounts.Session(q.ctx, hashOf(secretOf(cookie)), q.sessionLimits()); err == nil {
			u := ofAccount(&account)
			u.session = &s
			q.known.note(s.Hash, &u)
			return u, nil
		}
		if errors.Is(err, xxljob.ErrNotFound) {
			q.known.note(hashOf(secretOf(cookie)), nil)
		} else {
			q.was = q.known.find(hashOf(secretOf(cookie)))
			break
		}
	}
	return User{}, err
}

// refuse counts a token that is nobody's, as those of executors are counted, and returns when that may
// be answered, however many are tried from where it comes.
func (q *request) refuse() {
	if !q.refused.Refuse(q.ctx, q.Client.Network().String(), func(total uint64) {
		q.Logger.Warn("console: a token was refused", "from", q.Client.Text, "refused", total)
	}) {
		panic(http.ErrAbortHandler)
	}
}

// refusalsOf is where the tokens are counted that the scheduler and its console refuse. One that the
// host has wrapped does not say.
func refusalsOf(s xxljob.Scheduler) *atomic.Uint64 {
	if counted, is := s.(interface{ RefusedTokens() *atomic.Uint64 }); is {
		return counted.RefusedTokens()
	}
	return new(atomic.Uint64)
}

// tokenPrefix begins each token, so that those who look for leaked secrets know it.
const tokenPrefix = "xj_"

// byToken is the user of a token, with the rights that both have.
func (q *request) byToken(shown string) (User, error) {
	id, secret, ok := strings.Cut(strings.TrimPrefix(shown, tokenPrefix), "_")
	n, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || !strings.HasPrefix(shown, tokenPrefix) || len(secret) > 100 {
		return User{}, ErrNoUser
	}
	t, account, err := q.accounts.Token(q.ctx, n, hashOf(secret))
	if err != nil {
		return User{}, err
	}
	owner, mine := ofAccount(&account), User{Admin: t.Admin, Apps: roles(t.Apps), Scripts: t.Scripts}
	u := within(&mine, &owner)
	u.token, u.tokenID = t.Name, t.ID
	return u, nil
}

func ofAccount(a *store.User) User {
	return User{Name: a.Name, Title: a.Title, Admin: a.Admin, Apps: roles(a.Apps), Scripts: a.Scripts, account: a}
}

func roles(apps map[string]string) map[string]Role {
	out := make(map[string]Role, len(apps))
	for app, role := range apps {
		out[app] = Role(role)
	}
	return out
}

// newSecret is a secret of 256 bits.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// errOvertaken is returned where a user was given another password since this one was checked.
var errOvertaken = errors.New("console: the password has been changed in the meantime")

// sessionCookie has the secret of a session, and behind a tilde what shows later on that its browser
// has been logged in.
const sessionCookie = "xxljob_session"

// mostOfASession is how long a cookie of a session may be, in bytes.
const mostOfASession = 100

// secretOf is the part of a session's cookie by which the store knows the session.
func secretOf(cookie string) string {
	secret, _, _ := strings.Cut(cookie, "~")
	return secret
}

// loginMark is what a browser shows a secret with that was logged in as the user. Another password makes
// it worthless; nothing has to be kept for it, and nobody makes one who cannot read the store.
func loginMark(account *store.User, secret string) string {
	mac := hmac.New(sha256.New, []byte(account.Password))
	mac.Write([]byte("login\x00" + account.Name + "\x00" + secret)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// marked is what a cookie of the user has.
func marked(account *store.User, secret string) string {
	return secret + "~" + loginMark(account, secret)
}

// hasLoggedIn returns the secret of a cookie by which the browser shows that it was logged in as the
// user; empty where it does not.
func (q *request) hasLoggedIn(account *store.User) string {
	for _, cookie := range q.Cookies(sessionCookie) {
		secret, shown, has := strings.Cut(cookie, "~")
		if has && len(cookie) <= mostOfASession && account.Password != "" && hmac.Equal([]byte(shown), []byte(loginMark(account, secret))) {
			return secret
		}
	}
	return ""
}

// begin begins a session of the user, whose password was checked to be the one given, and has the
// browser keep its secret.
func (q *request) begin(checked *store.User, given string) (*store.Session, error) {
	secret := newSecret()
	s, err := q.accounts.AddSession(q.ctx, store.Session{User: checked.Name, Hash: hashOf(secret), Client: q.Client.Text, Agent: q.R.UserAgent()}, q.sessionLimits())
	if err != nil {
		return nil, err
	}
	// Another password ends the sessions that there are when it is set: this one too, if that is
	// still to come. If it is not, it is seen here.
	now, err := q.accounts.User(q.ctx, checked.Name)
	if err == nil && now.Password != checked.Password {
		err = q.isStill(given, now.Password)
	}
	if err != nil {
		_ = q.accounts.EndSession(q.ctx, checked.Name, s.ID) // it is of no use: nobody has its secret
		return nil, err
	}
	q.SetCookie(sessionCookie, marked(&now, secret), limits.Most)
	return &s, nil
}

// isStill returns errOvertaken unless a password is the one of the hash, which is not the hash that
// it was checked by: another login may have made that anew.
func (q *request) isStill(given, hash string) error {
	is, _, err := q.hasher.Matches(q.ctx, q.hashes, hash, given)
	if err == nil && !is {
		err = errOvertaken
	}
	return err
}

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
		form.Kept, form.KeptFor = kept(q.R.PostForm, keptPrefix, keptPrefix), q.Field("kept")
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
	t := &try{name: name, at: time.Now(), from: q.Client.Network(), secret: q.hasLoggedIn(&account)}
	wait, err := q.mayTry(t)
	if err != nil {
		return err
	}
	if wait > 0 {
		return refuse(&web.Problem{Status: http.StatusTooManyRequests, Key: "login.wait", Values: []any{"n", web.Seconds(wait)}, After: wait})
	}
	q.hashes = q.hashesFor(t)
	is, stale, err := q.hasher.Matches(q.ctx, q.hashes, account.Password, q.Field("password"))
	if err != nil {
		return err
	}
	if !is || account.Disabled {
		q.noteLogin(name, "login-failed")
		return refuse(&web.Problem{Status: http.StatusUnprocessableEntity, Key: "login.wrong"})
	}
	if err := q.passed(t); err != nil {
		return err
	}
	q.ctx = xxljob.WithActor(q.ctx, name)
	if stale {
		q.rehash(&account)
	}
	if q.user != nil && q.user.session != nil { // it is another one from now on
		_ = q.accounts.EndSession(q.ctx, q.user.session.User, q.user.session.ID)
	}
	if err := q.recordLogin(name, "login"); err != nil {
		return err
	}
	session, err := q.begin(&account, q.Field("password"))
	switch {
	case errors.Is(err, errOvertaken), errors.Is(err, xxljob.ErrNotFound): // it is not so any more
		return refuse(&web.Problem{Status: http.StatusUnprocessableEntity, Key: "login.wrong"})
	case err != nil:
		return err
	case form.KeptFor != "":
		return q.goOn(account, session)
	}
	return q.Redirect("login?in=1&next=" + url.QueryEscape(next)) // where it is seen whether the browser keeps cookies
}

// rehash keeps the password that was just given under a hash that costs more. That it does not
// succeed matters to nobody.
func (q *request) rehash(account *store.User) {
	hash, err := q.hasher.Hash(q.ctx, q.hashes, q.Field("password"))
	if err != nil {
		return
	}
	err = q.accounts.RehashPassword(q.ctx, account.Name, account.Password, hash)
	switch {
	case err == nil:
		account.Password = hash
	case !errors.Is(err, xxljob.ErrConflict): // which is another login, or another password
		q.Logger.Warn("console: a password could not be hashed anew", "user", account.Name, "error", err)
	}
}

func (q *request) logout() error {
	left := "" // of the cookie: that it was logged in, and nothing that a session is known by
	if q.user != nil && q.user.session != nil {
		s := q.user.session
		left = marked(q.user.account, newSecret())
		q.known.note(s.Hash, nil)
		if err := q.accounts.EndSession(q.ctx, s.User, s.ID); err != nil && !errors.Is(err, xxljob.ErrNotFound) {
			return err
		}
		q.noteLogin(s.User, "logout")
	}
	if left == "" {
		q.SetCookie(sessionCookie, "", -time.Second)
	} else {
		q.SetCookie(sessionCookie, left, limits.Most)
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
