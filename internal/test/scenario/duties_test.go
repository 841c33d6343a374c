package scenario_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/test/stage"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/asker"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestEveryMethodHasAnAsker: whoever adds a method says whether runs wait for it.
func TestEveryMethodHasAnAsker(t *testing.T) {
	if have, want := slices.Sorted(maps.Keys(asker.Table())), asker.Methods(); !slices.Equal(have, want) {
		t.Errorf("methods with an asker:\n%v, want\n%v", have, want)
	}
}

// TestDuties: in the life of two nodes, one of which is stopped, all that the loops ask is
// marked, and nothing that the host asks meanwhile.
func TestDuties(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		var mu sync.Mutex
		seen, host := map[string]bool{}, map[string]bool{}
		for _, n := range []*stage.Node{a, b} {
			check := stage.CheckDuties(t)
			n.Faults.Observe(func(ctx context.Context, method string) {
				check(ctx, method)
				mu.Lock()
				defer mu.Unlock()
				if urgent.Marked(ctx) {
					seen[method] = true
				} else {
					host[method] = true
				}
			})
		}
		time.Sleep(10 * time.Second)
		jobs := stage.AddSeconds(t, a, 10)
		stage.Must(t, a.Handle("long", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() }))
		stage.Must(t, b.Handle("long", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() }))
		long, err := a.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long"})
		stage.Must(t, err)
		ids, err := a.Trigger(t.Context(), long.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(5 * time.Second)
		stage.Must(t, a.Kill(t.Context(), ids[0]))
		_, err = a.Wait(t.Context(), ids[0])
		stage.Must(t, err)
		stage.Must(t, a.StopJob(t.Context(), jobs[0].ID))
		stage.Stop(t, b)
		time.Sleep(10 * time.Second)
		stage.Stop(t, a)
		for method, by := range asker.Table() {
			if by == asker.Others && seen[method] || by == asker.Loops && host[method] {
				t.Errorf("%s is called by others than it is for", method)
			}
		}
		for _, method := range []string{"Scan", "Planned", "Claim", "Sweep", "Start", "Finish", "Inbox", "Beat", "Leave", "Bury", "TakeShards", "ReleaseShards", "Group", "Addresses"} {
			if !seen[method] {
				t.Errorf("no loop has called %s", method)
			}
		}
		for _, method := range []string{"AddJob", "EditJob", "AddRun", "Kill", "Run"} {
			if !host[method] {
				t.Errorf("no host has called %s", method)
			}
		}
	})
}

// TestUsersAreNotMarked: what a registry and an executor of the user's ask is not the
// scheduler's, though it calls them.
func TestUsersAreNotMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		users := &markSeen{}
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Logger: stage.QuietLog(), Registry: users, Routers: map[string]xxljob.Router{"mine": users}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		stage.Must(t, s.Start(t.Context()))
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "n", Handler: "work", Route: "mine"})
		stage.Must(t, err)
		stage.WaitFor(t, s, stage.Trigger(t, s, job), time.Minute)
		stage.Must(t, s.Stop(t.Context()))
		users.mu.Lock()
		defer users.mu.Unlock()
		for _, what := range []string{"Register", "Deregister", "Lookup", "Route"} {
			if users.marked[what] || !users.called[what] {
				t.Errorf("%s: called %v, marked %v", what, users.called[what], users.marked[what])
			}
		}
	})
}

// markSeen is a registry and a router that look at their contexts.
type markSeen struct {
	mu             sync.Mutex
	called, marked map[string]bool // guarded by mu
	addrs          []string        // guarded by mu
}

func (m *markSeen) see(ctx context.Context, what string) {
	if m.called == nil {
		m.called, m.marked = map[string]bool{}, map[string]bool{}
	}
	m.called[what], m.marked[what] = true, m.marked[what] || urgent.Marked(ctx)
}

func (m *markSeen) Register(ctx context.Context, _, addr string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(ctx, "Register")
	m.addrs = []string{addr}
	return nil
}

func (m *markSeen) Deregister(ctx context.Context, _, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(ctx, "Deregister")
	return nil
}

func (m *markSeen) Lookup(ctx context.Context, _ string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(ctx, "Lookup")
	return slices.Clone(m.addrs), nil
}

func (m *markSeen) Route(ctx context.Context, _ int64, addrs []string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(ctx, "Route")
	return addrs, nil
}

// TestAHostThatHangsKeepsNoLoop: that the number of shards is fixed before the first write
// is no reason for the loops to wait for a host's call. It is outside of a bubble, where
// who waits for a lock would keep the time from going on.
func TestAHostThatHangsKeepsNoLoop(t *testing.T) {
	t.Parallel()
	faults, free := storetest.Wrap(memory.New()), make(chan struct{})
	s, err := xxljob.New(faults, xxljob.Config{App: "app", Logger: stage.QuietLog()})
	stage.Must(t, err)
	faults.Inject("SetShards", storetest.Fault{Hang: free, Calls: 1})
	asked := make(chan struct{})
	faults.Observe(func(_ context.Context, method string) {
		if method == "SetShards" {
			faults.Observe(nil)
			close(asked)
		}
	})
	var calls sync.WaitGroup
	defer calls.Wait()
	letGo := sync.OnceFunc(func() { close(free) })
	defer letGo()
	calls.Go(func() { s.SaveGroup(context.Background(), xxljob.Group{App: "x"}) })
	<-asked
	started := make(chan error, 1)
	calls.Go(func() { started <- s.Start(context.Background()) })
	await.Until(t, "Start does not wait for a call of the host's", func() bool { return len(started) > 0 })
	stage.Must(t, <-started)
	await.Until(t, "the node is ready", func() bool { return s.Ready() == nil })
	letGo()
	stage.Must(t, s.Stop(context.Background()))
}
