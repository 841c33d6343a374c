package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// prefixes are networks.
func prefixes(list ...string) (out []netip.Prefix) {
	for _, text := range list {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// TestClient: where a request is taken to come from, by who is connected and what the header
// says.
func TestClient(t *testing.T) {
	trusted := []string{"10.0.0.0/8", "192.0.2.7/32", "2001:db8:1::/48", "fe80::/10"}
	for _, c := range []struct {
		what    string
		trusted []string
		peer    string
		header  []string
		want    string
	}{
		{"nobody is trusted", nil, "10.0.0.1:4711", []string{"198.51.100.1"}, "10.0.0.1:4711"},
		{"a stranger says so", trusted, "203.0.113.9:4711", []string{"198.51.100.1"}, "203.0.113.9:4711"},
		{"a proxy says nothing", trusted, "10.0.0.1:4711", nil, "10.0.0.1:4711"},
		{"a proxy says nothing in a line", trusted, "10.0.0.1:4711", []string{""}, "10.0.0.1:4711"},
		{"a proxy says it", trusted, "10.0.0.1:4711", []string{"198.51.100.1"}, "198.51.100.1"},
		{"one proxy by its address", trusted, "192.0.2.7:4711", []string{"198.51.100.1"}, "198.51.100.1"},
		{"its neighbor", trusted, "192.0.2.8:4711", []string{"198.51.100.1"}, "192.0.2.8:4711"},
		{"what the client has said before is not believed", trusted, "10.0.0.1:4711", []string{"192.0.2.66, 198.51.100.1"}, "198.51.100.1"},
		{"nor in a line of its own", trusted, "10.0.0.1:4711", []string{"192.0.2.66", "198.51.100.1"}, "198.51.100.1"},
		{"nor what it says of a proxy", trusted, "10.0.0.1:4711", []string{"192.0.2.66, 10.9.9.9", "198.51.100.1"}, "198.51.100.1"},
		{"two proxies", trusted, "10.0.0.1:4711", []string{"192.0.2.66, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"two proxies in two lines", trusted, "10.0.0.1:4711", []string{"198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		{"two proxies in two families", trusted, "[2001:db8:1::5]:4711", []string{"198.51.100.1,10.0.0.2"}, "198.51.100.1"},
		{"nothing but proxies", trusted, "10.0.0.1:4711", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"a port, as some proxies add it", trusted, "10.0.0.1:4711", []string{"198.51.100.1:61234"}, "198.51.100.1"},
		{"IPv6", trusted, "10.0.0.1:4711", []string{"2001:db8::17"}, "2001:db8::17"},
		{"IPv6 in brackets", trusted, "10.0.0.1:4711", []string{"[2001:db8::17]"}, "2001:db8::17"},
		{"IPv6 with a port", trusted, "10.0.0.1:4711", []string{"[2001:db8::17]:443"}, "2001:db8::17"},
		{"IPv6 with a zone", trusted, "10.0.0.1:4711", []string{"fe81::17%<script>, 2001:db8::17%eth0"}, "2001:db8::17"},
		{"a proxy with a zone", trusted, "[fe80::1%eth0]:4711", []string{"198.51.100.1"}, "198.51.100.1"},
		{"a proxy as IPv4 in IPv6", trusted, "[::ffff:10.0.0.1]:4711", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"a proxy in between as IPv4 in IPv6", trusted, "10.0.0.1:4711", []string{"198.51.100.1, ::ffff:10.0.0.2"}, "198.51.100.1"},
		{"blanks and empty places", trusted, "10.0.0.1:4711", []string{" 198.51.100.1\t, , ", ","}, "198.51.100.1"},
		{"no address", trusted, "10.0.0.1:4711", []string{"198.51.100.1, unknown"}, "10.0.0.1:4711"},
		{"no address behind a proxy", trusted, "10.0.0.1:4711", []string{"198.51.100.1, _hidden, 10.0.0.2"}, "10.0.0.2"},
		{"garbage", trusted, "10.0.0.1:4711", []string{"<script>alert(1)</script>\x00\xff"}, "10.0.0.1:4711"},
		{"a network", trusted, "10.0.0.1:4711", []string{"198.51.100.1/24"}, "10.0.0.1:4711"},
		{"a long text", trusted, "10.0.0.1:4711", []string{strings.Repeat("9", 100_000)}, "10.0.0.1:4711"},
		{"a long chain", trusted, "10.0.0.1:4711", []string{"198.51.100.1" + strings.Repeat(",10.0.0.2", 100_000)}, "10.0.0.1:4711"},
		{"a list of nothing", trusted, "10.0.0.1:4711", []string{"198.51.100.1" + strings.Repeat(",", 100_000)}, "10.0.0.1:4711"},
		{"many lines", trusted, "10.0.0.1:4711", append([]string{"198.51.100.1"}, strings.Split(strings.Repeat("10.0.0.2,", 1000), ",")...), "10.0.0.1:4711"},
		{"a socket of the system", trusted, "@", []string{"198.51.100.1"}, "@"},
		{"nothing is known", trusted, "", []string{"198.51.100.1"}, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		if c.header != nil {
			r.Header["X-Forwarded-For"] = c.header
		}
		r.Header.Set("Forwarded", "for=192.0.2.99")
		r.Header.Set("X-Real-Ip", "192.0.2.99")
		if got := console.ClientOf(prefixes(c.trusted...), r); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// FuzzClient: whatever a header says, a request comes from an address in it or from who is
// connected.
func FuzzClient(f *testing.F) {
	f.Add("198.51.100.1, 10.0.0.2", "10.0.0.3")
	f.Add("[fe80::1%eth0]:80,", ",,unknown")
	f.Fuzz(func(t *testing.T, one, two string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:4711"
		r.Header["X-Forwarded-For"] = []string{one, two}
		got := console.ClientOf(prefixes("10.0.0.0/8"), r)
		if addr, err := netip.ParseAddr(got); got != r.RemoteAddr && (err != nil || addr.Zone() != "" || addr.Is4In6()) {
			t.Errorf("%q and %q: %q", one, two, got)
		}
	})
}

// proxied is a site behind the proxies.
func proxied(t *testing.T, proxies ...string) *site {
	return newSite(t, func(c *console.Config) { c.TrustedProxies = prefixes(proxies...) })
}

// TestClientInTheRecord: what is recorded of a client, of a session and in the log is who the
// proxy says it is.
func TestClientInTheRecord(t *testing.T) {
	const client = "198.51.100.1"
	x := proxied(t, "192.0.2.0/24") // that of httptest
	x.admin()
	j := x.job("orders", "nightly")
	b := x.browser()
	b.header.Set("X-Forwarded-For", "203.0.113.66, "+client)
	b.post("login", url.Values{"name": {"root"}, "password": {password}}).is(200)
	b.post("jobs/"+itoa(j.ID)+"/stop", nil).is(200)
	verbs := map[string]bool{}
	for _, c := range must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{Actor: "root"})).Changes {
		if verbs[c.Verb] = true; c.Client != client {
			t.Errorf("%s by %q, want %s", c.Verb, c.Client, client)
		}
	}
	if !verbs["login"] || !verbs["stop"] {
		t.Errorf("the record has %v", verbs)
	}
	found := false
	for _, s := range must1(x.store.Sessions(t.Context(), "root", store.SessionLimits{Idle: 1e18, Most: 1e18})) {
		found = found || s.Client == client
	}
	if !found {
		t.Error("no session is said to be of the client")
	}
	if !strings.Contains(x.log.String(), "client="+client+" ") {
		t.Errorf("the log has nothing of the client: %s", x.log)
	}
}

// TestFailuresBehindAProxy: who has failed often behind a proxy keeps nobody else from trying,
// and does not get away by a header of its own.
func TestFailuresBehindAProxy(t *testing.T) {
	for what, c := range map[string]struct {
		proxies []string
		apart   bool
	}{"trusted": {[]string{"192.0.2.0/24"}, true}, "not trusted": {nil, false}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := proxied(t, c.proxies...)
				x.admin()
				try := func(forwarded string, n int) int {
					b := x.browser()
					b.header.Set("X-Forwarded-For", forwarded)
					return b.post("login", url.Values{"name": {"user" + itoa(int64(n))}, "password": {"wrong password"}}).res.StatusCode
				}
				for n := range 20 {
					if got := try(itoa(int64(n))+".1.1.1, 198.51.100.1", n); got != 422 {
						t.Fatalf("try %d: status %d", n, got)
					}
				}
				if got := try("203.0.113.5, 198.51.100.1", 30); got != 429 {
					t.Errorf("status %d for who has failed twenty times", got)
				}
				want := 429
				if c.apart {
					want = 422
				}
				if got := try("198.51.100.2", 31); got != want {
					t.Errorf("status %d for another client, want %d", got, want)
				}
			})
		})
	}
}

// TestLoopbackTrustsNoProxy: on this machine is who is connected from here, and nobody whom a
// proxy speaks for, trusted or not.
func TestLoopbackTrustsNoProxy(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Auth, c.TrustedProxies = console.Loopback(console.Viewer), prefixes("127.0.0.0/8", "198.51.100.0/24")
	})
	for peer, header := range map[string]string{"198.51.100.1:4711": "127.0.0.1", "127.0.0.1:4711": "127.0.0.1"} {
		r := httptest.NewRequest(http.MethodGet, "/console/jobs", nil)
		r.RemoteAddr, r.Host = peer, "localhost"
		r.Header.Set("X-Forwarded-For", header)
		w := httptest.NewRecorder()
		if x.host.ServeHTTP(w, r); w.Code != 401 {
			t.Errorf("%s with %q: status %d", peer, header, w.Code)
		}
	}
}

// TestWhoCannotBeTrusted: what is wrong with the setting is said with all else that is wrong.
func TestWhoCannotBeTrusted(t *testing.T) {
	_, err := console.New(console.Config{Store: memory.New(), ReadOnly: true, Auth: console.Accounts(), Language: "tlh",
		TrustedProxies: append(prefixes("10.0.0.0/8", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104"), netip.Prefix{})})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`TrustedProxies 0.0.0.0/0`, `TrustedProxies ::/0`, `TrustedProxies ::ffff:10.0.0.0/104`, `TrustedProxies invalid Prefix`, `Language "tlh"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "TrustedProxies 10.0.0.0/8") {
		t.Errorf("a good network is said to be wrong: %v", err)
	}
}
