package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
)

// TestHostsOfTheList: nothing but a host of the list is connected to, however a URL is
// written. No connection is made: the dialer notes where it was to lead.
func TestHostsOfTheList(t *testing.T) {
	var dialed []string
	refused := errors.New("no connections in tests")
	c, err := newCallerBy([]string{"api.github.com", "Files.example:8443", "10.1.2.3", "[fd12::1]:80", "kiosk.example"}, func(_ context.Context, _, addr string) (net.Conn, error) {
		dialed = append(dialed, addr)
		return nil, refused
	})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"https://api.github.com/x":     "api.github.com:443",
		"https://API.GitHub.com:443/x": "API.GitHub.com:443",
		"http://files.example:8443/":   "files.example:8443",
		"http://10.1.2.3/":             "10.1.2.3:80",
		"http://[fd12::1]/":            "[fd12::1]:80",
	} {
		dialed = nil
		if got := work(t, c, request{URL: url}); len(dialed) != 1 || !strings.EqualFold(dialed[0], want) {
			t.Errorf("%s: connected to %q, want %q: %v", url, dialed, want, got.Err)
		}
	}
	passed := 0
	for _, url := range []string{
		"https://api.g\u0130thub.com/", // its lower case is an i and a dot
		"https://api.g%C4%B0thub.com/",
		"https://\u212Aiosk.example/",  // the Kelvin sign, whose lower case is a k
		"https://kio\u017Fk.example/",  // the long s, whose upper case is S
		"https://api\uFF0Egithub.com/", // a full-width dot
		"https://api.github.com\u3002/",
		"https://\uFF41pi.github.com/",
		"https://api.github.com./", "https://api.github.com:0443/", "https://api.github.com:80443/",
		"https://api.github.com@evil.example/", "https://evil.example#@api.github.com/", "https://evil.example\\@api.github.com/",
		"https://api.github.com%2eevil.example/", "https://api.github.com%00.evil.example/", "https://api.github.com%20/",
		"http://0x0a.1.2.3/", "http://167838211/", "http://012.1.2.3/", "http://10.1.515/", "http://[::ffff:10.1.2.3]/",
		"http://[fd12::1%25lo]/", "http://[fd12:0::1]/", "ftp://api.github.com/", "//api.github.com/", "api.github.com", "https:api.github.com",
	} {
		dialed = nil
		got := work(t, c, request{URL: url})
		if len(dialed) > 0 || got.Err == nil {
			passed++
			t.Errorf("%s: connected to %q: %v", url, dialed, got.Err)
		}
	}
	t.Logf("%d were let through", passed)
	for _, host := range []string{"api.g\u0130thub.com", "api.github.com\u3002", "m\u00FCnchen.example", "a b", "a%20b", "user@host", "host/path"} {
		if _, err := newCaller([]string{host}); err == nil {
			t.Errorf("-http-allow %q is taken", host)
		}
	}
	if _, err := newCaller([]string{"m\u00FCnchen.example"}); err == nil || !strings.Contains(err.Error(), "xn--") {
		t.Errorf("%v: want the hint at Punycode", err)
	}
}

// TestAddressesOfTheList: a name of the list may lead to any address, by then. Those where
// clouds keep their secrets are refused before anything is sent.
func TestAddressesOfTheList(t *testing.T) {
	for _, addr := range []string{"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:443", "100.100.100.200:80", "0.0.0.0:80", "[fe80::1%lo]:80", "nonsense"} {
		if allowAddress("tcp", addr, nil) == nil {
			t.Errorf("%s is connected to", addr)
		}
	}
	for _, addr := range []string{"127.0.0.1:80", "10.1.2.3:80", "[::1]:80", "[2a00::1]:443"} {
		if err := allowAddress("tcp", addr, nil); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	// The dialer asks: an address of the list is refused without a connection.
	c, err := newCaller([]string{"169.254.169.254"})
	if err != nil {
		t.Fatal(err)
	}
	if got := work(t, c, request{URL: "http://169.254.169.254/"}); got.Err == nil || !strings.Contains(got.Err.Error(), "no address of a peer") {
		t.Errorf("%v", got.Err)
	}
}
