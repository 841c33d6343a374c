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
