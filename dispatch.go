package xxljob

// Triggers of remote executors and what they answer. Input: flights, from send.go,
// and answers, from indoubt.go. Output: runs that are marked dispatched, in the store;
// refusals, to send.go; unknown outcomes, to indoubt.go.

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// sender hands started runs to their executors, at their time.
type sender struct {
	*shared
	engine   *engine
	finisher *finisher
	killer   *killer
	inDoubt  *inDoubt
	acceptor *acceptor
	rerouter *rerouter
}

// sendElsewhere calls a remote executor, which holds its place in the lane until the
// answer is there: it has accepted the run, or refused it, or nobody knows.
func (s *sender) sendElsewhere(ctx context.Context, f *flight) {
	began := time.Now()
	req, done := s.request(ctx, f)
	ret, err := f.exec.Run(ctx, req)
	if err == nil && ret.Msg == wire.MsgOtherBoot {
		ret, err = s.rerouter.sendToSuccessor(ctx, f, &req)
	}
	done(ret, err)
	s.engine.answered(f, time.Since(began))
	switch {
	case err == nil && ret.OK():
		run := f.whole()
		s.acceptor.dispatchedAsync(f, &run, "accepted: ", ret.Msg)
	case err == nil:
		s.rerouter.refused(ctx, f, refusalOf(ret))
	case wire.NotSent(err):
		s.rerouter.refused(ctx, f, "error: "+err.Error())
	default:
		s.inDoubt.leaveInDoubt(f, req, err)
	}
}

// request is the wire's request for a flight that is about to be sent, and tells the tracer.
// Done is called with the answer.
func (s *sender) request(ctx context.Context, f *flight) (req wire.TriggerRequest, done func(wire.Return, error)) {
	req = requestOf(f)
	if s.cfg.Tracer == nil {
		return req, func(wire.Return, error) {}
	}
	trace, tell := s.cfg.Tracer.Sending(ctx, f.whole())
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
func requestOf(f *flight) wire.TriggerRequest {
	p, part := &f.run.planned, f.run.planned.sharding()
	req := wire.TriggerRequest{
		JobID: p.JobID, ExecutorHandler: f.job.Handler, ExecutorParams: f.job.Param,
		ExecutorBlockStrategy: f.job.Block, MaxPerExecutor: f.job.MaxPerExecutor, ExecutorTimeout: int(f.job.Timeout / time.Second),
		LogID: p.ID, LogDateTime: p.created,
		GlueType: f.job.GlueType, GlueSource: f.job.GlueSource,
		BroadcastIndex: part.Index, BroadcastTotal: max(part.Total, 1),
		ScheduledAt: f.run.instant(),
		StartToken:  f.run.Token, BootID: f.run.BootID,
		JobName: f.job.Name, JobKey: f.job.Key, App: p.App,
		Route: f.job.Route, JobVersion: f.job.Version, TriggerType: string(p.runType()),
	}
	if r := p.rest; r != nil {
		req.ExecutorHandler, req.ExecutorParams, req.ExecutorBlockStrategy, req.JobVersion = r.Handler, r.Param, r.Block, r.JobVersion
		req.Attempt = r.Attempt
		req.Traceparent, req.Tracestate, _ = strings.Cut(r.Trace, " ")
	}
	if !f.job.GlueUpdated.IsZero() {
		req.GlueUpdatetime = f.job.GlueUpdated.UnixMilli()
	}
	return req
}
