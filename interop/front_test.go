package interop_test

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// front is the HTTP server of an admin, on loopback, with the admin mounted under
// /xxl-job-admin/ and at the root.
type front struct {
	t    *testing.T
	addr string // host:port

	mu     sync.Mutex
	api    http.Handler // guarded by mu
	server *http.Server // guarded by mu: nil while it is down
}

// newFront serves until the test ends. Its port is one that nobody else is given while it
// is down: those that systems give to outgoing connections and to other tests' servers may
// be taken when it comes up again.
func newFront(t *testing.T, api http.Handler) *front {
	t.Helper()
	l := listenFree(t)
	f := &front{t: t, addr: l.Addr().String(), api: api}
	f.serve(l)
	t.Cleanup(f.down)
	return f
}

// up listens again, on the same port.
func (f *front) up() {
	f.t.Helper()
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.serve(l)
}

func (f *front) serve(l net.Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle("/xxl-job-admin/api/", f.api)
	mux.Handle("/api/", f.api)
	f.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func(s *http.Server) { _ = s.Serve(l) }(f.server) // ended by down
}

// down cuts all connections and listens no more.
func (f *front) down() {
	f.mu.Lock()
	server := f.server
	f.server = nil
	f.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
}

// mount serves something else from the next up on.
func (f *front) mount(api http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.api = api
}

// eventually waits for a condition, which it polls.
func eventually(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s%s", patience, what, &stalls)
		}
	}
}
