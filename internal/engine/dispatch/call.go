package dispatch

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Calls of executors, and what their answers mean. Input: flights that may be sent, from send.go.
// Output: runs that remote executors have accepted, to mark.go; refusals, to reroute.go; unknown
// outcomes, to indoubt.go. A run that an executor of this process has accepted is heard of again
// when its result comes.

// call marks a run as sent, calls its executor and acts on the answer.
func (s *sender) call(ctx context.Context, f *queue.Flight) {
	if !s.queue.Under.Send(f) {
		s.queue.Answered(f, 0)
		return
	}
	if f.Remote {
		s.callRemote(ctx, f)
		return
	}
	began := time.Now()
	req, done := s.request(ctx, f)
	ret, err := f.Exec.Run(ctx, req)
	done(ret, err)
	s.queue.Answered(f, time.Since(began))
	s.answered(ctx, f, ret, err)
}

// callRemote calls a remote executor, which holds its place in the lane until the
// answer is there: it has accepted the run, or refused it, or nobody knows.
func (s *sender) callRemote(ctx context.Context, f *queue.Flight) {
	began := time.Now()
	req, done := s.request(ctx, f)
	ret, err := f.Exec.Run(ctx, req)
	if err == nil && ret.Msg == wire.MsgOtherBoot {
		ret, err = s.callSuccessor(ctx, f, &req)
	}
	done(ret, err)
	s.queue.Answered(f, time.Since(began))
	switch {
	case err == nil && ret.OK():
		run := f.Whole()
		s.marker.markAsync(f, &run, "accepted: ", ret.Msg)
	case err == nil:
		s.refused(ctx, f, refusalOf(ret))
	case wire.NotSent(err), wire.TurnedAway(err):
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.inDoubt.add(f, req, err)
	}
}

// request is the wire's request for a flight that is about to be sent, and tells the tracer.
// Done is called with the answer.
func (s *sender) request(ctx context.Context, f *queue.Flight) (req wire.TriggerRequest, done func(wire.Return, error)) {
	req = requestOf(f)
	if s.Cfg.Tracer == nil {
		return req, func(wire.Return, error) {}
	}
	trace, tell := s.Cfg.Tracer.Sending(ctx, f.Whole())
	if trace != "" {
		req.Traceparent, req.Tracestate, _ = strings.Cut(trace, " ")
	}
	return req, func(ret wire.Return, err error) {
		if err == nil && !ret.OK() {
			err = errors.New(refusalOf(ret))
		}
		tell(err)
	}
}

// requestOf is the wire's request for a flight.
func requestOf(f *queue.Flight) wire.TriggerRequest {
	p, part := &f.Run.Planned, f.Run.Planned.Sharding()
	req := wire.TriggerRequest{
		JobID: p.JobID, ExecutorHandler: f.Job.Handler, ExecutorParams: f.Job.Param,
		ExecutorBlockStrategy: f.Job.Block, MaxPerExecutor: f.Job.MaxPerExecutor, ExecutorTimeout: int(f.Job.Timeout / time.Second),
		LogID: p.ID, LogDateTime: p.Created,
		GlueType: f.Job.GlueType, GlueSource: f.Job.GlueSource,
		BroadcastIndex: part.Index, BroadcastTotal: max(part.Total, 1),
		ScheduledAt: f.Run.Instant(),
		StartToken:  f.Run.Token, BootID: f.Run.BootID,
		JobName: f.Job.Name, JobKey: f.Job.Key, App: p.App,
		Route: f.Job.Route, JobVersion: f.Job.Version, TriggerType: string(p.RunType()),
	}
	if r := p.Rest; r != nil {
		req.ExecutorHandler, req.ExecutorParams, req.ExecutorBlockStrategy, req.JobVersion = r.Handler, r.Param, r.Block, r.JobVersion
		req.Attempt = r.Attempt
		req.Traceparent, req.Tracestate, _ = strings.Cut(r.Trace, " ")
	}
	if !f.Job.GlueUpdated.IsZero() {
		req.GlueUpdatetime = f.Job.GlueUpdated.UnixMilli()
	}
	return req
}

// answered acts on an answer of an executor of this process.
func (s *sender) answered(ctx context.Context, f *queue.Flight, ret wire.Return, err error) {
	switch {
	case err == nil && ret.OK() && endedBefore(ret, f.Run.Planned.ID):
		// A database that failed over has forgotten the result it had acknowledged.
		s.Life.FaultCounts.Forgotten.Add(1)
		s.finisher.finishAsync(s.finisher.resultAt(f, store.Result{State: store.StateLost, HandleMsg: resultForgotten}))
	case err == nil && ret.OK():
		if reason := s.queue.Under.Accepted(f); reason != "" {
			s.killer.killAt(ctx, f, reason) // asked for while it was being accepted
		}
	case err != nil:
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.refused(ctx, f, refusalOf(ret))
	}
}

// endedBefore reports whether an executor of ours has answered that the run has ended.
func endedBefore(ret wire.Return, runID int64) bool {
	return ret.Msg != wire.MsgSuccess && ret.Msg == wire.Noted(wire.MsgRepeatEnded, runID).Msg
}

// Started runs that are due together, and go to an executor of this process in one call.

// batchExecutor is an executor that takes several runs in one call: executor.Executor.
type batchExecutor interface {
	RunAll(ctx context.Context, dst []wire.Return, reqs []wire.TriggerRequest) []wire.Return
}

// callsTogether is how many flights go in one call.
const callsTogether = 256

// callBatch is a call's worth of flights to one executor, with memory that is used again.
type callBatch struct {
	exec    batchExecutor
	flights []*queue.Flight
	reqs    []wire.TriggerRequest
	answers []wire.Return
	// accepted are those of them that the executor has taken.
	accepted []*queue.Flight
}

// add takes a flight in; false where it is another executor's, or there is no room.
func (b *callBatch) add(f *queue.Flight) bool {
	exec, takesMany := f.Exec.(batchExecutor)
	if !takesMany || len(b.flights) > 0 && (exec != b.exec || len(b.flights) == callsTogether) {
		return false
	}
	b.exec, b.flights = exec, append(b.flights, f)
	return true
}

// callTogether is call for flights that were not sent before, all at one executor of this process
// that answers at once.
func (s *sender) callTogether(ctx context.Context, b *callBatch) {
	b.flights = s.queue.Under.SendAll(b.flights)
	b.reqs, b.answers = b.reqs[:0], b.answers[:0]
	for _, f := range b.flights {
		b.reqs = append(b.reqs, requestOf(f))
	}
	began := time.Now()
	b.answers = b.exec.RunAll(ctx, b.answers, b.reqs)
	took := time.Since(began) / time.Duration(max(1, len(b.flights)))
	b.accepted = b.accepted[:0]
	for i, f := range b.flights {
		s.queue.Answered(f, took)
		if plainSuccess(b.answers[i]) {
			b.accepted = append(b.accepted, f)
		}
	}
	for _, k := range s.queue.Under.AcceptedAll(b.accepted) {
		s.killer.killAt(ctx, k.Flight, k.Reason) // asked for while it was being accepted
	}
	for i, f := range b.flights {
		if !plainSuccess(b.answers[i]) { // behind the others, for it may wait for the store
			s.answered(ctx, f, b.answers[i], nil)
		}
	}
	clear(b.accepted)
	clear(b.flights)
	clear(b.reqs)
	b.exec, b.flights = nil, b.flights[:0]
}

// plainSuccess reports whether an answer says that a run was accepted, and no more.
func plainSuccess(ret wire.Return) bool { return ret.OK() && ret.Msg == wire.MsgSuccess }
