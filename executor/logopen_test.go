package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// logAdmin is an admin that wants the lines of runs, and notes what it is called with.
type logAdmin struct {
	admin
	mu    sync.Mutex
	calls []string
}

func (a *logAdmin) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what)
}

func (a *logAdmin) noted() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *logAdmin) Callback(ctx context.Context, batch []wire.CallbackRequest) (wire.Return, error) {
	a.note("result")
	return a.admin.Callback(ctx, batch)
}

func (a *logAdmin) OpenLog(id, _ int64) (write func(time.Time, slog.Level, string), end func()) {
	a.note(fmt.Sprint("open ", id))
	return func(_ time.Time, _ slog.Level, lines string) {
			a.note("write " + lines[len("2000-01-01 00:00:00 INFO "):len(lines)-1])
		},
		func() { a.note("end") }
}

// TestLogIsOpenedBeforeTheHandler: the admin is asked where lines go before the handler is
// called, however late that logs; once it has returned nothing follows.
func TestLogIsOpenedBeforeTheHandler(t *testing.T) {
	for name, c := range map[string]struct {
		handler func(ctx context.Context, task *executor.Task) error
		want    []string
	}{
		"silent": {func(context.Context, *executor.Task) error { return nil }, []string{"open 1", "end", "result"}},
		"one line": {func(_ context.Context, task *executor.Task) error { task.Log().Info("x"); return nil },
			[]string{"open 1", "write x", "end", "result"}},
		"after it was killed": {func(ctx context.Context, task *executor.Task) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			task.Log().Info("x")
			return nil
		}, []string{"open 1", "result", "write x", "end"}},
		"its first progress is its last": {func(_ context.Context, task *executor.Task) error { task.Progress(50, ""); return nil },
			[]string{"open 1", "write progress percent=50", "end", "result"}},
		"a panic": {func(context.Context, *executor.Task) error { panic(errors.New("x")) }, nil},
		"behind its return": {func(_ context.Context, task *executor.Task) error {
			time.AfterFunc(time.Second, func() { task.Log().Info("x") })
			return nil
		}, []string{"open 1", "end", "result"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := open(t, executor.Config{})
				a := &logAdmin{}
				e.Bind(a)
				handle(t, e, "h", c.handler)
				mustSend(t, e, req(1, 1))
				time.Sleep(100 * time.Millisecond)
				_, err := e.Kill(t.Context(), wire.KillRequest{JobID: 1, LogID: 1})
				if err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second)
				got := a.noted()
				if c.want == nil { // its text is of many lines
					if len(got) != 4 || got[0] != "open 1" || got[2] != "end" || got[3] != "result" {
						t.Errorf("got %q", got)
					}
				} else if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestLateLogLeavesNoFileOpen: what a handler has left behind may log when it has returned, and
// then nobody closes the file.
func TestLateLogLeavesNoFileOpen(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{Log: executor.LogConfig{Dir: dir}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			time.AfterFunc(time.Second, func() { task.Log().Info("x") })
			return nil
		})
		mustSend(t, e, req(1, 1))
		time.Sleep(10 * time.Second)
	})
	if files, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(files) > 0 {
		t.Errorf("%q %v", files, err)
	}
}
