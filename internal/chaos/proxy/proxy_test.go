package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/await"
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

// answer reads a line, for at most patience.
func (c *client) answer(patience time.Duration) (string, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	line, err := c.in.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *client) mustAnswer(t *testing.T, want string) {
	t.Helper()
	if got, err := c.answer(time.Minute); got != want || err != nil {
		t.Fatalf("answer %q %v, want %q", got, err, want)
	}
}

func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
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

func TestBlackHole(t *testing.T) {
	c := newClient(t)
	c.send(t, "before")
	c.mustAnswer(t, "before")
	c.BlackHole()
	c.send(t, "during")
	if got, err := c.answer(100 * time.Millisecond); !timedOut(err) {
		t.Fatalf("answer %q %v", got, err)
	}
	was, wasIn := c.conn, c.in
	c.dial(t) // a new connection is made, and nothing comes of it
	c.send(t, "new")
	if got, err := c.answer(100 * time.Millisecond); !timedOut(err) {
		t.Fatalf("answer %q %v", got, err)
	}
	c.Heal()
	c.mustAnswer(t, "new")
	c.conn, c.in = was, wasIn
	c.mustAnswer(t, "during")
}

func TestDelay(t *testing.T) {
	c := newClient(t)
	c.send(t, "warm")
	c.mustAnswer(t, "warm")
	c.Delay(150 * time.Millisecond)
	began := time.Now()
	c.send(t, "late")
	c.mustAnswer(t, "late")
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("took %v", took)
	}
	c.Delay(time.Hour)
	c.send(t, "freed")
	if _, err := c.answer(50 * time.Millisecond); !timedOut(err) {
		t.Fatalf("%v", err)
	}
	c.Heal()
	c.mustAnswer(t, "freed")
}

func TestReset(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	c.Reset()
	if _, err := c.answer(time.Minute); err == nil || timedOut(err) {
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
	if _, err := c.answer(time.Minute); err == nil || timedOut(err) {
		t.Errorf("the client saw %v", err)
	}
	select {
	case err := <-c.echo.ended:
		t.Errorf("the target noticed: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	for range 3 { // what it says is heard by nobody
		if _, err := target.Write([]byte("hello?\n")); err != nil {
			t.Errorf("the target cannot write: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	target.Close() // it gives up by itself
	<-c.echo.ended
}

func TestOrphan(t *testing.T) {
	c := newClient(t)
	c.send(t, "one")
	c.mustAnswer(t, "one")
	c.Orphan()
	if err := <-c.echo.ended; err == nil {
		t.Error("the target saw a clean end")
	}
	if got, err := c.answer(100 * time.Millisecond); !timedOut(err) {
		t.Errorf("the client noticed: %q %v", got, err)
	}
	c.conn.Close()
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
	if line, err := c.answer(time.Minute); err == nil || timedOut(err) || len(line) > 5 {
		t.Errorf("the client saw %q %v", line, err)
	}
}

func TestTargetAway(t *testing.T) {
	c := newClient(t)
	c.echo.ln.Close()
	conn, err := net.Dial("tcp", c.Addr())
	if err == nil { // else the reset came before the dial had returned
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil || timedOut(err) {
		t.Errorf("the client saw %v", err)
	}
}
