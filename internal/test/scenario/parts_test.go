package scenario_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/test/stage"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
)

// TestPartsOfTheUsers: a scheduler runs with a router, a ring and a registry
// from a package that does not import this module. All three are used, and the
// runs are on time.
func TestPartsOfTheUsers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { runOnParts(t, &plain.Ring{}) })
}

// TestEarlyRing: a ring that gives runs out before their time makes none start
// early.
func TestEarlyRing(t *testing.T) {
	t.Parallel()
	for _, early := range []time.Duration{150 * time.Millisecond, time.Second, time.Hour} {
		t.Run(early.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ring := &plain.Ring{Early: early}
				runOnParts(t, ring)
				if _, _, n := ring.Used(); n == 0 {
					t.Error("the ring was never early")
				}
			})
		})
	}
}

// runOnParts runs jobs that are due every second, and every 700 ms, for a minute.
func runOnParts(t *testing.T, ring *plain.Ring) {
	router, registry := &plain.Router{}, &plain.Registry{}
	st := memory.New()
	s, err := xxljob.New(st, xxljob.Config{
		App: "app", Logger: slog.New(slog.DiscardHandler), Limits: xxljob.Limits{AllowSubSecond: true},
		Routers: map[string]xxljob.Router{"PLAIN": router}, Ring: ring, Registry: registry,
	})
	stage.Must(t, err)
	var mu sync.Mutex
	runs := 0
	stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
		mu.Lock()
		defer mu.Unlock()
		runs++
		if now := time.Now(); !now.Equal(task.ScheduledAt) {
			t.Errorf("the run for %v is at %v", task.ScheduledAt, now)
		}
		return nil
	}))
	stage.Must(t, s.Start(t.Context()))
	synctest.Wait()
	for i, schedule := range []xxljob.Schedule{xxljob.Cron("* * * * * ?"), xxljob.FixedRate(700 * time.Millisecond)} {
		_, err = s.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Route: "PLAIN", Schedule: schedule})
		stage.Must(t, err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()

	const want = 60 + 85
	mu.Lock()
	defer mu.Unlock()
	if runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
	if all := stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StateSucceeded}}); len(all) != want {
		t.Errorf("%d runs are recorded as succeeded, want %d", len(all), want)
	}
	if n := router.Routed(); n < want {
		t.Errorf("the router was asked %d times, want %d or more", n, want)
	}
	if pushed, popped, _ := ring.Used(); pushed < want || popped < want {
		t.Errorf("the ring: %d pushed, %d popped, want %d or more", pushed, popped, want)
	}
	if registry.LookedUp() == 0 {
		t.Error("the registry was never asked")
	}
	addrs, err := registry.Lookup(t.Context(), "app")
	if err != nil || len(addrs) != 1 {
		t.Errorf("registered: %v, %v", addrs, err)
	}
	stage.Must(t, s.Stop(t.Context()))
	if addrs, _ := registry.Lookup(t.Context(), "app"); len(addrs) != 0 {
		t.Errorf("registered after Stop: %v", addrs)
	}
}

// awayRegistry answers that an app has no address while it is away.
type awayRegistry struct {
	plain.Registry
	away atomic.Bool
}

func (r *awayRegistry) Lookup(ctx context.Context, app string) ([]string, error) {
	if r.away.Load() {
		return nil, nil
	}
	return r.Registry.Lookup(ctx, app)
}

// TestRegistryAnswerAloneCounts: with a Registry of the user's, an executor that
// it does not name is not run at, though it is attached.
func TestRegistryAnswerAloneCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := &awayRegistry{}
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler), Registry: registry})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		stage.Must(t, s.Start(t.Context()))
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", OnNoExecutor: xxljob.OnNoExecutorRefuse})
		stage.Must(t, err)
		for _, away := range []bool{false, true, false} {
			registry.away.Store(away)
			time.Sleep(time.Minute) // what the node had read before is forgotten
			ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			want := map[bool]xxljob.State{false: xxljob.StateSucceeded, true: xxljob.StateRefused}[away]
			if run, err := s.Wait(t.Context(), ids[0]); err != nil || run.State != want {
				t.Errorf("the registry is away: %t: %v, %v, want %v", away, run.State, err, want)
			}
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// strayRouter chooses an address that it was not given, nothing, or an error.
type strayRouter struct {
	answer func(addrs []string) ([]string, error)
}

func (r strayRouter) Route(_ context.Context, _ int64, addrs []string) ([]string, error) {
	return r.answer(addrs)
}

// TestStrayRouter: a router that errs, chooses nothing, or an address that is
// not the app's, ends the run as refused, with the reason in its message; its
// job goes on.
func TestStrayRouter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, msg string
		answer    func([]string) ([]string, error)
	}{
		{"error", "no road", func([]string) ([]string, error) { return nil, fmt.Errorf("no road") }},
		{"nothing", "chose no address", func([]string) ([]string, error) { return nil, nil }},
		{"stranger", "http://evil/", func([]string) ([]string, error) { return []string{"http://evil/"}, nil }},
		{"a good one and a stranger", "http://evil/", func(a []string) ([]string, error) { return append([]string{a[0]}, "http://evil/"), nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				s, err := xxljob.New(st, xxljob.Config{App: "here", Logger: slog.New(slog.DiscardHandler), Routers: map[string]xxljob.Router{"STRAY": strayRouter{tt.answer}}})
				stage.Must(t, err)
				stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
				job, err := s.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Route: "STRAY", Schedule: xxljob.FixedRate(time.Second)})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(3500 * time.Millisecond)
				synctest.Wait()
				runs := stage.AllOf(t, st, xxljob.RunFilter{JobID: job.ID, States: []xxljob.State{xxljob.StateRefused}})
				if len(runs) != 3 {
					t.Errorf("%d refused runs, want 3", len(runs))
				}
				for _, r := range runs {
					stage.RequireText(t, "TriggerMsg", r.TriggerMsg, tt.msg)
				}
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}

// TestEveryRoute: each strategy of package route, by its stored name, brings
// runs to the node's own executor, which is the only one.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	for _, name := range route.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				s, err := xxljob.New(st, xxljob.Config{App: "here", Logger: slog.New(slog.DiscardHandler)})
				stage.Must(t, err)
				stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
					if task.ShardIndex != 0 || task.ShardTotal != 1 {
						t.Errorf("part %d of %d", task.ShardIndex, task.ShardTotal)
					}
					return nil
				}))
				stage.Must(t, s.Start(t.Context()))
				job, err := s.AddJob(t.Context(), xxljob.Job{Name: name, Handler: "work", Route: name, Schedule: xxljob.FixedRate(time.Second)})
				stage.Must(t, err)
				time.Sleep(5500 * time.Millisecond)
				synctest.Wait()
				runs := stage.AllOf(t, st, xxljob.RunFilter{JobID: job.ID, States: []xxljob.State{xxljob.StateSucceeded}})
				if len(runs) != 5 {
					t.Errorf("%d runs, want 5", len(runs))
				}
				for _, r := range runs {
					stage.RequireText(t, "TriggerMsg", r.TriggerMsg, "route: "+name)
				}
				stage.Must(t, s.RemoveJob(t.Context(), job.ID))
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}

// slowRegistry takes its time to register, as one over a network does.
type slowRegistry struct{ plain.Registry }

func (r *slowRegistry) Register(ctx context.Context, app, address string) error {
	time.Sleep(10 * time.Millisecond)
	return r.Registry.Register(ctx, app, address)
}

// TestRunsWaitForRegistration: what is due when a node starts is not refused
// because a Registry of the user's has not heard of the node yet.
func TestRunsWaitForRegistration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "here", Logger: slog.New(slog.DiscardHandler), Registry: &slowRegistry{}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work"})
		stage.Must(t, err)
		ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		run, err := s.Wait(t.Context(), ids[0])
		if err != nil || run.State != xxljob.StateSucceeded {
			t.Errorf("the run that was due at Start: %v, %v\n%s", run.State, err, run.TriggerMsg)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}
