package executor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/inside"
	"github.com/xxljob/xxljob/wire"
)

// TestContextAskedLate has a handler look at its context only when it was cancelled already,
// and asks by each method first.
func TestContextAskedLate(t *testing.T) {
	for name, first := range map[string]func(context.Context) bool{
		"err":    func(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) },
		"cause":  func(ctx context.Context) bool { return errors.Is(context.Cause(ctx), executor.ErrKilled) },
		"done":   func(ctx context.Context) bool { <-ctx.Done(); return true },
		"value":  func(ctx context.Context) bool { return ctx.Value(t) == nil },
		"string": func(ctx context.Context) bool { return strings.HasPrefix(fmt.Sprint(ctx), "context.") },
		"child": func(ctx context.Context) bool {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			return errors.Is(context.Cause(child), executor.ErrKilled)
		},
		"deadline": func(ctx context.Context) bool { _, ok := ctx.Deadline(); return !ok },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := open(t, executor.Config{})
				handle(t, e, "h", func(ctx context.Context, _ *executor.Task) error {
					time.Sleep(time.Second)
					if !first(ctx) {
						t.Error("asked first, it is wrong")
					}
					<-ctx.Done()
					if ctx.Err() != context.Canceled || context.Cause(ctx) != executor.ErrKilled {
						t.Errorf("%v, %v, want it killed", ctx.Err(), context.Cause(ctx))
					}
					return nil
				})
				mustSend(t, e, req(1, 1))
				synctest.Wait()
				if ret, _ := e.Kill(t.Context(), wire.KillRequest{JobID: 1}); !ret.OK() {
					t.Error(ret)
				}
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// TestContextAfterwards keeps the context of a handler that has returned without a look at it.
func TestContextAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{App: "own"})
		var kept []context.Context
		handle(t, e, "h", func(ctx context.Context, _ *executor.Task) error { kept = append(kept, ctx); return nil })
		for id := range int64(3) {
			mustSend(t, e, req(1, id+1))
		}
		synctest.Wait()
		if err := kept[0].Err(); err != context.Canceled {
			t.Errorf("asked for its error: %v", err)
		}
		<-kept[1].Done()
		if cause := context.Cause(kept[2]); cause != context.Canceled {
			t.Errorf("its cause is %v", cause)
		}
		for i, ctx := range kept {
			<-ctx.Done()
			if r, ok := inside.From(ctx); !ok || r.RunID != int64(i+1) || r.JobID != 1 || r.Executor != any(e) {
				t.Errorf("the context of run %d is marked with %+v, %t", i+1, r, ok)
			}
			if app, _ := pprof.Label(ctx, "xxljob.app"); app != "own" {
				t.Errorf("the context of run %d has the app %q", i+1, app)
			}
		}
	})
}

// TestContextAskedByMany has goroutines ask for one context at once, while its handler returns:
// all hear of that.
func TestContextAskedByMany(t *testing.T) {
	e, _ := open(t, executor.Config{})
	var heard sync.WaitGroup
	handle(t, e, "h", func(ctx context.Context, _ *executor.Task) error {
		for range 4 {
			heard.Go(func() { <-ctx.Done() })
		}
		return nil
	})
	for id := range int64(500) {
		mustSend(t, e, req(id, id+1))
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	heard.Wait()
}
