package xxljob_test

// Registries, and stores asked about an app, that take their time or never answer.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/plain"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// badRegistry is a registry that does something before it answers.
type badRegistry struct {
	plain.Registry
	do func(method, app string)

	mu    sync.Mutex
	calls map[string]int // guarded by mu
}

func (r *badRegistry) enter(method, app string) {
	r.mu.Lock()
	if r.calls == nil {
		r.calls = map[string]int{}
	}
	r.calls[method+" "+app]++
	r.mu.Unlock()
	r.do(method, app)
}

func (r *badRegistry) called(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[what]
}

func (r *badRegistry) Lookup(ctx context.Context, app string) ([]string, error) {
	r.enter("Lookup", app)
	return r.Registry.Lookup(ctx, app)
}

func (r *badRegistry) Register(ctx context.Context, app, address string) error {
	r.enter("Register", app)
	return r.Registry.Register(ctx, app, address)
}

func (r *badRegistry) Deregister(ctx context.Context, app, address string) error {
	r.enter("Deregister", app)
	return r.Registry.Deregister(ctx, app, address)
}

// attachUser attaches an executor of a user's that accepts at once, and starts a job of
// its app each second.
func attachUser(t *testing.T, n *node, app string) (*slowExecutor, xxljob.Job) {
	t.Helper()
	e := &slowExecutor{app: app, delay: func(wire.TriggerRequest) time.Duration { return 0 }}
	must(t, n.Attach(e))
	job, err := n.AddJob(t.Context(), xxljob.Job{App: app, Name: app, Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
	must(t, err)
	return e, job
}

// triggered are the times at which an executor was called for a job.
func (e *slowExecutor) triggered(jobID int64) []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lanes[jobID])
}

// TestRegistryThatNeverAnswers about one app: the other apps' runs are on time. Those of
// the app go by its last answer for Dead, and then wait; when it answers again they are
// started in their order. There is one call.
func TestRegistryThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j, log := memory.New(), &journal{}, &logLines{}
		release := make(chan struct{})
		var hangs atomic.Bool
		r := &badRegistry{do: func(method, app string) {
			if method == "Lookup" && app == "bad" && hangs.Load() {
				<-release
			}
		}}
		n := startNode(t, st, "a", j, log.logTo, func(c *xxljob.Config) { c.Registry = r })
		e, job := attachUser(t, n, "bad")
		addSeconds(t, n, 3)
		time.Sleep(10*time.Second + time.Second/2)
		hangs.Store(true)
		lookups, from := r.called("Lookup bad"), time.Now()
		time.Sleep(80 * time.Second)
		late := 0
		for _, at := range e.triggered(job.ID) {
			if at.Sub(at.Truncate(time.Second)) != 0 {
				late++
			}
		}
		if n := len(e.triggered(job.ID)); n < 89 || late > 1 {
			t.Errorf("by the last answer %d runs were started, %d of them late; want 89 and one that has waited for the call", n, late)
		}
		time.Sleep(time.Until(from.Add(100 * time.Second)))
		before := len(e.triggered(job.ID))
		time.Sleep(20 * time.Second)
		if after := len(e.triggered(job.ID)); after != before {
			t.Errorf("%d runs were started by an answer that is older than Dead", after-before)
		}
		if n := r.called("Lookup bad") - lookups; n != 1 {
			t.Errorf("%d calls of Lookup, want one that hangs", n)
		}
		hangs.Store(false)
		close(release)
		time.Sleep(10 * time.Second)
		stop(t, n)
		requireOnTime(t, j, 3*120)
		requireEnded(t, st)
		starts := succeeded(t, st, job.ID)
		if !slices.IsSortedFunc(starts, func(a, b xxljob.Run) int { return a.Started.Compare(b.Started) }) || len(starts) < 125 {
			t.Errorf("%d runs, or not in their order", len(starts))
		}
	})
}

// TestRegistryThatHasNeverAnswered: an app of which nothing is known waits for the
// answer, and no other does.
func TestRegistryThatHasNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		release := make(chan struct{})
		r := &badRegistry{do: func(method, app string) {
			if method != "Deregister" && app == "bad" {
				<-release
			}
		}}
		n := startNode(t, st, "a", j, func(c *xxljob.Config) { c.Registry = r })
		addSeconds(t, n, 3)
		time.Sleep(500 * time.Millisecond)
		e, job := attachUser(t, n, "bad")
		before := runtime.NumGoroutine()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > 5 {
			t.Errorf("%d goroutines more than at the beginning", more)
		}
		if calls := e.triggered(job.ID); len(calls) != 0 {
			t.Errorf("%d runs went to addresses that nobody has told", len(calls))
		}
		if r.called("Lookup bad") != 1 || r.called("Register bad") != 1 {
			t.Errorf("%d and %d calls that hang, want one of each", r.called("Lookup bad"), r.called("Register bad"))
		}
		close(release)
		time.Sleep(10 * time.Second)
		stop(t, n)
		requireOnTime(t, j, 3*38)
		requireEnded(t, st)
		if states := countStates(allOf(t, st, xxljob.RunFilter{JobID: job.ID})); states[xxljob.StateSucceeded] < 38 || states[xxljob.StateRefused] != 0 {
			t.Errorf("runs of the app: %v", states)
		}
	})
}

// TestSlowRegistry: one that answers after a while delays the runs of its app by that,
// now and then, and no other's.
func TestSlowRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		r := &badRegistry{do: func(_, app string) {
			if app == "slow" {
				time.Sleep(700 * time.Millisecond)
			}
		}}
		n := startNode(t, st, "a", j, func(c *xxljob.Config) { c.Registry = r })
		addSeconds(t, n, 3)
		e, job := attachUser(t, n, "slow")
		time.Sleep(60*time.Second + time.Second/2)
		calls := e.triggered(job.ID)
		for _, at := range calls {
			if late := at.Sub(at.Truncate(time.Second)); late > 700*time.Millisecond {
				t.Errorf("a run was started %v late", late)
			}
		}
		stop(t, n)
		requireOnTime(t, j, 3*59)
		if len(calls) < 57 {
			t.Errorf("%d runs of the slow app", len(calls))
		}
		if refused := allOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StateRefused}}); len(refused) != 0 {
			t.Errorf("%d runs were refused: %s", len(refused), refused[0].TriggerMsg)
		}
	})
}

// TestRegistryThatPanics: in each of its methods it is a registry that fails.
func TestRegistryThatPanics(t *testing.T) {
	for _, method := range []string{"Lookup", "Register", "Deregister"} {
		t.Run(method, func(t *testing.T) {
			eachFault(t, func(t *testing.T, fail func()) {
				st, j, log := memory.New(), &journal{}, &logLines{}
				var on atomic.Bool
				r := &badRegistry{do: func(called, _ string) {
					if called == method && on.Load() {
						fail()
					}
				}}
				n := startNode(t, st, "a", j, log.logTo, func(c *xxljob.Config) { c.Registry = r; c.Cluster.Beat = 5 * time.Second; c.Cluster.Dead = time.Minute })
				addSeconds(t, n, 3)
				time.Sleep(5 * time.Second)
				on.Store(true)
				time.Sleep(30 * time.Second)
				stop(t, n)
				requireOnTime(t, j, 3*34)
				log.requireStacks(t, "Registry."+method)
			})
		})
	}
}

// TestStopWithARegistryThatHangs: Stop gives the executors that are to be deregistered
// five seconds in all, and the call that is under way then its RouteTimeout.
func TestStopWithARegistryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := &badRegistry{do: func(method, _ string) {
			if method == "Deregister" {
				<-release
			}
		}}
		n := startNode(t, memory.New(), "a", &journal{}, func(c *xxljob.Config) { c.Registry = r })
		for i := range 20 {
			attachUser(t, n, fmt.Sprint(i))
		}
		time.Sleep(10*time.Second + time.Second/2)
		before := time.Now()
		stop(t, n)
		if took := time.Since(before); took > 6*time.Second {
			t.Errorf("Stop took %v", took)
		}
		close(release)
	})
}

// groupHangs is a store one call of which about a group hangs until its context ends.
type groupHangs struct {
	xxljob.Store
	next atomic.Bool
}

func (s *groupHangs) Group(ctx context.Context, app string) (xxljob.Group, error) {
	if s.next.CompareAndSwap(true, false) {
		<-ctx.Done()
		return xxljob.Group{}, ctx.Err()
	}
	return s.Store.Group(ctx, app)
}

// TestGroupThatHangs: where the addresses come from a registry of the user's, a call of
// the store about the app has its time all the same, and the runs go on after it.
func TestGroupThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &groupHangs{Store: memory.New()}
		n := startNode(t, st, "a", &journal{}, func(c *xxljob.Config) { c.Registry = &plain.Registry{} })
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work"})
		must(t, err)
		time.Sleep(10 * time.Minute) // its last answer is older than Dead
		st.next.Store(true)
		if run := waitFor(t, n, trigger(t, n, job), 20*time.Second); run.State != xxljob.StateSucceeded {
			t.Errorf("the run is %v: %s", run.State, run.TriggerMsg)
		}
		if st.next.Load() {
			t.Error("the store was not asked")
		}
		stop(t, n)
	})
}
