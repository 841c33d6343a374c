package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
)

// host is a program with a scheduler in it, whose side of the protocol is mounted in
// a server of the program's own.
type host struct {
	xxljob.Scheduler
	*front
	store xxljob.Store
	log   *slog.Logger
	bound xxljob.ClusterConfig
	nodes int         // schedulers so far
	slow  atomic.Bool // the next trigger is two seconds late
}

func newHost(t *testing.T, store xxljob.Store, bounds xxljob.ClusterConfig) *host {
	t.Helper()
	out := &output{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the scheduler:\n%s", out)
		}
	})
	h := &host{store: store, bound: bounds, log: slog.New(slog.NewTextHandler(out, nil))}
	h.front = newFront(t, h.next(t))
	h.start(t)
	t.Cleanup(func() { h.end(t) })
	return h
}

// next makes another scheduler on the store, and returns its side of the protocol, which
// serves before the scheduler starts: what a peer reports only once must find somebody.
func (h *host) next(t *testing.T) http.Handler {
	t.Helper()
	h.nodes++
	s, err := xxljob.New(h.store, xxljob.Config{
		App: "host", Node: fmt.Sprintf("node-%d", h.nodes), Logger: h.log, Cluster: h.bound, Limits: xxljob.Limits{AllowSubSecond: true},
		HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{theApp: {theToken}}, JobsAPI: []string{theApp}, JobsAPIScripts: []string{theApp}, Transport: wire.NewTransport(wire.TransportConfig{DialContext: h.dial})},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Scheduler = s
	api, err := s.AdminHandler()
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// dial is how the scheduler connects to peers.
func (h *host) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return slowConn{conn, &h.slow}, err
}

// slowConn holds up one trigger on its way to a peer.
type slowConn struct {
	net.Conn
	slow *atomic.Bool
}

func (c slowConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("executorBlockStrategy")) && c.slow.CompareAndSwap(true, false) {
		time.Sleep(2 * time.Second)
	}
	return c.Conn.Write(p)
}

func (h *host) start(t *testing.T) {
	t.Helper()
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// end stops the scheduler, which waits for no run elsewhere.
func (h *host) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}
