package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

type middleware = []func(executor.Handler) executor.Handler

// noting is a middleware that notes what it sees of each run.
func noting(name string, list *[]string) func(executor.Handler) executor.Handler {
	return func(next executor.Handler) executor.Handler {
		return func(ctx context.Context, t *executor.Task) error {
			*list = append(*list, fmt.Sprintf("%s+%d", name, t.RunID))
			err := next(ctx, t)
			*list = append(*list, fmt.Sprintf("%s-%d %v", name, t.RunID, err))
			return err
		}
	}
}

func TestMiddlewareOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		e, a := open(t, executor.Config{Middleware: middleware{noting("outer", &seen), noting("inner", &seen)}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			seen = append(seen, "handler")
			return errBoom
		})
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		want := []string{"outer+1", "inner+1", "handler", "inner-1 boom", "outer-1 boom"}
		if !slices.Equal(seen, want) {
			t.Errorf("saw %q, want %q", seen, want)
		}
		if r := a.result(t, 1); r.HandleCode != wire.CodeFail || r.HandleMsg != "boom" {
			t.Errorf("the result is %+v", r)
		}
	})
}

// TestMiddlewareRunsOnceARun: a duplicate and a discarded run are not seen, and the context has
// the deadline of the run.
func TestMiddlewareRunsOnceARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		var deadline time.Time
		e, a := open(t, executor.Config{Middleware: middleware{noting("m", &seen), func(next executor.Handler) executor.Handler {
			return func(ctx context.Context, t *executor.Task) error {
				deadline, _ = ctx.Deadline()
				return next(ctx, t)
			}
		}}})
		handle(t, e, "h", untilDone)
		start := time.Now()
		first := req(1, 1)
		first.ExecutorTimeout = 2
		mustSend(t, e, first)
		synctest.Wait()
		_ = send(t, e, first) // a duplicate
		other := req(1, 2)
		other.ExecutorBlockStrategy = block.DiscardLater
		_ = send(t, e, other)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"m+1", "m-1 " + executor.ErrTimeout.Error()}; !slices.Equal(seen, want) {
			t.Errorf("saw %q, want %q", seen, want)
		}
		if want := start.Add(2 * time.Second); !deadline.Equal(want) {
			t.Errorf("the deadline is %v, want %v", deadline, want)
		}
		if r := a.result(t, 1); r.HandleCode != wire.CodeTimeout {
			t.Errorf("the result is %+v", r)
		}
	})
}

// TestMiddlewareSeesInit: OnInit's error is one of the run.
func TestMiddlewareSeesInit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		e, _ := open(t, executor.Config{Middleware: middleware{noting("m", &seen)}})
		handle(t, e, "h", func(context.Context, *executor.Task) error { return nil },
			executor.OnInit(func(context.Context) error { return errBoom }))
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		if len(seen) != 2 || !strings.Contains(seen[1], "boom") {
			t.Errorf("saw %q", seen)
		}
	})
}

// TestMiddlewareThatMisbehaves: one that panics, changes the error or never calls the next
// decides about its run and about nothing else.
func TestMiddlewareThatMisbehaves(t *testing.T) {
	for _, c := range []struct {
		name string
		m    func(executor.Handler) executor.Handler
		code int
		msg  string
	}{
		{"panics", func(executor.Handler) executor.Handler {
			return func(context.Context, *executor.Task) error { panic("ouch") }
		}, wire.CodeFail, "panic: ouch"},
		{"never calls the next", func(executor.Handler) executor.Handler {
			return func(context.Context, *executor.Task) error { return nil }
		}, wire.CodeSuccess, ""},
		{"calls it twice", func(next executor.Handler) executor.Handler {
			return func(ctx context.Context, t *executor.Task) error { return errors.Join(next(ctx, t), next(ctx, t)) }
		}, wire.CodeFail, "boom"},
		{"hides the error", func(next executor.Handler) executor.Handler {
			return func(ctx context.Context, t *executor.Task) error { _ = next(ctx, t); return nil }
		}, wire.CodeSuccess, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, a := open(t, executor.Config{Middleware: middleware{c.m}})
				handle(t, e, "h", func(context.Context, *executor.Task) error { return errBoom })
				mustSend(t, e, req(1, 1))
				mustSend(t, e, req(1, 2))
				synctest.Wait()
				for id := range int64(2) {
					if r := a.result(t, id+1); r.HandleCode != c.code || !strings.HasPrefix(r.HandleMsg, c.msg) {
						t.Errorf("the result of %d is %d %q, want %d %q", id+1, r.HandleCode, r.HandleMsg, c.code, c.msg)
					}
				}
			})
		})
	}
}

// TestMiddlewareThatIsNone: it is found when the executor is made, or the handler registered.
func TestMiddlewareThatIsNone(t *testing.T) {
	if _, err := executor.New(executor.Config{Middleware: middleware{nil}}); err == nil || !strings.Contains(err.Error(), "Config.Middleware[0] is nil") {
		t.Errorf("a nil middleware: %v", err)
	}
	for want, m := range map[string]func(executor.Handler) executor.Handler{
		"made no handler": func(executor.Handler) executor.Handler { return nil },
		"panic: ouch":     func(executor.Handler) executor.Handler { panic("ouch") },
	} {
		e, _ := open(t, executor.Config{Middleware: middleware{m}})
		err := e.Handle("h", untilDone)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "middleware 1 of 1") {
			t.Errorf("Handle: %v, want %q", err, want)
		}
		if len(e.Handlers()) != 0 {
			t.Errorf("a handler was registered: %q", e.Handlers())
		}
	}
}

func TestJSON(t *testing.T) {
	type param struct {
		Name string
		N    int
	}
	var got param
	h := executor.JSON(func(_ context.Context, _ *executor.Task, p param) error {
		got = p
		if p.Name == "boom" {
			return errBoom
		}
		return nil
	})
	for _, c := range []struct {
		in   string
		want param
		err  string // of a final failure
	}{
		{"", param{}, ""},
		{" \n", param{}, ""},
		{`{"name":"x","n":3}`, param{"x", 3}, ""},
		{`{"n":"three"}`, param{}, `param "{\"n\":\"three\"}" is not JSON for executor_test.param: json: cannot unmarshal string into Go struct field param.N of type int`},
		{`{"n":3`, param{}, `unexpected end of JSON input`},
		{`{} x`, param{}, `invalid character 'x' after top-level value`},
		{strings.Repeat("x", 1000), param{}, `param "` + strings.Repeat("x", 100) + `"... is not JSON`},
	} {
		got = param{}
		err := h(t.Context(), &executor.Task{Param: c.in})
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s: %+v, %v", c.in, got, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !executor.IsPermanent(err)):
			t.Errorf("%s: %v", c.in, err)
		}
	}
	if err := h(t.Context(), &executor.Task{Param: `{"name":"boom"}`}); err != errBoom {
		t.Errorf("the handler's own error: %v", err)
	}
}

func TestFail(t *testing.T) {
	err := executor.Permanent(errBoom)
	if err.Error() != "boom" || !errors.Is(err, errBoom) || !executor.IsPermanent(err) {
		t.Errorf("%v", err)
	}
	if !executor.IsPermanent(errors.Join(errBoom, fmt.Errorf("w: %w", err))) {
		t.Error("not seen through other errors")
	}
	if executor.IsPermanent(errBoom) || executor.IsPermanent(nil) || executor.Permanent(nil) != nil {
		t.Error("seen where it is not")
	}
}

func TestTaskLiteral(t *testing.T) {
	task := &executor.Task{RunID: 1}
	task.Log().Info("nowhere")
	if task.Result() != "" {
		t.Error("a result")
	}
	task.SetResult("x")
	if task.Log(); task.Result() != "x" {
		t.Errorf("result %q", task.Result())
	}
}

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
