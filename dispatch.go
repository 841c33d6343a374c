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
		s.acceptor.dispatchedAsync(f, &f.run, "accepted: ", ret.Msg)
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
	trace, tell := s.cfg.Tracer.Sending(ctx, f.run)
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
	total := max(f.run.Sharding.Total, 1)
	req := wire.TriggerRequest{
		JobID: f.run.JobID, ExecutorHandler: f.run.Handler, ExecutorParams: f.run.Param,
		ExecutorBlockStrategy: f.run.Block, MaxPerExecutor: f.job.MaxPerExecutor, ExecutorTimeout: int(f.job.Timeout / time.Second),
		LogID: f.run.ID, LogDateTime: f.run.Created.UnixMilli(),
		GlueType: f.job.GlueType, GlueSource: f.job.GlueSource,
		BroadcastIndex: f.run.Sharding.Index, BroadcastTotal: total,
		ScheduledAt: f.run.Instant().UnixMilli(), Attempt: f.run.Attempt,
		StartToken: f.run.Token, BootID: f.run.BootID,
		JobName: f.job.Name, JobKey: f.job.Key, App: f.run.App,
		Route: f.job.Route, JobVersion: f.run.JobVersion, TriggerType: string(f.run.Type),
	}
	req.Traceparent, req.Tracestate, _ = strings.Cut(f.run.Trace, " ")
	if !f.job.GlueUpdated.IsZero() {
		req.GlueUpdatetime = f.job.GlueUpdated.UnixMilli()
	}
	return req
}
