package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// One call of the store that starts many runs, and what each of its answers means. Output: runs
// that are started, to launch.go; those of jobs that were not as this node knew them, to
// reread.go; calls that failed, to uncertain.go.

// startBatch starts a batch, and of one that the store refuses each half by itself.
func (s *starter) startBatch(ctx context.Context, batch []queue.Attempt, prompt bool) (locked bool, err error) {
	since := s.refusals.Taken()
	locked, refused, err := s.startTogether(ctx, batch, prompt)
	if refused != nil {
		return s.startHalves(ctx, batch, refused, since)
	}
	return locked, err
}

// startTogether asks the store and acts on each answer: store.StartStatus says what each of them means, and
// the cases here what becomes of the run. locked reports that some runs are to be tried again after a pause,
// since a row is locked or a node has left.
// refused is the error of a store that refuses the batch; some of it may have been started before the store
// came to what it refuses. prompt says that how long the store takes tells how long before their time such
// runs are to be started.
func (s *starter) startTogether(ctx context.Context, batch []queue.Attempt, prompt bool) (locked bool, refused, err error) {
	starts := s.buffers.startsOf(batch)
	began := s.fitness.Begin(&s.fitness.Starts)
	answers, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Started, error) {
		return s.Store.Start(ctx, s.buffers.answers, starts)
	})
	if errors.Is(err, store.ErrRefused) {
		s.fitness.Over(&s.fitness.Starts, began)
		return false, err, nil
	}
	s.fitness.End(ctx, &s.fitness.Starts, began, err)
	if s.starting.Failed(ctx, err) {
		s.buffers.drop() // the call may still be under way
		s.unconfirmed.addStarts(batch)
		s.unconfirmed.lookNow()
		s.uncertain(ctx, batch)
		return false, nil, nil
	}
	defer s.buffers.answered(answers)
	acked := time.Now()
	if prompt {
		s.queue.LeadTime.Sample(len(batch), acked.Sub(began))
	}
	for i := range answers {
		s.unconfirmed.launching(answers[i].Siblings, 1) // a hook may take its time before they take off
	}
	s.launcher.launchAll(batch, answers, s.queue.TakeOffAll(batch, answers, began))
	var stale, busy []queue.Attempt
	for i, a := range batch {
		switch answers[i].Status {
		case store.StartOK:
			s.startedOK(a, &answers[i], began)
		case store.StartGone:
			s.queue.ForgetNotOurs(a)
			s.takeBack(answers[i].Run, a.Job, began)
		case store.StartStale:
			stale = append(stale, a)
			s.queue.TryAgain(true, a)
		case store.StartBusy:
			if retry := answers[i].Run; retry.ID != 0 {
				s.queue.AwaitRetry(a, retry)
				continue
			}
			busy = append(busy, a)
		case store.StartFenced:
			s.queue.ForgetNotOurs(a)
			s.Leases.Lose(int(a.Run.Shard), a.Start.Epoch)
			s.Life.Wakes.Lease.Poke()
		case store.StartNoNode: // its node has left since it was routed: it stays planned, and is routed anew
			s.book.Memory.Forget()
			s.Life.Wakes.Lease.Poke() // it brings the news of the other nodes
			if s.router.Strategies.IsUsers(a.Job.Route) {
				a.Choice = a.Used // until that news comes the router would be asked without a pause, and say the same
			}
			s.queue.Rerouted(a)
			locked = true
		case store.StartLocked:
			locked = true
			s.LockedOut.Run(a.Run.ID, a.Run.Scheduled())
			s.queue.TryAgain(false, a)
		}
	}
	// What is started is under way by now: the reads below hold up no handler.
	locked = s.awaitBlockers(ctx, busy) || locked
	return locked, nil, s.readAgain(ctx, stale)
}

// startedOK goes on with a run that the store has marked: it is this process's
// to run, or waits in another node's inbox, or was refused.
func (s *starter) startedOK(a queue.Attempt, answer *store.Started, began time.Time) {
	s.refusals.Over(a.Run.ID)
	if answer.Run.State.Ended() {
		s.router.SayRefused(a.Route, a.Job)
		s.queue.ForgetEnded(a)
		s.finisher.ended([]store.Run{answer.Run})
		return
	}
	s.refusals.Took(1)
	for _, sibling := range answer.Siblings {
		s.launcher.launchPart(a, sibling, began)
	}
	s.unconfirmed.launching(answer.Siblings, -1)
	if len(answer.Covered) > 0 {
		s.finisher.ended(answer.Covered)
	}
}
