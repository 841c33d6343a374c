package wire_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// TestSlowBody is a peer that sends its body byte by byte: it is answered when
// it has fallen behind the least rate, and nothing is done.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, wires := newPeer(), newPipes()
		srv := &http.Server{Handler: adminHandler(t, p, config(t))}
		go srv.Serve(wires)
		defer srv.Close()
		conn, err := wires.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		go func() {
			fmt.Fprintf(conn, "POST /api/registry HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", len(registration))
			for _, b := range []byte(registration) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		if got := returned(t, string(b)); resp.StatusCode != 200 || got.Code != wire.CodeFail || p.count() != 0 {
			t.Errorf("%d %+v, asked %v", resp.StatusCode, got, p.asked)
		}
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("answered after %v", took)
		}
		conn.Close()
		time.Sleep(2 * time.Second) // the writer notices
	})
}

// TestSlowExecutor says that BodyTimeout is over when the body is there, or when
// there is none: an executor that takes longer is not disturbed by it.
func TestSlowExecutor(t *testing.T) {
	for name, rest := range map[string]string{"body": "Content-Length: 2\r\n\r\n\"\"", "no body": "\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			wires := newPipes()
			gone := false
			srv := &http.Server{Handler: executorHandler(t, slowExecutor{newPeer(), &gone}, config(t))}
			go srv.Serve(wires)
			defer srv.Close()
			conn, err := wires.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for range 2 {
				fmt.Fprintf(conn, "POST /beat HTTP/1.1\r\nHost: h\r\n%s", rest)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(name, err)
				}
				b, _ := io.ReadAll(resp.Body)
				if !returned(t, string(b)).OK() || gone {
					t.Errorf("%s: %s, cancelled %v", name, b, gone)
				}
			}
		})
	}
}

// slowExecutor takes half a minute for a beat, and notes whether its context
// ended meanwhile.
type slowExecutor struct {
	*peer
	gone *bool
}

func (e slowExecutor) Beat(ctx context.Context) (wire.Return, error) {
	select {
	case <-ctx.Done():
		*e.gone = true
	case <-time.After(30 * time.Second):
	}
	return wire.Success(), nil
}

// TestNoAnswerInTime has peers that never answer, or never end: the call ends in
// time, and its outcome is unknown.
func TestNoAnswerInTime(t *testing.T) {
	for name, answer := range map[string]func(c net.Conn){
		"nothing": func(net.Conn) {},
		"header without an end": func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			trickle(c, "X: y\r\n")
		},
		"body without an end": func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			trickle(c, " ")
		},
		"chunks without an end": func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			trickle(c, "1\r\nx\r\n")
		},
		"another status without an end": func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 500 No\r\n\r\n")
			trickle(c, "x")
		},
		"half an answer": func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"code\":200")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wires := newPipes()
				defer wires.Close()
				go func() {
					c, err := wires.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
						return
					}
					go answer(c)
					io.Copy(io.Discard, c) // until the client gives up
				}()
				transport := wire.NewTransport(wire.TransportConfig{DialContext: wires.dial})
				c := executorClient(t, "http://peer/", wire.ClientConfig{Transport: transport})
				began := time.Now()
				r, err := c.Run(t.Context(), demoRun)
				if call := callError(t, err); !call.Sent || r.OK() {
					t.Errorf("%+v, %v", r, err)
				}
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(time.Second) // the peer notices
			})
		})
	}
}

func trickle(c net.Conn, s string) {
	for {
		if _, err := io.WriteString(c, s); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestConnectTimeout says that a peer that cannot be reached costs the time to
// connect, or that of the call if it is less, and that nothing was sent.
func TestConnectTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]string{time.Minute: "no connection within 3s", 2 * time.Second: "no answer within 2s"} {
		synctest.Test(t, func(t *testing.T) {
			transport := wire.NewTransport(wire.TransportConfig{DialContext: newPipes().dial}) // nobody accepts
			c := executorClient(t, "http://peer/", wire.ClientConfig{Transport: transport, Timeout: timeout})
			began := time.Now()
			_, err := c.Run(t.Context(), demoRun)
			if !wire.NotSent(err) || !strings.Contains(err.Error(), "nothing sent: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", timeout, err)
			}
			if took := time.Since(began); took != min(timeout, 3*time.Second) {
				t.Errorf("%v: it took %v", timeout, took)
			}
		})
	}
}

// TestMaxConns says that calls over the bound of an address wait, and that those
// whose time is up meanwhile were not sent.
func TestMaxConns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires, p := newPipes(), newPeer()
		srv := &http.Server{Handler: executorHandler(t, slowExecutor{p, new(bool)}, config(t))}
		go srv.Serve(wires)
		defer srv.Close()
		transport := wire.NewTransport(wire.TransportConfig{MaxConns: 2, DialContext: wires.dial})
		c := executorClient(t, "http://peer/", wire.ClientConfig{Transport: transport, Timeout: 40 * time.Second})
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if r, err := c.Beat(t.Context()); err != nil || !r.OK() {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := c.Run(ctx, demoRun); !wire.NotSent(err) || p.count() != 0 {
			t.Errorf("%v, asked %v", err, p.asked)
		}
		if r, err := c.Run(t.Context(), demoRun); err != nil || !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
		calls.Wait()
	})
}

// TestCancelled says that the error of a call tells why its context ended.
func TestCancelled(t *testing.T) {
	srv := serveText(t, `{"code":200}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the run was killed")
	cancel(why)
	if _, err := executorClient(t, srv.URL, wire.ClientConfig{}).Beat(ctx); !errors.Is(err, why) || !wire.NotSent(err) {
		t.Errorf("%v", err)
	}
}
