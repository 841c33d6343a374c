package executor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

const (
	stoppedRunning = "web container destroy and kill the job. [job running, killed]"
	stoppedQueued  = "web container destroy and kill the job. [job not executed, in the job queue, killed.]"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(time.Second); return nil })
		mustSend(t, e, req(7, 1))
		mustSend(t, e, req(7, 2))
		began := time.Now()
		go func() {
			time.Sleep(time.Millisecond)
			wantRefused(t, send(t, e, req(8, 3)), "executor is stopping.")
			if ret, _ := e.Beat(context.Background()); ret.OK() {
				t.Error("a stopping executor beats")
			}
		}()
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("Stop took %v", d)
		}
		if got := a.ids(); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("results of %v when Stop returned", got)
		}
	})
}

func TestStopIdleIsImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		if ret, _ := e.Beat(t.Context()); !ret.OK() {
			t.Errorf("beat: %+v", ret)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := e.Stop(ended); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("Stop took %v", d)
		}
	})
}

func TestStopCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		release := make(chan struct{})
		var cause error
		handle(t, e, "h", func(ctx context.Context, task *executor.Task) error {
			if task.Param == "deaf" {
				<-release
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		r := req(8, 3)
		r.ExecutorParams = "deaf"
		mustSend(t, e, req(7, 1))
		mustSend(t, e, req(7, 2))
		mustSend(t, e, r)
		began := time.Now()
		err := e.Stop(within(t, 5*time.Second))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop: %v", err)
		}
		if d := time.Since(began); d != 15*time.Second {
			t.Errorf("Stop took %v, want its time and the grace for the deaf one", d)
		}
		if cause != executor.ErrShutdown {
			t.Errorf("cause is %v", cause)
		}
		for id, want := range map[int64]string{1: stoppedRunning, 2: stoppedQueued, 3: stoppedRunning} {
			if got := a.result(t, id); got.HandleCode != 500 || got.HandleMsg != want {
				t.Errorf("run %d: %+v", id, got)
			}
		}
		if e.Abandoned() != 1 {
			t.Errorf("%d abandoned", e.Abandoned())
		}
		if again := e.Stop(t.Context()); again != err {
			t.Errorf("Stop again: %v", again)
		}
		close(release) // or the bubble would not end
	})
}

// A second Stop may be less patient than the first.
func TestStopHastened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		handle(t, e, "h", untilDone)
		mustSend(t, e, req(7, 1))
		first := make(chan error)
		go func() { first <- e.Stop(context.Background()) }()
		time.Sleep(time.Second)
		second := e.Stop(within(t, time.Second))
		if !errors.Is(second, context.DeadlineExceeded) {
			t.Errorf("second: %v", second)
		}
		if err := <-first; err != second {
			t.Errorf("first: %v", err)
		}
	})
}

func TestStopWithDeadAdmin(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func([]wire.CallbackRequest) (wire.Return, error)
		took   time.Duration
	}{
		{"refuses", func([]wire.CallbackRequest) (wire.Return, error) { return wire.Failf("no"), nil }, 3 * time.Second},
		{"hangs", func([]wire.CallbackRequest) (wire.Return, error) {
			time.Sleep(time.Minute) // and does not look at its context
			return wire.Return{}, errBoom
		}, 14 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, a := open(t, executor.Config{})
				a.answer = c.answer
				handle(t, e, "h", func(context.Context, *executor.Task) error { return nil })
				mustSend(t, e, req(1, 1))
				mustSend(t, e, req(2, 2))
				began := time.Now()
				err := e.Stop(within(t, 3*time.Second))
				if err == nil || !strings.Contains(err.Error(), "2 results were not delivered") {
					t.Errorf("Stop: %v", err)
				}
				if d := time.Since(began); d != c.took {
					t.Errorf("Stop took %v", d)
				}
				time.Sleep(time.Minute) // the bubble waits for the deaf callback
			})
		})
	}
}

func TestStopWithoutAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		e.Bind(nil)
		handle(t, e, "h", func(context.Context, *executor.Task) error { return nil })
		mustSend(t, e, req(1, 1))
		if err := e.Stop(t.Context()); err != nil || len(a.results()) != 0 {
			t.Errorf("%v, results %v", err, a.results())
		}
	})
}

// Whatever happens at once, every accepted run has exactly one result, no job runs
// beside itself, and nothing is left behind.
func TestStress(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { stress(t, seed) })
	}
}

func stress(t *testing.T, seed uint64) {
	e, a := open(t, executor.Config{Places: 5, Queue: 8, Backlog: 20, Grace: time.Second})
	const jobs = 8
	var running [jobs]atomic.Int32
	handle(t, e, "h", func(ctx context.Context, task *executor.Task) error {
		if n := running[task.JobID].Add(1); n != 1 {
			t.Errorf("%d handlers of job %d at once", n, task.JobID)
		}
		defer running[task.JobID].Add(-1)
		task.Log().Info("runs")
		switch task.RunID % 4 {
		case 0:
			return nil
		case 1:
			<-ctx.Done()
			return ctx.Err()
		case 2:
			panic("now and then")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(task.RunID%7) * time.Millisecond):
		}
		return nil
	})
	strategies := []string{block.SerialExecution, block.DiscardLater, block.CoverEarly}
	var accepted sync.Map
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, g))
			for range 100 {
				job, id := rnd.Int64N(jobs), rnd.Int64N(1000)
				switch n := rnd.IntN(10); {
				case n < 7:
					r := req(job, id)
					r.ExecutorBlockStrategy, r.ExecutorTimeout = strategies[rnd.IntN(3)], 1
					if ret := send(t, e, r); ret == wire.Success() {
						accepted.Store(id, true)
					}
				case n < 8:
					_, _ = e.Kill(t.Context(), wire.KillRequest{JobID: job, LogID: id})
				case n < 9:
					_, _ = e.Kill(t.Context(), wire.KillRequest{JobID: job})
				default:
					_, _ = e.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: job})
					_, _ = e.Log(t.Context(), wire.LogRequest{LogID: id})
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	if seed%2 == 0 {
		wg.Wait()
	}
	for range 3 {
		wg.Go(func() { _ = e.Stop(within(t, 50*time.Millisecond)) })
	}
	wg.Wait()
	want := 0
	accepted.Range(func(id, _ any) bool {
		want++
		if a.result(t, id.(int64)).LogID != id {
			t.Errorf("run %d has no result", id)
		}
		return true
	})
	if got := len(a.results()); got != want {
		t.Errorf("%d results of %d runs", got, want)
	}
	if e.Running() != 0 || e.Abandoned() != 0 {
		t.Errorf("%d running, %d abandoned", e.Running(), e.Abandoned())
	}
}
