package scenario_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestLogThatBeginsLate: a handler that logs for the first time when its run was killed, or over
// its time, is written like any other.
func TestLogThatBeginsLate(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"killed": 0, "timed out": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				n := startLogNode(t, st, "a").begin(t, func(ctx context.Context, task *xxljob.Task) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					task.Log().Info("late")
					time.Sleep(time.Second)
					task.Log().Info("later")
					return nil
				})
				id := stage.TriggerNew(t, n, xxljob.Job{Name: "chat", Handler: "chat", Timeout: timeout})
				time.Sleep(100 * time.Millisecond)
				if timeout == 0 {
					stage.Must(t, n.Kill(t.Context(), id))
				}
				run, err := n.Wait(t.Context(), id)
				stage.Must(t, err)
				if run.State != xxljob.StateKilled && run.State != xxljob.StateTimedOut {
					t.Errorf("the run is %v", run.State)
				}
				time.Sleep(10 * time.Second)
				if res, err := observer(t, st).Log(t.Context(), id, 1); err != nil || brief(res) != "1 2 late later" {
					t.Errorf("%+v %v", res, err)
				}
				if pages, last, err := st.LogPages(t.Context(), id, 1, 10); err != nil || last != 2 || len(pages) == 0 {
					t.Errorf("in the store are %d pages up to line %d, %v", len(pages), last, err)
				}
				if stats := n.Stats().Logs; stats.Waiting != 0 || stats.Written != 2 {
					t.Errorf("%+v", stats)
				}
				n.stop(t)
			})
		})
	}
}

// TestLogBehindTheReturn: what a handler leaves behind logs when that has returned, and its
// result is not stored yet. Nothing of it follows, and no log is left open.
func TestLogBehindTheReturn(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{"first": nil, "again": {"before"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newKeptSink(nil)
				a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Logs.Sink = sink })
				stage.Must(t, a.Handle("chat", func(_ context.Context, task *xxljob.Task) error {
					for _, line := range before {
						task.Log().Info(line)
					}
					time.AfterFunc(5*time.Second, func() { task.Log().Info("behind") })
					return nil
				}))
				time.Sleep(10 * time.Second)
				a.Faults.Inject("Finish", storetest.Fault{Before: true, Err: errors.New("away")})
				id := stage.TriggerNew(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
				time.Sleep(10 * time.Second)
				a.Faults.Clear()
				_, err := a.Wait(t.Context(), id)
				stage.Must(t, err)
				time.Sleep(time.Minute)
				if got := sink.texts(id); len(got) != len(before) || sink.ends(id) != len(before) {
					t.Errorf("%q, ended %d times", got, sink.ends(id))
				}
				stage.Stop(t, a)
			})
		})
	}
}

// bindExecutor is an executor of the user's that knows its admin.
type bindExecutor struct {
	*executor.Executor
	mu    sync.Mutex
	admin wire.Admin
}

func (e *bindExecutor) Bind(admin wire.Admin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.admin = admin
	e.Executor.Bind(admin)
}

func (e *bindExecutor) openLog(id int64) (write func(time.Time, slog.Level, string), end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.admin.(interface {
		OpenLog(logID, logDateTim int64) (write func(time.Time, slog.Level, string), end func())
	}).OpenLog(id, 0)
}

// TestLogThatIsOpenedTwice: the log of a start is one, whoever opens it how often, and when it is
// over it does not begin again at its first line.
func TestLogThatIsOpenedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink := newKeptSink(nil)
		a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Logs.Sink = sink })
		inner, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
		stage.Must(t, err)
		e := &bindExecutor{Executor: inner}
		stage.Must(t, e.Handle("chat", func(_ context.Context, task *xxljob.Task) error {
			task.Log().Info("one")
			write, _ := e.openLog(task.RunID)
			write(time.Now(), slog.LevelInfo, "two\n")
			time.Sleep(5 * time.Second)
			task.Log().Info("three")
			return nil
		}))
		stage.Must(t, a.Attach(e))
		time.Sleep(10 * time.Second)
		a.Faults.Inject("Finish", storetest.Fault{Before: true, Err: errors.New("away")})
		id := stage.TriggerNew(t, a, xxljob.Job{App: "far", Name: "chat", Handler: "chat"})
		time.Sleep(10 * time.Second)
		if write, end := e.openLog(id); write != nil {
			write(time.Now(), slog.LevelInfo, "four\n")
			end()
		}
		time.Sleep(10 * time.Second)
		got := sink.texts(id)
		for i, line := range got {
			got[i] = line[max(0, len(line)-5):]
		}
		if !slices.Equal(got, []string{"O one", "two", "three"}) || sink.ends(id) != 1 {
			t.Errorf("%q, ended %d times", got, sink.ends(id))
		}
		a.Faults.Clear()
		time.Sleep(10 * time.Second)
		stage.Stop(t, a)
	})
}
