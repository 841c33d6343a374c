package wire_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/wire"
)

// TestDialContext: connections may be made by the user's means, here in memory. It gets the
// address as it is written, nobody asks whether its IP is allowed, and of a call for which
// it fails nothing was sent.
func TestDialContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires, p := newPipes(), newPeer()
		srv := &http.Server{Handler: executorHandler(t, p, config(t))}
		go srv.Serve(wires)
		defer srv.Close()
		nowhere := errors.New("no such host here")
		transport := wire.NewTransport(wire.TransportConfig{
			AllowIP: func(to netip.AddrPort) error { t.Errorf("asked about %v", to); return nil },
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if network != "tcp" || addr != "peer.test:80" {
					return nil, nowhere
				}
				return wires.dial(ctx, network, addr)
			},
		})
		c := executorClient(t, "http://peer.test/", wire.ClientConfig{Transport: transport})
		if r, err := c.Run(t.Context(), demoRun); err != nil || !r.OK() || p.count() != 1 {
			t.Errorf("%+v, %v, asked %v", r, err, p.asked)
		}
		c = executorClient(t, "http://other.test:9999/", wire.ClientConfig{Transport: transport})
		if _, err := c.Run(t.Context(), demoRun); !wire.NotSent(err) || !errors.Is(err, nowhere) {
			t.Errorf("%v, want %v and nothing sent", err, nowhere)
		}
	})
}

// TestDialContextThatReturnsNothing: neither a connection nor an error is an error.
func TestDialContextThatReturnsNothing(t *testing.T) {
	transport := wire.NewTransport(wire.TransportConfig{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, nil },
	})
	c := executorClient(t, "http://peer.test/", wire.ClientConfig{Transport: transport})
	if _, err := c.Run(t.Context(), demoRun); !wire.NotSent(err) {
		t.Errorf("%v", err)
	}
}
