package console

// Cookies: what they are called and where they go to, and what shows that a browser was logged in.

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// sessionCookie has the secret of a session, and behind a tilde what shows later on that its browser
// has been logged in. It has no path: so it goes to the mount, which the browser takes from the path
// of the answer.
const sessionCookie = "xxljob_session"

// hostPrefix begins the name of a cookie that no other host, no subdomain and no page without TLS
// can set: browsers keep one only with TLS and for all of a host, so for a console that has the
// whole host.
const hostPrefix = "__Host-"

// hasHost reports whether the console has the whole host, as far as it is seen here.
func (c *console) hasHost(r *http.Request) bool {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return c.Prefix == "" && path == r.URL.EscapedPath()
}

// cameByHost reports whether a browser has the console as a whole host too: a proxy that rewrites
// paths leaves alone what the browser says of where it was.
func (q *request) cameByHost() bool {
	from, err := url.Parse(q.r.Referer())
	if err != nil || !q.hasHost(q.r) {
		return false
	}
	if from.Path == "" {
		return true
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		rt, values, _ := match(q.table, method, strings.TrimPrefix(from.Path, "/"))
		if _, err := strconv.ParseInt(values["id"], 10, 64); rt != nil && (err == nil || values["id"] == "") {
			return true
		}
	}
	return false
}

// cookies are the values of a cookie in a request: the one that is surely ours first, and one from
// before there was any, or from where there is none.
func (c *console) cookies(r *http.Request, name string) (values []string) {
	names := []string{name}
	if c.hasHost(r) {
		names = []string{hostPrefix + name, name}
	}
	for _, n := range names {
		if cookie, err := r.Cookie(n); err == nil {
			values = append(values, cookie.Value)
		}
	}
	return values
}

// setCookie sets a cookie of the mount. The path of the request is directly below it.
func (q *request) setCookie(name, value string, keep time.Duration) {
	cookie := http.Cookie{Name: name, Value: value, MaxAge: int(keep / time.Second), HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: q.isTLS()}
	if cookie.Secure && q.cameByHost() {
		if _, err := q.r.Cookie(name); err == nil { // from before
			http.SetCookie(q.w, &http.Cookie{Name: name, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: true})
		}
		cookie.Name, cookie.Path = hostPrefix+name, "/"
	}
	http.SetCookie(q.w, &cookie)
}

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
	for _, cookie := range q.cookies(q.r, sessionCookie) {
		secret, shown, has := strings.Cut(cookie, "~")
		if has && len(cookie) <= mostOfASession && account.Password != "" && hmac.Equal([]byte(shown), []byte(loginMark(account, secret))) {
			return secret
		}
	}
	return ""
}

// mostOfASession is how long a cookie of a session may be, in bytes.
const mostOfASession = 100
