package wire_test

import (
	"fmt"
	"log/slog"
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

// TestGuessesAreSlow: refused tokens are answered at most ten times a second and address, counted,
// and said once a minute and address; whoever has a right token, at that address too, is not slowed,
// and neither is whoever is refused at another.
func TestGuessesAreSlow(t *testing.T) {
	for side, handler := range map[string]func(wire.HandlerConfig) http.Handler{
		"admin":    func(cfg wire.HandlerConfig) http.Handler { return adminHandler(t, &peer{}, cfg) },
		"executor": func(cfg wire.HandlerConfig) http.Handler { return executorHandler(t, &peer{}, cfg) },
	} {
		t.Run(side, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var count atomic.Uint64
				lines := &strings.Builder{}
				cfg := tokensOf(t, "app")
				cfg.Logger, cfg.Refused = slog.New(slog.NewTextHandler(lines, nil)), &count
				h := handler(cfg)
				path := map[string]string{"admin": "/api/registry", "executor": "/beat"}[side]
				ask := func(from, token string) (answered bool) {
					defer func() {
						if v := recover(); v != nil && v != http.ErrAbortHandler {
							panic(v)
						}
					}()
					r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"registryGroup":"EXECUTOR","registryKey":"app","registryValue":"http://10.0.0.1:9999/"}`))
					r.RemoteAddr = from
					if token != "" {
						r.Header.Set(wire.HeaderToken, token)
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					return w.Body.Len() > 0
				}
				began := time.Now()
				var mu sync.Mutex
				var after []time.Duration // of the refusals that were answered
				var guesses sync.WaitGroup
				const addresses = 3
				for i := range 100 * addresses {
					guesses.Go(func() { // one IPv6 network is one address
						from := []string{fmt.Sprintf("192.0.2.1:%d", 1000+i), fmt.Sprintf("[2001:db8::%x]:1", i+1), fmt.Sprintf("[::ffff:192.0.2.2]:%d", 1000+i)}[i%addresses]
						if ask(from, fmt.Sprint("guess", i)) {
							mu.Lock()
							after = append(after, time.Since(began))
							mu.Unlock()
						}
					})
				}
				synctest.Wait()
				for _, from := range []string{"192.0.2.1:1", "[2001:db8::1]:1", "192.0.2.2:1"} {
					if !ask(from, "of-app") || time.Since(began) != 0 {
						t.Errorf("a right token from %s waits for %v", from, time.Since(began))
					}
				}
				if !ask("192.0.2.9:1", "wrong") || !ask("[2001:db8:0:1::1]:1", "") || time.Since(began) != 0 {
					t.Error("the first refusal of others waits")
				}
				guesses.Wait()
				for second := range 3 {
					n := 0
					for _, d := range after {
						if int(d/time.Second) == second {
							n++
						}
					}
					if want := map[bool]int{true: 10 * addresses, false: 0}[second < 2]; n != want {
						t.Errorf("%d answers in second %d, want %d", n, second, want)
					}
				}
				if n := count.Load(); n != 100*addresses+2 {
					t.Errorf("%d are counted", n)
				}
				if n := strings.Count(lines.String(), "a token was refused"); n != addresses+2 || strings.Contains(lines.String(), "guess") {
					t.Errorf("%d lines: %s", n, lines)
				}
				time.Sleep(time.Minute)
				if !ask("192.0.2.1:5", "wrong") || strings.Count(lines.String(), "from=192.0.2.1:") != 2 {
					t.Errorf("after a minute: %s", lines)
				}
			})
		})
	}
}
