package scenario_test

// What the scheduler is given may panic, end its goroutine, or never return.

import (
	"context"
	"fmt"
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
	"github.com/xxljob/xxljob/wire"
)

// TestHooksThatPanic: the runs go on, and each of the hooks is in the log once.
func TestHooksThatPanic(t *testing.T) {
	stage.EachFault(t, func(t *testing.T, fail func()) {
		j, log := &stage.Journal{}, &stage.LogLines{}
		var calls atomic.Int64
		hook := func(xxljob.Run) { calls.Add(1); fail() }
		n := stage.StartNode(t, memory.New(), "a", j, log.LogTo, func(c *xxljob.Config) {
			c.Hooks = xxljob.Hooks{RunStarted: hook, RunEnded: hook}
		})
		stage.AddSeconds(t, n, 3)
		time.Sleep(20 * time.Second)
		stage.Stop(t, n)
		stage.RequireOnTime(t, j, 3*19)
		log.RequireStacks(t, "Hooks.RunStarted", "Hooks.RunEnded")
		if want := int64(2 * len(j.All())); calls.Load() != want {
			t.Errorf("%d calls of hooks, want %d", calls.Load(), want)
		}
	})
}

// TestHookThatNeverReturns: neither the runs nor Stop wait for it.
func TestHookThatNeverReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, log := &stage.Journal{}, &stage.LogLines{}
		release := make(chan struct{})
		n := stage.StartNode(t, memory.New(), "a", j, log.LogTo, func(c *xxljob.Config) {
			c.StopGrace = 10 * time.Second
			c.Hooks.RunStarted = func(xxljob.Run) { <-release }
		})
		stage.AddSeconds(t, n, 3)
		time.Sleep(20 * time.Second)
		before := time.Now()
		if err := n.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(before); took != 10*time.Second {
			t.Errorf("Stop took %v, want StopGrace", took)
		}
		stage.RequireOnTime(t, j, 3*19)
		if lines := log.With("level=WARN", "Hooks.RunStarted", "has not returned", "dropped=0\n"); len(lines) != 1 {
			t.Errorf("lines about the hook: %q", lines)
		}
		close(release)
	})
}

// badRing is a ring whose methods fail from a time on, one of them at least, with its
// lock held.
type badRing struct {
	plain.Ring
	from   time.Time
	method string
	fail   func()
	mu     sync.Mutex
}

func (r *badRing) enter(method string) {
	r.mu.Lock()
	if method == r.method && !time.Now().Before(r.from) {
		r.fail()
	}
	r.mu.Unlock()
}

func (r *badRing) Push(at time.Time, id int64) { r.enter("Push"); r.Ring.Push(at, id) }
func (r *badRing) Pop(now time.Time) []int64   { r.enter("Pop"); return r.Ring.Pop(now) }
func (r *badRing) Len() int                    { r.enter("Len"); return r.Ring.Len() }

// TestRingThatPanics: the built-in ring takes its place, with all that was on it; what is
// due is started to the millisecond before, at and after that.
func TestRingThatPanics(t *testing.T) {
	for method, every := range map[string]time.Duration{
		"Push": time.Second, "Pop": time.Second,
		"Len": 20 * time.Second, // it is asked when nothing should be on the ring
	} {
		t.Run(method, func(t *testing.T) {
			stage.EachFault(t, func(t *testing.T, fail func()) {
				j, log := &stage.Journal{}, &stage.LogLines{}
				ring := &badRing{method: method, fail: fail, from: time.Now().Add(10 * time.Second)}
				st := memory.New()
				n := stage.StartNode(t, st, "a", j, log.LogTo, func(c *xxljob.Config) { c.Ring = ring })
				for i := range 5 {
					_, err := n.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.FixedRate(every)})
					stage.Must(t, err)
				}
				time.Sleep(30*every + every/2)
				stage.RequireEnded(t, st)
				stage.Stop(t, n)
				stage.RequireOnTime(t, j, 5*30)
				if got := len(j.All()); got != 5*30 {
					t.Errorf("%d runs, want %d", got, 5*30)
				}
				log.RequireStacks(t, "TimeRing."+method)
				if lines := log.With("level=ERROR", "was replaced by the ring of NewTimeRing", "method="+method); len(lines) != 1 {
					t.Errorf("lines about the other ring: %q", lines)
				}
			})
		})
	}
}

// badExecutor is an executor of a user's with one method that fails.
type badExecutor struct {
	stage.SlowExecutor
	method string
	fail   func()
	on     atomic.Bool
}

func (e *badExecutor) enter(method string) {
	if method == e.method && e.on.Load() {
		e.fail()
	}
}

func (e *badExecutor) App() string        { e.enter("App"); return e.SlowExecutor.App() }
func (e *badExecutor) Handlers() []string { e.enter("Handlers"); return e.SlowExecutor.Handlers() }
func (e *badExecutor) Bind(a wire.Admin)  { e.enter("Bind"); e.SlowExecutor.Bind(a) }
func (e *badExecutor) Places() int        { e.enter("Places"); return 10 }

func (e *badExecutor) Run(ctx context.Context, r wire.TriggerRequest) (wire.Return, error) {
	e.enter("Run")
	return e.SlowExecutor.Run(ctx, r)
}

func (e *badExecutor) Beat(ctx context.Context) (wire.Return, error) {
	e.enter("Beat")
	return e.SlowExecutor.Beat(ctx)
}

func (e *badExecutor) IdleBeat(ctx context.Context, r wire.IdleBeatRequest) (wire.Return, error) {
	e.enter("IdleBeat")
	return e.SlowExecutor.IdleBeat(ctx, r)
}

func (e *badExecutor) Kill(ctx context.Context, r wire.KillRequest) (wire.Return, error) {
	e.enter("Kill")
	return e.SlowExecutor.Kill(ctx, r)
}

func (e *badExecutor) Log(ctx context.Context, r wire.LogRequest) (wire.LogReturn, error) {
	e.enter("Log")
	return e.SlowExecutor.Log(ctx, r)
}

// TestExecutorThatPanics: each method of an executor of a user's, in turn. What the
// scheduler makes of it is what it makes of an error; of lists and numbers the last
// answer holds.
func TestExecutorThatPanics(t *testing.T) {
	for _, tt := range []struct {
		method, route string
		want          xxljob.State
		says          string
	}{
		{"App", "NEAREST", xxljob.StateSucceeded, ""}, // it is asked once
		{"Handlers", "NEAREST", xxljob.StateSucceeded, ""},
		{"Places", "NEAREST", xxljob.StateSucceeded, ""},
		{"Run", "NEAREST", xxljob.StateRefused, "error: "},
		{"Beat", "FAILOVER", xxljob.StateRefused, "error: "},
		{"IdleBeat", "BUSYOVER", xxljob.StateRefused, "error: "},
		{"Kill", "NEAREST", xxljob.StateSucceeded, ""},
		{"Log", "NEAREST", xxljob.StateSucceeded, ""},
	} {
		t.Run(tt.method, func(t *testing.T) {
			stage.EachFault(t, func(t *testing.T, fail func()) {
				st, j, log := memory.New(), &stage.Journal{}, &stage.LogLines{}
				n := stage.StartNode(t, st, "a", j, log.LogTo)
				e := &badExecutor{method: tt.method, fail: fail}
				e.Of, e.Delay = "x", func(wire.TriggerRequest) time.Duration { return 5 * time.Second }
				stage.Must(t, n.Attach(e))
				stage.AddSeconds(t, n, 3)
				began := time.Now()
				job, err := n.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: tt.route})
				stage.Must(t, err)
				time.Sleep(5 * time.Second)
				e.on.Store(true)
				for range 2 {
					id := stage.Trigger(t, n, job)
					time.Sleep(2 * time.Second)
					if tt.method == "Kill" {
						stage.Must(t, n.Kill(t.Context(), id))
					}
					if r := stage.WaitFor(t, n, id, time.Minute); r.State != tt.want || !strings.Contains(r.TriggerMsg, tt.says) {
						t.Errorf("the run is %v: %s", r.State, r.TriggerMsg)
					}
					if _, err := n.Log(t.Context(), id, 1); (err != nil) != (tt.method == "Log" || tt.want == xxljob.StateRefused && tt.method != "Run") {
						t.Errorf("its log: %v", err)
					}
				}
				time.Sleep(time.Until(began.Add(30 * time.Second)))
				stage.Stop(t, n)
				stage.RequireOnTime(t, j, 3*29)
				if tt.method == "App" {
					log.RequireStacks(t)
				} else {
					log.RequireStacks(t, "Executor."+tt.method+" of app x")
				}
			})
		})
	}
}

// TestAttachThatPanics: an executor that fails while it is attached is not attached, and
// another may take its place.
func TestAttachThatPanics(t *testing.T) {
	for _, method := range []string{"App", "Bind"} {
		t.Run(method, func(t *testing.T) {
			stage.EachFault(t, func(t *testing.T, fail func()) {
				log := &stage.LogLines{}
				n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, log.LogTo)
				e := &badExecutor{method: method, fail: fail}
				e.Of, e.Delay = "x", func(wire.TriggerRequest) time.Duration { return 0 }
				e.on.Store(true)
				if err := n.Attach(e); err == nil {
					t.Error("Attach returned no error")
				}
				e.on.Store(false)
				stage.Must(t, n.Attach(e))
				if r := stage.WaitFor(t, n, stage.TriggerNew(t, n, xxljob.Job{App: "x", Name: "job", Handler: "work"}), time.Minute); r.State != xxljob.StateSucceeded {
					t.Errorf("the run is %v: %s", r.State, r.TriggerMsg)
				}
				stage.Stop(t, n)
				log.RequireStacks(t, "Executor."+method)
			})
		})
	}
}
