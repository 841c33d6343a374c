package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/xxljob/xxljob/console"
)

// site is the service as its users know it: a page, a login, and sessions. A real one has a
// session store of its own; what matters here is user, which the console asks.
type site struct {
	mu       sync.Mutex
	sessions map[string]login // guarded by mu; by the secret in the cookie

	openID *openID // nil where the service has users of its own
}

// login is somebody who is logged in.
type login struct {
	user  console.User
	until time.Time
}

const (
	cookie   = "shop_session"
	lasts    = 8 * time.Hour
	mostOpen = 10_000 // sessions
)

// newSite makes the service's own pages in mux.
func newSite(ctx context.Context, mux *http.ServeMux, p provider, self string) (*site, error) {
	s := &site{sessions: map[string]login{}}
	if p.Issuer != "" {
		var err error
		if s.openID, err = newOpenID(ctx, p, self); err != nil {
			return nil, err
		}
		mux.HandleFunc("GET /login", s.openID.begin)
		mux.HandleFunc("GET /callback", s.callback)
	} else {
		mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { show(w, http.StatusOK, "") })
		mux.HandleFunc("POST /login", s.password)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/jobs/", http.StatusSeeOther) })
	mux.HandleFunc("POST /logout", s.logout)
	return s, nil
}

// user says who a request is from. The console calls it once for each.
func (s *site) user(r *http.Request) (console.User, error) {
	c, err := r.Cookie(cookie)
	if err != nil {
		return console.User{}, console.ErrNoUser
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, known := s.sessions[c.Value]
	if !known || time.Now().After(l.until) {
		return console.User{}, console.ErrNoUser
	}
	return l.user, nil
}

// begin begins a session of a user.
func (s *site) begin(w http.ResponseWriter, u console.User) {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, l := range s.sessions {
		if time.Now().After(l.until) || len(s.sessions) >= mostOpen {
			delete(s.sessions, old)
		}
	}
	s.sessions[secret] = login{u, time.Now().Add(lasts)}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(lasts / time.Second)})
}

func (s *site) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookie); err == nil {
		s.mu.Lock()
		delete(s.sessions, c.Value)
		s.mu.Unlock()
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Path: "/", MaxAge: -1})
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// users are those of the example, with passwords that are for a trial on one's own machine.
func users() map[string]struct {
	password string
	user     console.User
} {
	return map[string]struct {
		password string
		user     console.User
	}{
		"ann": {"ann's trial", console.User{Name: "ann", Title: "Ann", Admin: true}},
		"bob": {"bob's trial", console.User{Name: "bob", Title: "Bob", Apps: map[string]console.Role{"shop": console.Viewer}}},
	}
}

func (s *site) password(w http.ResponseWriter, r *http.Request) {
	u, known := users()[r.PostFormValue("name")]
	if subtle.ConstantTimeCompare([]byte(u.password), []byte(r.PostFormValue("password"))) != 1 || !known {
		show(w, http.StatusUnprocessableEntity, "That is not right.")
		return
	}
	s.begin(w, u.user)
	http.Redirect(w, r, "/jobs/", http.StatusSeeOther)
}

var page = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Shop</title>
<h1>Shop</h1><p>{{.}}</p><form method="post"><label>Name <input name="name" autocomplete="username"></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label> <button>Log in</button></form>`))

func show(w http.ResponseWriter, status int, says string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = page.Execute(w, says)
}
