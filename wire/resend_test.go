package wire_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// dyingServer speaks HTTP by hand, so that it can end a connection where it
// likes, and counts the arrivals of each run id.
type dyingServer struct {
	net.Listener
	mu      sync.Mutex
	arrived map[int64]int
	conns   int
}

// serveDying starts a server; then decides about the n-th request of a
// connection, from 1: whether it is answered, and whether the connection ends
// after it.
func serveDying(t *testing.T, then func(n int) (answered, ends bool)) *dyingServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dyingServer{Listener: l, arrived: map[int64]int{}}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			go s.serve(c, then)
		}
	}()
	return s
}

func (s *dyingServer) serve(c net.Conn, then func(n int) (answered, ends bool)) {
	defer c.Close()
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var run wire.TriggerRequest
		if run.Decode(b) == nil {
			s.mu.Lock()
			s.arrived[run.LogID]++
			s.mu.Unlock()
		}
		answered, ends := then(n)
		if answered {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\n{\"code\":200}")
		}
		if ends {
			return
		}
	}
}

func (s *dyingServer) count(id int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived[id]
}

func (s *dyingServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

func runOf(id int64) wire.TriggerRequest {
	run := demoRun
	run.LogID = id
	return run
}

// TestHiddenResend has a server that takes a request on a kept connection and
// then ends the connection without an answer. Other clients send the
// request again by themselves; ours must not.
func TestHiddenResend(t *testing.T) {
	srv := serveDying(t, func(n int) (bool, bool) { return n == 1, n == 2 })
	c := executorClient(t, "http://"+srv.Addr().String(), wire.ClientConfig{})
	for id := int64(1); id <= 20; id++ {
		r, err := c.Run(t.Context(), runOf(id))
		if id%2 == 1 {
			if err != nil || !r.OK() {
				t.Errorf("run %d: %+v, %v", id, r, err)
			}
		} else if call := callError(t, err); !call.Sent {
			t.Errorf("run %d: %v", id, err)
		}
		if n := srv.count(id); n != 1 {
			t.Errorf("run %d arrived %d times", id, n)
		}
	}
	if n := srv.connections(); n != 10 {
		t.Errorf("%d connections", n)
	}
}

// TestTrap32DeadConnections is trap 32: a server ends connections that it has
// answered on, while the client may or may not have noticed. Each run arrives
// once at most, and exactly once when it was accepted; what was not sent never
// arrives.
func TestTrap32DeadConnections(t *testing.T) {
	srv := serveDying(t, func(int) (bool, bool) { return true, true })
	c := executorClient(t, "http://"+srv.Addr().String(), wire.ClientConfig{})
	var unknown int
	for id := int64(1); id <= 300; id++ {
		r, err := c.Run(t.Context(), runOf(id))
		switch n := srv.count(id); {
		case err == nil && (!r.OK() || n != 1), n > 1, wire.NotSent(err) && n != 0:
			t.Errorf("run %d: %+v, %v, arrived %d times", id, r, err, n)
		case err != nil:
			unknown++
		}
	}
	t.Logf("%d of 300 with an unknown outcome", unknown)
}

// deadConn is a connection whose peer has gone: after its first request nothing
// can be written to it any more.
type deadConn struct {
	net.Conn
	mu     sync.Mutex
	writes int
	first  int // how many writes succeed
}

func (c *deadConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writes++
	dead := c.writes > c.first
	c.mu.Unlock()
	if dead {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// TestNothingWritten has a kept connection that is dead, certainly before
// anything was written: the run is sent, once, over another one.
func TestNothingWritten(t *testing.T) {
	srv := serveDying(t, func(int) (bool, bool) { return true, false })
	for _, healthy := range []int{2, 0} { // connections, after the first one
		var dialled int
		transport := wire.NewTransport(wire.TransportConfig{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, network, addr)
			dialled++
			if dialled > 1 {
				return &deadConn{Conn: c, first: healthy}, err
			}
			return &deadConn{Conn: c, first: 1}, err
		}})
		c := executorClient(t, "http://"+srv.Addr().String(), wire.ClientConfig{Transport: transport})
		first, second := int64(100+healthy), int64(200+healthy)
		if r, err := c.Run(t.Context(), runOf(first)); err != nil || !r.OK() {
			t.Fatalf("%+v, %v", r, err)
		}
		r, err := c.Run(t.Context(), runOf(second))
		switch {
		case dialled != 2:
			t.Errorf("%d connections", dialled)
		case healthy > 0 && (err != nil || !r.OK() || srv.count(second) != 1):
			t.Errorf("%+v, %v, arrived %d times", r, err, srv.count(second))
		case healthy == 0 && (!wire.NotSent(err) || srv.count(second) != 0):
			t.Errorf("%+v, %v, arrived %d times", r, err, srv.count(second))
		}
	}
}

// TestPartlyWritten says that a request of which a part was written is never
// sent again, and that its outcome is unknown.
func TestPartlyWritten(t *testing.T) {
	srv := serveDying(t, func(int) (bool, bool) { return true, false })
	var dialled int
	transport := wire.NewTransport(wire.TransportConfig{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		dialled++
		return &deadConn{Conn: c, first: 3}, err
	}})
	c := executorClient(t, "http://"+srv.Addr().String(), wire.ClientConfig{Transport: transport})
	if r, err := c.Run(t.Context(), runOf(1)); err != nil || !r.OK() {
		t.Fatalf("%+v, %v", r, err)
	}
	long := runOf(2)
	long.ExecutorParams = strings.Repeat("x", 100<<10) // more than a few writes
	_, err := c.Run(t.Context(), long)
	if call := callError(t, err); !call.Sent || dialled != 1 {
		t.Errorf("%v, %d connections", err, dialled)
	}
}
