package wire

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
)

// errSealed is what writing to a sealed connection gets.
var errSealed = errors.New("the call was given up")

// countedConn is a connection that knows how often it was written to.
type countedConn struct {
	net.Conn

	mu     sync.Mutex
	writes int  // guarded by mu: writes begun, but for those that failed with nothing written
	sealed bool // guarded by mu: nothing is written any more
}

func (c *countedConn) Write(b []byte) (int, error) {
	if !c.begin() {
		return 0, errSealed
	}
	n, err := c.Conn.Write(b)
	if n == 0 && err != nil {
		c.mu.Lock()
		c.writes--
		c.mu.Unlock()
	}
	return n, err
}

func (c *countedConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return false
	}
	c.writes++
	return true
}

func (c *countedConn) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// seal ends all writing and returns the count that nothing can change any more.
func (c *countedConn) seal() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	return c.writes
}

// counted finds the countedConn that c, which may be of TLS, writes to.
func counted(c net.Conn) *countedConn {
	for {
		switch layer := c.(type) {
		case *countedConn:
			return layer
		case interface{ NetConn() net.Conn }:
			c = layer.NetConn()
		default:
			return nil
		}
	}
}

// evidence tells of one request whether anything of it was written to a
// connection.
type evidence struct {
	hooks httptrace.ClientTrace // of the methods below; changed by watch alone

	mu      sync.Mutex
	got     bool         // guarded by mu: a connection was there
	reused  bool         // guarded by mu: and had served another request before
	conn    *countedConn // guarded by mu
	written int          // guarded by mu: its writes before the request
	whole   bool         // guarded by mu: the request was written to its end
	mixed   bool         // set by watch: the hooks call others' as well
}

// watch returns a context whose request the evidence is collected of.
func (e *evidence) watch(ctx context.Context) context.Context {
	e.mixed = httptrace.ContextClientTrace(ctx) != nil
	return httptrace.WithClientTrace(ctx, &e.hooks)
}

func (e *evidence) gotConn(info httptrace.GotConnInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got, e.reused, e.conn = true, info.Reused, counted(info.Conn)
	if e.conn != nil {
		e.written = e.conn.count()
	}
}

// wroteRequest is called when nothing more is read of the request's body.
func (e *evidence) wroteRequest(info httptrace.WroteRequestInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.whole = info.Err == nil
}

// isOver reports whether the request was written to its end, and the hooks are as they were, so
// that they are good for another request.
func (e *evidence) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.whole && !e.mixed
}

// reset forgets what was collected, for another request.
func (e *evidence) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got, e.reused, e.conn, e.written, e.whole = false, false, nil, 0, false
}

// close ends the request for good, after its error, and reports whether
// anything of it may have been written, and whether that was to a connection
// that was used before.
func (e *evidence) close() (sent, reused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.got {
		return false, false
	}
	return e.conn == nil || e.conn.seal() != e.written, e.reused
}
