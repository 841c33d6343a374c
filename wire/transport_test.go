package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// TestFunctionsOfTheUserThatPanic: a transport calls functions of its user on goroutines
// of net/http. A panic there, or the end of such a goroutine, is the error of the call,
// of which nothing was sent; it is logged once, with its stack.
func TestFunctionsOfTheUserThatPanic(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	secure.StartTLS()
	defer secure.Close()
	for how, fail := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for name, cfg := range map[string]wire.TransportConfig{
			"AllowIP":     {AllowIP: func(netip.AddrPort) error { fail(); return nil }},
			"DialContext": {DialContext: func(context.Context, string, string) (net.Conn, error) { fail(); return nil, nil }},
			"VerifyPeerCertificate": {TLS: &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
				fail()
				return nil
			}}},
			"VerifyConnection":     {TLS: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { fail(); return nil }}},
			"GetClientCertificate": {TLS: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { fail(); return nil, nil }}},
		} {
			t.Run(how+" in "+name, func(t *testing.T) {
				var text bytes.Buffer
				old := slog.Default()
				slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
				defer slog.SetDefault(old)
				c := executorClient(t, secure.URL, wire.ClientConfig{Transport: wire.NewTransport(cfg)})
				for range 2 {
					if _, err := c.Run(t.Context(), demoRun); !wire.NotSent(err) {
						t.Errorf("%v, want an error of a call that was not sent", err)
					}
				}
				if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, name) || !strings.Contains(got, "transport_test.go") {
					t.Errorf("want one line about %s, with the stack; the log:\n%s", name, got)
				}
			})
		}
	}
}

// firstWaits is an executor whose first run is answered when it is told to.
type firstWaits struct {
	wire.Executor
	came, told chan struct{}
}

func (e firstWaits) Run(_ context.Context, r wire.TriggerRequest) (wire.Return, error) {
	if r.LogID == 1 {
		close(e.came)
		<-e.told
	}
	return wire.Success(), nil
}

// A request that has begun to dial, and was then served by another connection, is over before the dial
// is. Its hooks, by which the dial goes on, are not those of a later request.
func TestHooksOfALaterCaller(t *testing.T) {
	dialing, hold, shaken := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := firstWaits{came: make(chan struct{}), told: make(chan struct{})}
	srv := httptest.NewTLSServer(executorHandler(t, first, guarded(t)))
	defer srv.Close()
	var dials, handshakes atomic.Int32
	second := func(n *atomic.Int32) bool { return n.Add(1) == 2 }
	transport := wire.NewTransport(wire.TransportConfig{
		TLS: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error {
			if second(&handshakes) {
				close(shaken)
			}
			return nil
		}},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if second(&dials) {
				close(dialing)
				<-hold
			}
			var d net.Dialer
			return d.DialContext(context.WithoutCancel(ctx), network, addr)
		},
	})
	c := executorClient(t, srv.URL, wire.ClientConfig{App: "app", Token: token, Transport: transport})
	run := func(ctx context.Context, id int64) {
		r := demoRun
		r.LogID = id
		if ret, err := c.Run(ctx, r); err != nil || !ret.OK() {
			t.Error(ret, err)
		}
	}
	arrived := make(chan struct{})
	go func() { run(t.Context(), 1); arrived <- struct{}{} }()
	<-first.came
	go func() { run(t.Context(), 2); arrived <- struct{}{} }()
	<-dialing
	close(first.told) // whose connection is free for the second then
	<-arrived
	<-arrived
	var foreign atomic.Int32
	hooked := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{TLSHandshakeStart: func() { foreign.Add(1) }})
	for id := range int64(3) { // none of these dials
		run(hooked, 10+id)
	}
	close(hold)
	<-shaken
	if n := foreign.Load(); n != 0 {
		t.Errorf("the hook was called %d times for the dial of another request", n)
	}
}

// echoing accepts what it is sent where that is whole.
type echoing struct{ wire.Executor }

func (echoing) Run(_ context.Context, r wire.TriggerRequest) (wire.Return, error) {
	want := strings.Repeat(r.ExecutorHandler, len(r.ExecutorParams)/max(1, len(r.ExecutorHandler)))
	if r.ExecutorParams != want || r.ExecutorHandler != fmt.Sprintf("%08d", r.LogID) {
		return wire.Failf("run %d has the handler %q and other parameters", r.LogID, r.ExecutorHandler), nil
	}
	return wire.Success(), nil
}

// hasty answers each request when its first line is there, and never reads the rest.
func hasty(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"code\":200}")
				<-t.Context().Done()
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// Memory of requests is used again, and never that of one which is still being written: each
// request arrives as it is, whatever peers do at the same time.
func TestRequestsDoNotMix(t *testing.T) {
	srv := httptest.NewServer(executorHandler(t, echoing{}, guarded(t)))
	defer srv.Close()
	cfg := wire.ClientConfig{App: "app", Token: token, Transport: wire.NewTransport(wire.TransportConfig{}), Timeout: time.Minute} // however slow the machine is
	defer cfg.Transport.CloseIdle()
	whole, early := executorClient(t, srv.URL, cfg), executorClient(t, hasty(t), cfg)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				r := demoRun
				r.LogID = int64(1000*g + i + 1)
				r.ExecutorHandler = fmt.Sprintf("%08d", r.LogID)
				r.ExecutorParams = strings.Repeat(r.ExecutorHandler, []int{0, 10, 500, 5000}[i%4])
				if ret, err := whole.Run(t.Context(), r); err != nil || !ret.OK() {
					t.Errorf("%+v, %v", ret, err)
				}
				if i%25 == 1 { // far more than the buffers between both take
					r.ExecutorParams = strings.Repeat("x", 16<<20)
					if ret, err := early.Run(t.Context(), r); err != nil || !ret.OK() {
						t.Errorf("%+v, %v", ret, err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// Hooks that the caller's context has are called for its own request alone.
func TestHooksOfTheCaller(t *testing.T) {
	srv := httptest.NewServer(executorHandler(t, agreeable{}, guarded(t)))
	defer srv.Close()
	c := executorClient(t, srv.URL, wire.ClientConfig{App: "app", Token: token})
	var calls atomic.Int32
	hooked := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { calls.Add(1) }})
	for i := range 20 {
		ctx := t.Context()
		if i%2 == 0 {
			ctx = hooked
		}
		if ret, err := c.Run(ctx, demoRun); err != nil || !ret.OK() {
			t.Fatal(ret, err)
		}
	}
	if n := calls.Load(); n != 10 {
		t.Errorf("the hook was called %d times for 10 requests", n)
	}
}

// TestOnNewConn: calls with such a context make a connection each, and the others keep theirs.
func TestOnNewConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires, p := newPipes(), newPeer()
		srv := &http.Server{Handler: executorHandler(t, p, config(t))}
		go srv.Serve(wires)
		defer srv.Close()
		var dialled atomic.Int32
		transport := wire.NewTransport(wire.TransportConfig{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled.Add(1)
			return wires.dial(ctx, network, addr)
		}})
		defer transport.CloseIdle()
		c := executorClient(t, "http://peer.test/", wire.ClientConfig{Transport: transport})
		for i, step := range []struct {
			ctx  context.Context
			want int32
		}{{t.Context(), 1}, {t.Context(), 1}, {wire.OnNewConn(t.Context()), 2}, {wire.OnNewConn(t.Context()), 3}, {t.Context(), 3}} {
			if r, err := c.Run(step.ctx, demoRun); err != nil || !r.OK() {
				t.Errorf("%+v, %v", r, err)
			}
			if got := dialled.Load(); got != step.want {
				t.Errorf("call %d: %d connections, want %d", i, got, step.want)
			}
		}
	})
}
