package console_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections stay within the process, so that a bubble has its time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects from an address, and counts what the server reads.
func (p pipes) dial(from string, read *atomic.Int64) net.Conn {
	mine, theirs := net.Pipe()
	p.conns <- &peer{theirs, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 1000)), read}
	return mine
}

type peer struct {
	net.Conn
	from net.Addr
	read *atomic.Int64
}

func (c *peer) RemoteAddr() net.Addr { return c.from }

func (c *peer) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// serving serves the site to connections of this process.
func (x *site) serving() pipes {
	wires := pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: x.host, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(wires) }()
	x.Cleanup(func() { _ = server.Close() })
	return wires
}

// formOf is the head of a request with a form of so many bytes.
func formOf(to string, length int, cookie string) string {
	return fmt.Sprintf("POST /console/%s HTTP/1.1\r\nHost: host.example\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\nCookie: %s\r\n\r\n", to, length, cookie)
}

// TestBodiesOfNobody: those who are not logged in, from however many addresses, have eight MiB of
// the console's memory at most, for ten seconds at most, and keep nobody from logging in.
func TestBodiesOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		wires := x.serving()
		var read, ended atomic.Int64
		const conns = 150
		for i := range conns {
			go func() {
				c := wires.dial(fmt.Sprintf("192.0.2.%d", i), &read)
				defer c.Close()
				go func() { // one byte is missing
					_, _ = io.WriteString(c, formOf("login", 1<<20, "")+"kept=jobs/new&"+strings.Repeat("x", 1<<20-15))
				}()
				if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
					if res.StatusCode != http.StatusRequestTimeout && res.StatusCode != http.StatusServiceUnavailable {
						t.Errorf("status %d", res.StatusCode)
					}
					ended.Add(1)
				}
			}()
		}
		time.Sleep(time.Second)
		if n := read.Load(); n > 8<<20+conns*8<<10 || n < 7<<20 {
			t.Errorf("%d kB were read of %d connections", n>>10, conns)
		}
		form := url.Values{"name": {"root"}, "password": {password}}
		if b := x.browser().post("login", form); b.res.StatusCode != 200 || b.at == "/console/login" {
			t.Errorf("a login beside them: status %d at %s", b.res.StatusCode, b.at)
		}
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if n := ended.Load(); n != conns {
			t.Errorf("%d of %d have an answer", n, conns)
		}
	})
}

// TestLoginsWithoutAKeptForm: a login that has no form in it which goes on after it is read to eight KiB, from
// whatever address, and without the room that others need.
func TestLoginsWithoutAKeptForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		x.admin()
		wires := x.serving()
		var read atomic.Int64
		for i := range 40 {
			c := wires.dial(fmt.Sprintf("192.0.2.%d", i), &read)
			go func() { _, _ = io.WriteString(c, formOf("login", 1<<20, "")+strings.Repeat("name=kept&", 100<<10)) }()
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			must(t, err)
			if res.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("status %d", res.StatusCode)
			}
			c.Close()
		}
		if n := read.Load(); n > 40*16<<10 {
			t.Errorf("%d kB were read of 40 logins", n>>10)
		}
		time.Sleep(time.Second) // the writers notice
	})
}

// TestFormsOfNobody: without a user, a form has what it needs for a login.
func TestFormsOfNobody(t *testing.T) {
	x := newSite(t)
	x.admin()
	large := url.Values{"name": {strings.Repeat("x", 8<<10)}}
	for _, to := range []string{"logout", "look", "login"} {
		x.browser().post(to, large).is(http.StatusRequestEntityTooLarge)
	}
	x.browser().post("jobs/bulk", large).is(http.StatusUnauthorized)
}

// TestSlowForm: the form of a user that falls behind has an answer that says so, and nothing is done.
func TestSlowForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		wires := x.serving()
		c := wires.dial("192.0.2.1", new(atomic.Int64))
		defer c.Close()
		began := time.Now()
		go func() {
			_, _ = io.WriteString(c, formOf("jobs/new", 1000, root.cookies["xxljob_session"].String()))
			for {
				if _, err := c.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		must(t, err)
		if took := time.Since(began); res.StatusCode != http.StatusRequestTimeout || took < 2*time.Second || took > 3*time.Second {
			t.Errorf("status %d after %v", res.StatusCode, took)
		}
		c.Close()
		time.Sleep(2 * time.Second) // the writer notices
	})
}
