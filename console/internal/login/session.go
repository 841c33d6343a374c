package login

// Sessions of browsers, and who a request is from.

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/store"
)

// longestSession is how long a session may be.
const longestSession = 7 * 24 * time.Hour

// limits say when a session ends: by a clock that is doubted none is deleted.
func (a *Authenticator) limits() store.SessionLimits {
	return store.SessionLimits{Idle: 12 * time.Hour, Most: longestSession, Note: 10 * time.Minute, Doubted: a.Doubted()}
}

// Identity is who a request is from, with what has shown that: a session or a token.
type Identity struct {
	User    store.User
	Session *store.Session
	Token   *store.Token
}

// Who returns who a request is from; ErrNotFound for nobody. With another error, which is one of the
// store, it returns in was whose session it was a while ago, if that is known: it gives no right.
func (a *Authenticator) Who(ctx context.Context, x *web.Exchange) (id, was *Identity, err error) {
	shown, is := x.Bearer()
	cookies := x.Cookies(sessionCookie)
	if is || len(cookies) > 0 { // the store is asked for whoever comes
		who := slots.Holder{Named: x.Client.Network().String()}
		if !a.lookups.Take(ctx, who) {
			return nil, nil, web.TooOften(slots.Patience)
		}
		defer a.lookups.Give(who)
	}
	if is {
		id, err = a.byToken(ctx, shown)
		return id, nil, err
	}
	err = store.ErrNotFound
	for _, cookie := range cookies {
		if len(cookie) > mostOfASession {
			continue
		}
		hash := HashOf(secretOf(cookie))
		var s store.Session
		var account store.User
		if s, account, err = a.Accounts.Session(ctx, hash, a.limits()); err == nil {
			id = &Identity{User: account, Session: &s}
			a.known.note(s.Hash, id)
			return id, nil, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, a.known.find(hash), err
		}
		a.known.note(hash, nil)
	}
	return nil, nil, err
}

// tokenPrefix begins each token, so that those who look for leaked secrets know it.
const tokenPrefix = "xj_"

// AddToken makes a token of a user, of which its Hash is made here, and returns it with what a program shows.
func (a *Authenticator) AddToken(ctx context.Context, t store.Token) (added store.Token, shown string, err error) {
	secret := NewSecret()
	t.Hash = HashOf(secret)
	added, err = a.Accounts.AddToken(ctx, t)
	return added, tokenPrefix + strconv.FormatInt(added.ID, 10) + "_" + secret, err
}

// byToken is whose a token is.
func (a *Authenticator) byToken(ctx context.Context, shown string) (*Identity, error) {
	id, secret, ok := strings.Cut(strings.TrimPrefix(shown, tokenPrefix), "_")
	n, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || !strings.HasPrefix(shown, tokenPrefix) || len(secret) > 100 {
		return nil, store.ErrNotFound
	}
	t, account, err := a.Accounts.Token(ctx, n, HashOf(secret))
	if err != nil {
		return nil, err
	}
	return &Identity{User: account, Token: &t}, nil
}

// Refuse counts a token that is nobody's, as those of executors are counted, and returns when that may
// be answered, however many are tried from where it comes.
func (a *Authenticator) Refuse(ctx context.Context, x *web.Exchange) {
	if !a.refused.Refuse(ctx, x.Client.Network().String(), func(total uint64) {
		a.Logger.Warn("console: a token was refused", "from", x.Client.Text, "refused", total)
	}) {
		panic(http.ErrAbortHandler)
	}
}

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
func hasLoggedIn(x *web.Exchange, account *store.User) string {
	for _, cookie := range x.Cookies(sessionCookie) {
		secret, shown, has := strings.Cut(cookie, "~")
		if has && len(cookie) <= mostOfASession && account.Password != "" && hmac.Equal([]byte(shown), []byte(loginMark(account, secret))) {
			return secret
		}
	}
	return ""
}

// ErrOvertaken is returned where a user was given another password since this one was checked.
var ErrOvertaken = errors.New("console: the password has been changed in the meantime")

// Begin begins a session of the user, whose password was checked to be the one given, and has the
// browser keep its secret. Hashes that it takes count for who.
func (a *Authenticator) Begin(ctx context.Context, x *web.Exchange, checked *store.User, given string, who slots.Holder) (*store.Session, error) {
	secret := NewSecret()
	s, err := a.Accounts.AddSession(ctx, store.Session{User: checked.Name, Hash: HashOf(secret), Client: x.Client.Text, Agent: x.R.UserAgent()}, a.limits())
	if err != nil {
		return nil, err
	}
	// Another password ends the sessions that there are when it is set: this one too, if that is
	// still to come. If it is not, it is seen here.
	now, err := a.Accounts.User(ctx, checked.Name)
	if err == nil && now.Password != checked.Password {
		err = a.isStill(ctx, given, now.Password, who)
	}
	if err != nil {
		_ = a.Accounts.EndSession(ctx, checked.Name, s.ID) // it is of no use: nobody has its secret
		return nil, err
	}
	x.SetCookie(sessionCookie, marked(&now, secret), longestSession)
	return &s, nil
}

// isStill returns ErrOvertaken unless a password is the one of the hash, which is not the hash that
// it was checked by: another login may have made that anew.
func (a *Authenticator) isStill(ctx context.Context, given, hash string, who slots.Holder) error {
	is, _, err := a.Hasher.Matches(ctx, who, hash, given)
	if err == nil && !is {
		err = ErrOvertaken
	}
	return err
}

// LogOut ends a session of the user; nil for none. It leaves the browser what shows that it was logged
// in, and nothing that a session is known by.
func (a *Authenticator) LogOut(ctx context.Context, x *web.Exchange, account *store.User, s *store.Session) error {
	if s == nil {
		x.SetCookie(sessionCookie, "", -time.Second)
		return nil
	}
	a.known.note(s.Hash, nil)
	if err := a.Accounts.EndSession(ctx, s.User, s.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	a.note(ctx, x, s.User, "logout")
	x.SetCookie(sessionCookie, marked(account, NewSecret()), longestSession)
	return nil
}

// Sessions are those of a user.
func (a *Authenticator) Sessions(ctx context.Context, user string) ([]store.Session, error) {
	return a.Accounts.Sessions(ctx, user, a.limits())
}

// EndSessions ends sessions of a user, with one entry in the record of changes.
func (a *Authenticator) EndSessions(ctx context.Context, user string, ids []int64) error {
	if len(ids) > 0 && a.Record != nil {
		if _, err := a.Record.RecordChange(ctx, store.Change{Verb: "end", Object: store.ObjectSession, ObjectID: user, Before: `{"Sessions":` + strconv.Itoa(len(ids)) + `}`}); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := a.Accounts.EndSession(ctx, user, id); err != nil && !errors.Is(err, store.ErrNotFound) { // it has ended by now
			return err
		}
	}
	return nil
}
