package scenario_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestHangingKillHoldsUpNobody: an executor that hangs in Kill does not keep the inbox of its node from being
// looked into.
func TestHangingKillHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a, b := pair(t, memory.New(), &stage.Journal{})
		stage.Must(t, b.Attach(&stage.UserExecutor{Of: "x",
			OnRun: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
				return wire.Success(), nil
			},
			OnKill: func(wire.KillRequest) (wire.Return, error) { <-release; return wire.Success(), nil }}))
		stage.Must(t, b.Attach(&stage.UserExecutor{Of: "y"}))
		time.Sleep(5 * time.Second)
		x, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work"})
		stage.Must(t, err)
		y, err := a.AddJob(t.Context(), xxljob.Job{App: "y", Name: "job", Handler: "work"})
		stage.Must(t, err)
		id := stage.Trigger(t, a, x)
		time.Sleep(time.Second)
		stage.Must(t, a.Kill(t.Context(), id))
		time.Sleep(time.Second)
		stage.WaitFor(t, a, stage.Trigger(t, a, y), 5*time.Minute)
		close(release)
		stage.StopShort(a)
		stage.StopShort(b)
	})
}

// TestInboxServesEveryApp: 500 runs of a full app at the head of the inbox do not keep those of another away.
func TestInboxServesEveryApp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &stage.Journal{})
		ex, err := executor.New(executor.Config{App: "x", Places: 5, Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, ex.Handle("work", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return nil }))
		stage.Must(t, b.Attach(ex))
		stage.Must(t, b.Attach(&stage.UserExecutor{Of: "y"}))
		time.Sleep(5 * time.Second)
		at := time.Now().Add(10 * time.Second)
		for i := range 600 {
			_, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.At(at)})
			stage.Must(t, err)
		}
		y, err := a.AddJob(t.Context(), xxljob.Job{App: "y", Name: "job", Handler: "work"})
		stage.Must(t, err)
		time.Sleep(12 * time.Second)
		stage.WaitFor(t, a, stage.Trigger(t, a, y), 5*time.Minute)
		stage.StopShort(a)
		stage.StopShort(b)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		ex.Stop(over)
	})
}

// TestKillWhileAccepting: A kill that comes while the executor is still accepting the run is carried out
// afterwards.
func TestKillWhileAccepting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a := stage.StartNode(t, st, "a", j, oneShard)
		var mu sync.Mutex
		running := map[int64]bool{}
		var ex *stage.UserExecutor
		ex = &stage.UserExecutor{Of: "x",
			OnRun: func(_ context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error) {
				time.Sleep(2 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				running[r.LogID] = true
				return wire.Success(), nil
			},
			OnKill: func(r wire.KillRequest) (wire.Return, error) {
				mu.Lock()
				defer mu.Unlock()
				if running[r.LogID] {
					go ex.Admin.Callback(context.Background(), []wire.CallbackRequest{{LogID: r.LogID, HandleCode: 500, Killed: true}})
				}
				return wire.Success(), nil
			}}
		stage.Must(t, a.Attach(ex))
		time.Sleep(time.Second)
		id := stage.TriggerNew(t, a, xxljob.Job{App: "x", Name: "job", Handler: "work"})
		time.Sleep(time.Second)
		stage.Must(t, a.Kill(t.Context(), id))
		stage.WaitFor(t, a, id, 5*time.Minute)
		stage.StopShort(a)
	})
}

// TestTakenRunHasItsTimeout: A store error where the jobs of taken runs are read does not cost a run its timeout.
func TestTakenRunHasItsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &stage.Journal{})
		stage.Must(t, b.Handle("onb", func(ctx context.Context, task *xxljob.Task) error {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return nil
		}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "onb", Timeout: 5 * time.Second})
		stage.Must(t, err)
		b.Faults.Inject("Jobs", storetest.Fault{Before: true, Calls: 1})
		if r := stage.WaitFor(t, a, stage.Trigger(t, a, job), time.Minute); r.State != xxljob.StateTimedOut {
			t.Errorf("%v", r.State)
		}
		stage.StopShort(a)
		stage.StopShort(b)
	})
}

// TestTakenAndNotYetReceived: a run that a node has taken waits there until its job can be
// read, however long that is: it is neither lost nor run twice.
func TestTakenAndNotYetReceived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		var calls atomic.Int64
		stage.Must(t, b.Handle("there", func(context.Context, *xxljob.Task) error { calls.Add(1); return nil }))
		time.Sleep(20 * time.Second)
		b.Faults.Inject("Jobs", storetest.Fault{Before: true})
		var ids []int64
		for i := range 32 { // some of the jobs are in shards of a, and handed over
			ids = append(ids, stage.TriggerNew(t, a, xxljob.Job{Name: fmt.Sprint(i), Handler: "there"}))
		}
		time.Sleep(150 * time.Second)
		b.Faults.Clear()
		for _, id := range ids {
			if r := stage.WaitFor(t, a, id, time.Minute); r.State != xxljob.StateSucceeded {
				t.Errorf("run %d is %v: %s", id, r.State, r.HandleMsg)
			}
		}
		if n := calls.Load(); n != int64(len(ids)) {
			t.Errorf("the handler was called %d times for %d runs", n, len(ids))
		}
		stage.Stop(t, a, b)
	})
}

// TestTakeFails: a node is handed one run, and the store fails when it is about to take it.
// It takes it a moment later, though nothing else ever happens.
func TestTakeFails(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]storetest.Fault{
		"before it takes effect": {Before: true, Calls: 2},
		"in the middle":          {Partial: true, Keep: 1, Calls: 2},
		"after it took effect":   {After: true, Calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
				time.Sleep(10 * time.Second)
				var jobs []xxljob.Job
				for i := range 8 {
					job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("job ", i), Handler: "work", Route: route.Last})
					stage.Must(t, err)
					jobs = append(jobs, job)
				}
				for _, n := range []*stage.Node{a, b} {
					n.Faults.Inject("Take", fault)
				}
				for _, job := range jobs {
					stage.Trigger(t, a, job)
				}
				time.Sleep(3 * time.Second)
				if n := len(j.All()); n != len(jobs) {
					t.Errorf("%d of %d were run", n, len(jobs))
				}
				stage.Stop(t, a, b)
			})
		})
	}
}
