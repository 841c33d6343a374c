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
// 1, where App is empty "test", where ScheduledAt is zero the present time, and where
// BusinessTime is zero ScheduledAt.
//
// The handler's context is a child of ctx, with its values, its deadline and the cause
// of its end, and ends when the handler has returned, or before that at the task's
// Deadline. A ctx that has ended does not keep the handler from being called, and Work
// waits for a handler that is deaf to it.
func Work(t testing.TB, ctx context.Context, h executor.Handler, task xxljob.Task) Result {
	t.Helper()
	switch {
	case ctx == nil:
		t.Fatal("xxljobtest: Work: the context is nil")
	case h == nil:
		t.Fatal("xxljobtest: Work: the handler is nil")
	}
	e, err := executor.New(executor.Config{App: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("xxljobtest: Work: %v", err)
	}
	w := worker{ctx: ctx, handler: h, task: task}
	name := cmp.Or(task.Handler, "work")
	if err := e.Handle(name, w.work); err != nil {
		t.Fatalf("xxljobtest: Work: %v", err)
	}
	e.Bind(&w)

	req := wire.TriggerRequest{LogID: max(task.RunID, 1), JobID: task.JobID, ExecutorHandler: name}
	if ret, _ := e.Run(context.Background(), req); !ret.OK() { // Run has no errors
		t.Fatalf("xxljobtest: Work: %s", ret.Msg)
	}
	if err := e.Stop(context.Background()); err != nil { // waits for the handler and its result
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
	ctx     context.Context // of the test
	handler executor.Handler
	task    xxljob.Task

	result   Result
	returned bool   // the handler has returned
	msg      string // of the callback
}

// work calls the handler with the task of the test in place of the executor's, whose
// times have passed through the wire's milliseconds, and with a context of the test's:
// nothing ends that of the executor, which runs this one task without a timeout.
func (w *worker) work(_ context.Context, t *xxljob.Task) error {
	t.JobID, t.Handler, t.Param = w.task.JobID, w.task.Handler, w.task.Param
	t.ShardIndex, t.ShardTotal = w.task.ShardIndex, max(w.task.ShardTotal, 1)
	t.Attempt, t.App, t.JobName, t.JobKey = w.task.Attempt, cmp.Or(w.task.App, t.App), w.task.JobName, w.task.JobKey
	t.Route, t.JobVersion, t.TriggerType, t.Deadline = w.task.Route, w.task.JobVersion, w.task.TriggerType, w.task.Deadline
	t.TriggerID, t.ParentID = cmp.Or(w.task.TriggerID, t.TriggerID), w.task.ParentID
	t.Window, t.First, t.Last, t.Count = w.task.Window, w.task.First, w.task.Last, w.task.Count
	if !w.task.ScheduledAt.IsZero() {
		t.ScheduledAt = w.task.ScheduledAt
	}
	t.Zone = cmp.Or(w.task.Zone, t.ScheduledAt.Location().String())
	if t.BusinessTime = w.task.BusinessTime; t.BusinessTime.IsZero() {
		t.BusinessTime = t.ScheduledAt
	}
	defer func() { w.result.Result = t.Result() }()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if !t.Deadline.IsZero() {
		ctx, cancel = context.WithDeadlineCause(ctx, t.Deadline, executor.ErrTimeout)
		defer cancel()
	}
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
