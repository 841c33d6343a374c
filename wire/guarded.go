package wire

// Functions of the user's that a Transport calls. They are called on goroutines of
// net/http: a panic there would end the process, and the end of such a goroutine would
// leave its request waiting.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"

	"github.com/xxljob/xxljob/internal/guard"
)

// guarded is allow, or what is allowed by default.
func guarded(allow func(netip.AddrPort) error, panics *guard.Log) func(netip.AddrPort) error {
	if allow == nil {
		return DefaultAllowIP
	}
	return func(to netip.AddrPort) error {
		return panics.Call("TransportConfig.AllowIP", func() error { return allow(to) })
	}
}

// guardedDial wraps a function that connects. One that says neither what it has connected
// to nor why not is at fault too.
func guardedDial(dial dialFunc, panics *guard.Log) dialFunc {
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		err = panics.Call("TransportConfig.DialContext", func() error {
			c, err := dial(ctx, network, addr)
			if c == nil && err == nil {
				err = errors.New("xxljob: TransportConfig.DialContext returned neither a connection nor an error")
			}
			conn = c
			return err
		})
		return conn, err
	}
}

// guardedTLS wraps the functions of a configuration that belongs to the caller.
func guardedTLS(cfg *tls.Config, panics *guard.Log) *tls.Config {
	if f := cfg.VerifyPeerCertificate; f != nil {
		cfg.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
			return panics.Call("TransportConfig.TLS.VerifyPeerCertificate", func() error { return f(raw, chains) })
		}
	}
	if f := cfg.VerifyConnection; f != nil {
		cfg.VerifyConnection = func(state tls.ConnectionState) error {
			return panics.Call("TransportConfig.TLS.VerifyConnection", func() error { return f(state) })
		}
	}
	if f := cfg.GetClientCertificate; f != nil {
		cfg.GetClientCertificate = func(req *tls.CertificateRequestInfo) (cert *tls.Certificate, err error) {
			err = panics.Call("TransportConfig.TLS.GetClientCertificate", func() error {
				c, err := f(req)
				cert = c
				return err
			})
			return cert, err
		}
	}
	return cfg
}
