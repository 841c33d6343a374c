package web

// Cookies: what they are called and where they go to. None has a path: so it goes to the mount, which
// the browser takes from the path of the answer.

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// hostPrefix begins the name of a cookie that no other host, no subdomain and no page without TLS
// can set: browsers keep one only with TLS and for all of a host, so for a console that has the
// whole host.
const hostPrefix = "__Host-"

// cameByHost reports whether a browser has the console as a whole host too: a proxy that rewrites
// paths leaves alone what the browser says of where it was.
func (x *Exchange) cameByHost() bool {
	from, err := url.Parse(x.R.Referer())
	if err != nil || !x.mount.hasHost(x.R) {
		return false
	}
	return from.Path == "" || x.mount.HasPage(strings.TrimPrefix(from.Path, "/"))
}

// Cookies are the values of a cookie of the request: the one that is surely ours first, and one from
// before there was any, or from where there is none.
func (x *Exchange) Cookies(name string) (values []string) {
	names := []string{name}
	if x.mount.hasHost(x.R) {
		names = []string{hostPrefix + name, name}
	}
	for _, n := range names {
		if cookie, err := x.R.Cookie(n); err == nil {
			values = append(values, cookie.Value)
		}
	}
	return values
}

// SetCookie sets a cookie of the mount. The path of the request is directly below it.
func (x *Exchange) SetCookie(name, value string, keep time.Duration) {
	cookie := http.Cookie{Name: name, Value: value, MaxAge: int(keep / time.Second), HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: x.isTLS()}
	if cookie.Secure && x.cameByHost() {
		if _, err := x.R.Cookie(name); err == nil { // from before
			http.SetCookie(x.W, &http.Cookie{Name: name, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: true})
		}
		cookie.Name, cookie.Path = hostPrefix+name, "/"
	}
	http.SetCookie(x.W, &cookie)
}
