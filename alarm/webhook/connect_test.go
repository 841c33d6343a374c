package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xxljob/xxljob/alarm/webhook"
	"github.com/xxljob/xxljob/wire"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// counting is a server on loopback that counts its requests.
func counting(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		if handler != nil {
			handler(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s, &n
}

func send(t *testing.T, cfg webhook.Config) error {
	t.Helper()
	cfg.AllowHTTP, cfg.Logger = true, quiet()
	h, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h.Alarm(context.Background(), one())
}

func TestLoopbackIsAllowed(t *testing.T) {
	s, n := counting(t, nil)
	if err := send(t, webhook.Config{URL: s.URL + "/token-in-path"}); err != nil || n.Load() != 1 {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
}

// Nothing is connected to: the addresses are refused before.
func TestAddressesOfMetadata(t *testing.T) {
	for _, host := range []string{
		"169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "[64:ff9b::169.254.169.254]", "100.100.100.200",
		"[fd00:ec2::254]", "0.0.0.0", "[::]", "224.0.0.1",
	} {
		err := send(t, webhook.Config{URL: "http://" + host + "/token-in-path"})
		saysNoSecrets(t, err, "token-in-path")
		if err != nil && !strings.Contains(err.Error(), "is no address of a peer but ") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// A redirect is an error, and neither its target nor another is asked.
func TestRedirectsAreRefused(t *testing.T) {
	other, asked := counting(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, target := range []string{"http://169.254.169.254/latest/meta-data/", other.URL, "/elsewhere"} {
			s, n := counting(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", target)
				w.WriteHeader(status)
			})
			err := send(t, webhook.Config{URL: s.URL + "/token-in-path", Secret: "s3cret"})
			saysNoSecrets(t, err, "token-in-path", "s3cret", "169.254")
			if err != nil && !strings.Contains(err.Error(), "redirects are not followed") || n.Load() != 1 {
				t.Errorf("%d to %s: %v after %d requests", status, target, err, n.Load())
			}
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the target was asked %d times", asked.Load())
	}
}

// What a name resolves to is asked about, and not the name: here "localhost", whose addresses
// stand for link-local ones.
func TestNameThatResolvesToLinkLocal(t *testing.T) {
	s, n := counting(t, nil)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	err = send(t, webhook.Config{URL: "http://localhost:" + port + "/token-in-path", AllowIP: func(to netip.AddrPort) error {
		seen.Add(1)
		if !to.Addr().IsLoopback() || to.Addr().Is4In6() {
			t.Errorf("asked about %v", to)
		}
		return wire.DefaultAllowIP(netip.AddrPortFrom(netip.MustParseAddr("169.254.1.1"), to.Port()))
	}})
	saysNoSecrets(t, err, "token-in-path")
	if err != nil && !strings.Contains(err.Error(), "link-local") || seen.Load() == 0 || n.Load() != 0 {
		t.Errorf("%v; asked about %d addresses, %d requests", err, seen.Load(), n.Load())
	}
}

// A panic of the host's code is on a goroutine of net/http, and ends the message only.
func TestHostsCodePanics(t *testing.T) {
	plain, _ := counting(t, nil)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(quiet().Handler(), 0)
	secure.StartTLS()
	defer secure.Close()
	for name, cfg := range map[string]webhook.Config{
		"AllowIP":     {URL: plain.URL, AllowIP: func(netip.AddrPort) error { panic("of the host") }},
		"DialContext": {URL: plain.URL, DialContext: func(context.Context, string, string) (net.Conn, error) { panic("of the host") }},
		"no connection": {URL: secure.URL, DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, nil
		}},
		"TLS": {URL: secure.URL, TLS: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { panic("of the host") }}},
	} {
		if err := send(t, cfg); err == nil || !strings.Contains(err.Error(), "panic: of the host") && name != "no connection" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTLS(t *testing.T) {
	var proto, name atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		name.Store(r.TLS.ServerName)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(quiet().Handler(), 0)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	if err := send(t, webhook.Config{URL: "https://example.com/", TLS: &tls.Config{RootCAs: roots}, DialContext: dial}); err != nil {
		t.Error(err)
	}
	if proto.Load() != "HTTP/1.1" || name.Load() != "example.com" {
		t.Errorf("%v for %v", proto.Load(), name.Load())
	}
	err := send(t, webhook.Config{URL: "https://example.net/", TLS: &tls.Config{RootCAs: roots}, DialContext: dial})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with a certificate of another name: %v", err)
	}
	if err := send(t, webhook.Config{URL: "https://example.com/", DialContext: dial}); err == nil {
		t.Error("a certificate of nobody is accepted")
	}
}

func TestNoProxy(t *testing.T) {
	proxy, asked := counting(t, nil)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	err := send(t, webhook.Config{URL: "http://hook.example.org/", DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		if addr != "hook.example.org:80" {
			t.Errorf("connects to %s", addr)
		}
		return nil, errors.New("not here")
	}})
	if err == nil || asked.Load() != 0 {
		t.Errorf("%v; the proxy was asked %d times", err, asked.Load())
	}
}
