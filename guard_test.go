package xxljob_test

// What the scheduler is given may panic, end its goroutine, or never return.

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
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

// logLines keeps a log in memory.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) logTo(c *xxljob.Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) }

// with are the lines that have all of the texts.
func (l *logLines) with(texts ...string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			lines = append(lines, line)
		}
	}
	return lines
}

// requireStacks checks that there is one line with a stack for each of the places, and
// none for others.
func (l *logLines) requireStacks(t *testing.T, places ...string) {
	t.Helper()
	for _, place := range places {
		if n := len(l.with("stack=", place)); n != 1 {
			t.Errorf("%d lines with a stack about %s, want one", n, place)
		}
	}
	if all := l.with("stack="); len(all) != len(places) {
		t.Errorf("%d lines with a stack, want %d:\n%s", len(all), len(places), strings.Join(all, "\n"))
	}
}

// faultsOfUsers are the ways in which a function may fail its caller.
var faultsOfUsers = map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit}

// eachFault runs a test in a bubble for each of them.
func eachFault(t *testing.T, test func(t *testing.T, fail func())) {
	for name, fail := range faultsOfUsers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, fail) })
		})
	}
}

// requireOnTime checks that the jobs, which are due each second, were started to the
// millisecond, at least n times in all.
func requireOnTime(t *testing.T, j *journal, n int) {
	t.Helper()
	all := j.all()
	for _, s := range all {
		if !s.at.Equal(s.due) {
			t.Errorf("a run due %v was started at %v", s.due, s.at)
		}
	}
	if len(all) < n {
		t.Errorf("%d runs, want %d", len(all), n)
	}
}

// TestHooksThatPanic: the runs go on, and each of the hooks is in the log once.
func TestHooksThatPanic(t *testing.T) {
	eachFault(t, func(t *testing.T, fail func()) {
		j, log := &journal{}, &logLines{}
		var calls atomic.Int64
		hook := func(xxljob.Run) { calls.Add(1); fail() }
		n := startNode(t, memory.New(), "a", j, log.logTo, func(c *xxljob.Config) {
			c.Hooks = xxljob.Hooks{RunStarted: hook, RunEnded: hook}
		})
		addSeconds(t, n, 3)
		time.Sleep(20 * time.Second)
		stop(t, n)
		requireOnTime(t, j, 3*19)
		log.requireStacks(t, "Hooks.RunStarted", "Hooks.RunEnded")
		if want := int64(2 * len(j.all())); calls.Load() != want {
			t.Errorf("%d calls of hooks, want %d", calls.Load(), want)
		}
	})
}

// TestHookThatNeverReturns: neither the runs nor Stop wait for it.
func TestHookThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, log := &journal{}, &logLines{}
		release := make(chan struct{})
		n := startNode(t, memory.New(), "a", j, log.logTo, func(c *xxljob.Config) {
			c.StopGrace = 10 * time.Second
			c.Hooks.RunStarted = func(xxljob.Run) { <-release }
		})
		addSeconds(t, n, 3)
		time.Sleep(20 * time.Second)
		before := time.Now()
		if err := n.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(before); took != 10*time.Second {
			t.Errorf("Stop took %v, want StopGrace", took)
		}
		requireOnTime(t, j, 3*19)
		if lines := log.with("level=WARN", "Hooks.RunStarted", "has not returned"); len(lines) != 1 {
			t.Errorf("lines about the hook: %q", lines)
		}
		close(release)
	})
}

// TestHooksAreDropped: a hook that hangs while many runs start costs them a second at
// most. What it has missed is counted, and said once.
func TestHooksAreDropped(t *testing.T) {
	const runs = xxljob.HooksWaiting + 1000
	synctest.Test(t, func(t *testing.T) {
		st, log := memory.New(), &logLines{}
		release := make(chan struct{})
		var started, ran, late atomic.Int64
		n := startNode(t, st, "a", &journal{}, log.logTo, func(c *xxljob.Config) {
			c.Hooks.RunStarted = func(xxljob.Run) { <-release; started.Add(1) }
		})
		must(t, n.Handle("count", func(_ context.Context, task *xxljob.Task) error {
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
		triggerNew(t, n, xxljob.Job{Name: "after", Handler: "work"})
		synctest.Wait()
		if got := started.Load(); got != xxljob.HooksWaiting+2 {
			t.Errorf("%d calls of the hook, want %d that waited, one whose caller did, and one when there was room again", got, xxljob.HooksWaiting)
		}
		if first, last := log.with("level=ERROR", "dropped"), log.with("hooks are being called again", "dropped=999"); len(first) != 1 || len(last) != 1 {
			t.Errorf("the log says %q, and %q", first, last)
		}
		stop(t, n)
	})
}

// TestHooksMissNothing: of a herd every start and every end is told, the start first, also
// where Stop comes at once; and a hook that takes its time is waited for.
func TestHooksMissNothing(t *testing.T) {
	const runs = xxljob.HooksWaiting + 1000
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
		n := startNode(t, st, "a", &journal{}, func(c *xxljob.Config) {
			c.Hooks = xxljob.Hooks{RunStarted: note("started "), RunEnded: note("ended ")}
		})
		synctest.Wait()
		at := time.Now().Add(time.Minute)
		addMany(t, st, runs, "work", at)
		for len(succeeded(t, st, 0)) < runs {
			time.Sleep(time.Minute + 10*time.Millisecond)
		}
		stop(t, n)
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
		must(t, err)
	}
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
			eachFault(t, func(t *testing.T, fail func()) {
				j, log := &journal{}, &logLines{}
				ring := &badRing{method: method, fail: fail, from: time.Now().Add(10 * time.Second)}
				st := memory.New()
				n := startNode(t, st, "a", j, log.logTo, func(c *xxljob.Config) { c.Ring = ring })
				for i := range 5 {
					_, err := n.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.FixedRate(every)})
					must(t, err)
				}
				time.Sleep(30*every + every/2)
				requireEnded(t, st)
				stop(t, n)
				requireOnTime(t, j, 5*30)
				if got := len(j.all()); got != 5*30 {
					t.Errorf("%d runs, want %d", got, 5*30)
				}
				log.requireStacks(t, "TimeRing."+method)
				if lines := log.with("level=ERROR", "was replaced by the ring of NewTimeRing", "method="+method); len(lines) != 1 {
					t.Errorf("lines about the other ring: %q", lines)
				}
			})
		})
	}
}

// badExecutor is an executor of a user's with one method that fails.
type badExecutor struct {
	slowExecutor
	method string
	fail   func()
	on     atomic.Bool
}

func (e *badExecutor) enter(method string) {
	if method == e.method && e.on.Load() {
		e.fail()
	}
}

func (e *badExecutor) App() string        { e.enter("App"); return e.slowExecutor.App() }
func (e *badExecutor) Handlers() []string { e.enter("Handlers"); return e.slowExecutor.Handlers() }
func (e *badExecutor) Bind(a wire.Admin)  { e.enter("Bind"); e.slowExecutor.Bind(a) }
func (e *badExecutor) Places() int        { e.enter("Places"); return 10 }

func (e *badExecutor) Run(ctx context.Context, r wire.TriggerRequest) (wire.Return, error) {
	e.enter("Run")
	return e.slowExecutor.Run(ctx, r)
}

func (e *badExecutor) Beat(ctx context.Context) (wire.Return, error) {
	e.enter("Beat")
	return e.slowExecutor.Beat(ctx)
}

func (e *badExecutor) IdleBeat(ctx context.Context, r wire.IdleBeatRequest) (wire.Return, error) {
	e.enter("IdleBeat")
	return e.slowExecutor.IdleBeat(ctx, r)
}

func (e *badExecutor) Kill(ctx context.Context, r wire.KillRequest) (wire.Return, error) {
	e.enter("Kill")
	return e.slowExecutor.Kill(ctx, r)
}

func (e *badExecutor) Log(ctx context.Context, r wire.LogRequest) (wire.LogReturn, error) {
	e.enter("Log")
	return e.slowExecutor.Log(ctx, r)
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
			eachFault(t, func(t *testing.T, fail func()) {
				st, j, log := memory.New(), &journal{}, &logLines{}
				n := startNode(t, st, "a", j, log.logTo)
				e := &badExecutor{method: tt.method, fail: fail}
				e.app, e.delay = "x", func(wire.TriggerRequest) time.Duration { return 5 * time.Second }
				must(t, n.Attach(e))
				addSeconds(t, n, 3)
				began := time.Now()
				job, err := n.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: tt.route})
				must(t, err)
				time.Sleep(5 * time.Second)
				e.on.Store(true)
				for range 2 {
					id := trigger(t, n, job)
					time.Sleep(2 * time.Second)
					if tt.method == "Kill" {
						must(t, n.Kill(t.Context(), id))
					}
					if r := waitFor(t, n, id, time.Minute); r.State != tt.want || !strings.Contains(r.TriggerMsg, tt.says) {
						t.Errorf("the run is %v: %s", r.State, r.TriggerMsg)
					}
					if _, err := n.Log(t.Context(), id, 1); (err != nil) != (tt.method == "Log" || tt.want == xxljob.StateRefused && tt.method != "Run") {
						t.Errorf("its log: %v", err)
					}
				}
				time.Sleep(time.Until(began.Add(30 * time.Second)))
				stop(t, n)
				requireOnTime(t, j, 3*29)
				if tt.method == "App" {
					log.requireStacks(t)
				} else {
					log.requireStacks(t, "Executor."+tt.method+" of app x")
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
			eachFault(t, func(t *testing.T, fail func()) {
				log := &logLines{}
				n := startNode(t, memory.New(), "a", &journal{}, log.logTo)
				e := &badExecutor{method: method, fail: fail}
				e.app, e.delay = "x", func(wire.TriggerRequest) time.Duration { return 0 }
				e.on.Store(true)
				if err := n.Attach(e); err == nil {
					t.Error("Attach returned no error")
				}
				e.on.Store(false)
				must(t, n.Attach(e))
				if r := waitFor(t, n, triggerNew(t, n, xxljob.Job{App: "x", Name: "job", Handler: "work"}), time.Minute); r.State != xxljob.StateSucceeded {
					t.Errorf("the run is %v: %s", r.State, r.TriggerMsg)
				}
				stop(t, n)
				log.requireStacks(t, "Executor."+method)
			})
		})
	}
}

// TestHooksKeepTheirOrder: also those whose callers have to wait for room, one of whom
// looks for it sooner than the one before.
func TestHooksKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call, release := xxljob.HookCalls(), make(chan struct{})
		var order []int64
		hook := func(r xxljob.Run) {
			<-release
			if r.ID != 0 {
				order = append(order, r.ID)
			}
		}
		for range xxljob.HooksWaiting {
			call(hook, xxljob.Run{})
		}
		for id := int64(1); id <= 20; id++ {
			go call(hook, xxljob.Run{ID: id})
			time.Sleep(10*time.Millisecond - 10*time.Microsecond)
		}
		close(release)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(order) != 20 || !slices.IsSorted(order) {
			t.Errorf("the hook was called in the order %v", order)
		}
	})
}
