package scenario_test

// Registries, and stores asked about an app, that take their time or never answer.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// attachUser attaches an executor of a user's that accepts at once, and starts a job of
// its app each second.
func attachUser(t *testing.T, n *stage.Node, app string) (*stage.SlowExecutor, xxljob.Job) {
	t.Helper()
	e := &stage.SlowExecutor{Of: app, Delay: func(wire.TriggerRequest) time.Duration { return 0 }}
	stage.Must(t, n.Attach(e))
	job, err := n.AddJob(t.Context(), xxljob.Job{App: app, Name: app, Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
	stage.Must(t, err)
	return e, job
}

// TestRegistryThatNeverAnswers about one app: the other apps' runs are on time. Those of
// the app go by its last answer for Dead, and then wait; when it answers again they are
// started in their order. There is one call.
func TestRegistryThatNeverAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j, log := memory.New(), &stage.Journal{}, &stage.LogLines{}
		release := make(chan struct{})
		var hangs atomic.Bool
		r := &stage.BadRegistry{Do: func(method, app string) {
			if method == "Lookup" && app == "bad" && hangs.Load() {
				<-release
			}
		}}
		n := stage.StartNode(t, st, "a", j, log.LogTo, func(c *xxljob.Config) { c.Registry = r })
		e, job := attachUser(t, n, "bad")
		stage.AddSeconds(t, n, 3)
		time.Sleep(10*time.Second + time.Second/2)
		hangs.Store(true)
		lookups, from := r.Called("Lookup bad"), time.Now()
		time.Sleep(80 * time.Second)
		late := 0
		for _, at := range e.Triggered(job.ID) {
			if at.Sub(at.Truncate(time.Second)) != 0 {
				late++
			}
		}
		if n := len(e.Triggered(job.ID)); n < 89 || late > 1 {
			t.Errorf("by the last answer %d runs were started, %d of them late; want 89 and one that has waited for the call", n, late)
		}
		time.Sleep(time.Until(from.Add(100 * time.Second)))
		before := len(e.Triggered(job.ID))
		time.Sleep(20 * time.Second)
		if after := len(e.Triggered(job.ID)); after != before {
			t.Errorf("%d runs were started by an answer that is older than Dead", after-before)
		}
		if n := r.Called("Lookup bad") - lookups; n != 1 {
			t.Errorf("%d calls of Lookup, want one that hangs", n)
		}
		hangs.Store(false)
		close(release)
		time.Sleep(10 * time.Second)
		stage.Stop(t, n)
		stage.RequireOnTime(t, j, 3*120)
		stage.RequireEnded(t, st)
		starts := stage.Succeeded(t, st, job.ID)
		if !slices.IsSortedFunc(starts, func(a, b xxljob.Run) int { return a.Started.Compare(b.Started) }) || len(starts) < 125 {
			t.Errorf("%d runs, or not in their order", len(starts))
		}
	})
}

// TestRegistryThatHasNeverAnswered: an app of which nothing is known waits for the
// answer, and no other does.
func TestRegistryThatHasNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		release := make(chan struct{})
		r := &stage.BadRegistry{Do: func(method, app string) {
			if method != "Deregister" && app == "bad" {
				<-release
			}
		}}
		n := stage.StartNode(t, st, "a", j, func(c *xxljob.Config) { c.Registry = r })
		stage.AddSeconds(t, n, 3)
		time.Sleep(500 * time.Millisecond)
		e, job := attachUser(t, n, "bad")
		before := runtime.NumGoroutine()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > 5 {
			t.Errorf("%d goroutines more than at the beginning", more)
		}
		if calls := e.Triggered(job.ID); len(calls) != 0 {
			t.Errorf("%d runs went to addresses that nobody has told", len(calls))
		}
		if r.Called("Lookup bad") != 1 || r.Called("Register bad") != 1 {
			t.Errorf("%d and %d calls that hang, want one of each", r.Called("Lookup bad"), r.Called("Register bad"))
		}
		close(release)
		time.Sleep(10 * time.Second)
		stage.Stop(t, n)
		stage.RequireOnTime(t, j, 3*38)
		stage.RequireEnded(t, st)
		if states := stage.CountStates(stage.AllOf(t, st, xxljob.RunFilter{JobID: job.ID})); states[xxljob.StateSucceeded] < 38 || states[xxljob.StateRefused] != 0 {
			t.Errorf("runs of the app: %v", states)
		}
	})
}

// TestSlowRegistry: one that answers after a while delays the runs of its app by that,
// now and then, and no other's.
func TestSlowRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		r := &stage.BadRegistry{Do: func(_, app string) {
			if app == "slow" {
				time.Sleep(700 * time.Millisecond)
			}
		}}
		n := stage.StartNode(t, st, "a", j, func(c *xxljob.Config) { c.Registry = r })
		stage.AddSeconds(t, n, 3)
		e, job := attachUser(t, n, "slow")
		time.Sleep(60*time.Second + time.Second/2)
		calls := e.Triggered(job.ID)
		for _, at := range calls {
			if late := at.Sub(at.Truncate(time.Second)); late > 700*time.Millisecond {
				t.Errorf("a run was started %v late", late)
			}
		}
		stage.Stop(t, n)
		stage.RequireOnTime(t, j, 3*59)
		if len(calls) < 57 {
			t.Errorf("%d runs of the slow app", len(calls))
		}
		if refused := stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StateRefused}}); len(refused) != 0 {
			t.Errorf("%d runs were refused: %s", len(refused), refused[0].TriggerMsg)
		}
	})
}

// TestRegistryThatPanics: in each of its methods it is a registry that fails.
func TestRegistryThatPanics(t *testing.T) {
	for _, method := range []string{"Lookup", "Register", "Deregister"} {
		t.Run(method, func(t *testing.T) {
			stage.EachFault(t, func(t *testing.T, fail func()) {
				st, j, log := memory.New(), &stage.Journal{}, &stage.LogLines{}
				var on atomic.Bool
				r := &stage.BadRegistry{Do: func(called, _ string) {
					if called == method && on.Load() {
						fail()
					}
				}}
				n := stage.StartNode(t, st, "a", j, log.LogTo, func(c *xxljob.Config) { c.Registry = r; c.Cluster.Beat = 5 * time.Second; c.Cluster.Dead = time.Minute })
				stage.AddSeconds(t, n, 3)
				time.Sleep(5 * time.Second)
				on.Store(true)
				time.Sleep(30 * time.Second)
				stage.Stop(t, n)
				stage.RequireOnTime(t, j, 3*34)
				log.RequireStacks(t, "Registry."+method)
			})
		})
	}
}

// TestStopWithARegistryThatHangs: Stop gives the executors that are to be deregistered
// five seconds in all, and the call that is under way then its RouteTimeout.
func TestStopWithARegistryThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := &stage.BadRegistry{Do: func(method, _ string) {
			if method == "Deregister" {
				<-release
			}
		}}
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Registry = r })
		for i := range 20 {
			attachUser(t, n, fmt.Sprint(i))
		}
		time.Sleep(10*time.Second + time.Second/2)
		before := time.Now()
		stage.Stop(t, n)
		if took := time.Since(before); took > 6*time.Second {
			t.Errorf("Stop took %v", took)
		}
		close(release)
	})
}

// groupHangs is a store one call of which about a group hangs until its context ends.
type groupHangs struct {
	st   xxljob.Store
	next atomic.Bool
}

func (s *groupHangs) Group(ctx context.Context, app string) (xxljob.Group, error) {
	if s.next.CompareAndSwap(true, false) {
		<-ctx.Done()
		return xxljob.Group{}, ctx.Err()
	}
	return s.st.Group(ctx, app)
}

// TestGroupThatHangs: where the addresses come from a registry of the user's, a call of
// the store about the app has its time all the same, and the runs go on after it.
func TestGroupThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := &groupHangs{st: memory.New()}
		st := bent.StoreOf(hangs.st, hangs)
		n := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.Registry = &plain.Registry{} })
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work"})
		stage.Must(t, err)
		time.Sleep(10 * time.Minute) // its last answer is older than Dead
		hangs.next.Store(true)
		if run := stage.WaitFor(t, n, stage.Trigger(t, n, job), 20*time.Second); run.State != xxljob.StateSucceeded {
			t.Errorf("the run is %v: %s", run.State, run.TriggerMsg)
		}
		if hangs.next.Load() {
			t.Error("the store was not asked")
		}
		stage.Stop(t, n)
	})
}
