package executor

import (
	"cmp"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/wire"
)

// run is one accepted run, from Run until its handler has returned. It is all that most runs
// allocate, so what only some need is behind pointers.
type run struct {
	Task      // what the handler sees
	taskState // what Task keeps for it, with its own lock

	handler *handler
	job     *job
	id      runID   // not Task's, which the handler may change
	labels  *labels // the job's as they were when the run came

	live  atomic.Pointer[liveContext] // behind runContext
	limit *timeLimit                  // nil without a timeout; its timers are set by start

	// Guarded by Executor.mu.
	next      *run  // in the job's queue, and then in Executor.begun
	most      int32 // how many of its job run side by side, 1 for this one alone, 0 for as many as there are places; never changed
	ended     bool  // its result is recorded
	returned  bool  // its handler has returned
	abandoned bool  // its handler has ignored cancellation for too long
	holds     bool  // it counts in Executor.taken
}

// newRun makes a run out of a request. Executor.mu is held, for the labels.
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
		handler: h, job: j, id: idOf(req), most: int32(sideBySide(req)),
	}
	r.Task.state, r.taskState.run = &r.taskState, r
	r.labels = j.labelsOf(&r.Task)
	if timeout := seconds(req.ExecutorTimeout); timeout > 0 {
		r.limit = &timeLimit{timeout: timeout}
	}
	if e.cfg.Log.Dir != "" {
		r.keepDay(now)
	}
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
