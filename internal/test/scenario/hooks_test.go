package scenario_test

// Hooks of a scheduler of which many runs start at once.

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// hooksWaiting is how many calls of hooks wait at most.
const hooksWaiting = 20_000

// TestHooksAreDropped: a hook that hangs while many runs start costs them a second at
// most. What it has missed is counted, and said once.
func TestHooksAreDropped(t *testing.T) {
	t.Parallel()
	const runs = hooksWaiting + 1000
	synctest.Test(t, func(t *testing.T) {
		st, log := memory.New(), &stage.LogLines{}
		release := make(chan struct{})
		var started, ran, late atomic.Int64
		n := stage.StartNode(t, st, "a", &stage.Journal{}, log.LogTo, func(c *xxljob.Config) {
			c.Hooks.RunStarted = func(xxljob.Run) { <-release; started.Add(1) }
		})
		stage.Must(t, n.Handle("count", func(_ context.Context, task *xxljob.Task) error {
			ran.Add(1)
			if time.Since(task.ScheduledAt) > time.Second+time.Millisecond {
				late.Add(1)
			}
			return nil
		}))
		synctest.Wait()
		addMany(t, st, runs, "count", time.Now().Add(time.Minute))
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if ran.Load() != runs || late.Load() != 0 {
			t.Errorf("%d of %d runs were run, %d too late", ran.Load(), runs, late.Load())
		}
		close(release)
		synctest.Wait()
		stage.TriggerNew(t, n, xxljob.Job{Name: "after", Handler: "work"})
		synctest.Wait()
		if got := started.Load(); got != hooksWaiting+2 {
			t.Errorf("%d calls of the hook, want %d that waited, one whose caller did, and one when there was room again", got, hooksWaiting)
		}
		if n.Stats().EventsDropped != 999 {
			t.Errorf("%d are counted as dropped", n.Stats().EventsDropped)
		}
		if first, last := log.With("level=ERROR", "dropped"), log.With("hooks are being called again", "dropped=999"); len(first) != 1 || len(last) != 1 {
			t.Errorf("the log says %q, and %q", first, last)
		}
		stage.Stop(t, n)
	})
}

// TestHooksMissNothing: of a herd every start and every end is told, the start first, also
// where Stop comes at once; and a hook that takes its time is waited for.
func TestHooksMissNothing(t *testing.T) {
	t.Parallel()
	const runs = hooksWaiting + 1000
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var mu sync.Mutex
		seen := map[int64]string{}
		note := func(what string) func(xxljob.Run) {
			return func(r xxljob.Run) {
				time.Sleep(10 * time.Microsecond)
				mu.Lock()
				defer mu.Unlock()
				seen[r.ID] += what
			}
		}
		n := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) {
			c.Hooks = xxljob.Hooks{RunStarted: note("started "), RunEnded: note("ended ")}
		})
		synctest.Wait()
		at := time.Now().Add(time.Minute)
		addMany(t, st, runs, "work", at)
		for len(stage.Succeeded(t, st, 0)) < runs {
			time.Sleep(time.Minute + 10*time.Millisecond)
		}
		stage.Stop(t, n)
		mu.Lock()
		defer mu.Unlock()
		for id, what := range seen {
			if what != "started ended " {
				t.Fatalf("run %d: %s", id, what)
			}
		}
		if len(seen) != runs {
			t.Errorf("the hooks were told of %d runs, want %d", len(seen), runs)
		}
	})
}

// addMany stores jobs that are due at once.
func addMany(t *testing.T, st xxljob.Store, n int, handler string, at time.Time) {
	t.Helper()
	for range n {
		_, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Name: "job", Handler: handler, Route: "NEAREST",
			Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.At(at), Next: at}, nil)
		stage.Must(t, err)
	}
}
