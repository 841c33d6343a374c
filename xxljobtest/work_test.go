package xxljobtest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/xxljobtest"
)

// inAndOut runs a test inside a bubble and outside of one.
func inAndOut(t *testing.T, f func(t *testing.T)) {
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, f) })
	t.Run("outside", f)
}

func TestWorkSucceeds(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		res := xxljobtest.Work(t, t.Context(), func(ctx context.Context, task *xxljob.Task) error {
			task.Log().Info("greeting", "whom", task.Param)
			task.Log().Warn("two\nlines")
			task.Log().Debug("not kept")
			task.SetResult("hello " + task.Param)
			return nil
		}, xxljob.Task{Param: "world"})
		if res.Result != "hello world" || res.Err != nil {
			t.Errorf("result %q, error %v", res.Result, res.Err)
		}
		if want := []string{"INFO greeting whom=world", "WARN two", "lines"}; !slices.Equal(res.Log, want) {
			t.Errorf("log %q, want %q", res.Log, want)
		}
	})
}

func TestWorkWithoutLog(t *testing.T) {
	res := xxljobtest.Work(t, t.Context(), func(context.Context, *xxljob.Task) error { return nil }, xxljob.Task{})
	if res.Log != nil || res.Result != "" || res.Err != nil {
		t.Errorf("got %+v", res)
	}
}

func TestWorkReadsLongLogs(t *testing.T) {
	res := xxljobtest.Work(t, t.Context(), func(ctx context.Context, task *xxljob.Task) error {
		for range 1000 {
			task.Log().Info(strings.Repeat("x", 100))
		}
		return nil
	}, xxljob.Task{})
	if len(res.Log) != 1000 {
		t.Errorf("%d lines", len(res.Log))
	}
}

func TestWorkHandsTheTaskOver(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, time.FixedZone("CET", 3600))
	given := xxljob.Task{RunID: 7, JobID: 3, Handler: "h", Param: "p", ShardIndex: 1, ShardTotal: 4, ScheduledAt: at, Attempt: 2,
		App: "billing", JobName: "nightly", JobKey: "k", Route: "ROUND", JobVersion: 4, TriggerType: "CRON", Deadline: time.Now().Add(time.Hour)}
	var got xxljob.Task
	var deadline time.Time
	keep := func(ctx context.Context, task *xxljob.Task) error {
		got = *task
		deadline, _ = ctx.Deadline()
		return nil
	}
	xxljobtest.Work(t, t.Context(), keep, given)
	if got.RunID != 7 || got.JobID != 3 || got.Handler != "h" || got.Param != "p" || got.ShardIndex != 1 ||
		got.ShardTotal != 4 || !got.ScheduledAt.Equal(at) || got.ScheduledAt.Location() != at.Location() || got.Attempt != 2 {
		t.Errorf("got %+v, want %+v", got, given)
	}
	if got.App != "billing" || got.JobName != "nightly" || got.JobKey != "k" || got.Route != "ROUND" || got.JobVersion != 4 ||
		got.TriggerType != "CRON" || got.Deadline != given.Deadline || !deadline.Equal(given.Deadline) {
		t.Errorf("got %+v, want %+v; the context's deadline is %v", got, given, deadline)
	}
	xxljobtest.Work(t, t.Context(), keep, xxljob.Task{})
	if got.App != "test" || !got.Deadline.IsZero() || !deadline.IsZero() {
		t.Errorf("zero task: got %+v, the context's deadline is %v", got, deadline)
	}
	if got.RunID != 1 || got.ShardTotal != 1 || time.Since(got.ScheduledAt) > time.Minute {
		t.Errorf("zero task: got %+v", got)
	}
}

// TestWorkLogsProgress: what a handler says of it is in its log, the first and the last of a
// moment.
func TestWorkLogsProgress(t *testing.T) {
	res := xxljobtest.Work(t, t.Context(), func(_ context.Context, task *xxljob.Task) error {
		for i := range 101 {
			task.Progress(i, "of a hundred")
		}
		return nil
	}, xxljob.Task{})
	if n := len(res.Log); n < 2 || res.Log[0] != `INFO progress percent=0 text="of a hundred"` || res.Log[n-1] != `INFO progress percent=100 text="of a hundred"` {
		t.Errorf("log %q", res.Log)
	}
}

func TestWorkReportsErrors(t *testing.T) {
	errFull := errors.New("disk full")
	for _, c := range []struct {
		name string
		h    xxljob.Handler
		want string
	}{
		{"error", func(context.Context, *xxljob.Task) error { return errFull }, "disk full"},
		{"panic", func(context.Context, *xxljob.Task) error { panic("boom") }, "panic: boom\n"},
		{"goroutine ended", func(context.Context, *xxljob.Task) error { runtime.Goexit(); return nil }, "ended its goroutine"},
		{"param", executor.JSON(func(context.Context, *xxljob.Task, int) error { return nil }), `param "x" is not JSON for int`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inAndOut(t, func(t *testing.T) {
				res := xxljobtest.Work(t, t.Context(), c.h, xxljob.Task{Param: "x"})
				if res.Err == nil || !strings.Contains(res.Err.Error(), c.want) {
					t.Errorf("error %v, want %q", res.Err, c.want)
				}
				if c.name == "error" && !errors.Is(res.Err, errFull) {
					t.Error("the error is not the handler's own")
				}
				if c.name == "param" && !executor.IsPermanent(res.Err) {
					t.Error("the error has lost its mark")
				}
			})
		})
	}
}

func TestWorkWithoutHandlerOrContext(t *testing.T) {
	got := failure(t, func(t testing.TB) { xxljobtest.Work(t, t.Context(), nil, xxljob.Task{}) })
	if want := "xxljobtest: Work: the handler is nil"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var none context.Context
	got = failure(t, func(t testing.TB) { xxljobtest.Work(t, none, nothing, xxljob.Task{}) })
	if want := "xxljobtest: Work: the context is nil"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type ctxKey struct{}

// TestWorkHandsTheContextOver: values, deadline and cause of the context given are the
// handler's, and the handler's ends with it or with the handler.
func TestWorkHandsTheContextOver(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		cause := errors.New("the operator is tired")
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), ctxKey{}, "mine"))
		ctx, release := context.WithTimeout(ctx, time.Hour)
		defer release()
		res := xxljobtest.Work(t, ctx, func(ctx context.Context, task *xxljob.Task) error {
			if got := ctx.Value(ctxKey{}); got != "mine" {
				t.Errorf("value %v", got)
			}
			if _, ok := ctx.Deadline(); !ok || ctx.Err() != nil {
				t.Errorf("deadline %v, error %v", ok, ctx.Err())
			}
			cancel(cause)
			<-ctx.Done()
			return context.Cause(ctx)
		}, xxljob.Task{})
		if !errors.Is(res.Err, cause) {
			t.Errorf("error %v, want %v", res.Err, cause)
		}
		called := false
		xxljobtest.Work(t, ctx, func(ctx context.Context, task *xxljob.Task) error {
			called = ctx.Err() != nil
			return nil
		}, xxljob.Task{})
		if !called {
			t.Error("a context that has ended keeps the handler from being called, or has not ended for it")
		}
		res = xxljobtest.Work(t, t.Context(), func(ctx context.Context, task *xxljob.Task) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, xxljob.Task{Deadline: time.Now().Add(time.Millisecond)})
		if !errors.Is(res.Err, executor.ErrTimeout) {
			t.Errorf("at the task's deadline: error %v, want %v", res.Err, executor.ErrTimeout)
		}
		var seen context.Context
		xxljobtest.Work(t, t.Context(), func(ctx context.Context, task *xxljob.Task) error {
			seen = ctx
			return nil
		}, xxljob.Task{})
		if seen.Err() == nil {
			t.Error("the handler's context outlives the handler")
		}
	})
}
