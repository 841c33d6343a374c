package executor_test

import (
	"context"
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
