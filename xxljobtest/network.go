package xxljobtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
)

// Transport returns a transport for xxljob.Config.HTTP.Transport that reaches these executors
// and nothing else. It connects in memory, and so works in a bubble; executors that listen on
// a port are dialled there. An executor may be in several transports. The test fails if two
// executors have the same address.
//
// The end of the test closes idle connections.
func Transport(t testing.TB, executors ...*Executor) *wire.Transport {
	t.Helper()
	hosts := map[string]*Executor{}
	for i, e := range executors {
		if e == nil {
			t.Fatalf("xxljobtest: Transport: executor %d is nil", i)
		}
		host := hostPort(e.url)
		if other := hosts[host]; other != nil && other != e {
			t.Fatalf("xxljobtest: Transport: two executors, of the apps %q and %q, have the address %s: give one of them an Address", other.o.App, e.o.App, e.Address())
		}
		hosts[host] = e
	}
	transport := wire.NewTransport(wire.TransportConfig{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		e := hosts[strings.ToLower(addr)]
		if e == nil {
			return nil, fmt.Errorf("xxljobtest: no executor of the test is at %s; there are %s", addr, strings.Join(slices.Sorted(maps.Keys(hosts)), ", "))
		}
		return e.dial(ctx, network, addr)
	}})
	t.Cleanup(transport.CloseIdle)
	return transport
}

// connect fills in what a scheduler needs to reach fake executors and to be reached by them.
func connect(t testing.TB, cfg *xxljob.HTTPConfig, executors []*Executor) {
	t.Helper()
	if len(executors) == 0 {
		return
	}
	if i := slices.Index(executors, nil); i >= 0 {
		t.Fatalf("xxljobtest: NewWith: executor %d is nil", i)
	}
	if cfg.Transport == nil {
		cfg.Transport = Transport(t, executors...)
	}
	if len(cfg.Tokens) > 0 || cfg.Insecure {
		return
	}
	tokens := map[string][]string{}
	for _, e := range executors {
		if token := e.o.Token; token != "" && !slices.Contains(tokens[e.o.App], token) {
			tokens[e.o.App] = append(tokens[e.o.App], token)
		}
	}
	cfg.Tokens, cfg.Insecure = tokens, len(tokens) == 0
}

// hostPort is what a transport dials for an address.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return strings.ToLower(net.JoinHostPort(u.Hostname(), port))
}

// dial connects to the executor.
func (e *Executor) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if p, ok := e.listener.(*pipes); ok {
		return p.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// pipes is a listener in memory. Sockets do not work in a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// errRefused is the error of dialling a closed executor.
var errRefused = errors.New("xxljobtest: connection refused: the executor is closed")

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return mine, nil
	case <-p.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
