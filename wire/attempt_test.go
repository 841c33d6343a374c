package wire_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

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
	cfg := wire.ClientConfig{App: "app", Token: token, Transport: wire.NewTransport(wire.TransportConfig{})}
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
