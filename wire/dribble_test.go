package wire_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

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
