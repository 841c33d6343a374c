package web

// Where a console is mounted, which it need not be told where the host strips the prefix.

import (
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// Mount is where a console is, and whom it believes about that.
type Mount struct {
	Prefix         string // of its paths, as "/console"; empty where the host strips it
	SecureCookies  bool   // cookies have the attribute Secure always
	TrustedProxies []netip.Prefix
	HasPage        func(path string) bool // whether there is a page at a path below the mount
}

// Below is the path of a request below the mount, without a slash before it; ours is false for one
// that is not of the mount.
func (m *Mount) Below(r *http.Request) (below string, ours bool) {
	if raw := r.URL.EscapedPath(); strings.Contains(strings.ToUpper(raw), "%2F") { // browsers take it for no slash: links would lead elsewhere
		return strings.TrimPrefix(raw, m.Prefix+"/"), false
	}
	return strings.CutPrefix(r.URL.Path, m.Prefix+"/")
}

// Slashed is where a request leads that is for the mount without the slash behind it, as seen from
// there; empty for others. Where the host strips the prefix, the mount has the name that was asked
// for.
func (m *Mount) Slashed(r *http.Request) string {
	if r.URL.Path != m.Prefix || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	name := path.Base(m.Prefix)
	if m.Prefix == "" {
		asked, err := url.ParseRequestURI(r.RequestURI)
		if err != nil {
			return ""
		}
		at := asked.EscapedPath()
		if name = at[strings.LastIndex(at, "/")+1:]; name == "" || name == "." || name == ".." || name == "*" {
			return ""
		}
	}
	return "./" + name + "/"
}

// hasHost reports whether the console has the whole host, as far as it is seen here.
func (m *Mount) hasHost(r *http.Request) bool {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return m.Prefix == "" && path == r.URL.EscapedPath()
}
