package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What is sent to executors, and what they answer. Input: flights, from startbatch.go
// and inbox.go, and answers, from indoubt.go. Output: runs that are marked
// dispatched, in the store; refusals, to reroute.go; unknown outcomes, to
// indoubt.go.

// Sender hands started runs to their executors, at their time.
type Sender struct {
	*core.Core
	Engine   *queue.Queue
	Finisher *Finisher
	Killer   *Killer
	InDoubt  *InDoubt
	Acceptor *DispatchMarker
	Rerouter *Rerouter
}

// sendElsewhere calls a remote executor, which holds its place in the lane until the
// answer is there: it has accepted the run, or refused it, or nobody knows.
func (s *Sender) sendElsewhere(ctx context.Context, f *queue.Flight) {
	began := time.Now()
	req, done := s.request(ctx, f)
	ret, err := f.Exec.Run(ctx, req)
	if err == nil && ret.Msg == wire.MsgOtherBoot {
		ret, err = s.Rerouter.sendToSuccessor(ctx, f, &req)
	}
	done(ret, err)
	s.Engine.Answered(f, time.Since(began))
	switch {
	case err == nil && ret.OK():
		run := f.Whole()
		s.Acceptor.dispatchedAsync(f, &run, "accepted: ", ret.Msg)
	case err == nil:
		s.Rerouter.refused(ctx, f, refusalOf(ret))
	case wire.NotSent(err):
		s.Rerouter.refused(ctx, f, "error: "+err.Error())
	default:
		s.InDoubt.leaveInDoubt(f, req, err)
	}
}

// request is the wire's request for a flight that is about to be sent, and tells the tracer.
// Done is called with the answer.
func (s *Sender) request(ctx context.Context, f *queue.Flight) (req wire.TriggerRequest, done func(wire.Return, error)) {
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

// Input: runs that the store has marked started at an executor of this process,
// from deliver.go. Output: the executor's answer, to finish.go
// where it is a refusal; an accepted run is heard of again when its result comes.

// send calls the executor and acts on its answer.
func (s *Sender) send(ctx context.Context, f *queue.Flight) {
	if !s.Engine.Under.Send(f) {
		s.Engine.Answered(f, 0)
		return
	}
	if f.Remote {
		s.sendElsewhere(ctx, f)
		return
	}
	began := time.Now()
	req, done := s.request(ctx, f)
	ret, err := f.Exec.Run(ctx, req)
	done(ret, err)
	s.Engine.Answered(f, time.Since(began))
	s.answer(ctx, f, ret, err)
}

// answer acts on an answer of an executor of this process.
func (s *Sender) answer(ctx context.Context, f *queue.Flight, ret wire.Return, err error) {
	switch {
	case err == nil && ret.OK() && endedBefore(ret, f.Run.Planned.ID):
		// A database that failed over has forgotten the result it had acknowledged.
		s.Life.Mishaps.Forgotten.Add(1)
		s.Finisher.finishAsync(s.Finisher.resultAt(f, store.Result{State: store.StateLost, HandleMsg: resultForgotten}))
	case err == nil && ret.OK():
		if reason := s.Engine.Under.Accepted(f); reason != "" {
			s.Killer.killAt(ctx, f, reason) // asked for while it was being accepted
		}
	case err != nil:
		s.Rerouter.refused(ctx, f, "error: "+err.Error())
	default:
		s.Rerouter.refused(ctx, f, refusalOf(ret))
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

// sendTogether is how many flights go in one call.
const sendTogether = 256

// sendBatch is a call's worth of flights to one executor, with memory that is used again.
type sendBatch struct {
	exec    batchExecutor
	flights []*queue.Flight
	reqs    []wire.TriggerRequest
	answers []wire.Return
	// accepted are those of them that the executor has taken.
	accepted []*queue.Flight
}

// add takes a flight in; false where it is another executor's, or there is no room.
func (b *sendBatch) add(f *queue.Flight) bool {
	exec, takesMany := f.Exec.(batchExecutor)
	if !takesMany || len(b.flights) > 0 && (exec != b.exec || len(b.flights) == sendTogether) {
		return false
	}
	b.exec, b.flights = exec, append(b.flights, f)
	return true
}

// sendAll is send for flights that were not sent before, all at one executor of this process
// that answers at once.
func (s *Sender) sendAll(ctx context.Context, b *sendBatch) {
	b.flights = s.Engine.Under.SendAll(b.flights)
	b.reqs, b.answers = b.reqs[:0], b.answers[:0]
	for _, f := range b.flights {
		b.reqs = append(b.reqs, requestOf(f))
	}
	began := time.Now()
	b.answers = b.exec.RunAll(ctx, b.answers, b.reqs)
	took := time.Since(began) / time.Duration(max(1, len(b.flights)))
	b.accepted = b.accepted[:0]
	for i, f := range b.flights {
		s.Engine.Answered(f, took)
		if plainSuccess(b.answers[i]) {
			b.accepted = append(b.accepted, f)
		}
	}
	for _, k := range s.Engine.Under.AcceptedAll(b.accepted) {
		s.Killer.killAt(ctx, k.Flight, k.Reason) // asked for while it was being accepted
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

// Runs that remote executors have accepted, on their way to the store. From there on they need
// nothing of this node.

// DispatchMarker marks them dispatched.
type DispatchMarker struct {
	*core.Core
	engine      *queue.Queue
	killer      *Killer
	dispatching *loop.Batch[acceptance]
}

// acceptance is a run that was accepted.
type acceptance struct {
	store.Dispatch               // but for its Msg: most are over before they are marked
	flight         *queue.Flight // nil where it has landed before
	address        string        // where it is
	said           [2]string     // what was done, and what the executor has said
}

// dispatch is what the store is to note.
func (m *acceptance) dispatch() store.Dispatch {
	d := m.Dispatch
	d.Msg = m.address + ": " + errs.PlainText(errs.Shorten(m.said[0]+m.said[1], core.MaxAnswer))
	return d
}

func NewDispatchMarker(s *core.Core, e *queue.Queue, k *Killer) *DispatchMarker {
	return &DispatchMarker{s, e, k, loop.NewBatch[acceptance]()}
}

// dispatchedAsync hands a run that its executor has accepted to the dispatch loop; f is its
// flight, nil where it has landed. How tells what was done, and said what the executor has answered.
func (a *DispatchMarker) dispatchedAsync(f *queue.Flight, run *store.Run, how, said string) {
	a.dispatching.Add(acceptance{store.Dispatch{RunID: run.ID, Owner: run.Owner, Token: run.Token}, f, run.Address, [2]string{how, beginning(said)}})
}

// beginning is as much of an answer as may be noted of it, and a little more, without the rest of it.
func beginning(said string) string {
	const most = 2 * core.MaxAnswer
	if len(said) <= most {
		return said
	}
	return strings.Clone(said[:most])
}

// dispatchAgain is the pause before runs are tried again whose rows others have locked.
const dispatchAgain = 200 * time.Millisecond

// acceptedGather is how long accepted runs gather before they are marked.
const acceptedGather = 20 * time.Millisecond

// DispatchLoop marks runs dispatched, in batches, until ctx ends. Of a run that is over before its
// turn comes nothing need be stored: its result says that it was accepted. This is so for most that
// are short, since batches gather for a moment: where the store is asked over a network, and where
// several runs are accepted at a time.
func (a *DispatchMarker) DispatchLoop(ctx context.Context) {
	several := false
	a.dispatching.Loop(ctx, func(ctx context.Context, batch []acceptance) ([]acceptance, time.Duration) {
		if (several || a.engine.Lead.Pause() > 0) && len(batch) < loop.StoreBatch && !a.Life.Draining.Load() {
			loop.Sleep(ctx, acceptedGather)
		}
		several = len(batch) > 1
		batch = slices.DeleteFunc(batch, func(m acceptance) bool { return m.flight != nil && !a.engine.Under.ToBeMarked(m.flight) })
		if len(batch) == 0 {
			return nil, 0
		}
		return a.storeDispatched(ctx, batch), dispatchAgain
	})
}

// storeDispatched tries until the store has answered, and returns the runs whose rows others
// have locked. From then on a run needs nothing of this node: its result comes to any of
// them.
func (a *DispatchMarker) storeDispatched(ctx context.Context, batch []acceptance) (locked []acceptance) {
	list := make([]store.Dispatch, len(batch))
	for i := range batch {
		list[i] = batch[i].dispatch()
	}
	backoff := loop.Backoff{Log: a.Logger, What: "marking runs dispatched"}
	mark := func(ctx context.Context) ([]store.Run, error) { return a.Store.Dispatched(ctx, list) }
	changed, err := loop.CallUntil(ctx, &backoff, mark, mark)
	if err != nil && !errors.Is(err, store.ErrLocked) {
		return nil // ctx has ended
	}
	var others []int64
	there := core.IdsOf(changed)
	for _, d := range batch {
		switch {
		case err != nil && !there[d.RunID]:
			locked = append(locked, d)
			continue
		case !there[d.RunID]:
			others = append(others, d.RunID)
		}
		a.engine.LandStart(d.RunID, d.Token)
	}
	a.Life.Wakes.Watch.Poke() // for those who wait for one of them
	a.Life.Wakes.Unreported.PokeIf(len(changed) > 0)
	a.killer.killUnwanted(changed, others)
	return locked
}
