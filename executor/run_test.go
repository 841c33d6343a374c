package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
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

func TestRunRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		handle(t, e, "h", func(context.Context, *executor.Task) error { return nil })
		r := req(1, 1)
		r.ExecutorHandler = "nobody"
		wantRefused(t, send(t, e, r), "job handler [nobody] not found.")
		r = req(1, 1)
		r.GlueType = "GLUE_SHELL"
		wantRefused(t, send(t, e, r), "glueType[GLUE_SHELL] is not valid.")
		r.GlueType = ""
		mustSend(t, e, r) // an empty glue type is BEAN, and a refused id may come again
		synctest.Wait()
		if got := a.result(t, 1); got.HandleCode != 200 {
			t.Errorf("result is %+v", got)
		}
	})
}

func TestTaskFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := time.FixedZone("east", 3600)
		e, a := open(t, executor.Config{App: "app", Location: east})
		var got []executor.Task
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			got = append(got, executor.Task{RunID: task.RunID, JobID: task.JobID, Handler: task.Handler, Param: task.Param,
				ShardIndex: task.ShardIndex, ShardTotal: task.ShardTotal, ScheduledAt: task.ScheduledAt, Attempt: task.Attempt,
				App: task.App, JobName: task.JobName, JobKey: task.JobKey, Route: task.Route, JobVersion: task.JobVersion,
				TriggerType: task.TriggerType, Deadline: task.Deadline})
			return nil
		})
		r := req(2, 1)
		r.ExecutorParams, r.BroadcastIndex, r.BroadcastTotal, r.LogDateTime, r.ScheduledAt, r.Attempt = "p", 1, 3, 1700000000123, 1700000000000, 2
		r.JobName, r.JobKey, r.App, r.Route, r.JobVersion, r.TriggerType = "nightly", "k", "billing", "ROUND", 7, "CRON"
		mustSend(t, e, r)
		synctest.Wait()
		r = wire.TriggerRequest{JobID: 2, LogID: 2, ExecutorHandler: "h", LogDateTime: 1700000000123}
		mustSend(t, e, r)
		synctest.Wait()
		want := []executor.Task{
			{RunID: 1, JobID: 2, Handler: "h", Param: "p", ShardIndex: 1, ShardTotal: 3, ScheduledAt: time.UnixMilli(1700000000000).In(east), Attempt: 2,
				App: "billing", JobName: "nightly", JobKey: "k", Route: "ROUND", JobVersion: 7, TriggerType: "CRON"},
			{RunID: 2, JobID: 2, Handler: "h", ShardTotal: 1, ScheduledAt: time.UnixMilli(1700000000123).In(east), App: "app"},
		}
		if !slices.Equal(got, want) {
			t.Errorf("tasks are\n%+v, want\n%+v", got, want)
		}
		if r := a.result(t, 1); r.LogDateTim != 1700000000123 {
			t.Errorf("LogDateTim is %d", r.LogDateTim)
		}
		if e.App() != "app" {
			t.Errorf("app is %q", e.App())
		}
	})
}

// TestTaskDeadline: it is that of the handler's context, counted from when the handler is
// called, and none without a timeout.
func TestTaskDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := time.FixedZone("east", 3600)
		e, a := open(t, executor.Config{Location: east})
		told := make(chan time.Time, 5)
		handle(t, e, "h", func(ctx context.Context, task *executor.Task) error {
			told <- task.Deadline
			if at, has := ctx.Deadline(); has == task.Deadline.IsZero() || !at.Equal(task.Deadline) {
				t.Errorf("the context's deadline is %v, %v, the task's %v", at, has, task.Deadline)
			}
			time.Sleep(5 * time.Second)
			return nil
		})
		for id, timeout := range []int{0, 60, -1, 3, 1 << 31} {
			r := req(1, int64(id+1))
			r.ExecutorTimeout = timeout
			mustSend(t, e, r)
		}
		began := time.Now()
		time.Sleep(time.Minute)
		if len(told) != 5 {
			t.Fatalf("%d runs", len(told))
		}
		var deadlines [5]time.Time
		for i := range deadlines {
			deadlines[i] = <-told
		}
		for i, want := range map[int]time.Duration{1: 65 * time.Second, 3: 18 * time.Second} {
			if got := deadlines[i]; got.Sub(began) != want || got.Location() != east {
				t.Errorf("deadline %d is %v, %v from now", i, got, got.Sub(began))
			}
		}
		if !deadlines[0].IsZero() || !deadlines[2].IsZero() || deadlines[4].Year() < 2060 {
			t.Errorf("deadlines are %v", deadlines)
		}
		if got := a.result(t, 4); got.HandleCode != wire.CodeTimeout {
			t.Errorf("the run with a timeout of 3 s: %+v", got)
		}
	})
}

func TestSerialOrderAndQueueBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{Queue: 3})
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(time.Second); return nil })
		for id := range int64(4) {
			mustSend(t, e, req(7, id))
		}
		wantRefused(t, send(t, e, req(7, 4)), "job queue is full: 3 runs of job 7 wait.")
		mustSend(t, e, req(8, 5)) // another job has its own
		time.Sleep(time.Second + 1)
		mustSend(t, e, req(7, 6)) // one place again
		time.Sleep(time.Minute)
		if got, want := a.ids(), []int64{0, 5, 1, 2, 3, 6}; !slices.Equal(got, want) && !slices.Equal(got, []int64{5, 0, 1, 2, 3, 6}) {
			t.Errorf("order is %v, want %v", got, want)
		}
	})
}

// Simultaneous first triggers of one job must not run it beside itself, nor stop
// one another.
func TestSimultaneousFirstTriggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		var now, most atomic.Int32
		handle(t, e, "h", func(context.Context, *executor.Task) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Millisecond)
			now.Add(-1)
			return nil
		})
		var wg sync.WaitGroup
		for i := range int64(200) {
			wg.Go(func() { mustSend(t, e, req(7, i)) })
		}
		wg.Wait()
		time.Sleep(time.Second)
		if most.Load() != 1 {
			t.Errorf("%d handlers of one job at once", most.Load())
		}
		if got := a.results(); len(got) != 200 || slices.ContainsFunc(got, func(r wire.CallbackRequest) bool { return r.HandleCode != 200 }) {
			t.Errorf("%d results, some of them failed", len(got))
		}
	})
}

func TestPlacesAndBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{Places: 2, Backlog: 3})
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(time.Second); return nil })
		for id := int64(1); id <= 5; id++ {
			mustSend(t, e, req(id, id))
		}
		synctest.Wait()
		if n := e.Running(); n != 2 {
			t.Errorf("%d handlers run", n)
		}
		wantRefused(t, send(t, e, req(6, 6)), "executor is full: 2 handlers running, 3 runs waiting.")
		wantRefused(t, send(t, e, req(1, 6)), "executor is full: 2 handlers running, 3 runs waiting.")
		if ret, _ := e.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 4}); ret.OK() {
			t.Error("a job that waits for a place is idle")
		}
		// A waiting job that is killed leaves its position without harm.
		if ret, _ := e.Kill(t.Context(), wire.KillRequest{JobID: 3}); !ret.OK() || ret.Msg != wire.MsgSuccess {
			t.Errorf("kill: %+v", ret)
		}
		if ret, _ := e.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 3}); !ret.OK() {
			t.Error("a killed job is busy")
		}
		r := req(4, 6)
		r.ExecutorBlockStrategy = block.CoverEarly
		mustSend(t, e, r) // replaces what waits, without more room
		r = req(5, 7)
		r.ExecutorBlockStrategy = block.DiscardLater
		wantRefused(t, send(t, e, r), block.MsgDiscard)
		time.Sleep(time.Minute)
		got := a.ids()
		if len(got) != 6 || !slices.Equal(got[:2], []int64{3, 4}) {
			t.Errorf("results of %v", got)
		}
		for _, id := range []int64{1, 2, 5, 6} {
			if r := a.result(t, id); r.HandleCode != 200 {
				t.Errorf("run %d: %+v", id, r)
			}
		}
		if got := a.result(t, 3).HandleMsg; got != killedQueued {
			t.Errorf("killed: %q", got)
		}
		if got := a.result(t, 4).HandleMsg; got != coveredQueued {
			t.Errorf("covered: %q", got)
		}
	})
}

// Jobs take turns for places: a job with a long queue does not keep its place.
func TestPlacesAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{Places: 1})
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(time.Second); return nil })
		for id := range int64(3) {
			mustSend(t, e, req(1, 10+id))
		}
		mustSend(t, e, req(2, 20))
		mustSend(t, e, req(3, 30))
		time.Sleep(time.Minute)
		if got, want := a.ids(), []int64{10, 20, 30, 11, 12}; !slices.Equal(got, want) {
			t.Errorf("order is %v, want %v", got, want)
		}
	})
}

func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged sharedLines
		e, a := open(t, executor.Config{Places: 1, Grace: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		release := make(chan struct{})
		handle(t, e, "h", func(context.Context, *executor.Task) error { <-release; return nil })
		for id := int64(1); id <= 3; id++ {
			r := req(7, id)
			r.ExecutorTimeout = 1
			mustSend(t, e, r)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if e.Abandoned() != 1 || e.Running() != 1 {
			t.Errorf("%d abandoned and %d running, want the next one to run", e.Abandoned(), e.Running())
		}
		time.Sleep(time.Minute)
		// The second one keeps its place: there may be twice Places handlers, no more.
		if e.Abandoned() != 2 || e.Running() != 0 {
			t.Errorf("%d abandoned and %d running", e.Abandoned(), e.Running())
		}
		if r := a.result(t, 3); r.HandleCode != 0 {
			t.Errorf("the third run has ended: %+v", r)
		}
		close(release)
		synctest.Wait()
		if r := a.result(t, 3); r.HandleCode != 200 {
			t.Errorf("third run: %+v", r)
		}
		if e.Abandoned() != 2 {
			t.Errorf("%d abandoned", e.Abandoned())
		}
		if n := strings.Count(logged.String(), "msg=\"executor: abandoned a handler"); n != 2 {
			t.Errorf("abandoning was logged %d times:\n%s", n, logged.String())
		}
	})
}

func TestTimeoutContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		began := time.Now()
		handle(t, e, "h", func(ctx context.Context, _ *executor.Task) error {
			if at, ok := ctx.Deadline(); !ok || at.Sub(began) != 2*time.Second {
				t.Errorf("deadline is %v", at.Sub(began))
			}
			<-ctx.Done()
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) || context.Cause(ctx) != executor.ErrTimeout {
				t.Errorf("err %v, cause %v", err, context.Cause(ctx))
			}
			return ctx.Err()
		})
		r := req(1, 1)
		r.ExecutorTimeout = 2
		mustSend(t, e, r)
		r = req(2, 2)
		r.ExecutorTimeout = 2
		mustSend(t, e, r)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for id := int64(1); id <= 2; id++ {
			if got := a.result(t, id); got.HandleCode != 502 || got.HandleMsg != wire.MsgTimeout {
				t.Errorf("result is %+v", got)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		handle(t, e, "h", func(ctx context.Context, _ *executor.Task) error {
			if at, ok := ctx.Deadline(); ok {
				t.Errorf("deadline is %v", at)
			}
			return nil
		})
		r := req(1, 1)
		r.ExecutorTimeout = -1
		mustSend(t, e, r)
	})
}

func TestKillNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		handle(t, e, "h", untilDone)
		mustSend(t, e, req(7, 1))
		for _, k := range []wire.KillRequest{{JobID: 8}, {JobID: 7, LogID: 2}, {JobID: 8, LogID: 1}} {
			ret, err := e.Kill(t.Context(), k)
			if err != nil || ret != wire.Noted("job thread already killed.") {
				t.Errorf("%+v: %+v %v", k, ret, err)
			}
		}
		if ret, _ := e.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 7}); ret.Msg != wire.MsgBusy || ret.OK() {
			t.Errorf("idle beat: %+v", ret)
		}
		if ret, _ := e.Kill(t.Context(), wire.KillRequest{LogID: 1}); ret != wire.Success() {
			t.Errorf("kill by run id: %+v", ret)
		}
		if ret, _ := e.Kill(t.Context(), wire.KillRequest{JobID: 7}); ret.Msg != wire.MsgAlreadyKilled {
			t.Errorf("second kill: %+v", ret)
		}
		synctest.Wait()
		if ret, _ := e.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 7}); !ret.OK() {
			t.Errorf("idle beat: %+v", ret)
		}
	})
}

func TestPanicIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged sharedLines
		e, a := open(t, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		handle(t, e, "h", func(context.Context, *executor.Task) error {
			panic(fmt.Errorf("wrapped: %w", executor.Permanent(errBoom)))
		})
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		got := a.result(t, 1)
		if !strings.HasPrefix(got.HandleMsg, "panic: wrapped: boom\n") || !strings.Contains(got.HandleMsg, "run_test.go") || got.NoRetry {
			t.Errorf("result is %+v", got)
		}
		if s := logged.String(); !strings.Contains(s, "run_test.go") || !strings.Contains(s, "run=1") {
			t.Errorf("logged %s", s)
		}
		if log, _ := e.Log(t.Context(), wire.LogRequest{LogID: 1}); !strings.Contains(log.Result.LogContent, "ERROR panic: wrapped: boom\n") {
			t.Errorf("the run's log is %q", log.Result.LogContent)
		}
	})
}

// rudeError is an error whose text cannot be had when it is nil.
type rudeError struct{ text string }

func (r *rudeError) Error() string { return r.text }

// TestErrorWhoseTextPanics: the nil of an error type, returned as an error, fails the run
// and not the process.
func TestErrorWhoseTextPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{Logger: slog.New(slog.DiscardHandler)})
		handle(t, e, "h", func(context.Context, *executor.Task) error { var err *rudeError; return err })
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		if got := a.result(t, 1); got.HandleCode == wire.CodeSuccess || !strings.HasPrefix(got.HandleMsg, "panic: runtime error: ") {
			t.Errorf("result is %+v", got)
		}
	})
}

// TestDestroyThatEndsItsGoroutine: Stop goes on.
func TestDestroyThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged sharedLines
		e, _ := open(t, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		nothing := func(context.Context, *executor.Task) error { return nil }
		if err := e.Handle("h", nothing, executor.OnDestroy(runtime.Goexit)); err != nil {
			t.Fatal(err)
		}
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if s := logged.String(); !strings.Contains(s, "ended its goroutine") {
			t.Errorf("logged %s", s)
		}
	})
}

func TestTextsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		long := strings.Repeat("é", 50_001)
		cut := strings.Repeat("é", 50_000)
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			switch task.Param {
			case "error":
				return errors.New(long)
			case "empty":
				return errors.New("")
			case "exact":
				task.SetResult(cut)
			default:
				task.SetResult("first")
				task.SetResult(long)
			}
			return nil
		})
		for id, do := range []string{"error", "empty", "exact", ""} {
			r := req(int64(id), int64(id))
			r.ExecutorParams = do
			mustSend(t, e, r)
		}
		synctest.Wait()
		for id, want := range []string{cut + "...", "*errors.errorString without text", cut, cut + "..."} {
			if got := a.result(t, int64(id)); got.HandleMsg != want {
				t.Errorf("run %d: %d bytes %.20q...", id, len(got.HandleMsg), got.HandleMsg)
			}
		}
	})
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		var inits, destroys atomic.Int32
		var order []string
		handle(t, e, "h", func(context.Context, *executor.Task) error { return nil },
			executor.OnInit(func(ctx context.Context) error {
				switch inits.Add(1) {
				case 1:
					return errBoom
				case 2:
					panic("early")
				}
				time.Sleep(time.Second) // others wait meanwhile
				return nil
			}),
			executor.OnDestroy(func() { destroys.Add(1); order = append(order, "h") }))
		handle(t, e, "unused", untilDone, executor.OnDestroy(func() { t.Error("destroyed without a run") }))
		handle(t, e, "bare", func(context.Context, *executor.Task) error { return nil },
			executor.OnDestroy(func() { order = append(order, "bare"); panic("late") }))
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		mustSend(t, e, req(1, 2))
		synctest.Wait()
		for id := int64(3); id < 10; id++ {
			mustSend(t, e, req(id, id))
		}
		r := req(11, 11)
		r.ExecutorHandler = "bare"
		mustSend(t, e, r)
		time.Sleep(2 * time.Second)
		if got := a.result(t, 1); got.HandleMsg != `init of handler "h": boom` {
			t.Errorf("first: %+v", got)
		}
		if got := a.result(t, 2); !strings.HasPrefix(got.HandleMsg, "panic: early") {
			t.Errorf("second: %+v", got)
		}
		for id := int64(3); id < 10; id++ {
			if got := a.result(t, id); got.HandleCode != 200 {
				t.Errorf("run %d: %+v", id, got)
			}
		}
		for range 2 {
			if err := e.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if inits.Load() != 3 || destroys.Load() != 1 || !slices.Equal(order, []string{"bare", "h"}) {
			t.Errorf("%d inits, %d destroys, order %v", inits.Load(), destroys.Load(), order)
		}
	})
}

func TestHandleErrors(t *testing.T) {
	e, _ := open(t, executor.Config{})
	ok := func(context.Context, *executor.Task) error { return nil }
	handle(t, e, "b", ok)
	handle(t, e, "a", ok)
	for _, err := range []error{e.Handle("", ok), e.Handle(" ", ok), e.Handle("c", nil), e.Handle("a", ok),
		e.Handle("c", executor.JSON[int](nil))} {
		if err == nil {
			t.Error("registered")
		}
	}
	if err := e.Handle("", nil); err == nil || !strings.Contains(err.Error(), "without a name") || !strings.Contains(err.Error(), "nil") {
		t.Errorf("not all faults at once: %v", err)
	}
	if got := e.Handlers(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("handlers are %v", got)
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Handle("d", ok); !errors.Is(err, executor.ErrStopped) {
		t.Errorf("after Stop: %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	_, err := executor.New(executor.Config{Places: -1, Queue: -1, Backlog: -1, Outbox: -1, Grace: -1, KeepFinished: -1,
		KeepFinishedMax: -1, Log: executor.LogConfig{MaxBytes: -1, TotalBytes: -1}})
	for _, field := range []string{"Places", "Queue", "Backlog", "Outbox", "Grace", "KeepFinished", "KeepFinishedMax", "Log.MaxBytes", "Log.TotalBytes"} {
		if err == nil || !strings.Contains(err.Error(), "Config."+field+" is -1") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	e, err := executor.New(executor.Config{})
	if err != nil || e.App() == "" {
		t.Errorf("zero Config: app %q, %v", e.App(), err)
	}
}

// TestTraceOfATask: the trace of a request is the handler's, as far as it fits.
func TestTraceOfATask(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, tt := range map[string]struct{ parent, state, want string }{
		"none":                      {},
		"a parent":                  {parent, "", parent},
		"with a state":              {parent, "a=b", parent + " a=b"},
		"a state alone":             {"", "a=b", ""},
		"all that fits":             {parent, strings.Repeat("s", 600-1-len(parent)), parent + " " + strings.Repeat("s", 600-1-len(parent))},
		"a state too long":          {parent, strings.Repeat("s", 600-len(parent)), parent},
		"a state with blanks":       {parent, "a=b, c=d", parent + " a=b, c=d"},
		"a state that is no text":   {parent, "a=\x1b[2J", parent},
		"a parent of several words": {parent + " a=b", "c=d", ""},
		"a parent that is no text":  {"00-\r\nX: y", "a=b", ""},
		"not ASCII":                 {"00-é", "a=b", ""},
		"a parent of 1 MB":          {strings.Repeat("p", 1<<20), "a=b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := executor.New(executor.Config{})
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan string, 1)
			if err := e.Handle("h", func(_ context.Context, task *executor.Task) error { got <- task.Trace; return nil }); err != nil {
				t.Fatal(err)
			}
			if ret, _ := e.Run(t.Context(), wire.TriggerRequest{JobID: 1, LogID: 1, ExecutorHandler: "h", Traceparent: tt.parent, Tracestate: tt.state}); !ret.OK() {
				t.Fatal(ret.Msg)
			}
			if got := <-got; got != tt.want {
				t.Errorf("trace %.60q, want %.60q", got, tt.want)
			}
			if err := e.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
