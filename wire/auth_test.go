package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/wire"
)

func TestKeyring(t *testing.T) {
	ring, err := wire.NewKeyring(wire.Tokens{
		Shared: []string{"shared"},
		Apps:   map[string][]string{"a": {"a-old", "a-new"}, "b": {"b-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		app, token string
		scope      string
		ok         bool
	}{
		{"", "shared", "", true},
		{"a", "shared", "", true},
		{"", "a-old", "a", true}, // up to G3 no app is named: the token tells
		{"", "a-new", "a", true},
		{"a", "a-old", "a", true},
		{"a", "a-new", "a", true},
		{"b", "b-1", "b", true},
		{"b", "a-new", "", false},
		{"c", "a-new", "", false},
		{"a", "", "", false},
		{"", "", "", false},
		{"a", "A-NEW", "", false},
		{"a", "a-ne", "", false},
		{"a", "a-new ", "", false},
	} {
		scope, ok := ring.Authorize(t.Context(), c.app, c.token)
		if scope != c.scope || ok != c.ok {
			t.Errorf("app %q, token %q: %q, %v", c.app, c.token, scope, ok)
		}
	}
}

func TestKeyringRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		tokens wire.Tokens
		want   string
	}{
		"none":           {wire.Tokens{}, "no token"},
		"empty":          {wire.Tokens{Shared: []string{""}}, "is empty"},
		"three":          {wire.Tokens{Apps: map[string][]string{"a": {"s1", "s2", "s3"}}}, `app "a": 3`},
		"of two apps":    {wire.Tokens{Apps: map[string][]string{"a": {"s1"}, "b": {"s1"}}}, `that of app "a"`},
		"shared and not": {wire.Tokens{Shared: []string{"s1"}, Apps: map[string][]string{"b": {"s1"}}}, `app "b"`},
		"no name":        {wire.Tokens{Apps: map[string][]string{"": {"s1"}}}, "without a name"},
		"long":           {wire.Tokens{Shared: []string{"s1" + strings.Repeat("t", 4<<10)}}, "4098 bytes, at most 4096"},
		"long name":      {wire.Tokens{Apps: map[string][]string{strings.Repeat("a", 65): {"s1"}}}, "at most 64 bytes"},
		"control":        {wire.Tokens{Apps: map[string][]string{"a\x1b": {"s1"}}}, "without control characters"},
		"white space":    {wire.Tokens{Shared: []string{"s1\n"}}, "white space"},
		"default":        {wire.Tokens{Apps: map[string][]string{"a": {wire.DefaultToken}}}, "everybody knows"},
	} {
		_, err := wire.NewKeyring(c.tokens)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		} else if strings.Contains(err.Error(), "s1") || strings.Contains(err.Error(), wire.DefaultToken) {
			t.Errorf("%s: the error holds a token: %v", name, err)
		}
	}
	if _, err := wire.NewKeyring(wire.Tokens{Shared: []string{wire.DefaultToken}, AllowDefault: true}); err != nil {
		t.Error(err)
	}
}

func TestSameToken(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"x", "x", true}, {"x", "y", false}, {"x", "xx", false}, {"", "", false}, {"x", "", false}} {
		if wire.SameToken(c.a, c.b) != c.want {
			t.Errorf("%q and %q: not %v", c.a, c.b, c.want)
		}
	}
}

// TestIdentityBounds: neither a name nor a token that nobody has comes to whoever decides
// about callers, let alone further.
func TestIdentityBounds(t *testing.T) {
	longest := strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		app, token string
		want       string
	}{
		"the longest name":            {longest, token, wire.MsgSuccess},
		"in Chinese":                  {strings.Repeat("应", 21), token, wire.MsgSuccess},
		"a byte more":                 {longest + "a", token, wire.MsgIdentityInvalid},
		"of 900 kB":                   {strings.Repeat("a", 900_000), token, wire.MsgIdentityInvalid},
		"a line feed":                 {"a\nb", token, wire.MsgIdentityInvalid},
		"a tab":                       {"a\tb", token, wire.MsgIdentityInvalid},
		"an escape":                   {"a\x1b[31m", token, wire.MsgIdentityInvalid},
		"an escape of eight bits":     {"a\u009b31m", token, wire.MsgIdentityInvalid},
		"no UTF-8":                    {"a\xff", token, wire.MsgIdentityInvalid},
		"the longest token":           {"a", strings.Repeat("t", 4<<10), wire.MsgSuccess},
		"a token with a byte more":    {"a", strings.Repeat("t", 4<<10+1), wire.MsgIdentityInvalid},
		"a long token without a name": {"", strings.Repeat("t", 900_000), wire.MsgTokenWrong},
	} {
		longestAsked := 0
		cfg := config(t)
		cfg.Authorize = func(_ context.Context, app, token string) (string, bool) {
			longestAsked = max(longestAsked, len(app), len(token))
			return "", true
		}
		p := newPeer()
		for path, h := range map[string]http.Handler{"/api/callback": adminHandler(t, p, cfg), "/run": executorHandler(t, p, cfg)} {
			got := returned(t, post(t, h, path, `{"jobId":1,"logId":1,"callbackList":[{"logId":1}]}`, wire.HeaderApp, c.app, wire.HeaderToken, c.token))
			if got.Msg != c.want {
				t.Errorf("%s: %s: %+v, want %q", name, path, got, c.want)
			}
		}
		if longestAsked > 4<<10 {
			t.Errorf("%s: asked about %d bytes", name, longestAsked)
		}
		for _, from := range p.from {
			if len(from.App) > 64 || len(from.Scope) > 64 {
				t.Errorf("%s: a caller's app has %d bytes", name, len(from.App))
			}
		}
	}
}

// TestScope is what the token proves, whatever its caller calls itself.
func TestScope(t *testing.T) {
	for _, c := range []struct {
		app, token string
		insecure   bool
		want       wire.Caller
	}{
		{"own", "of-own", false, wire.Caller{App: "own", Scope: "own", Named: true}},
		{"", "of-own", false, wire.Caller{App: "own", Scope: "own"}},
		{"named", token, false, wire.Caller{App: "named", Named: true}},
		{"", token, false, wire.Caller{}},
		{"named", token, true, wire.Caller{App: "named", Named: true}},
		{"", "", true, wire.Caller{}},
	} {
		p, cfg := newPeer(), tokensOf(t, "own")
		if c.insecure {
			cfg = config(t)
		}
		post(t, executorHandler(t, p, cfg), "/beat", "", wire.HeaderApp, c.app, wire.HeaderToken, c.token)
		if len(p.from) != 1 || p.from[0] != c.want {
			t.Errorf("app %q, token %q: %+v, want %+v", c.app, c.token, p.from, c.want)
		}
	}
}

// TestLongPath: a path is neither told nor logged beyond a line.
func TestLongPath(t *testing.T) {
	var log bytes.Buffer
	cfg := config(t)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Authorize = func(context.Context, string, string) (string, bool) { panic("of the host") }
	long := "/" + strings.Repeat("p", 500_000)
	for _, h := range []http.Handler{executorHandler(t, newPeer(), cfg), adminHandler(t, newPeer(), cfg)} {
		post(t, h, long, "{}")
	}
	for line := range strings.Lines(log.String()) {
		if name, _, _ := strings.Cut(line, " stack="); len(name) > 400 {
			t.Errorf("logged %d bytes: %.200s", len(name), name)
		}
	}
	if log.Len() == 0 {
		t.Error("nothing is logged")
	}
	for _, h := range []http.Handler{executorHandler(t, newPeer(), config(t)), adminHandler(t, newPeer(), config(t))} {
		if got := returned(t, post(t, h, long, "{}")); len(got.Msg) > 200 {
			t.Errorf("answered with %d bytes", len(got.Msg))
		}
	}
}

// TestLongToken: it is not hashed, for nobody's is so long.
func TestLongToken(t *testing.T) {
	long := strings.Repeat("t", 4<<10+1)
	if wire.SameToken(long, long) || !wire.SameToken(long[1:], long[1:]) {
		t.Error("SameToken")
	}
	ring, err := wire.NewKeyring(wire.Tokens{Shared: []string{long[1:]}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := ring.Authorize(t.Context(), "", long[1:]); !ok {
		t.Error("the longest token is refused")
	}
	if _, ok := ring.Authorize(t.Context(), "", long); ok {
		t.Error("a longer one is let in")
	}
}

// TestLongErrors: what a peer sends where HTTP is expected is not told at length.
func TestLongErrors(t *testing.T) {
	for _, answer := range []string{
		strings.Repeat("\x1b[31m", 2000),
		"HTTP/1.1 " + strings.Repeat("9", 12_000) + " OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("a", 12_000) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: " + strings.Repeat("7", 12_000) + "\r\n\r\n",
		"HTTP/1.1 200 " + strings.Repeat("a", 40_000) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("\x1b", 5000),
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte(answer))
		}))
		_, err := executorClient(t, srv.URL, wire.ClientConfig{}).Beat(t.Context())
		if call := callError(t, err); len(call.Error()) > 2500 {
			t.Errorf("%.40q: an error of %d bytes: %.200s", answer, len(call.Error()), call.Error())
		}
		srv.Close()
	}
}

// TestManyLongNames: an admin that keeps account by the names of its callers keeps nothing
// of those that nobody has.
func TestManyLongNames(t *testing.T) {
	if testing.Short() {
		t.Skip("300 names of 900,000 bytes, one after the other; leave out -short")
	}
	synctest.Test(t, func(t *testing.T) { // refused ones are paced
		p := newPeer()
		h := adminHandler(t, jobPeer{p}, tokensOf(t))
		for i := range 300 {
			post(t, h, "/api/startJob", `{"id":1}`, wire.HeaderToken, token, wire.HeaderApp, fmt.Sprint(i, strings.Repeat("a", 900_000)))
		}
		kept := 0
		for _, from := range p.from {
			kept += len(from.App)
		}
		if kept != 0 {
			t.Errorf("names of %d MiB are kept", kept>>20)
		}
	})
}
