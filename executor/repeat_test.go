package executor_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

func wantRepeat(t *testing.T, ret wire.Return, id int64) {
	t.Helper()
	if want := wire.Noted("repeat trigger job, logId:%d", id); ret != want {
		t.Errorf("answer is %+v, want %+v", ret, want)
	}
}

// wantEnded is the answer to a run that has ended: no result will come again.
func wantEnded(t *testing.T, ret wire.Return, id int64) {
	t.Helper()
	if want := wire.Noted("repeat trigger job, logId:%d, ended", id); ret != want {
		t.Errorf("answer is %+v, want %+v", ret, want)
	}
}

func TestRepeatedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		var runs atomic.Int32
		handle(t, e, "h", func(context.Context, *executor.Task) error { runs.Add(1); time.Sleep(30 * time.Minute); return nil })
		mustSend(t, e, req(7, 1))
		mustSend(t, e, req(7, 2))
		wantRepeat(t, send(t, e, req(7, 1)), 1)
		wantRepeat(t, send(t, e, req(7, 2)), 2) // queued
		wantRepeat(t, send(t, e, req(8, 2)), 2) // whatever else it says
		time.Sleep(29 * time.Minute)
		wantRepeat(t, send(t, e, req(7, 1)), 1) // running for long
		time.Sleep(2 * time.Minute)
		wantEnded(t, send(t, e, req(7, 1)), 1) // finished
		time.Sleep(8*time.Minute + 59*time.Second)
		wantEnded(t, send(t, e, req(7, 1)), 1)
		time.Sleep(20 * time.Minute)
		mustSend(t, e, req(8, 1)) // forgotten
		time.Sleep(time.Hour)
		if runs.Load() != 3 || len(a.results()) != 3 {
			t.Errorf("%d runs, %d results", runs.Load(), len(a.results()))
		}
	})
}

func TestRepeatedEndedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		handle(t, e, "h", untilDone)
		mustSend(t, e, req(7, 1))
		mustSend(t, e, req(7, 2))
		if _, err := e.Kill(t.Context(), wire.KillRequest{JobID: 7}); err != nil {
			t.Fatal(err)
		}
		wantEnded(t, send(t, e, req(7, 1)), 1) // its handler has not even returned
		wantEnded(t, send(t, e, req(7, 2)), 2) // never ran
		synctest.Wait()
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		wantEnded(t, send(t, e, req(7, 1)), 1) // a refusal would say that it did not run
		wantRefused(t, send(t, e, req(7, 3)), "executor is stopping.")
	})
}

func TestRepeatedRunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		var runs atomic.Int32
		handle(t, e, "h", func(context.Context, *executor.Task) error { runs.Add(1); return nil })
		var wg sync.WaitGroup
		var accepted, repeated atomic.Int32
		for range 100 {
			wg.Go(func() {
				switch ret := send(t, e, req(7, 1)); ret {
				case wire.Success():
					accepted.Add(1)
				case wire.Noted(wire.MsgRepeat, 1), wire.Noted(wire.MsgRepeatEnded, 1):
					repeated.Add(1)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if accepted.Load() != 1 || repeated.Load() != 99 || runs.Load() != 1 || len(a.results()) != 1 {
			t.Errorf("%d accepted, %d repeated, %d runs, %d results", accepted.Load(), repeated.Load(), runs.Load(), len(a.results()))
		}
	})
}

func TestRepeatBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{KeepFinishedMax: 20})
		handle(t, e, "h", func(context.Context, *executor.Task) error { return nil })
		for id := range int64(100) {
			mustSend(t, e, req(id, id))
			synctest.Wait()
		}
		for id := int64(90); id < 100; id++ { // the last half is always there
			wantEnded(t, send(t, e, req(id, id)), id)
		}
		mustSend(t, e, req(79, 79))
	})
}

// again is req, first sent that long ago.
func again(job, id int64, after time.Duration) wire.TriggerRequest {
	r := req(job, id)
	r.AgainAfter = after.Milliseconds()
	return r
}

func wantForgotten(t *testing.T, ret wire.Return, id int64) {
	t.Helper()
	if want := wire.Failf(wire.MsgForgotten, id); ret != want {
		t.Errorf("answer is %+v, want %+v", ret, want)
	}
}

// counting makes an executor whose handler counts the runs of each id.
func counting(t *testing.T, cfg executor.Config) (*executor.Executor, *[1000]atomic.Int32) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("audited: not run again") // see internal/test/gate
		}
	})
	e, _ := open(t, cfg)
	var runs [1000]atomic.Int32
	handle(t, e, "h", func(_ context.Context, task *executor.Task) error { runs[task.RunID].Add(1); return nil })
	return e, &runs
}

// TestForgottenByNumber sends a run again whose id has made room for later ones: it is
// not run twice.
func TestForgottenByNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, runs := counting(t, executor.Config{KeepFinishedMax: 20})
		for id := int64(1); id <= 21; id++ { // one every second, from 0 s on
			mustSend(t, e, req(id, id))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		wantForgotten(t, send(t, e, again(1, 1, 21*time.Second)), 1)
		wantForgotten(t, send(t, e, again(10, 10, 12*time.Second)), 10)
		wantEnded(t, send(t, e, again(11, 11, 11*time.Second)), 11)
		wantForgotten(t, send(t, e, again(500, 500, time.Hour)), 500)
		wantForgotten(t, send(t, e, again(501, 501, math.MaxInt64)), 501)
		mustSend(t, e, again(502, 502, 9*time.Second)) // after what is forgotten: it has not been here
		mustSend(t, e, req(503, 503))                  // the first time
		synctest.Wait()
		for _, id := range []int64{1, 10, 11, 502, 503} {
			if n := runs[id].Load(); n != 1 {
				t.Errorf("run %d has run %d times", id, n)
			}
		}
	})
}

// TestForgottenByAge is the same with a short KeepFinished.
func TestForgottenByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, runs := counting(t, executor.Config{KeepFinished: time.Minute})
		mustSend(t, e, again(1, 1, time.Hour)) // nothing was ever forgotten
		time.Sleep(90 * time.Second)
		wantEnded(t, send(t, e, again(1, 1, 90*time.Second)), 1)
		time.Sleep(2 * time.Minute)
		wantForgotten(t, send(t, e, again(1, 1, 210*time.Second)), 1)
		mustSend(t, e, again(2, 2, 140*time.Second)) // all that is forgotten ended before
		synctest.Wait()
		if a, b := runs[1].Load(), runs[2].Load(); a != 1 || b != 1 {
			t.Errorf("they have run %d and %d times", a, b)
		}
	})
}

// TestForgottenWhileStopping: that the executor stops would say that the run has not
// been here.
func TestForgottenWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := counting(t, executor.Config{KeepFinished: time.Minute})
		mustSend(t, e, req(1, 1))
		time.Sleep(time.Hour)
		stop(t, e)
		wantForgotten(t, send(t, e, again(1, 1, time.Hour)), 1)
		wantRefused(t, send(t, e, req(2, 2)), "executor is stopping.")
	})
}

// TestForgottenOfOneAdmin: what is forgotten of one admin's runs says nothing about
// those of another.
func TestForgottenOfOneAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		cfg := executor.Config{KeepFinished: time.Minute, Admins: []executor.AdminCluster{a.cluster("one", newNode()), a.cluster("two", newNode())}}
		e := over(t, a, cfg)
		handle(t, e, "h", noop)
		start(t, e)
		mustGive(t, e, "one", req(1, 1))
		time.Sleep(time.Hour)
		wantForgotten(t, give(t, e, "one", again(1, 1, time.Hour)), 1)
		mustGive(t, e, "two", again(1, 1, time.Hour))
		mustSend(t, e, again(1, 1, time.Hour))
		synctest.Wait()
	})
}
