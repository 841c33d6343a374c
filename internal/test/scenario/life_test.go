package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestEnsureAfterTheLastInstant: a program that declares a one-off job may be
// started again after its instant.
func TestEnsureAfterTheLastInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &stage.Journal{}
		n := stage.StartNode(t, memory.New(), "a", j)
		once := xxljob.Job{Name: "once", Handler: "work", Schedule: xxljob.At(time.Now().Add(time.Second))}
		_, err := n.EnsureJob(t.Context(), once)
		stage.Must(t, err)
		time.Sleep(time.Minute)
		for _, ensure := range []func() (xxljob.Outcome, error){
			func() (xxljob.Outcome, error) {
				e, err := n.EnsureJob(t.Context(), once)
				return e.Outcome, err
			},
			func() (xxljob.Outcome, error) {
				e, err := n.EnsureJobs(t.Context(), "", []xxljob.Job{once}, xxljob.EnsureOptions{Prune: true})
				if err != nil {
					return "", err
				}
				return e[0].Outcome, nil
			},
		} {
			if outcome, err := ensure(); err != nil || outcome != xxljob.Unchanged {
				t.Errorf("again: %v %v", outcome, err)
			}
		}
		stage.Stop(t, n)
		if len(j.All()) != 1 {
			t.Errorf("%d runs", len(j.All()))
		}
	})
}

// TestWaitAtStoppedNode waits at a node that is stopped meanwhile for a run that another
// node ends; a Wait that begins after the stop is refused.
func TestWaitAtStoppedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		for _, n := range []*stage.Node{a, b} {
			stage.Must(t, n.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(3 * time.Second); return nil }))
		}
		time.Sleep(10 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "slow", Handler: "slow", Route: "LAST"})
		stage.Must(t, err)
		wait := func(s xxljob.Scheduler, id int64) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if run, err := s.Wait(ctx, id); err != nil || run.State != xxljob.StateSucceeded {
				t.Errorf("run %d: %v %v", id, run.State, err)
			}
		}
		during, err := b.Trigger(t.Context(), job.ID, xxljob.Trigger{At: time.Now().Add(20 * time.Second)})
		stage.Must(t, err)
		done := make(chan struct{})
		go func() { wait(a, during[0]); close(done) }()
		synctest.Wait()
		stage.Stop(t, a)
		<-done
		after, err := b.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		if _, err := a.Wait(t.Context(), after[0]); !errors.Is(err, xxljob.ErrStopped) {
			t.Errorf("a Wait after the stop: %v", err)
		}
		wait(b, after[0])
		stage.Stop(t, b)
	})
}

// stacks are those of all goroutines.
func stacks() string {
	buf := make([]byte, 4<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// TestStopWithDeafHandler stops although a handler ignores its cancellation: the
// run is recorded, the node has left, and no loop is left behind. It looks at all goroutines, and so
// is beside no other test.
func TestStopWithDeafHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		stage.Must(t, n.Handle("deaf", func(context.Context, *xxljob.Task) error { time.Sleep(time.Minute); return nil }))
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "deaf", Handler: "deaf"})
		stage.Must(t, err)
		ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		synctest.Wait()
		loops := []string{"(*heartbeat).loop", "(*finisher).loop", "(*finisher).lockedLoop", "(*dispatchMarker).loop", "(*inDoubt).loop", "ResultLoop", "Duty.repeat"}
		for _, loop := range loops {
			if !strings.Contains(stacks(), loop+"(") {
				t.Errorf("%s does not run", loop)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := n.Stop(ctx); err == nil {
			t.Error("Stop says that all handlers have ended")
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("Stop took %v", took)
		}
		run, err := st.Run(t.Context(), ids[0])
		stage.Must(t, err)
		if run.State != xxljob.StateLost {
			t.Errorf("the run is %v", run.State)
		}
		for _, loop := range loops {
			if strings.Contains(stacks(), loop+"(") {
				t.Errorf("%s still runs", loop)
			}
		}
		view, err := st.Beat(t.Context(), "observer", nil)
		stage.Must(t, err)
		for _, v := range view.Nodes {
			if v.ID == "a" && !v.Left {
				t.Error("the node has not left")
			}
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestStopWhileHandlersEnd has the time that a Stop gives to handlers be over at the moment
// at which they end: each run is recorded once, as succeeded or as killed. The race detector
// looks at what is written of a run as it is killed and lands at once.
func TestStopWhileHandlersEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 50
		st := memory.New()
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		stage.Must(t, n.Handle("second", func(context.Context, *xxljob.Task) error { time.Sleep(time.Second); return nil }))
		for i := range runs {
			job, err := n.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "second"})
			stage.Must(t, err)
			_, err = n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		synctest.Wait()
		_ = n.Stop(ctx) // it says so where it had to kill some
		ended := stage.AllRuns(t, st)
		if len(ended) != runs {
			t.Fatalf("%d runs, want %d", len(ended), runs)
		}
		for _, run := range ended {
			if run.State != xxljob.StateSucceeded && run.State != xxljob.StateLost {
				t.Errorf("run %d is %v: %s", run.ID, run.State, run.HandleMsg)
			}
		}
	})
}

// TestStopWaitsForKills stops while an executor of a user's takes its time with a kill that
// nobody waits for: the call is the scheduler's own, and over when Stop is.
func TestStopWaitsForKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{})
		var asked, answered atomic.Bool
		e := &stage.UserExecutor{Of: "theirs"}
		e.OnRun = func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			return wire.Success(), nil
		}
		e.OnKill = func(wire.KillRequest) (wire.Return, error) {
			asked.Store(true)
			time.Sleep(time.Second)
			answered.Store(true)
			return wire.Success(), nil
		}
		stage.Must(t, n.Attach(e))
		job, err := n.AddJob(t.Context(), xxljob.Job{App: "theirs", Name: "theirs", Handler: "work"})
		stage.Must(t, err)
		ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		synctest.Wait()
		began := time.Now()
		stage.Must(t, n.Kill(t.Context(), ids[0]))
		if took := time.Since(began); took > 0 {
			t.Errorf("Kill took %v", took)
		}
		synctest.Wait()
		if !asked.Load() || answered.Load() {
			t.Fatalf("asked: %v, answered: %v", asked.Load(), answered.Load())
		}
		_, err = e.Admin.Callback(t.Context(), []wire.CallbackRequest{{LogID: ids[0], HandleCode: wire.CodeFail}})
		stage.Must(t, err)
		stage.Stop(t, n)
		if !answered.Load() {
			t.Error("Stop is over before the kill is")
		}
	})
}
