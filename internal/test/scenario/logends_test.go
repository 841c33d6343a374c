package scenario_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestLogOfAKilledRun: what a handler logs after its run was recorded is written until it
// returns.
func TestLogOfAKilledRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a").begin(t, func(ctx context.Context, task *xxljob.Task) error {
			task.Log().Info("begins")
			<-ctx.Done()
			task.Log().Info("interrupted")
			time.Sleep(3 * time.Second)
			task.Log().Info("ends")
			return nil
		})
		id := stage.TriggerNew(t, n, xxljob.Job{Name: "chat", Handler: "chat"})
		time.Sleep(100 * time.Millisecond)
		stage.Must(t, n.Kill(t.Context(), id))
		run, err := n.Wait(t.Context(), id)
		stage.Must(t, err)
		if run.State != xxljob.StateKilled {
			t.Errorf("the run is %v", run.State)
		}
		time.Sleep(10 * time.Second)
		if res, err := observer(t, st).Log(t.Context(), id, 1); err != nil || brief(res) != "1 3 begins interrupted ends" {
			t.Errorf("%+v %v", res, err)
		}
		if got := n.Stats().Logs; got.Waiting != 0 {
			t.Errorf("%+v", got)
		}
		n.stop(t)
	})
}

// TestLogAtStop: lines of handlers that end, or are cancelled, while the scheduler stops are
// written.
func TestLogAtStop(t *testing.T) {
	t.Parallel()
	for name, obeys := range map[string]bool{"ends": true, "ends late": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				n := startLogNode(t, st, "a").begin(t, func(ctx context.Context, task *xxljob.Task) error {
					task.Log().Info("begins")
					if obeys {
						<-ctx.Done()
					} else {
						time.Sleep(11 * time.Second) // one more than it has
					}
					task.Log().Info("ends")
					return ctx.Err()
				})
				id := stage.TriggerNew(t, n, xxljob.Job{Name: "chat", Handler: "chat"})
				time.Sleep(100 * time.Millisecond)
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if err := n.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Stop: %v", err)
				}
				time.Sleep(time.Minute)
				if res, err := observer(t, st).Log(t.Context(), id, 1); err != nil || brief(res) != "1 2 begins ends" {
					t.Errorf("%+v %v", res, err)
				}
			})
		})
	}
}

// TestLogsOfASlowStore: one that takes a second and a half for each call costs results that
// long, and no lines.
func TestLogsOfASlowStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a", func(c *xxljob.Config) { c.Logs.QueueBytes = 2 << 20 })
		n.store.slow = 1500 * time.Millisecond
		n.begin(t, func(_ context.Context, task *xxljob.Task) error {
			for i := range 2000 {
				task.Log().Info("line", "of", i)
			}
			return nil
		})
		ids := make([]int64, 50)
		began := time.Now()
		for i := range ids {
			ids[i] = stage.TriggerNew(t, n, xxljob.Job{Name: fmt.Sprint("chat ", i), Handler: "chat"})
		}
		for _, id := range ids {
			_, err := n.Wait(t.Context(), id)
			stage.Must(t, err)
		}
		took := time.Since(began)
		if stats := n.Stats().Logs; stats.Dropped > 0 || stats.Peak > 2<<20 || took > time.Minute {
			t.Errorf("%+v after %v", stats, took)
		}
		n.stop(t)
		for _, id := range ids {
			if lines := wholeLog(t, observer(t, st), id); len(lines) != 2000 {
				t.Errorf("run %d has %d lines", id, len(lines))
			}
		}
	})
}

// TestLogRate: no more is written a second than Config.Logs says, and nothing is lost for it.
func TestLogRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a", func(c *xxljob.Config) {
			c.Logs.BytesPerSecond, c.Logs.RunBytes, c.Logs.QueueBytes = 256<<10, 8<<20, 2<<20
		})
		began := time.Now()
		var bytes int
		n.store.sees = func(pages []store.LogPage) {
			for _, p := range pages {
				bytes += len(p.Content)
			}
			if most := int(time.Since(began)/time.Second+1)*256<<10 + 2<<20; bytes > most {
				t.Errorf("%d bytes after %v, want at most %d", bytes, time.Since(began), most)
			}
		}
		n.begin(t, func(_ context.Context, task *xxljob.Task) error {
			noise := make([]byte, 500)
			for range 8000 {
				_, _ = rand.Read(noise)
				task.Log().Info(fmt.Sprintf("%x", noise))
			}
			return nil
		})
		began = time.Now()
		id := ran(t, n, xxljob.Job{Name: "chat", Handler: "chat"})
		if stats := n.Stats().Logs; stats.Dropped > 0 || stats.Cut > 0 || bytes < 4<<20 || time.Since(began) < 10*time.Second {
			t.Errorf("%+v: %d bytes in %v", stats, bytes, time.Since(began))
		}
		n.stop(t)
		res, err := observer(t, st).LogTail(t.Context(), id, 1)
		if err != nil || res.ToLineNum != 8000 {
			t.Errorf("%d lines, %v", res.ToLineNum, err)
		}
	})
}

// TestLogOfAWrappedExecutor: an executor of the user's own make that wraps one of ours has its
// lines go where the others do.
func TestLogOfAWrappedExecutor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a")
		e, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, e.Handle("quick", func(_ context.Context, task *xxljob.Task) error { task.Log().Info("said"); return nil }))
		stage.Must(t, n.Attach(&logExecutor{e, func(context.Context, wire.LogRequest) (wire.LogReturn, error) {
			return wire.LogReturn{Code: wire.CodeFail, Msg: "it is not to be asked"}, nil
		}}))
		n.begin(t, stage.NothingToDo)
		id := ran(t, n, xxljob.Job{App: "far", Name: "far", Handler: "quick"})
		if res, err := n.Log(t.Context(), id, 1); err != nil || brief(res) != "1 1 said" {
			t.Errorf("%+v %v", res, err)
		}
		n.stop(t)
	})
}
