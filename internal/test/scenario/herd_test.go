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
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// herdCalls notes when runs are claimed, and the first result stored.
type herdCalls struct {
	st      xxljob.Store
	mu      sync.Mutex
	claims  []time.Time   // guarded by mu
	ahead   time.Duration // guarded by mu: how long before its time the last one of all runs is planned; 0 while there is none
	results time.Time     // guarded by mu: the first result
}

func (h *herdCalls) Claim(ctx context.Context, dst []xxljob.Run, plans []store.Plan) ([]xxljob.Run, error) {
	h.mu.Lock()
	h.claims = append(h.claims, time.Now())
	for _, p := range plans {
		for _, r := range p.Runs {
			if d := time.Until(r.At); h.ahead == 0 || d < h.ahead {
				h.ahead = d
			}
		}
	}
	h.mu.Unlock()
	return h.st.Claim(ctx, dst, plans)
}

func (h *herdCalls) Finish(ctx context.Context, dst []xxljob.Run, results []store.Result) ([]xxljob.Run, error) {
	h.mu.Lock()
	if h.results.IsZero() {
		h.results = time.Now()
	}
	h.mu.Unlock()
	return h.st.Finish(ctx, dst, results)
}

// TestResultsGiveWayToHerds: while a herd is started, no result is stored, if the store is a quick
// one; where no herd is, results are stored at once.
func TestResultsGiveWayToHerds(t *testing.T) {
	t.Parallel()
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
			if c.takes == 5*time.Millisecond && testing.Short() {
				t.Skip("another time that calls take; leave out -short")
			}
			synctest.Test(t, func(t *testing.T) {
				herd := &herdCalls{st: memory.New()}
				st := bent.StoreOf(herd.st, herd)
				n := stage.StartNode(t, st, "a", &stage.Journal{}, func(cfg *xxljob.Config) { cfg.Executor.Places = 10_000 })
				n.Faults.Inject("Start", storetest.Fault{Delay: c.takes})
				stage.Must(t, n.Handle("nothing", func(context.Context, *xxljob.Task) error { return nil }))
				at := time.Now().Add(10 * time.Second).Truncate(time.Second)
				for i := range c.jobs {
					_, err := n.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "nothing", Schedule: xxljob.At(at)})
					stage.Must(t, err)
				}
				time.Sleep(time.Until(at.Add(time.Second)))
				herd.mu.Lock()
				results := herd.results.Sub(at)
				herd.mu.Unlock()
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

// TestClaimsAreBetweenSeconds: what is due is planned between whole seconds, at which crontabs are due,
// and well ahead all the same; a short pre-read is kept to.
func TestClaimsAreBetweenSeconds(t *testing.T) {
	t.Parallel()
	for _, cron := range []string{"* * * * * ?", "0/5 * * * * ?", "0/7 * * * * ?", "0 * * * * ?"} {
		for _, preRead := range []time.Duration{time.Second, 4 * time.Second, 4020 * time.Millisecond, 5 * time.Second, 9 * time.Second, 55 * time.Second} {
			t.Run(fmt.Sprint(cron, " ", preRead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { claimsAreBetweenSeconds(t, cron, preRead) })
			})
		}
	}
}

func claimsAreBetweenSeconds(t *testing.T, cron string, preRead time.Duration) {
	time.Sleep(123 * time.Millisecond)
	herd, j := &herdCalls{st: memory.New()}, &stage.Journal{}
	st := bent.StoreOf(herd.st, herd)
	n := stage.StartNode(t, st, "a", j, func(cfg *xxljob.Config) { cfg.PreRead = preRead })
	_, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Schedule: xxljob.Cron(cron)})
	stage.Must(t, err)
	time.Sleep(2 * time.Minute)
	herd.mu.Lock()
	herd.claims, herd.ahead = nil, 0
	herd.mu.Unlock()
	time.Sleep(5 * time.Minute)
	stage.Stop(t, n)
	if len(herd.claims) < 3 {
		t.Fatalf("%d claims within five minutes", len(herd.claims))
	}
	for _, at := range herd.claims {
		if off := at.Sub(at.Truncate(time.Second)); preRead >= 4*time.Second && off != time.Second/2 {
			t.Errorf("a claim %v after a whole second", off)
		}
	}
	if herd.ahead < preRead/4 {
		t.Errorf("a run is planned %v before its time, with a pre-read of %v", herd.ahead, preRead)
	}
	for _, s := range j.All() {
		if !s.At.Equal(s.Due) {
			t.Errorf("a run of %v began at %v", s.Due, s.At)
		}
	}
}
