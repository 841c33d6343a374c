package executor_test

import (
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// TestHandlersDoNotWaitForEachOther has handlers that return only when as many as there are
// places are there, after others that have made the goroutines expect short ones.
func TestHandlersDoNotWaitForEachOther(t *testing.T) {
	const n = 1000
	e, a := open(t, executor.Config{Places: n})
	handle(t, e, "short", noop)
	var rounds [3]sync.WaitGroup
	handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
		all := &rounds[task.ShardIndex]
		all.Done()
		all.Wait()
		return nil
	})
	id := int64(0)
	for round := range rounds {
		for range 500 {
			id++
			r := req(id, id)
			r.ExecutorHandler = "short"
			mustSend(t, e, r)
		}
		rounds[round].Add(n)
		for range n {
			id++
			r := req(id, id)
			r.BroadcastIndex = round
			mustSend(t, e, r)
		}
		rounds[round].Wait()
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := len(a.results()); got != int(id) {
		t.Errorf("%d results of %d runs", got, id)
	}
}

// TestHandlersThatEndTheirGoroutines has many handlers end theirs, by which others would be
// called afterwards.
func TestHandlersThatEndTheirGoroutines(t *testing.T) {
	e, a := open(t, executor.Config{})
	handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
		if task.RunID%3 == 0 {
			runtime.Goexit()
		}
		if task.RunID%3 == 1 {
			panic("boom")
		}
		return nil
	})
	for id := range int64(900) {
		mustSend(t, e, req(id%50, id+1))
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	failed := 0
	for _, r := range a.results() {
		if r.HandleCode == wire.CodeFail {
			failed++
		}
	}
	if got := len(a.results()); got != 900 || failed != 600 {
		t.Errorf("%d results, %d failed, want 900 and 600", got, failed)
	}
}

// TestLabelsOfTheNext: what a handler sets on its goroutine is not there for the next run.
func TestLabelsOfTheNext(t *testing.T) {
	e, _ := open(t, executor.Config{App: "own"})
	var left atomic.Int32
	handle(t, e, "h", func(ctx context.Context, _ *executor.Task) error {
		pprof.ForLabels(ctx, func(key, _ string) bool {
			if key == "mine" {
				left.Add(1)
			}
			return true
		})
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("mine", "left")))
		return nil
	})
	started, end := make(chan struct{}), make(chan struct{})
	handle(t, e, "wait", func(context.Context, *executor.Task) error { waitForever(started, end); return nil })
	for id := range int64(200) {
		mustSend(t, e, req(1, id+1))
	}
	r := req(1, 1000)
	r.ExecutorHandler = "wait"
	mustSend(t, e, r) // behind the others, so mostly on their goroutine
	<-started
	if n := labelled(t, map[string]string{"mine": "left"}); n != 0 || left.Load() != 0 {
		t.Errorf("%d goroutines and %d contexts have the labels of a run that is over", n, left.Load())
	}
	if n := labelled(t, map[string]string{"xxljob.app": "own", "xxljob.job": "1"}); n != 1 {
		t.Errorf("%d goroutines have the labels of the run", n)
	}
	close(end)
}

// TestIdleJobsAreForgotten has more jobs run than are kept.
func TestIdleJobsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		handle(t, e, "h", noop)
		_, bound := e.Jobs()
		const extra = 3000
		for id := range int64(bound + extra) {
			mustSend(t, e, req(id, id+1))
			if id%500 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if known, _ := e.Jobs(); known > bound || known < bound/2 {
			t.Errorf("%d jobs are known, want %d at most", known, bound)
		}
		if got := len(a.results()); got != bound+extra {
			t.Errorf("%d results of %d runs", got, bound+extra)
		}
	})
}

// TestRunAll: the answers are those of Run, in order, and so are the handlers of a job.
func TestRunAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		var called []int64
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			time.Sleep(time.Millisecond)
			called = append(called, task.RunID)
			return nil
		})
		var reqs []wire.TriggerRequest
		for id := range int64(200) {
			reqs = append(reqs, req(1, id+1))
		}
		unknown := req(2, 1000)
		unknown.ExecutorHandler = "nobody"
		reqs = append(reqs, unknown, reqs[0])
		first := wire.Failf("what was there")
		answers := e.RunAll(t.Context(), []wire.Return{first}, reqs)
		if len(answers) != 1+len(reqs) || answers[0] != first {
			t.Fatalf("%d answers, the first %+v", len(answers), answers[0])
		}
		for i, ret := range answers[1:201] {
			if ret != wire.Success() {
				t.Errorf("run %d: %+v", i+1, ret)
			}
		}
		if got, want := answers[201], wire.Failf(wire.MsgHandlerNotFound, "nobody"); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got, want := answers[202], wire.Noted(wire.MsgRepeat, int64(1)); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i, id := range called {
			if id != int64(i+1) {
				t.Fatalf("run %d is called as number %d", id, i+1)
			}
		}
		if len(called) != 200 {
			t.Errorf("%d handlers were called", len(called))
		}
		if got := e.RunAll(t.Context(), nil, nil); got != nil {
			t.Errorf("the answers to nothing are %+v", got)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		wantRefused(t, e.RunAll(t.Context(), nil, []wire.TriggerRequest{req(3, 3000)})[0], "executor is stopping.")
	})
}

// TestTwinThatHasEnded: of two runs with one id one has ended, and its result waits; a request
// without a date means the one that runs.
func TestTwinThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		e.Bind(nil) // so that results wait
		handle(t, e, "short", noop)
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(time.Second); return nil })
		mustSend(t, e, dated(1, 5, 100))
		ended := dated(2, 5, 200)
		ended.ExecutorHandler = "short"
		mustSend(t, e, ended)
		synctest.Wait()
		for _, c := range []struct {
			r    wire.TriggerRequest
			want string
		}{
			{dated(1, 5, 0), wire.MsgRepeat}, {dated(1, 5, 100), wire.MsgRepeat}, {dated(2, 5, 200), wire.MsgRepeatEnded},
		} {
			if got, want := send(t, e, c.r), wire.Noted(c.want, int64(5)); got != want {
				t.Errorf("date %d: %+v, want %+v", c.r.LogDateTime, got, want)
			}
		}
		time.Sleep(2 * time.Second)
		if got, want := send(t, e, dated(1, 5, 0)), wire.Noted(wire.MsgRepeatEnded, int64(5)); got != want {
			t.Errorf("without a date: %+v, want %+v", got, want)
		}
		if ret, _ := e.Kill(t.Context(), wire.KillRequest{LogID: 5}); ret != wire.Noted(wire.MsgAlreadyKilled) {
			t.Errorf("a kill of what has ended: %+v", ret)
		}
	})
}

// What a run may take, from Run until its result is delivered.
const (
	mostAllocations = 6
	mostBytes       = 700 // 600 where batches are large, 640 where each result travels alone; what a handler is told of its times is 128 of them
)

// TestWhatARunAllocates measures runs whose handlers do nothing, a thousand under way at most.
func TestWhatARunAllocates(t *testing.T) {
	if testing.Short() {
		t.Skip("it counts allocations of 200,000 runs; leave out -short")
	}
	const runs = 100_000
	e, err := executor.New(executor.Config{App: "app", Places: 1000})
	if err != nil {
		t.Fatal(err)
	}
	w := &window{free: make(chan int, 1000)}
	e.Bind(w)
	handle(t, e, "h", noop)
	now := time.Now()
	next, free := int64(0), 1000
	pass := func(n int64) {
		for end := next + n; next < end; next++ {
			for ; free == 0; free = <-w.free {
			}
			free--
			mustSend(t, e, planned(next, 100, now))
		}
		for free < 1000 {
			free += <-w.free
		}
	}
	pass(runs) // the books of what is remembered grow no more
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pass(runs)
	runtime.ReadMemStats(&after)
	allocs := float64(after.Mallocs-before.Mallocs) / runs
	bytes := float64(after.TotalAlloc-before.TotalAlloc) / runs
	t.Logf("a run takes %.2f allocations and %.0f bytes", allocs, bytes)
	if allocs > mostAllocations || bytes > mostBytes {
		t.Errorf("more than %d allocations or %d bytes", mostAllocations, mostBytes)
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
