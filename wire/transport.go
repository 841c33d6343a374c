package wire

// How connections are made and kept. Functions of the user's are called on goroutines of
// net/http: a panic there would end the process, and the end of such a goroutine would leave its
// request waiting.

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

// TransportConfig says how connections are made and kept. The zero value means
// the defaults named at each field.
type TransportConfig struct {
	// ConnectTimeout bounds resolving and connecting, and once more the TLS
	// handshake, apart from ClientConfig.Timeout. Default: 3 s.
	ConnectTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept. Java executors
	// close theirs after 90 s, and a request that meets such an end has an
	// unknown outcome: so it should be well below. Default: 60 s.
	IdleTimeout time.Duration
	// MaxConns is how many connections there are to one address at a time; calls
	// over that wait, within their timeout. Those of OnNewConn, at most eight, come
	// beside. Default: 64.
	MaxConns int
	// MaxIdle is how many unused connections are kept to all addresses together.
	// Default: 4096.
	MaxIdle int
	// TLS is for addresses of https. Default: the system's roots, and TLS 1.2 at
	// least. A panic in one of its functions that verify certificates or choose one is
	// dealt with as one in AllowIP.
	TLS *tls.Config
	// AllowIP decides about each address that is about to be connected to, after
	// its name was resolved; its error ends the call. Default: DefaultAllowIP, all but
	// those where clouds keep their secrets and those that are no peer's. Loopback is
	// allowed: executors on the same host are usual. A panic in it ends the call like an
	// error, and is logged once, by slog.Default.
	AllowIP func(to netip.AddrPort) error
	// DialContext makes the connections in place of the net package: to peers behind a
	// tunnel, on a socket of another kind, or in the memory of a test. It is given "tcp"
	// and the host and port of an address as they are written, and called concurrently;
	// ConnectTimeout ends its context. AllowIP is not asked about what it connects to.
	// Default: a net.Dialer. A panic in it is dealt with as one in AllowIP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

// dialFunc is TransportConfig.DialContext.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// Transport keeps the connections that clients share. It is safe for concurrent
// use.
//
// It never sends a request twice. The one of [http.Transport] does, when a kept
// connection turns out to be closed and the request's body can be had again; a
// POST of these clients cannot be had again, and each connection counts what
// was written to it. A client sends again only what was not written at all.
//
// It goes through no proxy, whatever the environment says, speaks HTTP/1.1, and
// asks for no compression; an answer that is gzip all the same is unpacked.
type Transport struct {
	http     *http.Transport
	anew     *http.Transport // the same, with a connection for each call: see OnNewConn
	dial     dialFunc
	timeout  time.Duration // of dial
	buffers  buffers       // for bodies and answers
	attempts sync.Pool     // those that nobody has
}

// NewTransport makes a Transport. It holds nothing before the first call.
func NewTransport(cfg TransportConfig) *Transport {
	panics := guard.NewLog(slog.Default)
	dialer := net.Dialer{Control: control(guarded(cfg.AllowIP, panics))}
	t := &Transport{dial: dialer.DialContext, timeout: cmp.Or(cfg.ConnectTimeout, 3*time.Second)}
	if cfg.DialContext != nil {
		t.dial = guardedDial(cfg.DialContext, panics)
	}
	maxConns := cmp.Or(cfg.MaxConns, 64)
	var http1 http.Protocols
	http1.SetHTTP1(true)
	t.http = &http.Transport{
		DialContext:            t.connect,
		Protocols:              &http1,
		TLSHandshakeTimeout:    t.timeout,
		IdleConnTimeout:        cmp.Or(cfg.IdleTimeout, 60*time.Second),
		MaxConnsPerHost:        maxConns,
		MaxIdleConnsPerHost:    maxConns,
		MaxIdleConns:           cmp.Or(cfg.MaxIdle, 4096),
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true,
	}
	if cfg.TLS != nil {
		t.http.TLSClientConfig = guardedTLS(cfg.TLS.Clone(), panics)
	}
	t.anew = t.http.Clone()
	t.anew.DisableKeepAlives, t.anew.MaxConnsPerHost = true, min(maxConns, newConns)
	return t
}

// newConns is how many connections for one call each there are to one address at a time, beside
// those of TransportConfig.MaxConns.
const newConns = 8

type newConnKey struct{}

// OnNewConn returns a context whose calls each make a connection of their own. What is between a
// client and its peers, such as a Service of Kubernetes, then chooses anew to which of them the call
// goes, where it would go to the same one for as long as a connection is kept.
func OnNewConn(ctx context.Context) context.Context {
	return context.WithValue(ctx, newConnKey{}, true)
}

// of returns what makes the connection for a call.
func (t *Transport) of(ctx context.Context) *http.Transport {
	if anew, _ := ctx.Value(newConnKey{}).(bool); anew {
		return t.anew
	}
	return t.http
}

// connect makes a connection that counts.
func (t *Transport) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, fmt.Errorf("no connection within %v: %w", t.timeout, context.DeadlineExceeded))
	defer cancel()
	c, err := t.dial(ctx, network, addr)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	return &countedConn{Conn: c}, nil
}

// CloseIdle closes the connections that no call uses.
func (t *Transport) CloseIdle() { t.http.CloseIdleConnections() }

// control asks about an address when its name has been resolved and nothing has
// been sent.
func control(allow func(netip.AddrPort) error) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return allow(netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	}
}

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
