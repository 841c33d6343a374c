package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/plain"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// userExecutor is an executor of a user's, each part replaceable.
type userExecutor struct {
	app   string
	run   func(ctx context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error)
	beat  func() (wire.Return, error)
	kill  func(wire.KillRequest) (wire.Return, error)
	admin wire.Admin
}

func (e *userExecutor) App() string        { return e.app }
func (e *userExecutor) Handlers() []string { return []string{"work"} }
func (e *userExecutor) Bind(a wire.Admin)  { e.admin = a }
func (e *userExecutor) Run(ctx context.Context, r wire.TriggerRequest) (wire.Return, error) {
	if e.run != nil {
		return e.run(ctx, e.admin, r)
	}
	go e.admin.Callback(context.WithoutCancel(ctx), []wire.CallbackRequest{{LogID: r.LogID, HandleCode: 200}})
	return wire.Success(), nil
}
func (e *userExecutor) Beat(context.Context) (wire.Return, error) {
	if e.beat != nil {
		return e.beat()
	}
	return wire.Success(), nil
}
func (e *userExecutor) IdleBeat(context.Context, wire.IdleBeatRequest) (wire.Return, error) {
	return e.Beat(context.Background())
}
func (e *userExecutor) Kill(_ context.Context, r wire.KillRequest) (wire.Return, error) {
	if e.kill != nil {
		return e.kill(r)
	}
	return wire.Success(), nil
}
func (e *userExecutor) Log(context.Context, wire.LogRequest) (wire.LogReturn, error) {
	return wire.LogReturn{Code: 200}, nil
}

// wait is Wait with a bound.
func waitFor(t *testing.T, s xxljob.Scheduler, id int64, d time.Duration) xxljob.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	run, err := s.Wait(ctx, id)
	if err != nil {
		now, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		run, _ = s.Wait(now, id) // as it is by now
		t.Errorf("run %d is %v after %v: %v", id, run.State, d, err)
	}
	return run
}

func trigger(t *testing.T, s xxljob.Scheduler, job xxljob.Job) int64 {
	t.Helper()
	ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
	must(t, err)
	return ids[0]
}

func stopShort(n *node) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n.Stop(ctx)
}

// TestFailoverPastHungBeat: FAILOVER goes on to the second address when the beat of the first hangs, and does
// not find the good answer too old by then.
func TestFailoverPastHungBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		release := make(chan struct{})
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, a.Attach(&userExecutor{app: "x", beat: func() (wire.Return, error) { <-release; return wire.Success(), nil }}))
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"})
		must(t, err)
		waitFor(t, a, trigger(t, a, job), time.Minute)
		close(release)
		stop(t, a, b)
	})
}

// TestSerialBroadcastWaits: A serial broadcast waits while any part of the one before still runs, also where
// that is not the first.
func TestSerialBroadcastWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		var n atomic.Int64
		a := startNode(t, startGuard{st, &n}, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, a.Handle("bc", func(context.Context, *xxljob.Task) error { return nil }))
		must(t, b.Handle("bc", func(context.Context, *xxljob.Task) error { time.Sleep(5 * time.Second); return nil }))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "bc", Handler: "bc", Route: "SHARDING_BROADCAST"})
		must(t, err)
		trigger(t, a, job)
		time.Sleep(time.Second)
		waitFor(t, a, trigger(t, a, job), time.Minute)
		time.Sleep(time.Minute)
		if n.Load() > 100 {
			t.Errorf("%d calls of Start for two triggers", n.Load())
		}
		stop(t, a, b)
	})
}

// startGuard counts the calls of Start, and slows them once there are too many.
type startGuard struct {
	xxljob.Store
	n *atomic.Int64
}

func (s startGuard) Start(ctx context.Context, st []xxljob.Start) ([]xxljob.Started, error) {
	if s.n.Add(1) > 10_000 {
		time.Sleep(time.Second)
	}
	return s.Store.Start(ctx, st)
}

// afterStore lets time pass between a call's effect and its answer.
type afterStore struct {
	xxljob.Store
	settle time.Duration
}

func (s afterStore) Settle(ctx context.Context, v []xxljob.Verdict) ([]xxljob.Run, error) {
	runs, err := s.Store.Settle(ctx, v)
	time.Sleep(s.settle)
	return runs, err
}

// TestSettleKeepsNewFlight: A run that this node has put back may be found by its scan, and started here,
// before the lease loop has the answer of Settle: the new flight stays.
func TestSettleKeepsNewFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, afterStore{st, 100 * time.Millisecond}, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, b.Handle("slow", func(context.Context, *xxljob.Task) error { return nil }))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "slow", Handler: "slow"})
		must(t, err)
		must(t, a.Handle("nothing", func(context.Context, *xxljob.Task) error { return nil }))
		b.pause() // dies with the run in its inbox
		id := trigger(t, a, job)
		time.Sleep(time.Second)
		must(t, a.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(time.Second); return nil }))
		waitFor(t, a, id, 3*time.Minute)
		b.resume()
		stopShort(a)
		stopShort(b)
	})
}

// lateStore gives up on a call before it takes effect.
type lateStore struct {
	xxljob.Store
	start, take *atomic.Bool
}

func (s lateStore) Start(ctx context.Context, st []xxljob.Start) ([]xxljob.Started, error) {
	if s.start.Swap(false) {
		time.AfterFunc(200*time.Millisecond, func() { s.Store.Start(context.Background(), st) })
		return nil, errors.New("connection lost")
	}
	time.Sleep(300 * time.Millisecond)
	return s.Store.Start(ctx, st)
}

func (s lateStore) Take(ctx context.Context, inc string, ids []int64) ([]xxljob.Run, error) {
	if s.take.Swap(false) {
		time.AfterFunc(200*time.Millisecond, func() { s.Store.Take(context.Background(), inc, ids) })
		return nil, errors.New("connection lost")
	}
	return s.Store.Take(ctx, inc, ids)
}

// TestLateStart: A Start that returned an error may take effect after the row was read again: the
// run is run.
func TestLateStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		ls := lateStore{st, &atomic.Bool{}, &atomic.Bool{}}
		a := startNode(t, ls, "a", j, oneShard)
		time.Sleep(time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "work"})
		must(t, err)
		ls.start.Store(true)
		waitFor(t, a, trigger(t, a, job), 5*time.Minute)
		stopShort(a)
	})
}

func TestLateTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		ls := lateStore{st, &atomic.Bool{}, &atomic.Bool{}}
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, ls, "b", j, oneShard)
		must(t, b.Handle("onb", func(context.Context, *xxljob.Task) error { return nil }))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "onb"})
		must(t, err)
		ls.take.Store(true)
		waitFor(t, a, trigger(t, a, job), 5*time.Minute)
		stopShort(a)
		stopShort(b)
	})
}

// TestMovedLetsTheNextIn: A run that goes on to another node after a refusal lets the next serial run in at
// once.
func TestMovedLetsTheNextIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, a.Attach(&userExecutor{app: "x", run: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			time.Sleep(100 * time.Millisecond)
			return wire.Failf("not today"), nil
		}}))
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"})
		must(t, err)
		one := trigger(t, a, job)
		time.Sleep(20 * time.Millisecond)
		two := trigger(t, a, job)
		waitFor(t, a, one, time.Minute)
		waitFor(t, a, two, time.Minute)
		stop(t, a, b)
	})
}

// TestReaddressIsTriedAgain: A store that is away for the one call that moves a refused run does not make the
// refusal final: another address is there.
func TestReaddressIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, a.Attach(&userExecutor{app: "x", run: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			return wire.Failf("not today"), nil
		}}))
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"})
		must(t, err)
		a.faults.Inject("Readdress", storetest.Fault{Before: true, Calls: 1})
		if r := waitFor(t, a, trigger(t, a, job), time.Minute); r.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", r.State, r.TriggerMsg)
		}
		stop(t, a, b)
	})
}

// TestBusyoverStoreError: BUSYOVER does not take a store that is away for an executor that is not well.
func TestBusyoverStoreError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "BUSYOVER"})
		must(t, err)
		a.faults.Inject("Runs", storetest.Fault{Before: true, Calls: 1})
		if r := waitFor(t, b, trigger(t, a, job), time.Minute); r.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", r.State, r.TriggerMsg)
		}
		stop(t, a, b)
	})
}

// TestHangingKillHoldsUpNobody: an executor that hangs in Kill does not keep the inbox of its node from being
// looked into.
func TestHangingKillHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		release := make(chan struct{})
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, b.Attach(&userExecutor{app: "x",
			run: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
				return wire.Success(), nil
			},
			kill: func(wire.KillRequest) (wire.Return, error) { <-release; return wire.Success(), nil }}))
		must(t, b.Attach(&userExecutor{app: "y"}))
		time.Sleep(5 * time.Second)
		x, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work"})
		must(t, err)
		y, err := a.AddJob(t.Context(), xxljob.Job{App: "y", Name: "job", Handler: "work"})
		must(t, err)
		id := trigger(t, a, x)
		time.Sleep(time.Second)
		must(t, a.Kill(t.Context(), id))
		time.Sleep(time.Second)
		waitFor(t, a, trigger(t, a, y), 5*time.Minute)
		close(release)
		stopShort(a)
		stopShort(b)
	})
}

// TestInboxServesEveryApp: 500 runs of a full app at the head of the inbox do not keep those of another away.
func TestInboxServesEveryApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		ex, err := executor.New(executor.Config{App: "x", Places: 5, Logger: quietLog()})
		must(t, err)
		must(t, ex.Handle("work", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return nil }))
		must(t, b.Attach(ex))
		must(t, b.Attach(&userExecutor{app: "y"}))
		time.Sleep(5 * time.Second)
		at := time.Now().Add(10 * time.Second)
		for i := range 600 {
			_, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.At(at)})
			must(t, err)
		}
		y, err := a.AddJob(t.Context(), xxljob.Job{App: "y", Name: "job", Handler: "work"})
		must(t, err)
		time.Sleep(12 * time.Second)
		waitFor(t, a, trigger(t, a, y), 5*time.Minute)
		stopShort(a)
		stopShort(b)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		ex.Stop(over)
	})
}

// oneBadRegistry fails for one app.
type oneBadRegistry struct{ plain.Registry }

func (r *oneBadRegistry) Lookup(ctx context.Context, app string) ([]string, error) {
	if app == "bad" {
		return nil, errors.New("no such zone")
	}
	return r.Registry.Lookup(ctx, app)
}

// TestRegistryFailsForOneApp: A registry that fails for one app leaves the runs of the others alone.
func TestRegistryFailsForOneApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, func(c *xxljob.Config) { c.Registry = &oneBadRegistry{}; c.Logger = slog.New(slog.DiscardHandler) })
		time.Sleep(time.Second)
		good, err := a.AddJob(t.Context(), xxljob.Job{Name: "good", Handler: "work"})
		must(t, err)
		bad, err := a.AddJob(t.Context(), xxljob.Job{App: "bad", Name: "bad", Handler: "work"})
		must(t, err)
		trigger(t, a, bad)
		time.Sleep(time.Second)
		waitFor(t, a, trigger(t, a, good), 5*time.Minute)
		stopShort(a)
	})
}

// TestKillWhileAccepting: A kill that comes while the executor is still accepting the run is carried out
// afterwards.
func TestKillWhileAccepting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, oneShard)
		var mu sync.Mutex
		running := map[int64]bool{}
		var ex *userExecutor
		ex = &userExecutor{app: "x",
			run: func(_ context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error) {
				time.Sleep(2 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				running[r.LogID] = true
				return wire.Success(), nil
			},
			kill: func(r wire.KillRequest) (wire.Return, error) {
				mu.Lock()
				defer mu.Unlock()
				if running[r.LogID] {
					go ex.admin.Callback(context.Background(), []wire.CallbackRequest{{LogID: r.LogID, HandleCode: 500, Killed: true}})
				}
				return wire.Success(), nil
			}}
		must(t, a.Attach(ex))
		time.Sleep(time.Second)
		x, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work"})
		must(t, err)
		id := trigger(t, a, x)
		time.Sleep(time.Second)
		must(t, a.Kill(t.Context(), id))
		waitFor(t, a, id, 5*time.Minute)
		stopShort(a)
	})
}

// TestAwayRunEvicted: A node that was away while the record of an ended run was dropped does not wait for
// that run.
func TestAwayRunEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(memory.Retain(20, 1000)), &journal{}
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, b.Handle("onb", func(_ context.Context, task *xxljob.Task) error {
			time.Sleep(600 * time.Millisecond)
			j.note("b", task)
			return nil
		}))
		time.Sleep(5 * time.Second)
		_, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "onb", Schedule: xxljob.Cron("* * * * * ?")})
		must(t, err)
		time.Sleep(5*time.Second + 300*time.Millisecond)
		a.pause()
		time.Sleep(60 * time.Second)
		a.resume()
		time.Sleep(60 * time.Second)
		before := len(j.all())
		time.Sleep(60 * time.Second)
		if n := len(j.all()) - before; n < 59 {
			t.Errorf("%d runs in the last minute", n)
		}
		stop(t, a, b)
	})
}

// TestTakenRunHasItsTimeout: A store error where the jobs of taken runs are read does not cost a run its timeout.
func TestTakenRunHasItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, oneShard)
		must(t, b.Handle("onb", func(ctx context.Context, task *xxljob.Task) error {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return nil
		}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "onb", Timeout: 5 * time.Second})
		must(t, err)
		b.faults.Inject("Jobs", storetest.Fault{Before: true, Calls: 1})
		if r := waitFor(t, a, trigger(t, a, job), time.Minute); r.State != xxljob.StateTimedOut {
			t.Errorf("%v", r.State)
		}
		stopShort(a)
		stopShort(b)
	})
}

// TestMaxHoldLeavesNoGap: Shards that LeaseMaxHold makes a node give up do not lie idle.
func TestMaxHoldLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		hold := func(c *xxljob.Config) { c.Shards = 4; c.LeaseMaxHold = 20 * time.Second }
		a := startNode(t, st, "a", j, hold)
		time.Sleep(7 * time.Second)
		b := startNode(t, st, "b", j, hold)
		time.Sleep(5 * time.Second)
		addSeconds(t, a, 8)
		time.Sleep(3 * time.Minute)
		worst := time.Duration(0)
		for _, s := range j.all() {
			worst = max(worst, s.at.Sub(s.due))
		}
		if worst > time.Second {
			t.Errorf("a run was late by %v", worst)
		}
		stop(t, a, b)
	})
}

// TestUnknownBroadcast: the Start of a broadcast has an unknown outcome, and its first part, at another
// node, has ended by the time it is read: the part here is run all the same.
func TestUnknownBroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		two := func(c *xxljob.Config) { c.Shards = 2 }
		a := startNode(t, st, "a", j, two)
		time.Sleep(time.Second)
		b := startNode(t, st, "b", j, two)
		time.Sleep(5 * time.Second)
		b.faults.Inject("Start", storetest.Fault{After: true, Calls: 1})
		for i := range 2 { // one of them is of a shard of b's
			job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Route: "SHARDING_BROADCAST"})
			must(t, err)
			trigger(t, a, job)
		}
		time.Sleep(5 * time.Minute)
		for _, r := range allRuns(t, st) {
			if !r.State.Ended() {
				t.Errorf("run %d (%v) is %v", r.ID, r.Sharding, r.State)
			}
		}
		stopShort(a)
		stopShort(b)
	})
}

// TestStoppedByPlan: A claim that stops a job cancels nothing; what it had planned before is cancelled
// when it comes up.
func TestStoppedByPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		var n atomic.Int64
		a := startNode(t, startGuard{st, &n}, "a", j, oneShard)
		time.Sleep(time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
		must(t, err)
		time.Sleep(2500 * time.Millisecond)
		job, err = st.Job(t.Context(), job.ID)
		must(t, err)
		v, err := st.Beat(t.Context(), "obs", nil)
		must(t, err)
		// what the planner asks for when the schedule cannot be evaluated any more
		_, err = st.Claim(context.Background(), []xxljob.Plan{{JobID: job.ID, Shard: 0, Epoch: v.Shards[0].Epoch, Version: job.Version, Due: job.Next, Stop: "broken"}})
		must(t, err)
		time.Sleep(20 * time.Second)
		if n.Load() > 100 {
			t.Errorf("%d calls of Start", n.Load())
		}
		stopShort(a)
	})
}
