package console

// What is checked of every request, and what every answer says to browsers.

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// The bounds of a request.
const (
	mostBody   = 1 << 20 // bytes
	mostOpen   = 8 << 10 // bytes of a form of somebody who is not logged in, but for one that is kept
	mostBeside = 8 << 10 // bytes of what is sent beside a form that is kept: the login, and longer names
	mostFields = 200     // of a form
	mostRows   = 500     // of a list, of which a form has a field each
)

// policyFor is the Content-Security-Policy, for pages that these origins may show in frames.
func policyFor(ancestors []string) string {
	frames := "'none'"
	if len(ancestors) > 0 {
		frames = strings.Join(ancestors, " ")
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + frames
}

// readForm reads the body of a request that changes something.
func (q *request) readForm(rt *route) error {
	kind, _, err := mime.ParseMediaType(q.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return &problem{status: http.StatusUnsupportedMediaType, key: "problem.bad", cause: fmt.Errorf("content type %q", kind)}
	}
	most := int64(mostBody)
	switch {
	case rt.takesKept():
		most += mostBeside
	case q.user == nil:
		most = mostOpen
	}
	text, err := q.readBody(most)
	if err != nil {
		return err
	}
	return q.parseForm(rt, text)
}

// parseForm reads a form that has come. Its fields are counted before anything is made of them.
func (q *request) parseForm(rt *route, text string) error {
	if n, most := strings.Count(text, "&")+1, rt.fields(); n > most {
		return &problem{status: http.StatusRequestEntityTooLarge, key: "problem.fields", values: []any{"n", n, "most", most}}
	}
	form, err := url.ParseQuery(text)
	if err != nil {
		return badRequest(err)
	}
	q.r.PostForm = form
	if rt.keeps && len(text) > mostBody && q.field("show") != showResumed {
		return errTooLarge // or the login could not keep it
	}
	for name, values := range form {
		for _, text := range append([]string{name}, values...) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return badRequest(fmt.Errorf("field %q is no text", name))
			}
		}
	}
	return nil
}

// field is a value of the form.
func (q *request) field(name string) string { return q.r.PostForm.Get(name) }

// query is a value of the query, empty where there is none or it is no text.
func (q *request) query(name string) string {
	v := q.r.URL.Query().Get(name)
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) || len(v) > 1024 {
		return ""
	}
	return v
}

// validQuery refuses an address with a value that query leaves out: nobody is shown a list that is
// not what was asked for.
func (q *request) validQuery(names []string) error {
	for _, name := range names {
		if q.query(name) == "" && q.r.URL.Query().Get(name) != "" {
			return badRequest(fmt.Errorf("%s is no text that could be looked for", name))
		}
	}
	return nil
}

// root is how the page finds the mount: "../" for each step below it.
func (q *request) root() string {
	if n := strings.Count(q.path, "/"); n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// redirect sends the browser to another page below the mount, as seen from this one.
func (q *request) redirect(to string) error {
	q.w.Header().Set("Location", q.root()+to)
	q.w.WriteHeader(http.StatusSeeOther)
	q.wrote = true
	return nil
}

// ownPage is a path below the mount that somebody asked to be sent to, or "": it names no
// host, no scheme, and nothing above the mount.
func ownPage(text string) string {
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

// isTLS reports whether the browser has come by TLS.
func (q *request) isTLS() bool {
	return q.SecureCookies || q.r.TLS != nil || q.r.Header.Get("X-Forwarded-Proto") == "https"
}
