package console

// Who a request is from.

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/store"
)

// Role is what a user may do with the jobs and runs of an app. Each includes those before it.
type Role string

// The roles.
const (
	// None is no right in an app, for who has one in all others by "*".
	None Role = "none"
	// Viewer sees jobs, runs, logs and changes of the app.
	Viewer Role = "viewer"
	// Operator starts and stops jobs, runs them once, runs them again and kills runs.
	Operator Role = "operator"
	// Editor adds, edits, copies, removes and restores jobs.
	Editor Role = "editor"
)

// User is who a request is from, and what that user may do.
type User struct {
	// Name is how the record of changes names the user: at most 64 bytes.
	Name string
	// Title is what the console calls the user; empty means Name.
	Title string
	// Admin may do everything, in all apps.
	Admin bool
	// Apps has the role for each app; "*" stands for all apps that are not named.
	Apps map[string]Role
	// Scripts lets an editor see and change the source of scripts.
	Scripts bool

	token   string         // the name of the token that was shown, if any
	session *store.Session // with Accounts; nil with a token
	account *store.User    // with Accounts
}

// ErrNoUser is what a function that says who a request is from returns for nobody.
var ErrNoUser = errors.New("console: nobody is logged in")

// Auth says who a request is from. Make one with Accounts, Loopback, Basic or Func.
type Auth struct {
	who      func(*http.Request) (User, error)
	accounts bool   // who is the console's own
	login    string // where a browser is sent that has no user, if anywhere
	ask      string // WWW-Authenticate of an answer to nobody
}

// Accounts are users of the console's own, kept in the store, who log in with a name and a
// password; see SetupCode for the first of them. Programs show a token of such a user.
func Accounts() Auth {
	return Auth{accounts: true, who: func(*http.Request) (User, error) { return User{}, ErrNoUser }}
}

// Loopback is one user with a role in all apps, for requests that come from this machine: from a
// loopback address, with a loopback name or address as Host, and without a header by which a
// proxy says for whom it asks. With Editor it may do what an admin may. It is for trying the console out; whoever can run programs on the
// machine has the role, and so has everybody whom a proxy on it lets in that sends no such header
// and a Host of its own.
func Loopback(role Role) Auth {
	return Auth{who: func(r *http.Request) (User, error) {
		if !isLoopback(r) {
			return User{}, ErrNoUser
		}
		return User{Name: "loopback", Apps: map[string]Role{"*": role}, Admin: role == Editor}, nil
	}}
}

// isLoopback reports whether a request comes from this machine, and was meant for it: a page of
// somebody else's whose name leads here says its own name as Host.
func isLoopback(r *http.Request) bool {
	for name := range r.Header { // whatever it says: a proxy may have added a second line to an empty one
		if slices.Contains([]string{"Forwarded", "X-Real-Ip", "Via"}, name) || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// Basic asks browsers for a name and a password (HTTP Basic), and check who that is. It returns
// ErrNoUser for a wrong password; any other error is one of the service that was asked. It is
// called for each request of a page, and has to bound how often somebody may try. A browser keeps what it was told until it is closed: there is no
// logging out.
func Basic(check func(user, password string) (User, error)) Auth {
	if check == nil {
		return Auth{}
	}
	return Auth{ask: `Basic realm="xxljob", charset="UTF-8"`, who: func(r *http.Request) (User, error) {
		name, password, ok := r.BasicAuth()
		if !ok {
			return User{}, ErrNoUser
		}
		return check(name, password)
	}}
}

// Func asks the host who a request is from, by a session of its own for example. who returns
// ErrNoUser for nobody; any other error is one of the service that was asked. It is called once
// for each request but those of files that pages refer to, by many goroutines at once. loginURL is where a browser without a user is
// sent, a path of the host or a whole URL; empty answers it with 401.
func Func(who func(*http.Request) (User, error), loginURL string) Auth {
	if who == nil {
		return Auth{}
	}
	return Auth{who: who, login: loginURL}
}

// ofIdentity is the user that has logged in; with a token, within the rights of both.
func ofIdentity(id *login.Identity) User {
	a := &id.User
	u := User{Name: a.Name, Title: a.Title, Admin: a.Admin, Apps: roles(a.Apps), Scripts: a.Scripts, account: a, session: id.Session}
	if t := id.Token; t != nil {
		u = within(&User{Admin: t.Admin, Apps: roles(t.Apps), Scripts: t.Scripts}, &u)
		u.token = t.Name
	}
	return u
}

func roles(apps map[string]string) map[string]Role {
	out := make(map[string]Role, len(apps))
	for app, role := range apps {
		out[app] = Role(role)
	}
	return out
}

// shown is what the console calls the user.
func (u *User) shown() string {
	if u.Title != "" {
		return u.Title
	}
	return u.Name
}

// actor is how the record of changes names who does something.
func (u *User) actor() string {
	if u.token != "" {
		return "token " + u.token + " of " + u.Name
	}
	return u.Name
}

// called returns the user that the host names, within what can be kept and shown.
func (a *Auth) called(ctx context.Context, r *http.Request) (User, error) {
	u, err := a.who(r.WithContext(ctx))
	if err != nil {
		return User{}, err
	}
	if u.Name == "" {
		return User{}, errors.New("console: the user has no name")
	}
	u.Name, u.Title = store.Shown(u.Name, store.MostUserName), store.Shown(u.Title, 255)
	return u, nil
}
