package scenario_test

// What follows the end of a run, for each way of ending that a node itself brings about, and for
// results that come over HTTP.

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestWhatIsTriedAgain: a job with a retry, ended in each way.
func TestWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() }
	for _, tt := range []struct {
		name    string
		handler xxljob.Handler
		job     xxljob.Job
		do      func(t *testing.T, f *failing, job xxljob.Job, id int64)
		want    []string
	}{
		{"an error", func(context.Context, *xxljob.Task) error { return errBoom }, xxljob.Job{}, nil, []string{"0 failed", "1 failed"}},
		{"a panic", func(context.Context, *xxljob.Task) error { panic("boom") }, xxljob.Job{}, nil, []string{"0 failed", "1 failed"}},
		{"a timeout", hang, xxljob.Job{Timeout: time.Second}, nil, []string{"0 timed out", "1 timed out"}},
		{"no handler", nil, xxljob.Job{Handler: "none"}, nil, []string{"0 refused", "1 refused"}},
		{"a kill", hang, xxljob.Job{}, func(t *testing.T, f *failing, _ xxljob.Job, id int64) { stage.Must(t, f.Kill(t.Context(), id)) }, []string{"0 killed"}},
		{"covered", hang, xxljob.Job{Block: xxljob.BlockCoverEarly}, func(t *testing.T, f *failing, job xxljob.Job, _ int64) {
			second := stage.Trigger(t, f, job)
			time.Sleep(time.Second)
			stage.Must(t, f.Kill(t.Context(), second))
		}, []string{"0 killed"}},
		{"a stop of the job, triggered by hand", func(ctx context.Context, task *xxljob.Task) error { return errBoom }, xxljob.Job{RetryBackoff: xxljob.Backoff{First: time.Minute}},
			func(t *testing.T, f *failing, job xxljob.Job, _ int64) { stage.Must(t, f.StopJob(t.Context(), job.ID)) }, []string{"0 failed", "1 failed"}},
		{"a removal of the job", func(context.Context, *xxljob.Task) error { return errBoom }, xxljob.Job{RetryBackoff: xxljob.Backoff{First: time.Minute}},
			func(t *testing.T, f *failing, job xxljob.Job, _ int64) {
				stage.Must(t, f.RemoveJob(t.Context(), job.ID))
			}, []string{"0 failed", "1 cancelled"}},
		{"a kill of what waits", func(context.Context, *xxljob.Task) error { return errBoom }, xxljob.Job{RetryBackoff: xxljob.Backoff{First: time.Minute}},
			func(t *testing.T, f *failing, _ xxljob.Job, id int64) { stage.Must(t, f.Kill(t.Context(), id)) }, []string{"0 failed", "1 cancelled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				f := startFailing(t, st, "a", func(ctx context.Context, task *xxljob.Task) error { return tt.handler(ctx, task) })
				job := tt.job
				job.Name, job.Retries = "j", 1
				if job.Handler == "" {
					job.Handler = "try"
				}
				job, err := stage.Elsewhere(t, st, "app").AddJob(t.Context(), job)
				stage.Must(t, err)
				id := stage.Trigger(t, f, job)
				time.Sleep(500 * time.Millisecond)
				if tt.do != nil {
					tt.do(t, f, job, id)
				}
				time.Sleep(10 * time.Minute)
				requireTree(t, tt.name, st, id, tt.want...)
				stage.Stop(t, f.Node)
			})
		})
	}
}

// TestAStopEndsTheSchedulesChains: of two chains of a job that is stopped, that of its schedule.
func TestAStopEndsTheSchedulesChains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return errBoom })
		job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Schedule: xxljob.Cron("0 0 * * * ?"), Retries: 2, RetryBackoff: xxljob.Backoff{First: 10 * time.Minute}, RetryAside: true})
		stage.Must(t, err)
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
		byHand := stage.Trigger(t, f, job)
		time.Sleep(time.Minute)
		stage.Must(t, f.StopJob(t.Context(), job.ID))
		time.Sleep(time.Hour)
		requireTree(t, "triggered by hand", st, byHand, "0 failed", "1 failed", "2 failed")
		requireTree(t, "of the schedule", st, stage.AllRuns(t, st)[0].ID, "0 failed", "1 cancelled")
		stage.Stop(t, f.Node)
	})
}

// TestRetriesOfABroadcast: each part by itself, at an address that is there.
func TestRetriesOfABroadcast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var mu sync.Mutex
		calls := map[string]int{}
		handle := func(_ context.Context, task *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			calls[fmt.Sprintf("%d/%d attempt %d", task.ShardIndex, task.ShardTotal, task.Attempt)]++
			if task.ShardIndex == 1 && task.Attempt < 2 {
				return errBoom
			}
			return nil
		}
		var nodes []*failing
		for _, name := range []string{"a", "b", "c"} {
			nodes = append(nodes, startFailing(t, st, name, handle))
		}
		time.Sleep(time.Minute)
		id := stage.TriggerNew(t, nodes[0], xxljob.Job{Name: "j", Handler: "try", Route: xxljob.RouteShardingBroadcast, Retries: 3, RetryBackoff: xxljob.Backoff{First: time.Second}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := map[string]int{"0/3 attempt 0": 1, "1/3 attempt 0": 1, "2/3 attempt 0": 1, "1/3 attempt 1": 1, "1/3 attempt 2": 1}; fmt.Sprint(calls) != fmt.Sprint(want) {
			t.Errorf("calls %v, want %v", calls, want)
		}
		runs, err := st.Tree(t.Context(), id)
		stage.Must(t, err)
		if len(runs) != 5 {
			t.Errorf("%d runs, want 5", len(runs))
		}
		for _, n := range nodes {
			stage.Stop(t, n.Node)
		}
	})
}

// TestABroadcastThatIsRefusedIsOneAgain: with nobody there it is refused as a whole, and its
// retry goes to all who are there by then, also where the answer to the start is lost.
func TestABroadcastThatIsRefusedIsOneAgain(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			var mu sync.Mutex
			calls, want := map[string]int{}, map[string]int{}
			handle := func(_ context.Context, task *xxljob.Task) error {
				mu.Lock()
				defer mu.Unlock()
				calls[fmt.Sprintf("%s: %d/%d attempt %d", task.JobName, task.ShardIndex, task.ShardTotal, task.Attempt)]++
				return nil
			}
			a := startFailing(t, st, "a", handle)
			b := startFailing(t, st, "b", handle)
			time.Sleep(time.Minute)
			var ids []int64
			for i := range 8 { // in shards of both nodes
				name := fmt.Sprint("job ", i)
				job, err := stage.Elsewhere(t, st, "app").AddJob(t.Context(), xxljob.Job{Name: name, Handler: "later", Route: xxljob.RouteShardingBroadcast, Retries: 1, RetryBackoff: xxljob.Backoff{First: time.Minute}})
				stage.Must(t, err)
				ids = append(ids, stage.Trigger(t, a, job))
				want[name+": 0/2 attempt 1"], want[name+": 1/2 attempt 1"] = 1, 1
			}
			time.Sleep(10 * time.Second)
			for _, n := range []*failing{a, b} {
				stage.Must(t, n.Handle("later", handle))
			}
			time.Sleep(45 * time.Second)
			if lost {
				a.Faults.Inject("Start", storetest.Fault{After: true, Calls: 8})
				b.Faults.Inject("Start", storetest.Fault{After: true, Calls: 8})
			}
			time.Sleep(10 * time.Second) // before anybody looks for starts that nobody knows of
			mu.Lock()
			if fmt.Sprint(calls) != fmt.Sprint(want) {
				t.Errorf("lost=%t: calls %v, want %v", lost, calls, want)
			}
			mu.Unlock()
			time.Sleep(time.Minute)
			for _, id := range ids {
				requireTree(t, "the trigger", st, id, "0 refused", "1 succeeded", "1 succeeded")
			}
			stage.Stop(t, a.Node, b.Node)
		})
	}
}

// TestBadRetries: what is absurd is refused, all of it at once.
func TestBadRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startFailing(t, memory.New(), "a", nil)
		bad := xxljob.Job{Name: "j", Handler: "try", Retries: -1, OnLost: "perhaps", MaxReruns: -3, MaxSnoozes: 1 << 20, RetryBackoff: xxljob.Backoff{First: -time.Second, Jitter: 101}}
		_, err := f.AddJob(t.Context(), bad)
		for _, field := range []string{"Retries", "OnLost", "MaxReruns", "MaxSnoozes", "RetryBackoff.First", "RetryBackoff.Jitter"} {
			if err == nil || !strings.Contains(err.Error(), field+" ") {
				t.Errorf("the error does not name %s: %v", field, err)
			}
		}
		for what, b := range map[string]xxljob.Backoff{
			"a cap below the first": {First: time.Minute, Max: time.Second}, "a cap without a first": {Max: time.Second}, "years": {First: 20_000 * time.Hour},
			"longer than runs are kept": {First: 24 * time.Hour},
		} {
			if _, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Retries: 100, RetryBackoff: b}); err == nil || !strings.Contains(err.Error(), "RetryBackoff") {
				t.Errorf("%s: %v", what, err)
			}
		}
		many := 1 << 20
		if _, err := f.Trigger(t.Context(), 1, xxljob.Trigger{Retries: &many}); err == nil {
			t.Error("a trigger with a million retries is taken")
		}
		stage.Stop(t, f.Node)
	})
}

// TestFirstRunsAreKept: the memory store evicts no run that a later one of its trigger needs.
func TestFirstRunsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Retain(3, 5))
		f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
			if task.Param == "fails" {
				return errBoom
			}
			return nil
		})
		job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Retries: 1, RetryBackoff: xxljob.Backoff{First: time.Hour}, RetryAside: true})
		stage.Must(t, err)
		param := "fails"
		ids, err := f.Trigger(t.Context(), job.ID, xxljob.Trigger{Param: &param})
		stage.Must(t, err)
		time.Sleep(time.Second)
		for range 20 {
			stage.Trigger(t, f, job)
			time.Sleep(time.Second)
		}
		requireTree(t, "a chain that goes on", st, ids[0], "0 failed", "1 planned")
		time.Sleep(2 * time.Hour)
		for range 20 {
			stage.Trigger(t, f, job)
			time.Sleep(time.Second)
		}
		if _, err := st.Tree(t.Context(), ids[0]); !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("a chain that is over is kept: %v", err)
		}
		stage.Stop(t, f.Node)
	})
}

// TestRetriesOverHTTP: what the handler of an executor elsewhere says comes with its result.
func TestRetriesOverHTTP(t *testing.T) {
	s, st, admin := stage.OverHTTP(t, xxljob.Config{})
	ex, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
	stage.Must(t, err)
	var mu sync.Mutex
	calls := 0
	stage.Must(t, ex.Handle("try", func(_ context.Context, task *executor.Task) error {
		mu.Lock()
		defer mu.Unlock()
		switch calls++; calls {
		case 1:
			return executor.Snooze(10 * time.Millisecond)
		case 2:
			return executor.RetryAfter(20*time.Millisecond, errBoom)
		}
		return executor.Permanent(errBoom)
	}))
	h, err := wire.NewExecutorHandler(ex, wire.HandlerConfig{Authorize: wire.Insecure})
	stage.Must(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	ex.Bind(stage.RegisterOver(t, admin, "far", server.URL+"/"))
	id := stage.TriggerNew(t, s, xxljob.Job{App: "far", Name: "j", Handler: "try", Retries: 5, RetryBackoff: xxljob.Backoff{First: time.Hour}})
	await.Until(t, "three attempts", func() bool {
		return len(tree(t, st, id)) == 3 && !strings.Contains(fmt.Sprint(tree(t, st, id)), "planned")
	})
	await.Until(t, "the last has ended", func() bool { return strings.HasSuffix(tree(t, st, id)[2], "failed") })
	requireTree(t, "the trigger", st, id, "0 snoozed", "0 failed", "1 failed")
	stage.Must(t, ex.Stop(t.Context()))
}

// TestAShutdownElsewhereIsLost: an executor of ours says so, and Java's by its text.
func TestAShutdownElsewhereIsLost(t *testing.T) {
	s, st, admin := stage.OverHTTP(t, xxljob.Config{})
	ex, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
	stage.Must(t, err)
	stage.Must(t, ex.Handle("try", func(ctx context.Context, _ *executor.Task) error { <-ctx.Done(); return ctx.Err() }))
	h, err := wire.NewExecutorHandler(ex, wire.HandlerConfig{Authorize: wire.Insecure})
	stage.Must(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	client := stage.RegisterOver(t, admin, "far", server.URL+"/")
	ex.Bind(client)
	id := stage.TriggerNew(t, s, xxljob.Job{App: "far", Name: "j", Handler: "try"})
	java := stage.TriggerNew(t, s, xxljob.Job{App: "far", Name: "java", Handler: "try"})
	for _, id := range []int64{id, java} {
		await.Until(t, "the run is accepted", func() bool { r, _ := st.Run(t.Context(), id); return r.State == xxljob.StateDispatched })
	}
	run, err := st.Run(t.Context(), java)
	stage.Must(t, err)
	ret, err := client.Callback(t.Context(), []wire.CallbackRequest{{LogID: java, LogDateTim: run.Created.UnixMilli(), HandleCode: wire.CodeFail,
		HandleMsg: fmt.Sprintf(wire.MsgKilledRunning, wire.StopShutdown)}})
	if err != nil || !ret.OK() {
		t.Fatalf("callback: %+v, %v", ret, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = ex.Stop(ctx)
	for what, id := range map[string]int64{"ours": id, "Java's": java} {
		await.Until(t, what+" has ended", func() bool { r, _ := st.Run(t.Context(), id); return r.State.Ended() })
		requireTree(t, what, st, id, "0 lost")
	}
}
