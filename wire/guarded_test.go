package wire_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// TestFunctionsOfTheUserThatPanic: a transport calls functions of its user on goroutines
// of net/http. A panic there, or the end of such a goroutine, is the error of the call,
// of which nothing was sent; it is logged once, with its stack.
func TestFunctionsOfTheUserThatPanic(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	secure.StartTLS()
	defer secure.Close()
	for how, fail := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for name, cfg := range map[string]wire.TransportConfig{
			"AllowIP":     {AllowIP: func(netip.AddrPort) error { fail(); return nil }},
			"DialContext": {DialContext: func(context.Context, string, string) (net.Conn, error) { fail(); return nil, nil }},
			"VerifyPeerCertificate": {TLS: &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
				fail()
				return nil
			}}},
			"VerifyConnection":     {TLS: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { fail(); return nil }}},
			"GetClientCertificate": {TLS: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { fail(); return nil, nil }}},
		} {
			t.Run(how+" in "+name, func(t *testing.T) {
				var text bytes.Buffer
				old := slog.Default()
				slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
				defer slog.SetDefault(old)
				c := executorClient(t, secure.URL, wire.ClientConfig{Transport: wire.NewTransport(cfg)})
				for range 2 {
					if _, err := c.Run(t.Context(), demoRun); !wire.NotSent(err) {
						t.Errorf("%v, want an error of a call that was not sent", err)
					}
				}
				if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, name) || !strings.Contains(got, "guarded_test.go") {
					t.Errorf("want one line about %s, with the stack; the log:\n%s", name, got)
				}
			})
		}
	}
}
