package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

func noop(context.Context, *executor.Task) error { return nil }

// Results that come while a callback is under way travel together.
func TestBatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		a.answer = func([]wire.CallbackRequest) (wire.Return, error) {
			time.Sleep(time.Second)
			return wire.Success(), nil
		}
		handle(t, e, "h", noop)
		mustSend(t, e, req(0, 0))
		synctest.Wait()
		for id := int64(1); id <= 2500; id++ {
			mustSend(t, e, req(id, id))
			if id%500 == 0 {
				synctest.Wait() // places
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []int{1, 1000, 1000, 500}; !slices.Equal(a.batches, want) {
			t.Errorf("batches of %v, want %v", a.batches, want)
		}
	})
}

func TestRetryKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged sharedLines
		e, a := open(t, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		var at []time.Time
		a.answer = func([]wire.CallbackRequest) (wire.Return, error) {
			at = append(at, time.Now())
			switch n := len(at); {
			case n > 12:
				return wire.Success(), nil
			case n%2 == 0:
				return wire.Failf("not now"), nil
			}
			return wire.Return{}, errBoom
		}
		handle(t, e, "h", noop)
		for id := range int64(10) {
			mustSend(t, e, req(id, id))
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
		if got := a.ids(); !slices.Equal(got, want) {
			t.Errorf("order is %v", got)
		}
		pause := 50 * time.Millisecond
		for i := 1; i <= 12; i++ {
			if d := at[i].Sub(at[i-1]); d > pause || d < pause*3/4 {
				t.Errorf("pause %d is %v, want about %v", i, d, pause)
			}
			pause = min(2*pause, 5*time.Second)
		}
		if n := strings.Count(logged.String(), "\n"); n != 2 {
			t.Errorf("%d lines logged for one streak:\n%s", n, logged.String())
		}
	})
}

func TestOutboxBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{Outbox: 3})
		var up atomic.Bool
		a.answer = func([]wire.CallbackRequest) (wire.Return, error) {
			if up.Load() {
				return wire.Success(), nil
			}
			return wire.Return{}, errBoom
		}
		handle(t, e, "h", noop)
		for id := range int64(3) {
			mustSend(t, e, req(id, id))
		}
		synctest.Wait()
		wantRefused(t, send(t, e, req(3, 3)), "executor is full: 3 results are running or wait for the admin.")
		up.Store(true)
		time.Sleep(time.Minute)
		mustSend(t, e, req(3, 3))
		synctest.Wait()
		if got := a.ids(); len(got) != 4 {
			t.Errorf("results of %v", got)
		}
	})
}

func TestBind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, first := open(t, executor.Config{})
		e.Bind(nil)
		handle(t, e, "h", noop)
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		e.Bind(first) // what ended before is delivered too
		synctest.Wait()
		first.answer = func([]wire.CallbackRequest) (wire.Return, error) { return wire.Return{}, errBoom }
		mustSend(t, e, req(2, 2))
		synctest.Wait()
		e.Bind(nil) // in the middle of retries
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := first.calls
		mustSend(t, e, req(3, 3))
		time.Sleep(time.Hour)
		synctest.Wait()
		if first.calls != calls {
			t.Error("an admin is called after it was replaced")
		}
		second := new(admin)
		e.Bind(second)
		synctest.Wait()
		if a, b := first.ids(), second.ids(); !slices.Equal(a, []int64{1}) || !slices.Equal(b, []int64{2, 3}) {
			t.Errorf("first got %v, second %v", a, b)
		}
	})
}

// A job is free when its result arrives.
func TestResultAfterJobIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		a.answer = func(batch []wire.CallbackRequest) (wire.Return, error) {
			for _, r := range batch {
				if ret, _ := e.IdleBeat(context.Background(), wire.IdleBeatRequest{JobID: r.LogID}); !ret.OK() {
					t.Errorf("job %d is busy", r.LogID)
				}
			}
			return wire.Success(), nil
		}
		handle(t, e, "h", noop)
		for id := range int64(100) {
			mustSend(t, e, req(id, id))
		}
	})
}

// Whether a run was killed is told apart from its text, whatever a handler says.
func TestResultsAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		words := fmt.Sprintf(wire.MsgKilledRunning, "not at all")
		handle(t, e, "h", func(context.Context, *executor.Task) error { return errors.New(words) })
		handle(t, e, "hangs", untilDone)
		mustSend(t, e, req(1, 1))
		hangs := req(2, 2)
		hangs.ExecutorHandler = "hangs"
		mustSend(t, e, hangs)
		if _, err := e.Kill(t.Context(), wire.KillRequest{JobID: 2}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for id, killed := range map[int64]bool{1: false, 2: true} {
			if r := a.result(t, id); !r.Exact || r.Killed != killed {
				t.Errorf("result %+v, killed %v", r, killed)
			}
		}
	})
}
