package executor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Executor runs handlers. All its methods are safe for concurrent use.
type Executor struct {
	cfg  Config   // set by New
	logs logStore // set by New, has its own lock
	out  *outbox  // set by New, has its own lock, which may be taken under mu

	abandoned atomic.Int64 // handlers ever abandoned

	// mu guards what follows and the fields of job and run that say so. It is
	// held for a few map operations, never while anybody else's code runs.
	mu        sync.Mutex
	handlers  map[string]*handler
	order     []*handler     // handlers as they were registered
	jobs      map[int64]*job // jobs that run or wait, no others
	runs      map[int64]*run // accepted runs without a result
	recent    recent         // ids of runs with a result
	ready     jobList        // jobs that wait for a place
	queued    int            // runs in the queues of all jobs
	active    int            // handlers running, abandoned ones not counted
	taken     int            // places in use
	lingering int            // abandoned handlers that have not returned
	stopping  bool           // Stop was called: nothing is accepted
	finishing bool           // one Stop has begun the last steps
	idle      chan struct{}  // closed when stopping and nothing runs or waits
	stopped   chan struct{}  // closed when Stop is through
	cutOff    error          // why runs were cut off by Stop, written before idle is closed
	stopErr   error          // the error of Stop, written before stopped is closed
}

var _ wire.Executor = (*Executor)(nil)

// New makes an executor. It starts no goroutine, and holds nothing that has to be
// released before the first run, except that it makes and opens Config.Log.Dir when
// that is set. The error names all fields out of range, or why the log
// directory cannot be used.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	logs, err := newLogStore(cfg)
	if err != nil {
		return nil, err
	}
	return &Executor{
		cfg:      cfg,
		logs:     logs,
		out:      newOutbox(cfg),
		handlers: make(map[string]*handler),
		jobs:     make(map[int64]*job),
		runs:     make(map[int64]*run),
		recent:   newRecent(cfg.KeepFinished, cfg.KeepFinishedMax),
		idle:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}, nil
}

// App returns the name the executor registers under.
func (e *Executor) App() string { return e.cfg.App }

// Handlers returns the names of the registered handlers, sorted.
func (e *Executor) Handlers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.handlers))
}

// Bind sets who receives the results, also of runs that ended before. A later
// call replaces the admin for everything not delivered yet; nil keeps results until
// the next Bind.
func (e *Executor) Bind(admin wire.Admin) { e.out.bind(admin) }

// Places returns Config.Places: how many handlers run at once. A scheduler sends
// no more runs at a time.
func (e *Executor) Places() int { return e.cfg.Places }

// Running returns how many handlers run now. Abandoned ones are not counted.
func (e *Executor) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active
}

// Abandoned returns how many handlers have ignored their cancellation for
// Config.Grace since the executor was made, whether or not they returned later.
func (e *Executor) Abandoned() int64 { return e.abandoned.Load() }

// Beat answers 200 while the executor takes runs, and 500 from the call of Stop on.
func (e *Executor) Beat(context.Context) (wire.Return, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return wire.Failf(msgStopping), nil
	}
	return wire.Success(), nil
}

// IdleBeat answers 200 when the job neither runs nor waits, and MsgBusy when it
// does, also while a cancelled handler of it has not returned.
func (e *Executor) IdleBeat(_ context.Context, req wire.IdleBeatRequest) (wire.Return, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[req.JobID].busy() {
		return wire.Failf(wire.MsgBusy), nil
	}
	return wire.Success(), nil
}

// Kill stops the running run and the waiting runs of a job, or with
// KillRequest.LogID one run. Their results are recorded at once as failed, with
// KillRequest.Reason (default wire.StopKill) in the text, and the handler's
// context is cancelled with ErrKilled. When there is nothing to stop the answer is
// 200 with wire.MsgAlreadyKilled.
func (e *Executor) Kill(_ context.Context, req wire.KillRequest) (wire.Return, error) {
	reason := req.Reason
	if reason == "" {
		reason = wire.StopKill
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	if req.LogID != 0 {
		r := e.runs[req.LogID]
		if found = r != nil && (req.JobID == 0 || req.JobID == r.JobID); found {
			e.stopRun(r, reason, ErrKilled)
		}
	} else if j := e.jobs[req.JobID]; j != nil {
		found = e.stopJob(j, reason, ErrKilled)
	}
	e.checkIdle()
	if !found {
		return wire.Noted(wire.MsgAlreadyKilled), nil
	}
	return wire.Success(), nil
}

// Log answers lines of a run's log from LogRequest.FromLineNum on, at most about
// 1 MiB of them at once. A run that has logged nothing is answered with no lines
// while it waits or runs, and with wire.MsgNoLog and IsEnd later, as is
// an unknown one.
func (e *Executor) Log(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	from := max(req.FromLineNum, 1)
	at := time.Now()
	if req.LogDateTim != 0 {
		at = time.UnixMilli(req.LogDateTim)
	}
	res, found, err := e.logs.read(logKey{id: req.LogID, at: at}, from)
	if err != nil {
		e.cfg.Logger.Error("executor: a run's log cannot be read", "run", req.LogID, "error", err)
		return wire.LogReturn{Code: wire.CodeFail, Msg: "readLog fail, " + err.Error()}, nil
	}
	if !found {
		res = wire.LogResult{FromLineNum: from}
		if !e.alive(req.LogID) {
			res.LogContent, res.IsEnd = wire.MsgNoLog, true
		}
	}
	return wire.LogReturn{Code: wire.CodeSuccess, Msg: wire.MsgSuccess, Result: res}, nil
}

// alive reports whether a run is waiting or running.
func (e *Executor) alive(id int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[id] != nil
}
