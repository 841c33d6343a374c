package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// beside is a run of a CONCURRENT job.
func beside(job, id int64, most int) wire.TriggerRequest {
	r := req(job, id)
	r.ExecutorBlockStrategy, r.MaxPerExecutor = block.Concurrent, most
	return r
}

// crowd is an executor whose handlers run until they are let go, and who is there.
type crowd struct {
	*executor.Executor
	a *admin

	mu      sync.Mutex
	running map[int64]bool          // guarded by mu
	most    int                     // guarded by mu
	leave   map[int64]chan struct{} // guarded by mu
}

func gather(t *testing.T, cfg executor.Config) *crowd {
	c := &crowd{running: map[int64]bool{}, leave: map[int64]chan struct{}{}}
	c.Executor, c.a = open(t, cfg)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Stop(ctx)
	})
	handle(t, c.Executor, "h", func(ctx context.Context, task *executor.Task) error {
		let := make(chan struct{})
		c.mu.Lock()
		c.running[task.RunID], c.leave[task.RunID] = true, let
		c.most = max(c.most, len(c.running))
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.running, task.RunID)
		}()
		select {
		case <-let:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return c
}

func (c *crowd) here(t *testing.T, what string, want ...int64) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []int64
	for id := range c.running {
		got = append(got, id)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v are running, want %v", what, got, want)
	}
}

func (c *crowd) letGo(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.leave[id])
}

func TestConcurrentRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, executor.Config{})
		for id := range int64(6) {
			mustSend(t, c.Executor, beside(1, id+1, 3))
			synctest.Wait()
		}
		c.here(t, "up to the maximum", 1, 2, 3)
		c.letGo(2)
		c.here(t, "the next in order", 1, 3, 4)
		if ret, _ := c.Kill(t.Context(), wire.KillRequest{JobID: 1, LogID: 3}); ret.Code != wire.CodeSuccess {
			t.Errorf("kill of one run: %+v", ret)
		}
		c.here(t, "after the kill of one", 1, 4, 5)
		if ret, _ := c.Kill(t.Context(), wire.KillRequest{JobID: 1, LogID: 6}); ret.Code != wire.CodeSuccess {
			t.Errorf("kill of one that waits: %+v", ret)
		}
		c.letGo(1)
		c.here(t, "nobody waits", 4, 5)
		mustSend(t, c.Executor, beside(2, 7, 1))
		mustSend(t, c.Executor, beside(2, 8, 1))
		c.here(t, "another job, one at a time", 4, 5, 7)
		if ret, _ := c.Kill(t.Context(), wire.KillRequest{JobID: 1}); ret.Code != wire.CodeSuccess {
			t.Errorf("kill of the job: %+v", ret)
		}
		c.here(t, "after the kill of the job", 7)
		if c.most != 3 {
			t.Errorf("%d ran side by side, want 3", c.most)
		}
		for _, id := range []int64{3, 4, 5, 6} {
			if r := c.a.result(t, id); !r.Killed {
				t.Errorf("the result of %d is %+v", id, r)
			}
		}
	})
}

// TestConcurrentRunsAndPlaces: without a maximum the executor's places are it, and jobs have
// turns for them.
func TestConcurrentRunsAndPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, executor.Config{Places: 4})
		for id := range int64(8) {
			mustSend(t, c.Executor, beside(1, id+1, 0))
			synctest.Wait()
		}
		mustSend(t, c.Executor, req(2, 20))
		c.here(t, "as many as there are places", 1, 2, 3, 4)
		c.letGo(1)
		c.letGo(2)
		c.here(t, "one more of each job", 3, 4, 5, 20)
		for _, id := range []int64{3, 4, 5, 20} {
			c.letGo(id)
		}
		c.here(t, "the rest", 6, 7, 8)
	})
}

// TestConcurrentRunsBesideOthers: a run that was sent while the job had another strategy goes by
// its own.
func TestConcurrentRunsBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, executor.Config{})
		mustSend(t, c.Executor, req(1, 1))
		mustSend(t, c.Executor, beside(1, 2, 0))
		c.here(t, "behind a serial run", 1)
		mustSend(t, c.Executor, beside(1, 3, 0))
		mustSend(t, c.Executor, req(1, 4))
		mustSend(t, c.Executor, beside(1, 5, 0))
		c.letGo(1)
		c.here(t, "side by side", 2, 3)
		c.letGo(2)
		c.here(t, "a serial run waits for all", 3)
		c.letGo(3)
		c.here(t, "and runs alone", 4)
		cover := req(1, 6)
		cover.ExecutorBlockStrategy = block.CoverEarly
		mustSend(t, c.Executor, cover)
		c.here(t, "a cover takes the place of all", 6)
		c.letGo(6)
		c.here(t, "nobody")
		mustSend(t, c.Executor, beside(1, 7, 2))
		mustSend(t, c.Executor, beside(1, 8, 2))
		discard := req(1, 9)
		discard.ExecutorBlockStrategy = block.DiscardLater
		wantRefused(t, send(t, c.Executor, discard), block.MsgDiscard)
		c.here(t, "a discarded run", 7, 8)
		mustSend(t, c.Executor, beside(1, 10, 3))
		c.here(t, "a greater maximum", 7, 8, 10)
		mustSend(t, c.Executor, beside(1, 11, 2))
		c.here(t, "a smaller one", 7, 8, 10)
	})
}

// TestConcurrentIdleBeat: BUSYOVER finds an executor idle while it would run one more at once.
func TestConcurrentIdleBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, executor.Config{Places: 3})
		idle := func(what string, want bool) {
			t.Helper()
			synctest.Wait()
			if ret, _ := c.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 1}); (ret.Code == wire.CodeSuccess) != want {
				t.Errorf("%s: %+v", what, ret)
			}
		}
		idle("at first", true)
		mustSend(t, c.Executor, beside(1, 1, 2))
		idle("one of two", true)
		mustSend(t, c.Executor, beside(1, 2, 2))
		idle("two of two", false)
		c.letGo(1)
		idle("one of two again", true)
		mustSend(t, c.Executor, req(2, 3))
		mustSend(t, c.Executor, req(3, 4))
		idle("without a place", false)
	})
}

// TestConcurrentRunsEnd: timeouts, handlers that ignore their end, and Stop are each run's own.
func TestConcurrentRunsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := make(chan struct{})
		e, a := open(t, executor.Config{Grace: time.Second})
		var n atomic.Int64
		handle(t, e, "h", func(ctx context.Context, task *executor.Task) error {
			n.Add(1)
			if task.Param == "deaf" {
				<-deaf
				return nil
			}
			return untilDone(ctx, task)
		})
		for id := range int64(2) {
			r := beside(1, id+1, 2)
			r.ExecutorParams, r.ExecutorTimeout = []string{"deaf", ""}[id], int(id+1)
			mustSend(t, e, r)
		}
		mustSend(t, e, beside(1, 3, 2))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if n.Load() != 2 {
			t.Errorf("%d handlers were called before one was abandoned", n.Load())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n.Load() != 3 {
			t.Errorf("%d handlers were called", n.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop: %v", err)
		}
		close(deaf)
		for id, want := range map[int64]string{1: wire.MsgTimeout, 2: wire.MsgTimeout, 3: fmt.Sprintf(wire.MsgKilledRunning, wire.StopShutdown)} {
			if r := a.result(t, id); r.HandleMsg != want {
				t.Errorf("the result of %d is %q, want %q", id, r.HandleMsg, want)
			}
		}
	})
}
