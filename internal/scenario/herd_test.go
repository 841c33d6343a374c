package scenario_test

// What gives way to a herd: many runs that are due at one time.

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// herdCalls notes when runs are claimed, and the first result stored.
type herdCalls struct {
	xxljob.Store
	mu      sync.Mutex
	claims  []time.Time // guarded by mu
	results time.Time   // guarded by mu: the first result
}

func (h *herdCalls) Claim(ctx context.Context, dst []xxljob.Run, plans []xxljob.Plan) ([]xxljob.Run, error) {
	h.mu.Lock()
	h.claims = append(h.claims, time.Now())
	h.mu.Unlock()
	return h.Store.Claim(ctx, dst, plans)
}

func (h *herdCalls) Finish(ctx context.Context, dst []xxljob.Run, results []xxljob.Result) ([]xxljob.Run, error) {
	h.mu.Lock()
	if h.results.IsZero() {
		h.results = time.Now()
	}
	h.mu.Unlock()
	return h.Store.Finish(ctx, dst, results)
}

// TestResultsGiveWayToHerds: while a herd is started, no result is stored, if the store is a quick
// one; those of other runs are stored at once.
func TestResultsGiveWayToHerds(t *testing.T) {
	for _, c := range []struct {
		jobs        int
		takes       time.Duration // a start of up to a thousand
		least, last time.Duration // when the first result is stored, from the instant on
	}{
		{1, 400 * time.Microsecond, 400 * time.Microsecond, time.Millisecond},
		{10_000, 400 * time.Microsecond, 4 * time.Millisecond, 6 * time.Millisecond},
		{10_000, 5 * time.Millisecond, 5 * time.Millisecond, 11 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c.jobs, " jobs, calls of ", c.takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &herdCalls{Store: memory.New()}
				n := stage.StartNode(t, st, "a", &stage.Journal{}, func(cfg *xxljob.Config) { cfg.Executor.Places = 10_000 })
				n.Faults.Inject("Start", storetest.Fault{Delay: c.takes})
				stage.Must(t, n.Handle("nothing", func(context.Context, *xxljob.Task) error { return nil }))
				at := time.Now().Add(10 * time.Second).Truncate(time.Second)
				for i := range c.jobs {
					_, err := n.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "nothing", Schedule: xxljob.At(at)})
					stage.Must(t, err)
				}
				time.Sleep(time.Until(at.Add(time.Second)))
				st.mu.Lock()
				results := st.results.Sub(at)
				st.mu.Unlock()
				if results < c.least || results > c.last {
					t.Errorf("the first result is stored %v after the instant, want %v to %v", results, c.least, c.last)
				}
				runs, err := st.Runs(t.Context(), xxljob.RunFilter{States: []xxljob.State{xxljob.StateSucceeded}, Limit: 10_000})
				if err != nil || len(runs) != c.jobs {
					t.Errorf("%d runs of %d have succeeded: %v", len(runs), c.jobs, err)
				}
				stage.Stop(t, n)
			})
		})
	}
}

// TestClaimsAreBetweenSeconds: windows are planned between whole seconds, at which crontabs are due,
// and at least a second ahead all the same; a short pre-read is kept to.
func TestClaimsAreBetweenSeconds(t *testing.T) {
	for _, preRead := range []time.Duration{time.Second, 5 * time.Second, 9 * time.Second} {
		t.Run(preRead.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(123 * time.Millisecond)
				st := &herdCalls{Store: memory.New()}
				n := stage.StartNode(t, st, "a", &stage.Journal{}, func(cfg *xxljob.Config) { cfg.PreRead = preRead })
				stage.Must(t, n.Handle("nothing", func(context.Context, *xxljob.Task) error { return nil }))
				_, err := n.AddJob(t.Context(), xxljob.Job{Name: "each second", Handler: "nothing", Schedule: xxljob.Cron("* * * * * ?")})
				stage.Must(t, err)
				time.Sleep(20 * time.Second)
				st.mu.Lock()
				st.claims = nil
				st.mu.Unlock()
				time.Sleep(time.Minute)
				stage.Stop(t, n)
				if len(st.claims) < int(time.Minute/(preRead+time.Second)) {
					t.Fatalf("%d claims within a minute", len(st.claims))
				}
				for i, at := range st.claims {
					if off := at.Sub(at.Truncate(time.Second)); preRead >= 4*time.Second && off != time.Second/2 {
						t.Errorf("a claim %v after a whole second", off)
					}
					if i > 0 && at.Sub(st.claims[i-1]) > max(2*time.Second, preRead*3/4) {
						t.Errorf("a claim %v after the one before", at.Sub(st.claims[i-1]))
					}
				}
			})
		})
	}
}
