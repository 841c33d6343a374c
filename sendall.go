package xxljob

// Started runs that are due together, and go to an executor of this process in one call.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// batchExecutor is an executor that takes several runs in one call: executor.Executor.
type batchExecutor interface {
	RunAll(ctx context.Context, dst []wire.Return, reqs []wire.TriggerRequest) []wire.Return
}

// sendTogether is how many flights go in one call.
const sendTogether = 256

// sendBatch is a call's worth of flights to one executor, with memory that is used again.
type sendBatch struct {
	exec    batchExecutor
	flights []*flight
	reqs    []wire.TriggerRequest
	answers []wire.Return
	// accepted are those of them that the executor has taken.
	accepted []*flight
}

// add takes a flight in; false where it is another executor's, or there is no room.
func (b *sendBatch) add(f *flight) bool {
	exec, takesMany := f.exec.(batchExecutor)
	if !takesMany || len(b.flights) > 0 && (exec != b.exec || len(b.flights) == sendTogether) {
		return false
	}
	b.exec, b.flights = exec, append(b.flights, f)
	return true
}

// sendAll is send for flights that were not sent before, all at one executor of this process
// that answers at once.
func (s *sender) sendAll(ctx context.Context, b *sendBatch) {
	b.flights = s.engine.under.sendAll(b.flights)
	b.reqs, b.answers = b.reqs[:0], b.answers[:0]
	for _, f := range b.flights {
		b.reqs = append(b.reqs, requestOf(f))
	}
	began := time.Now()
	b.answers = b.exec.RunAll(ctx, b.answers, b.reqs)
	took := time.Since(began) / time.Duration(max(1, len(b.flights)))
	b.accepted = b.accepted[:0]
	for i, f := range b.flights {
		s.engine.answered(f, took)
		if plainSuccess(b.answers[i]) {
			b.accepted = append(b.accepted, f)
		}
	}
	for _, k := range s.engine.under.acceptedAll(b.accepted) {
		s.killer.killAt(ctx, k.flight, k.reason) // asked for while it was being accepted
	}
	for i, f := range b.flights {
		if !plainSuccess(b.answers[i]) { // behind the others, for it may wait for the store
			s.answer(ctx, f, b.answers[i], nil)
		}
	}
	clear(b.accepted)
	clear(b.flights)
	clear(b.reqs)
	b.exec, b.flights = nil, b.flights[:0]
}

// plainSuccess reports whether an answer says that a run was accepted, and no more.
func plainSuccess(ret wire.Return) bool { return ret.OK() && ret.Msg == wire.MsgSuccess }
