package xxljob

// Input: runs that the store has marked started at an executor of this process,
// from start.go and handover.go. Output: the executor's answer, to finish.go
// where it is a refusal; an accepted run is heard of again when its result comes.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// send calls the executor and acts on its answer.
func (s *sender) send(ctx context.Context, f *flight) {
	if !s.engine.under.send(f) {
		s.engine.answered(f, 0)
		return
	}
	if f.remote {
		s.sendElsewhere(ctx, f)
		return
	}
	began := time.Now()
	req, done := s.request(ctx, f)
	ret, err := f.exec.Run(ctx, req)
	done(ret, err)
	s.engine.answered(f, time.Since(began))
	s.answer(ctx, f, ret, err)
}

// answer acts on an answer of an executor of this process.
func (s *sender) answer(ctx context.Context, f *flight, ret wire.Return, err error) {
	switch {
	case err == nil && ret.OK() && endedBefore(ret, f.run.planned.ID):
		// A database that failed over has forgotten the result it had acknowledged.
		s.life.mishaps.forgotten.Add(1)
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

// endedBefore reports whether an executor of ours has answered that the run has ended.
func endedBefore(ret wire.Return, runID int64) bool {
	return ret.Msg != wire.MsgSuccess && ret.Msg == wire.Noted(wire.MsgRepeatEnded, runID).Msg
}
