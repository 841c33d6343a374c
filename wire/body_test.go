package wire_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// TestLeastRate sends bodies at several rates, over a connection and to a handler whose
// ResponseWriter has no deadlines.
func TestLeastRate(t *testing.T) {
	small := registration
	middle := registration + strings.Repeat(" ", 60<<10-len(registration))
	big := registration + strings.Repeat(" ", 120<<10-len(registration))
	for name, c := range map[string]struct {
		body   string
		piece  int
		pause  time.Duration
		chunks bool
		want   bool
		before time.Duration // it is answered
	}{
		"at once":                       {small, len(small), 0, false, true, 0},
		"late":                          {small, len(small), 1900 * time.Millisecond, false, true, 2 * time.Second},
		"three packets, each resent":    {small, len(small)/3 + 1, 600 * time.Millisecond, false, true, 2 * time.Second},
		"byte by byte":                  {small, 1, 100 * time.Millisecond, false, false, 2100 * time.Millisecond},
		"byte by byte, in chunks":       {small, 1, 100 * time.Millisecond, true, false, 2300 * time.Millisecond},
		"nothing":                       {small, len(small), time.Minute, false, false, 2100 * time.Millisecond},
		"60 KiB at 256 kbit/s":          {middle, 1460, 45 * time.Millisecond, false, true, 3 * time.Second},
		"60 KiB at 128 kbit/s":          {middle, 1460, 90 * time.Millisecond, false, true, 4 * time.Second},
		"60 KiB at 32 kbit/s":           {middle, 1460, 360 * time.Millisecond, false, false, 3 * time.Second},
		"120 KiB at 128 kbit/s":         {big, 1460, 90 * time.Millisecond, false, true, 8 * time.Second},
		"120 KiB at 128 kbit/s, chunks": {big, 1460, 90 * time.Millisecond, true, true, 8 * time.Second},
		"120 KiB, and a pause":          {big, 60 << 10, 3 * time.Second, false, false, 6 * time.Second},
		"120 KiB, but for its end":      {big, len(big) - 1, time.Second, false, true, 3 * time.Second},
	} {
		length := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(c.body))
		if c.chunks {
			length = "Transfer-Encoding: chunked\r\n\r\n"
		}
		check := func(t *testing.T, got wire.Return, p *peer, took time.Duration) {
			if got.OK() != c.want || p.count() == 1 != c.want || took > c.before {
				t.Errorf("after %v: %+v, asked %v", took, got, p.asked)
			}
		}
		t.Run(name, func(t *testing.T) {
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
					fmt.Fprintf(conn, "POST /api/registry HTTP/1.1\r\nHost: h\r\n%s", length)
					in := &slowReader{body: c.body, piece: c.piece, pause: c.pause}
					var err error
					for err == nil && in.body != "" {
						piece := in.next()
						if c.chunks {
							piece = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
						}
						_, err = io.WriteString(conn, piece)
					}
					if c.chunks && err == nil {
						_, _ = io.WriteString(conn, "0\r\n\r\n")
					}
				}()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				check(t, returned(t, string(b)), p, time.Since(began))
				conn.Close()
				time.Sleep(2 * time.Minute) // the writer notices
			})
		})
		if name == "nothing" {
			continue // that takes a deadline
		}
		t.Run(name+", without deadlines", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer()
				h := adminHandler(t, p, config(t))
				r := httptest.NewRequest(http.MethodPost, "http://peer/api/registry", &slowReader{body: c.body, piece: c.piece, pause: c.pause})
				if r.ContentLength = int64(len(c.body)); c.chunks {
					r.ContentLength = -1
				}
				began := time.Now()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if name == "120 KiB, and a pause" {
					c.before += time.Second // it is looked at when the piece has come
				}
				check(t, returned(t, w.Body.String()), p, time.Since(began))
			})
		})
	}
}

// TestMinBodyRate: a host with poor lines may ask for less.
func TestMinBodyRate(t *testing.T) {
	for rate, want := range map[int64]bool{0: false, 1 << 10: true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config(t)
			cfg.MinBodyRate, cfg.BodyTimeout = rate, time.Minute
			in := &slowReader{body: large(registration), piece: 1460, pause: time.Second}
			r := httptest.NewRequest(http.MethodPost, "http://peer/api/registry", in)
			w := httptest.NewRecorder()
			adminHandler(t, newPeer(), cfg).ServeHTTP(w, r)
			if got := returned(t, w.Body.String()); got.OK() != want {
				t.Errorf("%d bytes a second: %+v", rate, got)
			}
		})
	}
}

// slowReader is a body that comes in pieces.
type slowReader struct {
	body  string
	piece int
	pause time.Duration
	left  string // of the piece
}

func (r *slowReader) next() string {
	time.Sleep(r.pause)
	n := min(r.piece, len(r.body))
	piece := r.body[:n]
	r.body = r.body[n:]
	return piece
}

func (r *slowReader) Read(b []byte) (int, error) {
	if r.left == "" {
		if r.body == "" {
			return 0, io.EOF
		}
		r.left = r.next()
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// TestIdleBeforeTheToken: connections that have shown no token, and send no body, are
// answered after the two seconds that every body has, at both sides, and hold no slot.
func TestIdleBeforeTheToken(t *testing.T) {
	cfg := guarded(t)
	cfg.MaxBodies = 1
	p := newPeer()
	admin, executor := adminHandler(t, p, cfg), executorHandler(t, p, cfg)
	for path, h := range map[string]http.Handler{"/api/registry": admin, "/api/callback": admin, "/api/nowhere": admin, "/run": executor, "/nowhere": executor} {
		for _, length := range []string{"Content-Length: 300", "Content-Length: 200000", "Transfer-Encoding: chunked"} {
			synctest.Test(t, func(t *testing.T) {
				wires := newPipes()
				srv := &http.Server{Handler: h}
				go srv.Serve(wires)
				defer srv.Close()
				conn, err := wires.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				began := time.Now()
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", path, length)
				synctest.Wait()
				if n := wire.Holders(admin, "callback") + wire.Holders(executor, "run"); n != 0 {
					t.Errorf("%s: %s: slots of %d callers", path, length, n)
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				if got, took := returned(t, string(b)), time.Since(began); got.OK() || took > 2100*time.Millisecond {
					t.Errorf("%s: %s: %+v after %v", path, length, got, took)
				}
			})
		}
	}
}

// greedy is a body without an end that notes how much is asked of it.
type greedy struct {
	with byte
	sent int // in all
	most int // room for it at a time, beyond what was sent
}

func (g *greedy) Read(b []byte) (int, error) {
	g.most = max(g.most, len(b)-g.sent)
	for i := range b {
		b[i] = g.with
	}
	g.sent += len(b)
	return len(b), nil
}

// TestReadBeforeTheToken: a few KiB at most, blanks or not, whatever length is told.
func TestReadBeforeTheToken(t *testing.T) {
	p := newPeer()
	admin, executor := adminHandler(t, p, guarded(t)), executorHandler(t, p, guarded(t))
	for path, h := range map[string]http.Handler{"/api/callback": admin, "/api/registry": admin, "/run": executor} {
		for _, with := range []byte(" x") {
			for _, length := range []int64{-1, 100, 64 << 10, 4 << 20} {
				g := &greedy{with: with}
				r := httptest.NewRequest(http.MethodPost, "http://peer"+path, g)
				r.ContentLength = length
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if got := returned(t, w.Body.String()); got.Msg != wire.MsgTokenWrong && got.Msg != wire.MsgBodyEmpty || g.sent > 8<<10 {
					t.Errorf("%s: %q, length %d: read %d bytes, %+v", path, with, length, g.sent, got)
				}
			}
		}
	}
}

// TestRoomForBodies: there is room for what has come, and not for what was announced; and
// a body that is longer than announced ends at the bound of its kind.
func TestRoomForBodies(t *testing.T) {
	for _, c := range []struct {
		length int64
		limit  int
	}{{-1, 4 << 20}, {100, 64 << 10}, {64 << 10, 64 << 10}, {64<<10 + 1, 4 << 20}, {4 << 20, 4 << 20}, {8 << 20, 4 << 20}} {
		g := &greedy{with: 'x'}
		r := httptest.NewRequest(http.MethodPost, "http://peer/api/callback", g)
		r.ContentLength = c.length
		w := httptest.NewRecorder()
		adminHandler(t, newPeer(), config(t)).ServeHTTP(w, r)
		got := returned(t, w.Body.String())
		if want := fmt.Sprintf("openapi invoke error: the body is longer than %d bytes", c.limit); got.Msg != want || g.sent > c.limit+1 {
			t.Errorf("length %d: read %d bytes, %+v", c.length, g.sent, got)
		}
		if g.most > 4<<10 {
			t.Errorf("length %d: room for %d bytes more than had come", c.length, g.most)
		}
	}
}

// stuckAdmin is an admin whose registrations wait for a store that hangs.
type stuckAdmin struct {
	*peer
	store chan struct{}
}

func (a stuckAdmin) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	<-a.store
	return a.ask(ctx, req)
}

// large is a body with blanks behind it, which make it need a slot.
func large(body string) string { return body + strings.Repeat(" ", 64<<10) }

// TestMaxBodies: requests with large bodies over the bound, which is a quarter for a
// caller, wait for others of their kind, and for no others.
func TestMaxBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stuckAdmin{newPeer(), make(chan struct{})}
		cfg := config(t)
		cfg.MaxBodies = 8
		h := adminHandler(t, a, cfg)
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() {
				if got := returned(t, post(t, h, "/api/registry", large(registration))); !got.OK() {
					t.Errorf("registry: %+v", got)
				}
			})
		}
		synctest.Wait()
		answered := make(chan wire.Return, 1)
		go func() { answered <- returned(t, post(t, h, "/api/callback", large(`[{"logId":1,"handleCode":200}]`))) }()
		select {
		case got := <-answered:
			if !got.OK() || a.count() != 1 {
				t.Errorf("callback: %+v, asked %v", got, a.asked)
			}
		case <-time.After(time.Minute):
			t.Error("registrations that wait keep a callback out")
		}
		a.store <- struct{}{} // one registration is done, and lets the next one in
		synctest.Wait()
		if n := a.count(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		close(a.store)
		waiting.Wait()
		if n := a.count(); n != 6 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestMaxBodiesOfAKind: no more large bodies than the caller's quarter are served at a
// time, whichever of its names a request goes by.
func TestMaxBodiesOfAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &busyExecutor{peer: newPeer()}
		cfg := config(t)
		cfg.MaxBodies = 8
		h := executorHandler(t, e, cfg)
		var calls sync.WaitGroup
		for range 3 {
			for _, path := range []string{"/run", "/trigger"} {
				calls.Go(func() { post(t, h, path, large(`{"jobId":1,"logId":2}`)) })
			}
		}
		calls.Wait()
		if e.most != 2 || e.count() != 6 {
			t.Errorf("%d runs at a time, %d in all", e.most, e.count())
		}
	})
}

// busyExecutor counts the runs that it is handed at a time.
type busyExecutor struct {
	*peer
	lock     sync.Mutex
	at, most int
}

func (e *busyExecutor) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	e.lock.Lock()
	e.at++
	e.most = max(e.most, e.at)
	e.lock.Unlock()
	time.Sleep(500 * time.Millisecond)
	e.lock.Lock()
	e.at--
	e.lock.Unlock()
	return e.ask(ctx, req)
}

// TestDribblers holds 400 real connections of one app whose bodies do not come, and has
// another app beat and report meanwhile.
func TestDribblers(t *testing.T) {
	const hostile, honest = 400, 10
	for name, c := range map[string]struct{ path, length string }{
		"registrations":        {"registry", "Content-Length: 300"},
		"callbacks":            {"callback", "Content-Length: 300"},
		"large registrations":  {"registry", "Content-Length: 1000000"},
		"large callbacks":      {"callback", "Content-Length: 4000000"},
		"callbacks, in chunks": {"callback", "Transfer-Encoding: chunked"},
	} {
		t.Run(name, func(t *testing.T) {
			h := adminHandler(t, newPeer(), tokensOf(t, "hostile", "honest"))
			var come sync.WaitGroup
			come.Add(hostile)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(wire.HeaderApp) == "hostile" {
					come.Done()
				}
				h.ServeHTTP(w, r)
			}))
			defer srv.Close()
			for range hostile {
				conn, err := net.Dial("tcp", srv.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "POST /api/%s HTTP/1.1\r\nHost: h\r\n%s: hostile\r\n%s: of-hostile\r\n%s\r\n\r\n", c.path, wire.HeaderApp, wire.HeaderToken, c.length)
				if strings.HasPrefix(c.length, "T") {
					_, _ = io.WriteString(conn, "1\r\n[\r\n")
				} else {
					_, _ = io.WriteString(conn, "[")
				}
			}
			come.Wait()
			var failed atomic.Int32
			var calls sync.WaitGroup
			for i := range honest {
				client := adminClient(t, srv.URL, wire.ClientConfig{App: "honest", Token: "of-honest"})
				calls.Go(func() {
					r, err := client.Registry(t.Context(), wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "honest", RegistryValue: "http://a:1/"})
					if err != nil || !r.OK() {
						failed.Add(1)
					}
				})
				calls.Go(func() {
					results := []wire.CallbackRequest{{LogID: 1, HandleCode: 200, HandleMsg: strings.Repeat("x", i*20_000)}}
					if r, err := client.Callback(t.Context(), results); err != nil || !r.OK() {
						failed.Add(1)
					}
				})
			}
			calls.Wait()
			if n := failed.Load(); n != 0 {
				t.Errorf("%d of %d heartbeats and callbacks failed", n, 2*honest)
			}
		})
	}
}
