package xxljob

// Input: runs that the store has marked started at an executor of this process,
// from start.go and handover.go. Output: the executor's answer, to finish.go
// where it is a refusal; an accepted run is heard of again when its result comes.

import (
	"context"
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

// send calls the executor and acts on its answer.
func (s *sender) send(ctx context.Context, f *flight) {
	if !s.engine.under.send(f) {
		s.engine.answered(f, 0, s.clock.now())
		return
	}
	if f.remote {
		s.sendElsewhere(ctx, f)
		return
	}
	began := time.Now()
	ret, err := f.exec.Run(ctx, requestOf(f))
	s.engine.answered(f, time.Since(began), s.clock.now())
	switch {
	case err == nil && ret.OK() && ret.Msg == wire.Noted(wire.MsgRepeatEnded, f.run.ID).Msg:
		// A database that failed over has forgotten the result it had acknowledged.
		s.finisher.finishAsync(s.finisher.resultAt(f, Result{State: StateLost, HandleMsg: resultForgotten}))
	case err == nil && ret.OK():
		if reason := s.engine.under.accepted(f); reason != "" {
			s.killer.killAt(ctx, f, reason) // asked for while it was being accepted
		}
	case err != nil:
		s.rerouter.refused(ctx, f, "error: "+err.Error())
	default:
		s.rerouter.refused(ctx, f, refusalOf(ret))
	}
}

// requestOf is the wire's request for a flight.
func requestOf(f *flight) wire.TriggerRequest {
	total := max(f.run.Sharding.Total, 1)
	req := wire.TriggerRequest{
		JobID: f.run.JobID, ExecutorHandler: f.run.Handler, ExecutorParams: f.run.Param,
		ExecutorBlockStrategy: f.run.Block, ExecutorTimeout: int(f.job.Timeout / time.Second),
		LogID: f.run.ID, LogDateTime: f.run.Created.UnixMilli(),
		GlueType: f.job.GlueType, GlueSource: f.job.GlueSource,
		BroadcastIndex: f.run.Sharding.Index, BroadcastTotal: total,
		ScheduledAt: f.run.Scheduled.UnixMilli(), Attempt: f.run.Attempt,
		StartToken: f.run.Token, BootID: f.run.BootID,
	}
	if !f.job.GlueUpdated.IsZero() {
		req.GlueUpdatetime = f.job.GlueUpdated.UnixMilli()
	}
	return req
}
