package executor

// The executor, and what admins ask of it.

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Executor runs handlers. All its methods are safe for concurrent use.
type Executor struct {
	cfg     Config    // set by New
	boot    string    // set by New: another one for each Executor
	born    time.Time // set by New: no run that was sent earlier has been here
	local   *origin   // set by New: the admin within the process
	origins []*origin // set by New: local, then one for each of Config.Admins

	neverAsked liveContext // see job.never

	ownTransport bool // set by New: Config.Transport was made here

	abandoned atomic.Int64 // handlers ever abandoned

	// mu guards what follows and the fields of job and run that say so. It is
	// held for a few map operations, never while anybody else's code runs.
	mu        sync.Mutex
	zones     zones // of jobs, as admins name them
	handlers  map[string]*handler
	order     []*handler    // handlers as they were registered
	ready     jobList       // jobs that wait for a place
	queued    int           // runs in the queues of all jobs
	active    int           // handlers running, abandoned ones not counted
	begun     runList       // runs among these whose handlers are still to be called
	arriving  int           // goroutines on their way to call them
	rush      int           // how many of these there are at most, 0 for one
	taken     int           // places in use
	starting  bool          // Start is at work
	started   bool          // Start has succeeded
	leaving   bool          // one Stop has begun to say good-bye
	stopping  bool          // nothing is accepted any more
	finishing bool          // one Stop has begun the last steps
	idle      chan struct{} // closed when stopping and nothing runs or waits
	left      chan struct{} // closed when the admins were told
	stopped   chan struct{} // closed when Stop is through
	cutOff    error         // why runs were cut off by Stop, written before idle is closed
	stopErr   error         // the error of Stop, written before stopped is closed

	deaf  map[*run]time.Time // abandoned handlers that have not returned, with when that was
	watch stuckWatch         // of these

	// Set by Start, under mu.
	server        *server         // nil without Config.Addr
	registrations []*registration // one for each of Config.Admins
}

var _ wire.Executor = (*Executor)(nil)

// New makes an executor. It starts no goroutine, and holds nothing that has to be
// released before the first run or Start, except that it makes and opens
// Config.Log.Dir when that is set. The error names all fields out of range, or
// why the log directory cannot be used; it never contains a token.
func New(cfg Config) (*Executor, error) { return newExecutor(cfg, dialHTTP) }

// newExecutor is New with another way to reach admins.
func newExecutor(cfg Config, dial dialer) (*Executor, error) {
	ownTransport := cfg.Transport == nil && len(cfg.Admins) > 0
	cfg = cfg.withDefaults()
	clusters, err := cfg.dialAll(dial)
	if err := errors.Join(cfg.validate(), err); err != nil {
		return nil, err
	}
	if fields := cfg.shortTokens(); len(fields) > 0 {
		cfg.Logger.Warn("executor: some tokens are below 16 bytes, which can be guessed", "fields", fields)
	}
	logs, err := newLogStore(cfg)
	if err != nil {
		return nil, err
	}
	e := &Executor{
		cfg:      cfg,
		boot:     rand.Text(),
		born:     time.Now(),
		local:    newOrigin(cfg, "", logs, localBatch),
		handlers: make(map[string]*handler),
		zones:    zones{},
		idle:     make(chan struct{}),
		left:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	e.local.exec = e
	e.ownTransport = ownTransport
	e.origins = []*origin{e.local}
	for i, c := range clusters {
		if err := e.addOrigin(cfg.Admins[i], c); err != nil {
			return nil, errors.Join(err, e.closeLogs())
		}
	}
	return e, nil
}

// App returns the name the executor registers under.
func (e *Executor) App() string { return e.cfg.App }

// Handlers returns the names of the registered handlers, sorted.
func (e *Executor) Handlers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.handlers))
}

// Bind sets who receives the results of runs that came by the method Run, also
// of those that ended before. A later call replaces the admin for everything not
// delivered yet; nil keeps results until the next Bind. Results for Config.Admins
// are not concerned. An admin with a method
//
//	Progress(logID, logDateTim int64, p wire.Progress)
//
// is also told how far these runs are, about each once a second at most. It has to return at
// once: the handler waits for it. One with a method
//
//	OpenLog(logID, logDateTim int64) (write func(at time.Time, level slog.Level, lines string), end func())
//
// is asked, before the handler of each of these runs is called, where its lines go as well; nil
// functions mean nowhere else. write gets each record of Config.Log.Level and above as the log
// has it, one line or more, each with its line feed, and may be called by several goroutines at
// once, by those that the handler has left behind also after end; the handler waits for it. end
// is called once, when the handler has returned and before its result is delivered, unless the
// run was ended before. One with a method
//
//	Abandoned()
//
// is told when a handler was abandoned: see Stuck. One with a method
//
//	Previous(logID, logDateTim int64) time.Time
//
// is asked by Task.Previous. It may be asked by several goroutines at once.
func (e *Executor) Bind(admin wire.Admin) { e.local.out.bind(admin) }

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

// Beat answers 200 while the executor takes runs, and 500 once it stops.
func (e *Executor) Beat(context.Context) (wire.Return, error) { return e.beat(e.local), nil }

// beat is Beat for one origin.
func (e *Executor) beat(o *origin) wire.Return {
	e.mu.Lock()
	defer e.mu.Unlock()
	if refusal, ok := e.takesRuns(o); !ok {
		return refusal
	}
	return wire.Success()
}

// IdleBeat answers 200 when the job neither runs nor waits, and MsgBusy when it
// does, also while a cancelled handler of it has not returned.
//
// With IdleBeatRequest.LogID it also says in Return.RunState what it knows of that run,
// and in Return.BootID which executor says so, whatever the job does:
//
//   - wire.RunHeld: the run waits or runs, or its result is not delivered yet;
//   - wire.RunReported: it ended within Config.KeepFinished, and an admin has
//     acknowledged its result, or the spool has lost it;
//   - wire.RunUnknown: it has not been here, or was refused. For Config.KeepFinished,
//     and ten minutes, at least, the start with that token and earlier ones are refused from then on;
//   - wire.RunForgotten: it is not known, and was started before this executor was made
//     (and not for it, as BootID says),
//     or so long ago that it may be forgotten, or too many starts are refused already.
func (e *Executor) IdleBeat(_ context.Context, req wire.IdleBeatRequest) (wire.Return, error) {
	return e.idleBeat(e.local, req), nil
}

// idleBeat is IdleBeat for one origin.
func (e *Executor) idleBeat(o *origin, req wire.IdleBeatRequest) wire.Return {
	e.mu.Lock()
	defer e.mu.Unlock()
	ret := wire.Success()
	if j := o.jobs[req.JobID]; j.busy() && !e.hasRoomBeside(j) {
		ret = wire.Failf(wire.MsgBusy)
	}
	if req.LogID != 0 {
		ret.RunState, ret.BootID = e.stateOf(o, req), e.boot
	}
	return ret
}

// stateOf says what is known of a run, and refuses the start that it says is not known.
// mu is held.
func (e *Executor) stateOf(o *origin, req wire.IdleBeatRequest) wire.RunState {
	k := runID{req.LogID, req.LogDateTime}
	now := time.Now()
	if runs, owed := o.known(k); runs || owed {
		return wire.RunHeld
	}
	if o.recent.has(k, now) {
		return wire.RunReported
	}
	started := sentBefore(req.StartedAgo, now)
	younger := started.Before(e.born) && req.BootID != e.boot
	if younger || o.recent.forgets(started) || !o.withdrawn.add(k, req.StartToken, now) {
		return wire.RunForgotten
	}
	return wire.RunUnknown
}

// Kill stops the running run and the waiting runs of a job, or with
// KillRequest.LogID one run, the one with KillRequest.LogDateTime where there are
// several with that id and a date is given. Their results are recorded at once as failed, with
// KillRequest.Reason (default wire.StopKill) in the text, and the handler's
// context is cancelled with ErrKilled, or with ErrShutdown where KillRequest.Shutdown is set. When there is nothing to stop the answer is
// 200 with wire.MsgAlreadyKilled.
func (e *Executor) Kill(_ context.Context, req wire.KillRequest) (wire.Return, error) {
	return e.kill(e.local, req), nil
}

// kill is Kill for one origin.
func (e *Executor) kill(o *origin, req wire.KillRequest) wire.Return {
	reason := req.Reason
	if reason == "" {
		reason = wire.StopKill
	}
	cause := ErrKilled
	if req.Shutdown {
		cause = ErrShutdown
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	if req.LogID != 0 {
		for _, r := range o.runs.all(req.LogID) {
			if r != nil && r.id.is(runID{req.LogID, req.LogDateTime}) && (req.JobID == 0 || req.JobID == r.job.id) {
				found = true
				e.stopRun(r, reason, cause)
			}
		}
	} else if j := o.jobs[req.JobID]; j != nil {
		found = e.stopJob(j, reason, cause)
	}
	e.checkIdle()
	if !found {
		return wire.Noted(wire.MsgAlreadyKilled)
	}
	return wire.Success()
}

// Log answers lines of a run's log from LogRequest.FromLineNum on, at most about
// 1 MiB of them at once. A run that has logged nothing is answered with no lines
// while it waits or runs, and with wire.MsgNoLog and IsEnd later, as is
// an unknown one. LogRequest.LogDateTim tells runs with the same id apart; whole seconds,
// which Java admins ask for, mean the run of that second. Without it the last run with
// the id is meant, of today where logs are in files. While the run waits or runs,
// LogResult.Progress is what its handler has said of it last. With LogRequest.Tail it answers
// the last lines instead, so many of them as there are and as fit into 1 MiB, with their
// numbers and LogResult.Tail.
func (e *Executor) Log(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	return e.readLog(e.local, req), nil
}

// readLog is Log for one origin.
func (e *Executor) readLog(o *origin, req wire.LogRequest) wire.LogReturn {
	part, k := partOf(req), runID{req.LogID, req.LogDateTim}
	res, found, err := o.logs.read(askedLog(k, time.Now()), part)
	if err != nil {
		e.cfg.Logger.Error("executor: could not read the log of a run", "run", req.LogID, "error", err)
		return wire.LogReturn{Code: wire.CodeFail, Msg: "readLog fail, " + err.Error()}
	}
	r := e.asked(o, k)
	if !found {
		res = part.none()
		if r == nil {
			res.LogContent, res.IsEnd = wire.MsgNoLog, true
		}
	}
	if r != nil {
		res.Progress = r.said()
	}
	return wire.LogReturn{Code: wire.CodeSuccess, Msg: wire.MsgSuccess, Result: res}
}

// asked returns the run that is asked for, if it is waiting or running, or nil: the one of
// exactly that date, or else one that may be meant.
func (e *Executor) asked(o *origin, asked runID) (found *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range o.runs.all(asked.id) {
		if r == nil {
			continue
		}
		if r.id == asked {
			return r
		}
		if r.id.isAsked(asked.date) {
			found = r
		}
	}
	return found
}

// remote is an executor as one admin outside of this process sees it.
type remote struct {
	exec   *Executor
	origin *origin
}

var _ wire.Executor = remote{}

// Beat implements wire.Executor.
func (r remote) Beat(context.Context) (wire.Return, error) { return r.exec.beat(r.origin), nil }

// IdleBeat implements wire.Executor.
func (r remote) IdleBeat(_ context.Context, req wire.IdleBeatRequest) (wire.Return, error) {
	return r.exec.idleBeat(r.origin, req), nil
}

// Run implements wire.Executor.
func (r remote) Run(_ context.Context, req wire.TriggerRequest) (wire.Return, error) {
	var ret wire.Return
	if req.BootID != "" && req.BootID != r.exec.boot {
		// Whether the earlier process has run it before is not known here.
		ret = wire.Failf(wire.MsgOtherBoot)
	} else {
		ret = r.exec.accept(r.origin, &req)
	}
	if req.StartToken != 0 { // other admins are answered as other executors do
		ret.BootID = r.exec.boot
	}
	return ret, nil
}

// Kill implements wire.Executor.
func (r remote) Kill(_ context.Context, req wire.KillRequest) (wire.Return, error) {
	ret := r.exec.kill(r.origin, req)
	if req.LogID != 0 {
		ret.BootID = r.exec.boot
	}
	return ret, nil
}

// Log implements wire.Executor.
func (r remote) Log(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	return r.exec.readLog(r.origin, req), nil
}
