package executor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// TestWhatAnErrorSays: each mark, and each in another.
func TestWhatAnErrorSays(t *testing.T) {
	for _, tt := range []struct {
		name     string
		err      error
		noRetry  bool
		retryIn  int64
		snoozeIn int64
		msg      string
	}{
		{"nothing", errBoom, false, 0, 0, "boom"},
		{"when", executor.RetryAfter(1500*time.Millisecond, errBoom), false, 1500, 0, "boom"},
		{"at once", executor.RetryAfter(0, errBoom), false, 1, 0, "boom"},
		{"before now", executor.RetryAfter(-time.Hour, errBoom), false, 1, 0, "boom"},
		{"the outermost", executor.RetryAfter(time.Second, executor.RetryAfter(time.Hour, errBoom)), false, 1000, 0, "boom"},
		{"in another error", fmt.Errorf("read: %w", executor.RetryAfter(time.Second, errBoom)), false, 1000, 0, "read: boom"},
		{"permanent", executor.Permanent(executor.RetryAfter(time.Second, errBoom)), true, 1000, 0, "boom"},
		{"a snooze", executor.Snooze(time.Minute), false, 0, 60_000, "snoozed for 1m0s"},
		{"a snooze of nothing", executor.Snooze(0), false, 0, 1, "snoozed for 1ms"},
		{"a snooze that is permanent", executor.Permanent(executor.Snooze(time.Minute)), false, 0, 60_000, "snoozed for 1m0s"},
		{"a snooze with a pause", executor.RetryAfter(time.Hour, executor.Snooze(time.Minute)), false, 0, 60_000, "snoozed for 1m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, a := open(t, executor.Config{})
				handle(t, e, "h", func(context.Context, *executor.Task) error { return tt.err })
				mustSend(t, e, req(1, 1))
				synctest.Wait()
				r := a.result(t, 1)
				if r.HandleCode != wire.CodeFail || r.NoRetry != tt.noRetry || r.RetryIn != tt.retryIn || r.SnoozeIn != tt.snoozeIn || r.HandleMsg != tt.msg || r.Killed || r.Shutdown {
					t.Errorf("%+v, want %+v", r, tt)
				}
			})
		})
	}
	if err := executor.RetryAfter(time.Hour, nil); err != nil {
		t.Errorf("RetryAfter of nil is %v", err)
	}
	if err := executor.RetryAfter(time.Hour, errBoom); !errors.Is(err, errBoom) {
		t.Errorf("%v is not the error that was marked", err)
	}
}

// TestAShutdownSaysSo: what a shutdown cuts off is told apart from what somebody kills.
func TestAShutdownSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		handle(t, e, "h", untilDone)
		for job := range int64(2) {
			mustSend(t, e, req(job+1, job+1))
		}
		mustSend(t, e, req(2, 3)) // waits behind the second
		if _, err := e.Kill(t.Context(), wire.KillRequest{JobID: 1}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = e.Stop(ctx)
		for id, shutdown := range map[int64]bool{1: false, 2: true, 3: true} {
			if r := a.result(t, id); !r.Killed || r.Shutdown != shutdown {
				t.Errorf("result of run %d: %+v, want it killed, by a shutdown: %t", id, r, shutdown)
			}
		}
	})
}
