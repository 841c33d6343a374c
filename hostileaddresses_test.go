package xxljob_test

// Executors that answer what they should not, over real connections.

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/stage"
)

// TestAddressesThatMisbehave: a peer that redirects, answers garbage, another status, too
// much or never, leaves the outcome unknown, unless it is a status that no executor gives, which
// is a refusal; the token goes nowhere else, and other executors are not held up.
func TestAddressesThatMisbehave(t *testing.T) {
	var elsewhereHit atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhereHit.Add(1) }))
	defer target.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
		},
		"answers garbage":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>welcome</html>") },
		"answers nothing":  func(http.ResponseWriter, *http.Request) {},
		"has no such page": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"fails":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"hangs up":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"never answers":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"never ends":       endless,
		"sends half a answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"code":`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := xxljob.Config{HTTP: xxljob.HTTPConfig{CallTimeout: time.Minute}}
			if strings.HasPrefix(name, "never") || strings.HasPrefix(name, "sends half") {
				cfg.HTTP.CallTimeout = 2 * time.Second // which is waited for
			}
			s, st, admin := stage.OverHTTP(t, cfg)
			var paths sync.Map
			bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, _ := paths.LoadOrStore(r.URL.Path, new(atomic.Int32))
				n.(*atomic.Int32).Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				answer(w, r)
			}))
			defer bad.Close()
			stage.RegisterOver(t, admin, "bad", bad.URL)
			job, err := s.AddJob(t.Context(), xxljob.Job{App: "bad", Name: "j", Handler: "x"})
			stage.Must(t, err)
			id := stage.Trigger(t, s, job)
			want := xxljob.StateStarted
			if name == "redirects" || name == "has no such page" {
				want = xxljob.StateRefused
			}
			await.Until(t, "the run is open", func() bool {
				run, err := st.Run(t.Context(), id)
				if err != nil || run.State.Ended() && run.State != want || run.State == xxljob.StateDispatched {
					t.Fatalf("%v %q: %v", run.State, run.TriggerMsg, err)
				}
				return run.State.Ended() || xxljob.RunsInDoubt(s) > 0
			})
			if run, _ := st.Run(t.Context(), id); run.State != want {
				t.Errorf("%v %q", run.State, run.TriggerMsg)
			}
			n, _ := paths.Load("/run")
			if n == nil || n.(*atomic.Int32).Load() != 1 {
				t.Error("it was not sent the run once")
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhereHit.Load(); n > 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	})
}

// endless writes for ever.
func endless(w http.ResponseWriter, r *http.Request) {
	chunk := strings.Repeat("x", 64<<10)
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}
