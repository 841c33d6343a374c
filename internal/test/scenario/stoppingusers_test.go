package scenario_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// slowRegister is a registry that takes its time to register, and then has the app.
type slowRegister struct {
	takes time.Duration
	begun chan string // each registration of an app, where somebody waits for it

	mu   sync.Mutex
	apps []string // guarded by mu
}

func (r *slowRegister) change(app string, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apps = slices.DeleteFunc(r.apps, func(has string) bool { return has == app })
	if there {
		r.apps = append(r.apps, app)
	}
}

func (r *slowRegister) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.apps)
}

func (r *slowRegister) Lookup(context.Context, string) ([]string, error) { return nil, nil }

func (r *slowRegister) Register(ctx context.Context, app, _ string) error {
	select {
	case r.begun <- app:
	default:
	}
	select {
	case <-time.After(r.takes):
		r.change(app, true)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *slowRegister) Deregister(_ context.Context, app, _ string) error {
	r.change(app, false)
	return nil
}

// TestNothingIsRegisteredBehindStop: a node that stops while it registers its executors in a
// registry of the user's leaves none of them there, neither the one that is being registered nor
// those that come behind it.
func TestNothingIsRegisteredBehindStop(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{300 * time.Millisecond, 1500 * time.Millisecond} { // within RouteTimeout, and beyond it
		for _, dead := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := &slowRegister{takes: takes, begun: make(chan string)}
				n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Registry = r; c.Cluster.Beat = 10 * time.Second })
				for _, app := range []string{"b", "c", "d"} {
					attachUser(t, n, app)
				}
				time.Sleep(30 * time.Second)
				for <-r.begun != "c" { // d comes next
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if dead {
					cancel()
				}
				if err := n.Stop(ctx); (err != nil) && !dead {
					t.Errorf("Stop: %v", err)
				}
				time.Sleep(time.Minute)
				if left := r.all(); len(left) > 0 {
					t.Errorf("Register takes %v, Stop's context has ended: %v: the registry still has %q", takes, dead, left)
				}
			})
		}
	}
}
