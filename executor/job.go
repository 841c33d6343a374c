package executor

// From an accepted run to its one result. Comes in: runs, from accept.go. A job lets one after
// the other begin, or some side by side; goroutines call their handlers; what these return, a
// timeout, a kill or a stop is the result. Goes out: results, to outbox.go.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/wire"
)

// job is one job that runs or has runs waiting, or has had some. It is made by the first run;
// some that are idle are kept for the next one. All fields are guarded by Executor.mu.
type job struct {
	origin  *origin // whose job it is
	id      int64
	running []*run        // whose handlers have not returned, without abandoned ones
	one     [1]*run       // the room of running while it is one, as it mostly is
	queue   runList       // runs that wait for those, or for a place
	since   time.Duration // from Executor.born until it came into Executor.ready; 0 where it is not there
	next    *job          // in Executor.ready
	labels  *labels       // of its last run
}

// waiting reports whether the job is in Executor.ready.
func (j *job) waiting() bool { return j.since != 0 }

// keptJobs is from how many jobs of an origin on idle ones are forgotten: those up to there
// take some 25 MB, and much less than that of the time of their next runs.
const keptJobs = 1 << 16

// job returns one, made where there is none. Executor.mu is held.
func (o *origin) job(id int64) *job {
	j := o.jobs[id]
	if j == nil {
		j = &job{origin: o, id: id}
		j.running = j.one[:0]
		o.jobs[id] = j
	}
	return j
}

// rest has a job that is idle kept, instead of another one where there are many.
// Executor.mu is held.
func (o *origin) rest(j *job) {
	if len(o.jobs) <= keptJobs {
		return
	}
	tries := 4 // many may be busy
	for id, other := range o.jobs {
		if tries--; tries == 0 {
			break
		}
		if other != j && !other.waiting() && !other.busy() {
			delete(o.jobs, id)
			return
		}
	}
	delete(o.jobs, j.id)
}

// busy reports whether the job runs or waits. A nil job does neither.
func (j *job) busy() bool { return j != nil && (len(j.running) > 0 || j.queue.n > 0) }

// hasRoomFor reports whether a run that shares its job with as many others as most says, zero
// for any number and one for none, may begin beside those that are running.
func (j *job) hasRoomFor(most int) bool {
	if j == nil || len(j.running) == 0 {
		return true
	}
	alone := func(r *run) bool { return r.most == 1 }
	return most != 1 && (most == 0 || len(j.running) < most) && !slices.ContainsFunc(j.running, alone)
}

// mayStart reports whether the first that waits may begin.
func (j *job) mayStart() bool { return j.queue.n > 0 && j.hasRoomFor(int(j.queue.head.most)) }

// takes reports whether a run would begin at once, were there a place for it.
func (j *job) takes(most int) bool { return j == nil || j.queue.n == 0 && j.hasRoomFor(most) }

// isBefore reports whether a run is earlier than one that is asked for: it was due before it, or
// has the lesser id. Where one of them does not say when it was due, the one that came first is.
func (r *run) isBefore(req *wire.TriggerRequest) bool {
	if r.due == 0 || req.DueAt == 0 {
		return true
	}
	return cmp.Or(cmp.Compare(r.due, req.DueAt), cmp.Compare(r.id.id, req.LogID)) < 0
}

// hasEarlier reports whether an earlier run than the one that is asked for runs or waits.
func (j *job) hasEarlier(req *wire.TriggerRequest) bool {
	for r := j.queue.head; r != nil; r = r.next {
		if r.isBefore(req) {
			return true
		}
	}
	return slices.ContainsFunc(j.running, func(r *run) bool { return r.isBefore(req) })
}

// hasLater reports whether a later run than the one that is asked for runs or waits, and has no
// result yet.
func (j *job) hasLater(req *wire.TriggerRequest) bool {
	for r := j.queue.head; r != nil; r = r.next {
		if !r.isBefore(req) {
			return true
		}
	}
	return slices.ContainsFunc(j.running, func(r *run) bool { return !r.ended && !r.isBefore(req) })
}

// gone takes a run from those that are running.
func (j *job) gone(r *run) {
	if len(j.running) == 1 && j.running[0] == r {
		j.one[0] = nil
		j.running[0], j.running = nil, j.one[:0]
		return
	}
	j.running = slices.DeleteFunc(j.running, func(x *run) bool { return x == r })
}

func (j *job) push(r *run) { j.queue.push(r) }

// placeFree reports whether a job may start now without overtaking another that
// waits for a place. mu is held.
func (e *Executor) placeFree() bool { return e.taken < e.cfg.Places && e.ready.head == nil }

// advance gives a job what it can have: its next handlers, a position in the line for a
// place, or rest. Every change to a job ends with it. mu is held.
func (e *Executor) advance(j *job) {
	for !j.waiting() && j.mayStart() {
		if !e.placeFree() {
			j.since = max(1, time.Since(e.born))
			e.ready.push(j)
			return
		}
		e.start(j)
	}
	if !j.waiting() && !j.busy() {
		j.origin.rest(j)
	}
}

// start gives the job's first waiting run a place, and has its handler called. mu is held.
func (e *Executor) start(j *job) {
	r := j.queue.pop()
	e.queued--
	j.running = append(j.running, r)
	e.active++
	e.taken++
	r.holds = true
	if r.limit != nil {
		r.setLimit()
	}
	e.callSoon(r)
}

// hasRoomBeside reports whether one more run like the last of the job would begin at once,
// beside others. mu is held.
func (e *Executor) hasRoomBeside(j *job) bool {
	if len(j.running) == 0 || j.queue.n > 0 || !e.placeFree() {
		return false
	}
	last := j.running[len(j.running)-1]
	return last.most != 1 && j.hasRoomFor(int(last.most))
}

// fill gives free places to the jobs that wait for one. mu is held.
func (e *Executor) fill() {
	for e.taken < e.cfg.Places && e.ready.head != nil {
		j := e.ready.pop()
		j.since = 0
		if j.mayStart() { // what waited may have been killed meanwhile
			e.start(j)
		}
		e.advance(j)
	}
}

// runList is a queue of runs, linked through run.next.
type runList struct {
	head, tail *run
	n          int
}

func (l *runList) push(r *run) {
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
	l.n++
}

// pop takes the first run. The list must not be empty.
func (l *runList) pop() *run {
	r := l.head
	l.remove(nil, r)
	return r
}

// remove takes r, which follows prev (nil for the first).
func (l *runList) remove(prev, r *run) {
	if prev == nil {
		l.head = r.next
	} else {
		prev.next = r.next
	}
	if l.tail == r {
		l.tail = prev
	}
	r.next = nil
	l.n--
}

// drop takes r wherever it is and reports whether it was there.
func (l *runList) drop(r *run) bool {
	for prev, at := (*run)(nil), l.head; at != nil; prev, at = at, at.next {
		if at == r {
			l.remove(prev, r)
			return true
		}
	}
	return false
}

// jobList is a queue of jobs, linked through job.next.
type jobList struct{ head, tail *job }

func (l *jobList) push(j *job) {
	if l.tail == nil {
		l.head = j
	} else {
		l.tail.next = j
	}
	l.tail = j
}

// pop takes the first job. The list must not be empty.
func (l *jobList) pop() *job {
	j := l.head
	if l.head = j.next; l.head == nil {
		l.tail = nil
	}
	j.next = nil
	return j
}

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

	previous int64 // wire.TriggerRequest.PreviousAt

	// Guarded by Executor.mu.
	next *run  // in the job's queue, and then in Executor.begun
	due  int64 // TriggerRequest.DueAt; never changed
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
	zone := e.zones.of(req)
	if zone == nil {
		zone = e.cfg.Location
	}
	at = at.In(zone)
	r := &run{
		Task: Task{
			RunID: req.LogID, JobID: req.JobID, Handler: h.name, Param: req.ExecutorParams,
			ShardIndex: req.BroadcastIndex, ShardTotal: max(req.BroadcastTotal, 1),
			ScheduledAt: at, Zone: zone.String(), Attempt: req.Attempt, TriggerID: cmp.Or(req.TriggerID, req.LogID), ParentID: req.ParentID,
			BusinessTime: at, Count: req.Count,
			App: cmp.Or(req.App, e.cfg.App), JobName: req.JobName, JobKey: req.JobKey,
			Route: req.Route, JobVersion: req.JobVersion, TriggerType: req.TriggerType, Trace: traceOf(req),
		},
		handler: h, job: j, id: idOf(req), due: req.DueAt,
	}
	r.most = int32(sideBySide(req))
	r.Task.state, r.taskState.run = &r.taskState, r
	r.tellTimes(req, zone)
	r.labels = j.labelsOf(&r.Task)
	if timeout := seconds(req.ExecutorTimeout); timeout > 0 {
		r.limit = &timeLimit{timeout: timeout}
	}
	if e.cfg.Log.Dir != "" {
		r.keepDay(now)
	}
	return r
}

// tellTimes tells the handler what only some runs have.
func (r *run) tellTimes(req *wire.TriggerRequest, zone *time.Location) {
	tell := func(to *time.Time, ms int64) {
		if at, ok := instant(ms); ok {
			*to = at.In(zone)
		}
	}
	tell(&r.BusinessTime, req.BusinessTime)
	if req.WindowEnd > req.WindowStart {
		r.Window = new(Window)
		tell(&r.Window.Start, req.WindowStart)
		tell(&r.Window.End, req.WindowEnd)
	}
	tell(&r.First, req.FirstAt)
	tell(&r.Last, req.LastAt)
	r.previous = req.PreviousAt
	if req.Instants != "" {
		r.use().instants = instantsOf(req.Instants, zone)
	}
}

// mostInstants is how many instants of a run are told at most.
const mostInstants = 1000

// instantsOf reads wire.TriggerRequest.Instants; nil where it is no list of instants in order.
func instantsOf(text string, zone *time.Location) (list []time.Time) {
	for one := range strings.SplitSeq(text, ",") {
		ms, err := strconv.ParseInt(one, 10, 64)
		at, ok := instant(ms)
		if at = at.In(zone); err != nil || !ok || len(list) == mostInstants || len(list) > 0 && !at.After(list[len(list)-1]) {
			return nil
		}
		list = append(list, at)
	}
	return list
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
	if !blockrule.Of(req.ExecutorBlockStrategy).SideBySide {
		return 1
	}
	return min(max(req.MaxPerExecutor, 0), math.MaxInt32)
}

// seconds turns a timeout of the protocol into a duration, 0 for none.
func seconds(n int) time.Duration {
	return time.Duration(min(max(n, 0), math.MaxInt64/int(time.Second))) * time.Second
}

// A goroutine calls one handler after the other for as long as there are runs that have
// begun, and ends when there are none: a short handler costs no goroutine of its own, and an
// idle executor has none. Whoever takes a run leaves others behind only when another goroutine
// is on its way to them, so that no handler waits for one that takes long.

// mostArriving bounds the goroutines that are on their way at once.
const mostArriving = 64

// callSoon hands a run, whose place is taken, to a goroutine. mu is held.
func (e *Executor) callSoon(r *run) {
	e.begun.push(r)
	e.summon()
}

// summon has so many goroutines come as are needed for runs that have begun. There is one at
// least on its way while there are any; how many more depends on whether those that came last
// were needed. mu is held.
//
// They are waited for by Stop, through Executor.arriving and then Executor.active, unless
// their handlers are abandoned.
func (e *Executor) summon() {
	for e.arriving < min(e.begun.n, max(e.rush, 1)) {
		e.arriving++
		go e.work(nil)
	}
}

// arrive returns the first run of a goroutine, nil where there is none any more.
func (e *Executor) arrive() *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arriving--
	if e.begun.n == 0 {
		e.rush = 1
		e.checkIdle()
		return nil
	}
	e.rush = min(2*e.rush, mostArriving)
	return e.take()
}

// take returns the run whose handler is to be called next, nil for none. mu is held.
func (e *Executor) take() *run {
	if e.begun.n == 0 {
		return nil
	}
	r := e.begun.pop()
	e.summon()
	return r
}

// work is the body of a goroutine that calls handlers, that of r first. A handler that ends
// its goroutine (runtime.Goexit, or t.FailNow in a test) ends its run like any other.
func (e *Executor) work(r *run) {
	defer func() {
		if r == nil {
			return
		}
		unlabel()
		if next := e.leave(r, errGoexit); next != nil {
			go e.work(next)
		}
	}()
	if r == nil {
		r = e.arrive()
	}
	for r != nil {
		err := r.call()
		unlabel()
		done := r
		r = nil
		r = e.leave(done, err)
	}
}

// call calls the handler of a run.
func (r *run) call() error {
	return protect(func() error {
		r.openLog()
		r.labels.put()
		return r.handler.call((*runContext)(r), &r.Task)
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

// result is how a run ended.
type result struct {
	code    int
	msg     string
	noRetry bool
	killed  bool
	// As the callback has them.
	shutdown          bool
	retryIn, snoozeIn int64
}

// killed is the result of a run that was not let finish; msg is for the reason.
func killed(msg, reason string, cause error) result {
	return result{code: wire.CodeFail, msg: fmt.Sprintf(msg, reason), killed: true, shutdown: cause == ErrShutdown}
}

// outcome is the result of a run whose handler returned err.
func outcome(r *run, err error) result {
	switch {
	case r.limit != nil && context.Cause(r.context()) == ErrTimeout:
		// The handler was faster to see the timeout than we were.
		return result{code: wire.CodeTimeout, msg: wire.MsgTimeout}
	case err == nil:
		return result{code: wire.CodeSuccess, msg: r.Result()}
	}
	msg := err.Error()
	if msg == "" {
		msg = fmt.Sprintf("%T without text", err)
	}
	res := result{code: wire.CodeFail, msg: cut(msg), noRetry: IsPermanent(err)}
	if res.retryIn, res.snoozeIn = laterOf(err); res.snoozeIn > 0 {
		res.noRetry = false
	}
	return res
}

// end records the result of a run. It is called once for each run. mu is held.
func (e *Executor) end(r *run, res result) {
	r.ended = true
	o := r.job.origin
	o.runs.change(r.id, nil)
	o.recent.add(r.id, time.Now())
	o.out.add(wire.CallbackRequest{
		LogID: r.id.id, LogDateTim: r.id.date,
		HandleCode: res.code, HandleMsg: res.msg, NoRetry: res.noRetry, Killed: res.killed, Exact: true,
		Shutdown: res.shutdown, RetryIn: res.retryIn, SnoozeIn: res.snoozeIn,
		Progress: r.said(),
	})
}

// leave records what a handler returned, unless its run has ended before, and lets its
// job go on. It returns the run whose handler its goroutine is to call next, nil for none.
func (e *Executor) leave(r *run, err error) *run {
	if err != nil {
		e.logPanic(r, err)
	}
	res := outcome(r, err)
	r.closeLog()

	e.mu.Lock()
	_, abandoned := e.deaf[r]
	if r.limit != nil {
		r.limit.timer.Stop()
		r.limit.release()
	}
	if r.ended { // so it was interrupted
		r.context().grace.Stop()
	} else {
		e.end(r, res)
	}
	if r.holds {
		e.taken--
	}
	if abandoned {
		delete(e.deaf, r)
	} else {
		e.active--
		r.job.gone(r)
		e.advance(r.job)
	}
	e.fill()
	var next *run
	if !abandoned { // or it would wait for a line in the log
		next = e.take()
	}
	e.checkIdle()
	e.mu.Unlock()

	r.letGo()
	if abandoned {
		e.cfg.Logger.Info("executor: an abandoned handler returned", "handler", r.handler.name, "job", r.job.id, "run", r.id.id)
	}
	return next
}

// logPanic logs what a handler has returned, if it has panicked.
func (e *Executor) logPanic(r *run, err error) {
	var p *panicError
	if errors.As(err, &p) {
		e.cfg.Logger.Error("executor: a handler panicked", "handler", r.handler.name, "job", r.job.id, "run", r.id.id,
			"panic", p.value, "stack", string(p.stack))
		r.Task.Log().Error(p.Error())
	}
}

// interrupt ends a run whose handler has not returned: its result is recorded,
// its context cancelled, and the handler has the grace period to return. mu is held.
func (e *Executor) interrupt(r *run, res result, cause error) {
	e.end(r, res)
	ctx := r.context()
	if cause != ErrTimeout {
		ctx.cancel(cause)
	} // else its own deadline does, and says context.DeadlineExceeded
	ctx.grace = time.AfterFunc(e.cfg.Grace, func() { e.abandon(r) })
}

// timedOut is called when the timeout of a run is over. The deadline of its
// context was set just before the timer, so it is not later.
func (r *run) timedOut() {
	e := r.job.origin.exec
	e.mu.Lock()
	defer e.mu.Unlock()
	if !r.ended {
		e.interrupt(r, result{code: wire.CodeTimeout, msg: wire.MsgTimeout}, ErrTimeout)
	}
}

// stopJob ends everything of a job that has not ended and reports whether there
// was anything. mu is held.
func (e *Executor) stopJob(j *job, reason string, cause error) bool {
	found := j.queue.n > 0
	for _, r := range j.running {
		if !r.ended {
			found = true
			e.interrupt(r, killed(wire.MsgKilledRunning, reason, cause), cause)
		}
	}
	for j.queue.n > 0 {
		e.queued--
		e.end(j.queue.pop(), killed(wire.MsgKilledQueued, reason, cause))
	}
	return found
}

// stopRun ends one run that has not ended. mu is held.
func (e *Executor) stopRun(r *run, reason string, cause error) {
	if r.job.queue.drop(r) {
		e.queued--
		e.end(r, killed(wire.MsgKilledQueued, reason, cause))
		return
	}
	e.interrupt(r, killed(wire.MsgKilledRunning, reason, cause), cause)
}

// abandon lets the job of a run go on without its handler, which has been
// cancelled and has not returned.
func (e *Executor) abandon(r *run) {
	e.mu.Lock()
	if !slices.Contains(r.job.running, r) { // it has returned
		e.mu.Unlock()
		return
	}
	e.active--
	if e.deaf == nil {
		e.deaf = make(map[*run]time.Time)
	}
	e.deaf[r] = time.Now()
	if len(e.deaf) <= e.cfg.Places { // the bound on all handlers is twice Places
		r.holds = false
		e.taken--
	}
	r.job.gone(r)
	e.advance(r.job)
	e.fill()
	e.abandoned.Add(1)
	e.checkIdle()
	e.mu.Unlock()
	e.cfg.Logger.Warn("executor: abandoned a handler that ignores cancellation", "handler", r.handler.name,
		"job", r.job.id, "run", r.id.id, "cause", context.Cause(r.context()), "grace", e.cfg.Grace)
	if !e.local.out.abandoned() { // a scheduler says it itself
		e.watchStuck()
	}
}
