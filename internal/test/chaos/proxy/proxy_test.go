package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/test/await"
)

// echo is a target that answers each line with itself. Accepted connections can be
// looked at.
type echo struct {
	ln    net.Listener
	conns chan net.Conn
	ended chan error // why the reading of a connection ended
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{ln: ln, conns: make(chan net.Conn, 8), ended: make(chan error, 8)}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			e.conns <- c
			go func() {
				_, err := io.Copy(c, c)
				e.ended <- err
			}()
		}
	}()
	return e
}

// client is one connection through a new proxy.
type client struct {
	*Proxy
	echo *echo
	conn net.Conn
	in   *bufio.Reader
}

func newClient(t *testing.T) *client {
	t.Helper()
	c := &client{echo: newEcho(t)}
	var err error
	if c.Proxy, err = Listen(c.echo.ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Proxy.Close() })
	c.dial(t)
	return c
}

func (c *client) dial(t *testing.T) {
	t.Helper()
	var err error
	if c.conn, err = net.Dial("tcp", c.Addr()); err != nil {
		t.Fatal(err)
	}
	conn := c.conn
	t.Cleanup(func() { conn.Close() })
	c.in = bufio.NewReader(c.conn)
}

func (c *client) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// answer reads a line.
func (c *client) answer() (string, error) {
	line, err := c.in.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *client) mustAnswer(t *testing.T, want string) {
	t.Helper()
	if got, err := c.answer(); got != want || err != nil {
		t.Fatalf("answer %q %v, want %q", got, err, want)
	}
}

// passing is one direction of a connection through a proxy, in virtual time.
type passing struct {
	Proxy
	from net.Conn
	came atomic.Int64 // bytes
}

func newPassing(t *testing.T) *passing {
	from, client := net.Pipe()
	server, to := net.Pipe()
	p := &passing{Proxy: Proxy{changed: make(chan struct{})}, from: from}
	l := &link{client: client, server: server, over: make(chan struct{})}
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, client, server, true) })
	both.Go(func() {
		for buf := make([]byte, 1); ; p.came.Add(1) {
			if _, err := to.Read(buf); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() { l.close(); both.Wait() })
	return p
}

// want sends a byte or none, and checks how many have come once nothing moves any more.
func (p *passing) want(t *testing.T, when string, sent int, n int64) {
	t.Helper()
	for range sent {
		if _, err := p.from.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	if got := p.came.Load(); got != n {
		t.Errorf("%s: %d bytes have come, want %d", when, got, n)
	}
}

func TestPass(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	big := strings.Repeat("x", 1<<20)
	go io.WriteString(c.conn, big+"\n")
	c.mustAnswer(t, big)
	if n := c.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	_ = c.conn.(*net.TCPConn).CloseWrite() // a clean end gets through
	if err := <-c.echo.ended; err != nil {
		t.Errorf("the target saw %v", err)
	}
}

// TestRetarget: only connections that are made later go elsewhere.
func TestRetarget(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	<-c.echo.conns
	other := newEcho(t)
	c.Retarget(other.ln.Addr().String())
	c.send(t, "two")
	c.mustAnswer(t, "two")
	c.dial(t)
	c.send(t, "three")
	c.mustAnswer(t, "three")
	if len(c.echo.conns) != 0 || len(other.conns) != 1 {
		t.Errorf("%d and %d connections, want the new one at the new target", len(c.echo.conns), len(other.conns))
	}
}

func TestBlackHole(t *testing.T) {
	c := newClient(t)
	c.send(t, "before")
	c.mustAnswer(t, "before")
	c.BlackHole()
	c.send(t, "during")
	was, wasIn := c.conn, c.in
	c.dial(t) // a new connection is made, and nothing comes of it
	c.send(t, "new")
	c.Heal()
	c.mustAnswer(t, "new")
	c.conn, c.in = was, wasIn
	c.mustAnswer(t, "during")
}

func TestBlackHoleHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPassing(t)
		p.want(t, "before", 1, 1)
		p.BlackHole()
		p.want(t, "during", 1, 1)
		time.Sleep(3 * time.Hour)
		p.want(t, "long after", 0, 1)
		p.Heal()
		p.want(t, "healed", 0, 2)
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPassing(t)
		p.Delay(150 * time.Millisecond)
		p.want(t, "at once", 1, 0)
		time.Sleep(150*time.Millisecond - time.Nanosecond)
		p.want(t, "almost", 0, 0)
		time.Sleep(time.Nanosecond)
		p.want(t, "then", 0, 1)
		p.Delay(time.Hour)
		p.want(t, "of an hour", 1, 1)
		p.Heal()
		p.want(t, "healed", 0, 2)
	})
}

func TestReset(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	c.Reset()
	if _, err := c.answer(); err == nil {
		t.Errorf("the client saw %v", err)
	}
	if err := <-c.echo.ended; err == nil {
		t.Error("the target saw a clean end")
	}
	c.dial(t)
	c.send(t, "again")
	c.mustAnswer(t, "again")
}

func TestHalfOpen(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	target := <-c.echo.conns
	c.HalfOpen()
	if _, err := c.answer(); err == nil {
		t.Errorf("the client saw %v", err)
	}
	for range 3 { // what it says is heard by nobody
		if _, err := target.Write([]byte("hello?\n")); err != nil {
			t.Errorf("the target cannot write: %v", err)
		}
	}
	target.Close() // it gives up by itself
	if err := <-c.echo.ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the target noticed: %v", err)
	}
}

func TestOrphan(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	c.Orphan()
	if err := <-c.echo.ended; err == nil {
		t.Error("the target saw a clean end")
	}
	for range 3 {
		c.send(t, "hello?") // to one that has noticed, it is an error
	}
	heard := make(chan error)
	go func() { _, err := c.answer(); heard <- err }()
	c.conn.Close()
	if err := <-heard; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the client noticed: %v", err)
	}
	await.Until(t, "the connection that the client closed is gone", func() bool { return c.Connections() == 0 })
}

func TestCutAfter(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	c.CutAfter(10)
	c.send(t, "four") // five bytes
	c.mustAnswer(t, "four")
	if _, err := io.WriteString(c.conn, "too long to pass\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := c.answer(); err == nil || len(line) > 5 {
		t.Errorf("the client saw %q %v", line, err)
	}
}

func TestTargetAway(t *testing.T) {
	c := newClient(t)
	c.echo.ln.Close()
	conn, err := net.Dial("tcp", c.Addr())
	if err == nil { // else the reset came before the dial had returned
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil {
		t.Errorf("the client saw %v", err)
	}
}
