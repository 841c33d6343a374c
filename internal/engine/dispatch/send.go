package dispatch

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Started runs, sent at their time: each waits for it, its executor is called, and the answer is
// acted on. Input: flights, from launch.go. Output: runs that remote executors have accepted, to
// mark.go; refusals, to reroute.go; unknown outcomes, to indoubt.go. A run that an executor of this
// process has accepted is heard of again when its result comes.

// sender sends started runs to their executors at their time, and on to others where these
// refuse.
type sender struct {
	*core.Core
	queue    *queue.Queue
	finisher *finisher
	killer   *killer
	inDoubt  *inDoubt
	marker   *dispatchMarker
	book     *registry.Addresses
	resolver *router.Resolver

	early    delayQueue
	fanOut   fanOut
	callers  loop.Pool
	together sync.Pool // of *callBatch: memory of calls with many flights
}

// duty sends what was started early at its time. It is a loop of its own: one that
// starts runs as well would be late with these while it waits for the store.
func (s *sender) duty() loop.Duty {
	return loop.Duty{What: "sending started runs", Wakes: []<-chan struct{}{s.Life.Wakes.Deliver}, Once: func(context.Context) (time.Duration, error) {
		s.sendDue(s.Clock.Now())
		if at, ok := s.early.next(); ok {
			return max(at.Sub(s.Clock.Now()), time.Microsecond), nil
		}
		return loop.Forever, nil
	}}
}

// sendAllAtTime is sendAtTime for many.
func (s *sender) sendAllAtTime(flights []*queue.Flight) {
	now := s.Clock.Now()
	due := flights[:0]
	for _, f := range flights {
		if f.Run.Planned.Scheduled().After(now) {
			s.sendAtTime(f)
		} else {
			due = append(due, f)
		}
	}
	s.sendAll(due)
}

// sendAll sends started runs: in one call those that an executor of ours in this process only
// has to enqueue.
func (s *sender) sendAll(flights []*queue.Flight) {
	if len(flights) == 1 {
		s.send(flights[0])
		return
	}
	b, _ := s.together.Get().(*callBatch)
	if b == nil {
		b = &callBatch{}
	}
	for _, f := range flights {
		if !onlyEnqueues(f) || !s.isFresh(f) || s.Cfg.Tracer != nil {
			s.send(f)
			continue
		}
		for !b.add(f) {
			if len(b.flights) == 0 {
				s.send(f)
				break
			}
			s.callTogether(s.Life.Loops.Work.Ctx, b)
		}
	}
	if len(b.flights) > 0 {
		s.callTogether(s.Life.Loops.Work.Ctx, b)
	}
	s.together.Put(b)
}

// sendAtTime sends a started run at its time: now, or when its loop finds it due.
func (s *sender) sendAtTime(f *queue.Flight) {
	early := f.Run.Planned.Scheduled().Sub(s.Clock.Now())
	switch {
	case early <= 0:
		s.send(f)
	case s.Life.Draining.Load():
		// That loop ends, or has ended; Stop waits for this goroutine.
		s.Life.Loops.Work.Run(func(ctx context.Context) {
			if loop.Sleep(ctx, early) {
				s.send(f)
			}
		})
	default:
		s.Life.Wakes.Deliver.PokeIf(s.early.add(f))
	}
}

// sendDue sends what was started early and is due now.
func (s *sender) sendDue(now time.Time) {
	if due := s.early.pop(now); len(due) > 0 {
		if len(due) >= queue.HerdLeast {
			s.queue.Burst.Begin()
			defer s.queue.Burst.End()
		}
		s.sendAll(due)
		clear(due)
	}
}

// sendRest sends what was taken from other nodes a moment before its time,
// when the loop for that has ended: this node has taken it, so it runs it.
func (s *sender) sendRest(ctx context.Context) {
	for {
		at, ok := s.early.next()
		if !ok || !loop.Sleep(ctx, at.Sub(s.Clock.Now())) {
			return
		}
		s.sendDue(s.Clock.Now())
	}
}

// send has the executor of a started run called, if the run may be sent. One of ours in this
// process only enqueues it; others may take their time, and are called from a goroutine that
// holds a place in a lane. Stop waits for these goroutines.
func (s *sender) send(f *queue.Flight) {
	if onlyEnqueues(f) && s.isFresh(f) {
		s.call(s.Life.Loops.Work.Ctx, f)
		return
	}
	s.callers.Run(s.Life.Loops.Work, func(ctx context.Context) {
		if !s.queue.AwaitPlace(ctx, f) || f.Fanned && !s.fanOut.enter(ctx) {
			return
		}
		defer s.fanOut.leaveIf(f.Fanned)
		if s.maySend(ctx, f) {
			s.call(ctx, f)
		}
	})
}

// onlyEnqueues reports whether the executor of a flight is one of ours in this process, which
// takes a run and answers at once.
func onlyEnqueues(f *queue.Flight) bool { return f.Lane == queue.LaneNone && !f.Remote }

// maySend answers whether a run may be sent to the executor that it was started for. It may be while
// its start, or its take, is fresh: nobody decides about a run of a node that is trusted. A node that
// was paused for longer must not send what may have been decided about meanwhile: the run is read
// until a reading is fresh that says that it is still this node's. Where isFresh has said so just
// now, sendAll and send call the executor without asking here. What else may keep a run from its
// executor, that somebody here has killed it, call and callTogether find out, as they mark the run as
// sent (queue.InFlight.MarkSent).
//
// Whatever is sent beside that has a gate of its own, with the same question: is the run still this
// node's, by an answer of the store that is within the trust window?
//   - to the same process once more: askOne (indoubt.go), behind a reading, and mayResend, which asks
//     for that very process;
//   - to a process that has taken the other's place: meantFor (reroute.go), by a write;
//   - to another address after a refusal: readdress (reroute.go), by a write; what it has moved
//     comes through here.
func (s *sender) maySend(ctx context.Context, f *queue.Flight) bool {
	backoff := loop.Backoff{Log: s.Logger, What: "reading a run before it is sent"}
	var began time.Time
	read := func(ctx context.Context) (store.Run, error) {
		began = time.Now()
		run, err := s.Store.Run(ctx, f.Run.Planned.ID)
		if errs.IsNotFound(err) {
			return store.Run{}, nil
		}
		return run, err
	}
	for !s.isFresh(f) {
		run, err := loop.CallUntil(ctx, &backoff, read, read)
		switch {
		case err != nil:
			return false
		case run.State == store.StateStarted && run.Address == f.Run.Address && run.Token == f.Run.Token:
			f.Acked = began
		default:
			s.queue.Land(f.Run.Planned.ID, 0)
			s.queue.Answered(f, 0)
			if run.ID != 0 {
				s.queue.Saw(&run)
			}
			return false
		}
	}
	return true
}

// isFresh reports whether the store has acknowledged within the trust window that the run is this
// node's.
func (s *sender) isFresh(f *queue.Flight) bool {
	return time.Since(f.Acked) <= s.Leases.Times.Window
}

// fanOut bounds the calls for the further parts of broadcasts at remote executors. They
// are started together, and have no places in the lanes.
type fanOut chan struct{}

func (o fanOut) enter(ctx context.Context) bool {
	select {
	case o <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o fanOut) leaveIf(entered bool) {
	if entered {
		<-o
	}
}

// Calls of executors, and what their answers mean.

// call marks a run as sent, calls its executor and acts on the answer.
func (s *sender) call(ctx context.Context, f *queue.Flight) {
	if len(s.queue.InFlight.MarkSent(f)) == 0 {
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
	s.inDoubt.list.overtake(f.JobPlace)
	req, done := s.request(ctx, f)
	ret, err := f.Exec.Run(ctx, req)
	if err == nil && ret.Msg == wire.MsgOtherBoot {
		ret, err = s.callSuccessor(ctx, f, &req)
	}
	done(ret, err)
	if err != nil && !wire.NotSent(err) && !wire.TurnedAway(err) {
		s.inDoubt.add(f, req, err) // before the next one of the job may be sent
		s.queue.Answered(f, time.Since(began))
		return
	}
	s.queue.Answered(f, time.Since(began))
	switch {
	case err == nil && ret.OK():
		run := f.Whole()
		s.marker.markAsync(f, &run, otherBoot(bootOf(ret), req.BootID), "accepted: ", ret.Msg)
	case err == nil:
		s.refused(ctx, f, refusalOf(ret))
	default:
		s.refused(ctx, f, "error: "+err.Error())
	}
}

// bootOf is the boot id in an answer; empty where there is none, or none that could be registered.
func bootOf(ret wire.Return) string {
	if len(ret.BootID) > 64 || strings.ContainsFunc(ret.BootID, errs.NotPlain) {
		return ""
	}
	return ret.BootID
}

// otherBoot is a boot id, but for one that is known already.
func otherBoot(boot, known string) string {
	if boot == known {
		return ""
	}
	return boot
}

// request is the wire's request for a flight that is about to be sent, and tells the tracer.
// Done is called with the answer.
func (s *sender) request(ctx context.Context, f *queue.Flight) (req wire.TriggerRequest, done func(wire.Return, error)) {
	req = s.requestOf(f)
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
func (s *sender) requestOf(f *queue.Flight) wire.TriggerRequest {
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
		tellTimes(&req, r)
		if !f.Remote || f.Run.BootID != "" {
			req.Instants = instantsOf(r, f.Job)
		}
	}
	if len(f.Job.After) > 0 || len(f.Job.AfterKeys) > 0 {
		s.tellWindow(&req, p, f.Job)
	}
	if f.Remote && f.Run.BootID != "" { // one of ours; those of this process ask
		if at := previousOf(f); !at.IsZero() {
			req.PreviousAt = at.UnixMilli()
		}
	}
	if !blockrule.Of(req.ExecutorBlockStrategy).Waits {
		req.DueAt = p.At
	}
	s.tellZone(&req, f.Job)
	if !f.Job.GlueUpdated.IsZero() {
		req.GlueUpdatetime = f.Job.GlueUpdated.UnixMilli()
	}
	return req
}

// tellTimes tells the handler what only some runs have: whom they follow, and other times than
// their own.
func tellTimes(req *wire.TriggerRequest, r *store.Run) {
	if r.TriggerID != r.ID {
		req.TriggerID = r.TriggerID
	}
	req.ParentID = r.ParentID
	if r.Count > 0 {
		req.FirstAt, req.LastAt, req.Count = r.First.UnixMilli(), r.Last.UnixMilli(), r.Count
	}
	if !r.Business.IsZero() {
		req.BusinessTime = r.Business.UnixMilli()
	}
}

// tellWindow tells the handler of a job that runs behind others the window that its run is about: also
// where somebody has asked for the run, or a schedule has made it. A node that cannot work it out tells none,
// and says so: the job's next runs are for a node that can.
func (s *sender) tellWindow(req *wire.TriggerRequest, p *compact.Planned, job *store.Job) {
	business := p.Scheduled()
	if p.Rest != nil {
		business = p.Rest.BusinessTime()
	}
	from, err := job.Window(business)
	if err == nil {
		var to time.Time
		if to, err = job.WindowEnd(from); err == nil {
			req.WindowStart, req.WindowEnd = from.UnixMilli(), to.UnixMilli()
			return
		}
	}
	s.SentUnable(s.Clock.Now(), core.UnknownZone(job.Shard, job.App, job.ID, job.AfterZone, err))
}

// tellZone tells the handler in which zone its times are: in that of the job's schedule, or of its
// windows, else in Config.Location. UTC for want of another is not told: an executor may have its own.
func (s *sender) tellZone(req *wire.TriggerRequest, job *store.Job) {
	name := cmp.Or(job.Schedule.Zone, job.AfterZone)
	if name == "" {
		if s.Cfg.Location == time.UTC {
			return
		}
		name = s.Cfg.Location.String()
	}
	req.Zone = name
	if zone, err := schedule.LoadZone(name); err == nil {
		_, req.ZoneOffset = time.UnixMilli(req.ScheduledAt).In(zone).Zone()
	}
}

// answered acts on an answer of an executor of this process.
func (s *sender) answered(ctx context.Context, f *queue.Flight, ret wire.Return, err error) {
	switch {
	case err == nil && ret.OK() && endedBefore(ret, f.Run.Planned.ID):
		// A database that failed over has forgotten the result it had acknowledged.
		s.Life.FaultCounts.Forgotten.Add(1)
		s.finisher.finishAsync(s.finisher.resultAt(f, store.Result{State: store.StateLost, HandleMsg: resultForgotten}))
	case err == nil && ret.OK():
		s.accepted(ctx, f)
	case err != nil:
		s.refused(ctx, f, "error: "+err.Error())
	default:
		s.refused(ctx, f, refusalOf(ret))
	}
}

// accepted acts on flights that executors of this process have taken.
func (s *sender) accepted(ctx context.Context, flights ...*queue.Flight) {
	for _, k := range s.queue.InFlight.Accepted(flights...) {
		s.killer.killAt(ctx, k.Flight, k.Reason)
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
	b.flights = s.queue.InFlight.MarkSent(b.flights...)
	b.reqs, b.answers = b.reqs[:0], b.answers[:0]
	for _, f := range b.flights {
		b.reqs = append(b.reqs, s.requestOf(f))
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
	s.accepted(ctx, b.accepted...)
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
