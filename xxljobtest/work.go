package xxljobtest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// Result is what a handler did in Work.
type Result struct {
	// Result is the text of the last SetResult.
	Result string
	// Err is what the handler returned. A panic, or a handler that ended its
	// goroutine, is an error as well, with the text that a run would have.
	Err error
	// Log holds the lines of Task.Log from level INFO on, without their times:
	// "INFO message key=value".
	Log []string
}

// Work runs a handler once, without scheduler and store, and waits for its end. The
// handler sees the task as it is given; where RunID or ShardTotal is zero it sees
// 1, where App is empty "test", and where ScheduledAt is zero the present time. A Deadline is
// that of its context too.
func Work(t testing.TB, h executor.Handler, task xxljob.Task) Result {
	t.Helper()
	if h == nil {
		t.Fatal("xxljobtest: Work: the handler is nil")
	}
	e, err := executor.New(executor.Config{App: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("xxljobtest: Work: %v", err)
	}
	w := worker{handler: h, task: task}
	name := cmp.Or(task.Handler, "work")
	if err := e.Handle(name, w.work); err != nil {
		t.Fatalf("xxljobtest: Work: %v", err)
	}
	e.Bind(&w)

	ctx := context.Background()
	req := wire.TriggerRequest{LogID: max(task.RunID, 1), JobID: task.JobID, ExecutorHandler: name}
	if ret, _ := e.Run(ctx, req); !ret.OK() { // Run has no errors
		t.Fatalf("xxljobtest: Work: %s", ret.Msg)
	}
	if err := e.Stop(ctx); err != nil { // waits for the handler and its result
		t.Fatalf("xxljobtest: Work: %v", err)
	}
	if !w.returned {
		w.result.Err = errors.New(w.msg)
	}
	w.result.Log = logLines(t, e, req.LogID)
	return w.result
}

// worker is the handler and the admin of one Work. It needs no lock: Run, the
// handler, the callback and the end of Stop come one after the other.
type worker struct {
	handler executor.Handler
	task    xxljob.Task

	result   Result
	returned bool   // the handler has returned
	msg      string // of the callback
}

// work calls the handler with the task of the test in place of the executor's,
// whose times have passed through the wire's milliseconds.
func (w *worker) work(ctx context.Context, t *xxljob.Task) error {
	t.JobID, t.Handler, t.Param = w.task.JobID, w.task.Handler, w.task.Param
	t.ShardIndex, t.ShardTotal = w.task.ShardIndex, max(w.task.ShardTotal, 1)
	t.Attempt, t.App, t.JobName, t.JobKey = w.task.Attempt, cmp.Or(w.task.App, t.App), w.task.JobName, w.task.JobKey
	t.Route, t.JobVersion, t.TriggerType, t.Deadline = w.task.Route, w.task.JobVersion, w.task.TriggerType, w.task.Deadline
	if !t.Deadline.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadlineCause(ctx, t.Deadline, executor.ErrTimeout)
		defer cancel()
	}
	if !w.task.ScheduledAt.IsZero() {
		t.ScheduledAt = w.task.ScheduledAt
	}
	defer func() { w.result.Result = t.Result() }()
	w.result.Err = w.handler(ctx, t)
	w.returned = true
	return w.result.Err
}

// Callback keeps the text that a panic ended with.
func (w *worker) Callback(_ context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	for _, r := range results {
		w.msg = r.HandleMsg
	}
	return wire.Success(), nil
}

// Registry is not called: nobody registers the executor.
func (w *worker) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// RegistryRemove is not called either.
func (w *worker) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// logLines reads the whole log of a run, page by page.
func logLines(t testing.TB, e *executor.Executor, runID int64) []string {
	t.Helper()
	var lines []string
	for from := 1; ; {
		ret, _ := e.Log(context.Background(), wire.LogRequest{LogID: runID, FromLineNum: from}) // Log has no errors
		if !ret.OK() {
			t.Fatalf("xxljobtest: Work: %s", ret.Msg)
		}
		if ret.Result.IsEnd || ret.Result.ToLineNum < from {
			return lines // IsEnd: there is no log at all
		}
		for line := range strings.Lines(ret.Result.LogContent) {
			lines = append(lines, withoutTime(strings.TrimSuffix(line, "\n")))
		}
		from = ret.Result.ToLineNum + 1
	}
}

// withoutTime cuts the time off a line; lines of a longer message have none.
func withoutTime(line string) string {
	const layout = time.DateTime + " "
	if len(line) >= len(layout) {
		if _, err := time.Parse(layout, line[:len(layout)]); err == nil {
			return line[len(layout):]
		}
	}
	return line
}
