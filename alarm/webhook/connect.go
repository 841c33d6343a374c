package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/wire"
)

// connector makes the connections of one hook. A transport connects on goroutines of its
// own, where a panic of the user's code would end the process.
type connector struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	tls     *tls.Config // Config.TLS, or none
	timeout time.Duration
	panics  *guard.Log
}

// newTransport returns a transport that speaks HTTP/1.1 over a new connection each time,
// through no proxy, and follows nothing.
func newTransport(cfg Config, timeout time.Duration, panics *guard.Log) *http.Transport {
	dialer := net.Dialer{Control: control(cfg.AllowIP, panics)}
	c := &connector{dial: dialer.DialContext, timeout: timeout, panics: panics, tls: &tls.Config{}}
	if cfg.DialContext != nil {
		c.dial = cfg.DialContext
	}
	if cfg.TLS != nil {
		c.tls = cfg.TLS.Clone()
	}
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		DialContext:            c.connect,
		DialTLSContext:         c.connectTLS,
		Protocols:              &http1,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 16 << 10,
	}
}

func (c *connector) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.within(ctx, func(ctx context.Context) (net.Conn, error) { return c.dial(ctx, network, addr) })
}

func (c *connector) connectTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.within(ctx, func(ctx context.Context) (net.Conn, error) {
		plain, err := c.dial(ctx, network, addr)
		if plain == nil || err != nil {
			return plain, err
		}
		cfg := c.tls.Clone()
		if host, _, err := net.SplitHostPort(addr); err == nil {
			cfg.ServerName = cmp.Or(cfg.ServerName, host)
		}
		cfg.NextProtos = []string{"http/1.1"}
		conn := tls.Client(plain, cfg)
		done := false
		defer func() { // also after a panic
			if !done {
				_ = plain.Close()
			}
		}()
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		done = true
		return conn, nil
	})
}

// within connects within the timeout, whatever the user's functions do.
func (c *connector) within(ctx context.Context, connect func(context.Context) (net.Conn, error)) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err = c.panics.Call("webhook.Config: DialContext or TLS", func() error {
		made, err := connect(ctx)
		if made == nil && err == nil {
			err = errors.New("Config.DialContext returned neither a connection nor an error")
		}
		conn = made
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// control asks about an address when its name has been resolved and nothing has been sent.
func control(allow func(netip.AddrPort) error, panics *guard.Log) func(network, address string, _ syscall.RawConn) error {
	if allow == nil {
		allow = wire.DefaultAllowIP
	}
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
		return panics.Call("webhook.Config.AllowIP", func() error { return allow(to) })
	}
}
