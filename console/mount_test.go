package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/xxljob/xxljob/console"
)

// TestMountWithoutItsSlash: who comes to the mount without the slash behind it is sent to where
// links lead to pages of it, by an address that is right behind a proxy as well that has the
// mount elsewhere under the same name.
func TestMountWithoutItsSlash(t *testing.T) {
	prefixed := newSite(t, func(c *console.Config) { c.Prefix = "/ops/console" })
	stripped := newSite(t)
	for _, c := range []struct {
		name  string
		host  http.Handler
		at    string // as the browser has it
		path  string // as the handler gets it, where that is another one
		leads string
	}{
		{name: "a prefix", host: prefixed.console, at: "/ops/console", leads: "/ops/console/"},
		{name: "a prefix, and a query", host: prefixed.console, at: "/ops/console?a=b", leads: "/ops/console/"},
		{name: "stripped", host: http.StripPrefix("/console", stripped.console), at: "/console", leads: "/console/"},
		{name: "a proxy that has it elsewhere", host: prefixed.console, at: "/x/y/console", path: "/ops/console", leads: "/x/y/console/"},
		{name: "a name with a colon", host: http.StripPrefix("/a:b", stripped.console), at: "/a:b", leads: "/a:b/"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := httptest.NewRequest(method, c.at, nil)
			if c.path != "" {
				r.URL.Path = c.path
			}
			w := httptest.NewRecorder()
			c.host.ServeHTTP(w, r)
			to, err := url.Parse(w.Header().Get("Location"))
			if w.Code != http.StatusSeeOther || err != nil || to.IsAbs() || to.Host != "" {
				t.Errorf("%s, %s: status %d, Location %q", c.name, method, w.Code, w.Header().Get("Location"))
				continue
			}
			from := must1(url.Parse("https://example.com" + c.at))
			if got := from.ResolveReference(to).Path; got != c.leads {
				t.Errorf("%s, %s: it leads to %s, want %s", c.name, method, got, c.leads)
			}
		}
		r := httptest.NewRequest(http.MethodPost, c.at, nil)
		if c.path != "" {
			r.URL.Path = c.path
		}
		w := httptest.NewRecorder()
		if c.host.ServeHTTP(w, r); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d for a form", c.name, w.Code)
		}
	}
	for _, at := range []string{"", "/", "/..", "/.", "*", "/console/"} { // what a router may make of a path
		r := httptest.NewRequest(http.MethodGet, "/console", nil)
		r.URL.Path, r.RequestURI = "", at
		w := httptest.NewRecorder()
		if stripped.console.ServeHTTP(w, r); w.Code != http.StatusNotFound {
			t.Errorf("status %d, Location %q for %q", w.Code, w.Header().Get("Location"), at)
		}
	}
	for _, elsewhere := range []string{"/ops/consoles", "/ops", "/", "/ops/console//"} {
		w := httptest.NewRecorder()
		if prefixed.console.ServeHTTP(w, httptest.NewRequest(http.MethodGet, elsewhere, nil)); w.Code != http.StatusNotFound {
			t.Errorf("status %d at %s", w.Code, elsewhere)
		}
	}
}
