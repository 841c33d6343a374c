package wire

// Whether anything of a request was written: connections that count, and attempts that are used
// again.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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

// payload is the body of a request, which may be sent several times.
type payload struct {
	bytes []byte
	held  int // how many attempts may still read it
}

// attempt is what one request at most needs beside its http.Request. It is used again once nothing
// of net/http refers to it any more: when the answer is there, and the request was written to its
// end. Of any other attempt net/http may read the body, or call the hooks, after its error.
type attempt struct {
	seen   evidence
	reader bytes.Reader
	body   io.ReadCloser // of reader, of a type by which net/http knows that it is in memory
}

// attempt returns one for a body. The caller gives it back by settled, or leaves it. Where ctx has
// hooks of the caller's it is a new one, which these go into: net/http dials with the hooks of a
// request, and goes on with that when the request has got another connection and is over.
func (t *Transport) attempt(ctx context.Context, body *payload) *attempt {
	var a *attempt
	had := false
	if httptrace.ContextClientTrace(ctx) == nil {
		a, had = t.attempts.Get().(*attempt)
	}
	if !had {
		a = &attempt{}
		a.body = io.NopCloser(&a.reader)
		a.seen.hooks = httptrace.ClientTrace{GotConn: a.seen.gotConn, WroteRequest: a.seen.wroteRequest}
	}
	a.reader.Reset(body.bytes)
	body.held++
	return a
}

// settled takes an attempt back whose answer has been read to its end.
func (t *Transport) settled(a *attempt, body *payload) {
	if !a.seen.isOver() {
		return // the answer came before the end of the request, say
	}
	body.held--
	a.seen.reset()
	a.reader.Reset(nil)
	t.attempts.Put(a)
}

// request makes a request that the transport cannot send a second time: it has no GetBody.
// A transport only reads the header and the URL, so all requests share them.
func (a *attempt) request(ctx context.Context, p *peer, to *target) *http.Request {
	req := http.Request{
		Method: http.MethodPost, URL: to.url, Host: to.url.Host,
		Header: p.outfit().header, Body: a.body, ContentLength: a.reader.Size(),
	}
	return req.WithContext(a.seen.watch(ctx))
}
