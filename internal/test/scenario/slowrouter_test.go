package scenario_test

// Routers that take their time, or never answer, and answers that are of no use.

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// routeFunc is a router of a user's. It notes for which jobs it is called.
type routeFunc struct {
	f      func(ctx context.Context, jobID int64, addrs []string) ([]string, error)
	forget func(jobID int64)

	mu    sync.Mutex
	calls map[int64]int // guarded by mu
	under map[int64]int // guarded by mu
	most  int           // guarded by mu: calls for one job at once
}

func (r *routeFunc) Route(ctx context.Context, jobID int64, addrs []string) ([]string, error) {
	r.mu.Lock()
	if r.calls == nil {
		r.calls, r.under = map[int64]int{}, map[int64]int{}
	}
	r.calls[jobID]++
	r.under[jobID]++
	r.most = max(r.most, r.under[jobID])
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.under[jobID]--
		r.mu.Unlock()
	}()
	return r.f(ctx, jobID, addrs)
}

func (r *routeFunc) Forget(jobID int64) {
	if r.forget != nil {
		r.forget(jobID)
	}
}

func (r *routeFunc) called(jobID int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[jobID]
}

// atOnce is how many calls were under way at once for one job.
func (r *routeFunc) atOnce() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

func withRouter(r xxljob.Router) func(*xxljob.Config) {
	return func(c *xxljob.Config) { c.Routers = map[string]xxljob.Router{"USERS": r} }
}

// addRouted adds a job with the user's router that is due each second.
func addRouted(t *testing.T, s xxljob.Scheduler, name string) xxljob.Job {
	t.Helper()
	job, err := s.AddJob(t.Context(), xxljob.Job{Name: name, Handler: "work", Route: "USERS", Schedule: xxljob.Cron("* * * * * ?")})
	stage.Must(t, err)
	return job
}

// TestRouterThatNeverReturns: the runs of its job are refused when RouteTimeout is over,
// without another call; those of other jobs, of the same router too, are on time. When it
// returns it is asked again.
func TestRouterThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j, log := memory.New(), &stage.Journal{}, &stage.LogLines{}
		var bad atomic.Int64
		release := make(chan struct{})
		r := &routeFunc{f: func(_ context.Context, jobID int64, addrs []string) ([]string, error) {
			if jobID == bad.Load() {
				<-release
			}
			return addrs[:1], nil
		}}
		n := stage.StartNode(t, st, "a", j, withRouter(r), log.LogTo)
		time.Sleep(500 * time.Millisecond)
		hangs, err := n.AddJob(t.Context(), xxljob.Job{Name: "hangs", Handler: "work", Route: "USERS", Schedule: xxljob.Cron("* * * * * ?"), Stopped: true})
		stage.Must(t, err)
		bad.Store(hangs.ID)
		stage.Must(t, n.StartJob(t.Context(), hangs.ID))
		good := addRouted(t, n, "good")
		stage.AddSeconds(t, n, 3)
		before := runtime.NumGoroutine()
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > 10 {
			t.Errorf("%d goroutines more than at the beginning", more)
		}
		stage.RequireOnTime(t, j, 4*60)
		if r.called(hangs.ID) != 1 || r.called(good.ID) < 60 {
			t.Errorf("%d calls about the job whose router hangs, want one; %d about the other", r.called(hangs.ID), r.called(good.ID))
		}
		refused := stage.AllOf(t, st, xxljob.RunFilter{JobID: hangs.ID, States: []xxljob.State{xxljob.StateRefused}})
		if len(refused) < 58 {
			t.Errorf("%d runs were refused", len(refused))
		}
		for _, run := range refused {
			if late := run.Ended.Sub(run.Scheduled); late != time.Second || !strings.Contains(run.TriggerMsg, "route USERS: no answer within 1s") {
				t.Errorf("refused after %v: %s", late, run.TriggerMsg)
			}
		}
		if lines := log.With("level=WARN", "a router did not answer in time"); len(lines) != 1 {
			t.Errorf("the log says %q", lines)
		}
		close(release)
		if run := stage.WaitFor(t, n, stage.Trigger(t, n, hangs), time.Minute); run.State != xxljob.StateSucceeded {
			t.Errorf("after the router has returned a run is %v: %s", run.State, run.TriggerMsg)
		}
		stage.Stop(t, n)
	})
}

// TestLateAnswerIsDropped: what a router says after its time is over goes to no run, and
// the next one gets a call of its own.
func TestLateAnswerIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n1 atomic.Int64
		r := &routeFunc{f: func(_ context.Context, _ int64, addrs []string) ([]string, error) {
			switch n1.Add(1) {
			case 1:
				time.Sleep(1500 * time.Millisecond)
				return nil, errors.New("too late")
			case 3:
				time.Sleep(500 * time.Millisecond)
			}
			return addrs, nil
		}}
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, withRouter(r))
		time.Sleep(time.Second)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Route: "USERS"})
		stage.Must(t, err)
		first := stage.Trigger(t, n, job)
		time.Sleep(600 * time.Millisecond)
		second := stage.Trigger(t, n, job)
		if run := stage.WaitFor(t, n, first, time.Minute); run.State != xxljob.StateRefused || !strings.Contains(run.TriggerMsg, "no answer within 1s") {
			t.Errorf("the first run is %v: %s", run.State, run.TriggerMsg)
		}
		if run := stage.WaitFor(t, n, second, time.Minute); run.State != xxljob.StateSucceeded || n1.Load() != 2 {
			t.Errorf("the second run is %v after %d calls: %s", run.State, n1.Load(), run.TriggerMsg)
		}
		time.Sleep(50 * time.Millisecond) // not yet the end of the time that the second one had
		for range 3 {
			stage.Trigger(t, n, job)
			time.Sleep(100 * time.Millisecond)
		}
		if n := r.atOnce(); n != 1 {
			t.Errorf("%d calls at once about one job", n)
		}
		stage.Stop(t, n)
	})
}

// TestRouterThatPanics: its runs are refused, in plain words.
func TestRouterThatPanics(t *testing.T) {
	stage.EachFault(t, func(t *testing.T, fail func()) {
		j, log := &stage.Journal{}, &stage.LogLines{}
		r := &routeFunc{f: func(context.Context, int64, []string) ([]string, error) { fail(); return nil, nil }, forget: func(int64) { fail() }}
		n := stage.StartNode(t, memory.New(), "a", j, withRouter(r), log.LogTo)
		stage.AddSeconds(t, n, 3)
		time.Sleep(time.Second)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Route: "USERS"})
		stage.Must(t, err)
		for range 3 {
			run := stage.WaitFor(t, n, stage.Trigger(t, n, job), time.Minute)
			says := strings.Contains(run.TriggerMsg, "route USERS: panic: boom") || strings.Contains(run.TriggerMsg, "route USERS: the function has ended its goroutine")
			if run.State != xxljob.StateRefused || !says || strings.Contains(run.TriggerMsg, ".go:") {
				t.Errorf("the run is %v: %s", run.State, run.TriggerMsg)
			}
		}
		time.Sleep(10 * time.Second)
		stage.Must(t, n.RemoveJob(t.Context(), job.ID))
		stage.Stop(t, n)
		stage.RequireOnTime(t, j, 3*10)
		log.RequireStacks(t, "Router.Route of USERS", "Router.Forget of USERS")
	})
}

// TestSlowRouterKeepsOrder: runs of a job wait for their router one after the other, and
// start in the order of their triggers. Each has a call of its own. The runs of others do
// not wait.
func TestSlowRouterKeepsOrder(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, time.Millisecond, 300 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const runs = 40
				st, j := memory.New(), &stage.Journal{}
				r := &routeFunc{f: func(_ context.Context, jobID int64, addrs []string) ([]string, error) {
					time.Sleep(takes)
					return addrs, nil
				}}
				n := stage.StartNode(t, st, "a", j, withRouter(r))
				var mu sync.Mutex
				var order []int64
				stage.Must(t, n.Handle("note", func(_ context.Context, task *xxljob.Task) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, task.RunID)
					return nil
				}))
				stage.AddSeconds(t, n, 3)
				time.Sleep(time.Second)
				job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "note", Route: "USERS"})
				stage.Must(t, err)
				var ids []int64
				for i := range runs {
					ids = append(ids, stage.Trigger(t, n, job))
					if i%10 == 5 {
						time.Sleep(takes / 3)
					}
				}
				time.Sleep(30 * time.Second)
				stage.Stop(t, n)
				if !slices.Equal(order, ids) {
					t.Errorf("the runs were started in the order\n%v, want\n%v", order, ids)
				}
				if r.called(job.ID) != runs || r.atOnce() != 1 {
					t.Errorf("%d calls for %d runs, %d at once", r.called(job.ID), runs, r.atOnce())
				}
				stage.RequireOnTime(t, j, 3*30)
			})
		})
	}
}

// TestAnswersOfRouters: an answer costs no more than its length, whatever it is, and
// counts each address once.
func TestAnswersOfRouters(t *testing.T) {
	t.Parallel()
	const million = 1_000_000
	for name, tt := range map[string]struct {
		answer func(addrs []string) []string
		route  string
		parts  int
		says   string
	}{
		"a million times the same": {answer: func(addrs []string) []string { return slices.Repeat(addrs, million/len(addrs)) }, route: "SHARDING_BROADCAST", parts: 2},
		"the other way round":      {answer: func(addrs []string) []string { slices.Reverse(addrs); return addrs }, route: "SHARDING_BROADCAST", parts: 2},
		"a million for one":        {answer: func(addrs []string) []string { return slices.Repeat(addrs, million/len(addrs)) }, route: "USERS", parts: 1},
		"a million others":         {answer: func([]string) []string { return slices.Repeat([]string{strings.Repeat("x", 1000)}, million) }, route: "USERS", says: "x..., which is not an address of the app"},
		"one of a million":         {answer: func(addrs []string) []string { return append(slices.Repeat(addrs, million/len(addrs)), "nowhere") }, route: "USERS", says: "chose nowhere, which is not an address of the app"},
		"none":                     {answer: func([]string) []string { return nil }, route: "USERS", says: "chose no address"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				r := &routeFunc{f: func(_ context.Context, _ int64, addrs []string) ([]string, error) { return tt.answer(addrs), nil }}
				with := func(c *xxljob.Config) { c.Routers = map[string]xxljob.Router{tt.route: r} }
				a, b := stage.StartNode(t, st, "a", j, with), stage.StartNode(t, st, "b", j, with)
				time.Sleep(10 * time.Second)
				run := stage.WaitFor(t, a, stage.TriggerNew(t, a, xxljob.Job{Name: "job", Handler: "work", Route: tt.route}), time.Minute)
				time.Sleep(time.Second)
				parts := stage.AllOf(t, st, xxljob.RunFilter{JobID: run.JobID})
				if tt.says != "" && (run.State != xxljob.StateRefused || !strings.Contains(run.TriggerMsg, tt.says) || len(run.TriggerMsg) > 2000) {
					t.Errorf("the run is %v: %.3000s", run.State, run.TriggerMsg)
				}
				if tt.says == "" && (run.State != xxljob.StateSucceeded || len(parts) != tt.parts) {
					t.Errorf("the run is %v, of %d parts, want %d: %.3000s", run.State, len(parts), tt.parts, run.TriggerMsg)
				}
				stage.Stop(t, a, b)
			})
		})
	}
}

// TestStopWithARouterThatHangs: Stop waits for it no longer than RouteTimeout, and its run
// is another node's.
func TestStopWithARouterThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		release := make(chan struct{})
		r := &routeFunc{f: func(_ context.Context, _ int64, addrs []string) ([]string, error) { <-release; return addrs, nil }}
		a := stage.StartNode(t, st, "a", &stage.Journal{}, withRouter(r))
		time.Sleep(time.Second)
		id := stage.TriggerNew(t, a, xxljob.Job{Name: "job", Handler: "work", Route: "USERS"})
		time.Sleep(500 * time.Millisecond)
		before := time.Now()
		stage.Stop(t, a)
		if took := time.Since(before); took != 500*time.Millisecond {
			t.Errorf("Stop took %v, want the rest of RouteTimeout", took)
		}
		b := stage.StartNode(t, st, "b", &stage.Journal{}, withRouter(&plain.Router{}))
		if run := stage.WaitFor(t, b, id, time.Minute); run.State != xxljob.StateSucceeded {
			t.Errorf("the run is %v: %s", run.State, run.TriggerMsg)
		}
		close(release)
		stage.Stop(t, b)
	})
}

// TestForgetThatHangs: a job is removed all the same.
func TestForgetThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := &routeFunc{forget: func(int64) { <-release }}
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, withRouter(r))
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work"})
		stage.Must(t, err)
		before := time.Now()
		stage.Must(t, n.RemoveJob(t.Context(), job.ID))
		if took := time.Since(before); took != time.Second {
			t.Errorf("RemoveJob took %v, want RouteTimeout", took)
		}
		close(release)
		stage.Stop(t, n)
	})
}

// TestNoCallAfterStop: a router that hangs, and returns after Stop, is not called again for
// the run that has waited behind.
func TestNoCallAfterStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := &routeFunc{f: func(_ context.Context, _ int64, addrs []string) ([]string, error) { <-release; return addrs, nil }}
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, withRouter(r))
		time.Sleep(time.Second)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Route: "USERS"})
		stage.Must(t, err)
		stage.Trigger(t, n, job)
		time.Sleep(600 * time.Millisecond)
		stage.Trigger(t, n, job)
		time.Sleep(500 * time.Millisecond)
		stage.Stop(t, n)
		close(release)
		time.Sleep(time.Minute)
		if calls := r.called(job.ID); calls != 1 {
			t.Errorf("%d calls, want the one that hung", calls)
		}
	})
}
