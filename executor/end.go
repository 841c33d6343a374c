package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/wire"
)

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
	r.returned = true
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
	if r.abandoned {
		e.lingering--
	} else {
		e.active--
		r.job.gone(r)
		e.advance(r.job)
	}
	e.fill()
	var next *run
	if !r.abandoned { // or it would wait for a line in the log
		next = e.take()
	}
	e.checkIdle()
	e.mu.Unlock()

	r.letGo()
	if r.abandoned { // not changed after returned
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
	if r.returned {
		e.mu.Unlock()
		return
	}
	r.abandoned = true
	e.active--
	e.lingering++
	if e.lingering <= e.cfg.Places { // the bound on all handlers is twice Places
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
}
