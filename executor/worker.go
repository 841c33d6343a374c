package executor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/inside"
	"github.com/xxljob/xxljob/wire"
)

// run is one accepted run, from Run until its handler has returned.
type run struct {
	Task      // what the handler sees
	taskState // what Task keeps for it, with its own lock

	exec    *Executor
	handler *handler
	job     *job
	id      runID // not Task's, which the handler may change
	timeout time.Duration

	// Set by start, before the handler's goroutine exists.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	release context.CancelFunc // of the context's own deadline, nil without a timeout
	timer   *time.Timer        // calls timedOut, nil without a timeout

	// Guarded by Executor.mu.
	next      *run        // in the job's queue
	most      int32       // how many of its job run side by side, 1 for this one alone, 0 for as many as there are places; never changed
	ended     bool        // its result is recorded
	returned  bool        // its handler has returned
	abandoned bool        // its handler has ignored cancellation for too long
	holds     bool        // it counts in Executor.taken
	grace     *time.Timer // runs from a cancellation to the return of the handler
}

// newRun makes a run out of a request.
func newRun(e *Executor, h *handler, j *job, req *wire.TriggerRequest, now time.Time) *run {
	at, ok := instant(req.ScheduledAt)
	if !ok {
		at, ok = instant(req.LogDateTime)
	}
	if !ok {
		at = now
	}
	r := &run{
		Task: Task{
			RunID: req.LogID, JobID: req.JobID, Handler: h.name, Param: req.ExecutorParams,
			ShardIndex: req.BroadcastIndex, ShardTotal: max(req.BroadcastTotal, 1),
			ScheduledAt: at.In(e.cfg.Location), Attempt: req.Attempt,
			App: cmp.Or(req.App, e.cfg.App), JobName: req.JobName, JobKey: req.JobKey,
			Route: req.Route, JobVersion: req.JobVersion, TriggerType: req.TriggerType, Trace: traceOf(req),
		},
		taskState: taskState{logs: j.origin.logs, key: newLog(idOf(req), now)},
		exec:      e, handler: h, job: j, id: idOf(req),
		timeout: seconds(req.ExecutorTimeout), most: int32(sideBySide(req)),
	}
	r.Task.state, r.taskState.run = &r.taskState, r
	return r
}

// maxTrace is how many bytes a Task.Trace may have.
const maxTrace = 600

// traceOf is the trace of a request; one that is too long, or is not visible ASCII, loses its
// state first.
func traceOf(req *wire.TriggerRequest) string {
	ascii := func(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 }
	switch parent, state := req.Traceparent, req.Tracestate; {
	case len(parent) > maxTrace || !ascii(parent) || strings.Contains(parent, " "):
		return ""
	case parent == "" || state == "" || len(parent)+1+len(state) > maxTrace || !ascii(state):
		return parent
	default:
		return parent + " " + state
	}
}

// sideBySide is how many runs of a job a request lets run at once.
func sideBySide(req *wire.TriggerRequest) int {
	if req.ExecutorBlockStrategy != block.Concurrent {
		return 1
	}
	return min(max(req.MaxPerExecutor, 0), math.MaxInt32)
}

// seconds turns a timeout of the protocol into a duration, 0 for none.
func seconds(n int) time.Duration {
	return time.Duration(min(max(n, 0), math.MaxInt64/int(time.Second))) * time.Second
}

// start runs the handler of the job's first waiting run. mu is held.
//
// The goroutine is waited for by Stop, through Executor.active, unless its handler is
// abandoned.
func (e *Executor) start(j *job) {
	r := j.queue.pop()
	e.queued--
	j.running = append(j.running, r)
	e.active++
	e.taken++
	r.holds = true
	parent := context.Background()
	if !j.origin.remote() {
		parent = inside.Mark(parent, inside.Run{Executor: e, RunID: r.id.id, JobID: j.id})
	}
	if r.timeout > 0 { // what the handler calls can see the deadline
		parent, r.release = context.WithTimeoutCause(parent, r.timeout, ErrTimeout)
		deadline, _ := parent.Deadline()
		r.Task.Deadline = deadline.In(e.cfg.Location)
	}
	r.ctx, r.cancel = context.WithCancelCause(parent)
	if r.timeout > 0 {
		r.timer = time.AfterFunc(r.timeout, r.timedOut)
	}
	go r.work()
}

// work is the body of a handler's goroutine. A handler that ends its goroutine
// (runtime.Goexit, or t.FailNow in a test) ends its run like any other.
func (r *run) work() {
	err := errGoexit
	defer func() {
		unlabel()
		r.exec.leave(r, err)
	}()
	err = protect(func() error {
		r.openLog()
		return r.handler.call(r.label(r.ctx), &r.Task)
	})
}

// panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// protect calls a user's function and turns a panic into a *panicError. It is
// the one place where panics are recovered.
func protect(f func() error) error {
	err := guard.Call(f)
	if p, ok := err.(*guard.Panic); ok {
		return &panicError{value: p.Value, stack: p.Stack}
	}
	return err
}
