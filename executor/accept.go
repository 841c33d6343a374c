package executor

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/wire"
)

// Refusals of our own.
const (
	msgStopping   = "executor is stopping."
	msgNotStarted = "executor is not started."
	msgQueueFull  = "job queue is full: %d runs of job %d wait."
	msgBacklog    = "executor is full: %d handlers running, %d runs waiting."
	msgOutbox     = "executor is full: %d results are running or wait for the admin."
	msgSpool      = "executor is full: %d bytes of results wait on disk for the admin."
)

// Run accepts a run or refuses it, at once; it never waits for the handler. The
// error is always nil, and ctx is not used: a handler's context outlives the
// request. Answers, in the order they are decided:
//
//   - 200 wire.MsgRepeat: it waits or runs. Runs with the same id and another
//     LogDateTime are other runs; one without a date is whichever has the id;
//   - 200 wire.MsgRepeatEnded: it ended within Config.KeepFinished, or its result is
//     not delivered yet;
//   - 500 wire.MsgWithdrawn: IdleBeat has said that it is not known, within
//     Config.KeepFinished or ten minutes, and this is no later start of it;
//   - 500 wire.MsgForgotten: it is sent again, and may have ended before that;
//   - 500: the executor is stopping;
//   - 500 wire.MsgGlueType, wire.MsgHandlerNotFound: it cannot be run here;
//   - 500 block.MsgDiscard: the job runs or waits and its strategy is DISCARD_LATER;
//   - 500: one of the bounds of Config is reached;
//   - 200 wire.MsgSuccess: its result will be delivered.
func (e *Executor) Run(_ context.Context, req wire.TriggerRequest) (wire.Return, error) {
	return e.accept(e.local, &req), nil
}

// runAtOnce is how many runs are accepted while others wait for Executor.mu.
const runAtOnce = 16

// RunAll is Run for several requests, in their order, and costs less than as many calls. It
// returns dst with the answers appended, one for each request. What Run says of its error, of
// ctx and of waiting is true of RunAll as well. The requests may be changed when it has
// returned.
func (e *Executor) RunAll(_ context.Context, dst []wire.Return, reqs []wire.TriggerRequest) []wire.Return {
	for some := range slices.Chunk(reqs, runAtOnce) {
		dst = e.acceptAll(e.local, dst, some)
	}
	return dst
}

// acceptAll is accept for several requests.
func (e *Executor) acceptAll(o *origin, dst []wire.Return, reqs []wire.TriggerRequest) []wire.Return {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range reqs {
		dst = append(dst, e.admit(o, &reqs[i], now))
	}
	return dst
}

// accept is Run for one origin.
func (e *Executor) accept(o *origin, req *wire.TriggerRequest) wire.Return {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.admit(o, req, now)
}

// admit is accept when mu is held.
func (e *Executor) admit(o *origin, req *wire.TriggerRequest, now time.Time) wire.Return {
	k := idOf(req)
	runs, owed := o.known(k)
	if runs {
		return wire.Noted(wire.MsgRepeat, req.LogID)
	}
	if owed || o.recent.has(k, now) {
		return wire.Noted(wire.MsgRepeatEnded, req.LogID)
	}
	if o.withdrawn.has(k, req.StartToken, now) {
		return wire.Failf(wire.MsgWithdrawn, req.LogID)
	}
	// Before any other refusal: they say that the run has not been here.
	if req.AgainAfter > 0 && o.recent.forgets(sentBefore(req.AgainAfter, now)) {
		return wire.Failf(wire.MsgForgotten, req.LogID)
	}
	if refusal, ok := e.takesRuns(o); !ok {
		return refusal
	}
	if req.GlueType != "" && req.GlueType != wire.GlueBean {
		return wire.Failf(wire.MsgGlueType, req.GlueType)
	}
	h := e.handlers[req.ExecutorHandler]
	if h == nil {
		return wire.Failf(wire.MsgHandlerNotFound, req.ExecutorHandler)
	}
	j := o.jobs[req.JobID]
	busy := j.busy()
	if req.ExecutorBlockStrategy == block.Concurrent {
		busy = !j.takes(sideBySide(req))
	}
	action := block.Decide(req.ExecutorBlockStrategy, busy)
	if action == block.Discard {
		return wire.Failf(block.MsgDiscard)
	}
	if refusal, full := e.full(o, j, req.JobID, action, busy); full {
		return refusal
	}
	if j == nil {
		j = o.job(req.JobID)
	}
	if action == block.Cover {
		e.stopJob(j, block.MsgCover, ErrCovered)
	}
	r := newRun(e, h, j, req, now)
	o.runs.put(r.id, r)
	o.out.owed.Add(1)
	j.push(r)
	e.queued++
	e.advance(j)
	return wire.Success()
}

// agoMargin is how much earlier than it says something is taken to have been sent: a
// request is on its way for a while.
const agoMargin = time.Second

// sentBefore is when something was sent that is said to have been sent so many
// milliseconds ago, or a little earlier.
func sentBefore(ms int64, now time.Time) time.Time {
	ago := time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	return now.Add(-ago).Add(-agoMargin)
}

// takesRuns reports whether runs of an origin are taken at all, or else why not.
// mu is held.
func (e *Executor) takesRuns(o *origin) (wire.Return, bool) {
	switch {
	case e.stopping:
		return wire.Failf(msgStopping), false
	case o.remote() && !e.started: // its results would have nowhere to go
		return wire.Failf(msgNotStarted), false
	}
	return wire.Return{}, true
}

// full reports whether one more run of j would break a bound, before anything is
// changed for it. mu is held.
func (e *Executor) full(o *origin, j *job, id int64, action block.Action, busy bool) (wire.Return, bool) {
	if owed := o.out.owed.Load(); owed >= int64(e.cfg.Outbox) {
		return wire.Failf(msgOutbox, owed), true
	}
	if size, full := o.out.diskFull(); full {
		return wire.Failf(msgSpool, size), true
	}
	waiting := e.queued
	if action == block.Cover {
		waiting -= j.queue.n // they make room for the new one
	} else if j != nil && j.queue.n >= e.cfg.Queue {
		return wire.Failf(msgQueueFull, j.queue.n, id), true
	}
	if waits := busy || !e.placeFree(); waits && waiting >= e.cfg.Backlog {
		return wire.Failf(msgBacklog, e.taken, e.queued), true
	}
	return wire.Return{}, false
}
