package web

// One request and its answer: what is read of the one, and how the other is sent.

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/slots"
)

// Exchange is one request on its way to its answer.
type Exchange struct {
	W      http.ResponseWriter
	R      *http.Request
	ID     string // by which it is found in the log and in the record of changes
	Path   string // below the mount, without a slash before it
	Client Client
	Wrote  bool // something of the answer

	mount    *Mount
	hasRead  bool     // the body
	giveBack []func() // the slots that it has
}

// Exchange is one of this mount. Leave has to be called when it has its answer.
func (m *Mount) Exchange(w http.ResponseWriter, r *http.Request) *Exchange {
	return &Exchange{W: w, R: r, ID: rand.Text()[:12], Client: ClientOf(m.TrustedProxies, r), mount: m}
}

// Beside is what goes on beside this one and may end behind it: of its request it knows nothing.
func (x *Exchange) Beside() *Exchange {
	return &Exchange{R: &http.Request{Header: http.Header{}, URL: &url.URL{}}, ID: x.ID, mount: x.mount}
}

// PolicyFor is the Content-Security-Policy, for pages that these origins may show in frames.
func PolicyFor(ancestors []string) string {
	frames := "'none'"
	if len(ancestors) > 0 {
		frames = strings.Join(ancestors, " ")
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + frames
}

// Secure says in the answer what every answer says to browsers.
func (x *Exchange) Secure(policy string) {
	h := x.W.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Request-Id", x.ID)
}

// Hold takes a slot until the request is answered, and reports whether there was one.
func (x *Exchange) Hold(ctx context.Context, of *slots.Slots, who slots.Holder) bool {
	if !of.Take(ctx, who) {
		return false
	}
	x.giveBack = append(x.giveBack, func() { of.Give(who) })
	return true
}

// Field is a value of the form.
func (x *Exchange) Field(name string) string { return x.R.PostForm.Get(name) }

// Query is a value of the query, empty where there is none or it is no text.
func (x *Exchange) Query(name string) string {
	v := x.R.URL.Query().Get(name)
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) || len(v) > 1024 {
		return ""
	}
	return v
}

// ValidQuery refuses an address with a value that Query leaves out: nobody is shown a list that is
// not what was asked for.
func (x *Exchange) ValidQuery(names []string) error {
	for _, name := range names {
		if x.Query(name) == "" && x.R.URL.Query().Get(name) != "" {
			return BadRequest(fmt.Errorf("%s is no text that could be looked for", name))
		}
	}
	return nil
}

// Bearer is the token that a program shows, if it shows any.
func (x *Exchange) Bearer() (shown string, is bool) {
	scheme, shown, _ := strings.Cut(x.R.Header.Get("Authorization"), " ")
	return shown, strings.EqualFold(scheme, "Bearer")
}

// IsPart reports whether a part of the page is wanted, which replaces what is there.
func (x *Exchange) IsPart() bool {
	return x.R.Header.Get("HX-Request") == "true" && x.R.Header.Get("HX-Request-Type") == "partial"
}

// isTLS reports whether the browser has come by TLS.
func (x *Exchange) isTLS() bool {
	return x.mount.SecureCookies || x.R.TLS != nil || x.R.Header.Get("X-Forwarded-Proto") == "https"
}

// Root is how the page finds the mount: "../" for each step below it.
func (x *Exchange) Root() string {
	if n := strings.Count(x.Path, "/"); n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// Redirect sends the browser to another page below the mount, as seen from this one.
func (x *Exchange) Redirect(to string) error {
	x.RedirectOut(x.Root() + to)
	return nil
}

// RedirectOut sends the browser to an address as it is.
func (x *Exchange) RedirectOut(to string) {
	x.W.Header().Set("Location", to)
	x.W.WriteHeader(http.StatusSeeOther)
	x.Wrote = true
}

// PathAndQuery is the page itself, as seen from the mount.
func (x *Exchange) PathAndQuery() string {
	if x.R.URL.RawQuery == "" {
		return x.Path
	}
	return x.Path + "?" + x.R.URL.RawQuery
}

// Trail is the value in the query that is kept where it is empty: where the pages between the first
// and this one of a list begin.
const Trail = "up"

// Address is the page's own address with other values in its query; a name without one, or with
// an empty one alone, is left out.
func (x *Exchange) Address(values map[string][]string) string {
	all := x.R.URL.Query()
	for name, list := range values {
		if all[name] = list; len(list) == 0 || len(list) == 1 && list[0] == "" && name != Trail {
			delete(all, name)
		}
	}
	return x.Root() + x.Path + QueryOf(all)
}

// With is the page's own address with other values in its query; an empty one is left out.
func (x *Exchange) With(values map[string]string) string {
	lists := map[string][]string{}
	for name, v := range values {
		if lists[name] = nil; v != "" {
			lists[name] = []string{v}
		}
	}
	return x.Address(lists)
}

// QueryOf is a query with the question mark before it; nothing where it has no values.
func QueryOf(values url.Values) string {
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// OwnPage is a path below the mount that somebody asked to be sent to, or "": it names no
// host, no scheme, and nothing above the mount.
func OwnPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(text, "\\\x00\r\n\t") ||
		strings.HasPrefix(u.Path, "/") || strings.Contains(u.Path, "..") || strings.Contains(u.Path, ":") || len(text) > 2048 {
		return ""
	}
	u.Fragment, u.RawFragment = "", ""
	if text = u.String(); len(text) > 2048 { // what was escaped is longer
		return ""
	}
	return text
}
