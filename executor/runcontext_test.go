package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strconv"
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

// waitForever is what the profiles of these tests are searched for.
//
//go:noinline
func waitForever(started chan<- struct{}, end <-chan struct{}) {
	started <- struct{}{}
	<-end
}

// TestLabels: the goroutine of a handler, and one that it starts, say in a profile whose they
// are, and the handler's own labels are added to these.
func TestLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		req  wire.TriggerRequest
		want map[string]string
	}{
		"a job with a key":     {wire.TriggerRequest{JobID: 7, App: "shop", JobKey: "mails", TriggerType: "CRON"}, map[string]string{"xxljob.app": "shop", "xxljob.job": "mails", "xxljob.trigger": "CRON"}},
		"a job without one":    {wire.TriggerRequest{JobID: 8, TriggerType: "API"}, map[string]string{"xxljob.app": "own", "xxljob.job": "8", "xxljob.trigger": "API"}},
		"a run of a Java peer": {wire.TriggerRequest{JobID: 9}, map[string]string{"xxljob.app": "own", "xxljob.job": "9", "xxljob.trigger": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := executor.New(executor.Config{App: "own"})
			if err != nil {
				t.Fatal(err)
			}
			started, end, seen := make(chan struct{}), make(chan struct{}), make(chan map[string]string, 1)
			err = e.Handle("h", func(ctx context.Context, _ *executor.Task) error {
				labels := map[string]string{}
				pprof.ForLabels(ctx, func(key, value string) bool { labels[key] = value; return true })
				seen <- labels
				go waitForever(started, end)
				waitForever(started, end)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			tt.req.LogID, tt.req.ExecutorHandler = 1, "h"
			if ret, _ := e.Run(t.Context(), tt.req); !ret.OK() {
				t.Fatal(ret.Msg)
			}
			for range 2 {
				<-started
			}
			labels := <-seen
			for key, want := range tt.want {
				if got, there := labels[key]; got != want || !there {
					t.Errorf("label %s of the context is %q, %t, want %q", key, got, there, want)
				}
			}
			if n := labelled(t, tt.want); n != 2 {
				t.Errorf("%d goroutines have the labels %v, want that of the handler and the one that it started", n, tt.want)
			}
			close(end)
			if err := e.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// labelled is how many goroutines wait in waitForever with these labels.
func labelled(t *testing.T, labels map[string]string) (n int) {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	for record := range strings.SplitSeq(text.String(), "\n\n") {
		has := strings.Contains(record, "waitForever")
		for key, value := range labels {
			has = has && strings.Contains(record, `"`+key+`":"`+value+`"`)
		}
		if has {
			head, _, _ := strings.Cut(record, " @ ") // the profile's first line may stand before it
			count, err := strconv.Atoi(head[strings.LastIndex(head, "\n")+1:])
			if err != nil {
				t.Fatal(err)
			}
			n += count
		}
	}
	return n
}
