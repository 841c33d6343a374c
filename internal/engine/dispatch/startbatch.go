package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/errs"
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

// startTogether asks the store and acts on each answer. locked reports that some
// rows have to be tried again after a pause, refused that the store refuses them, of which some may
// have been started before it came to those that it refuses. prompt says that how long the store takes
// tells how long before their time such runs are to be started.
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
		case store.StartNoNode:
			s.book.Memory.Forget()
			s.Life.Wakes.Lease.Poke() // it brings the news of the other nodes
			if s.router.Strategies.IsUsers(a.Job.Route) {
				a.Choice = a.Used // until that comes it would be asked without a pause, and say the same
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

// Memory that the start loop uses again for each batch.

// startBuffers has it. It belongs to the start loop: what it has lent is its own again when the
// next batch begins.
type startBuffers struct {
	attempts []queue.Attempt
	runs     []store.Run
	starts   []store.Start
	answers  []store.Started
	msg      struct{ routed, said string } // of the run before
}

// begin lends room for the attempts of the next batch.
func (b *startBuffers) begin(most int) []queue.Attempt {
	if cap(b.runs) < most {
		b.runs = make([]store.Run, 0, most)
	}
	clear(b.attempts)
	b.attempts, b.runs = slices.Grow(b.attempts[:0], most), b.runs[:0]
	return b.attempts
}

// lent notes how much of that room is used.
func (b *startBuffers) lent(attempts int) { b.attempts = b.attempts[:min(attempts, cap(b.attempts))] }

// nextRun lends a Run.
func (b *startBuffers) nextRun() *store.Run {
	if len(b.runs) == cap(b.runs) { // those that are lent stay where they are
		b.runs = make([]store.Run, 0, loop.StoreBatch)
	}
	b.runs = b.runs[:len(b.runs)+1]
	return &b.runs[len(b.runs)-1]
}

// said is the message of a run that was routed with one, as the store takes it. Runs that are
// started together mostly have the same one.
func (b *startBuffers) said(routed string) string {
	if b.msg.routed != routed {
		b.msg.routed, b.msg.said = routed, errs.Shorten(errs.PlainText(routed), core.MaxStartMsg-len("..."))
	}
	return b.msg.said
}

// startsOf lends what the store is asked for.
func (b *startBuffers) startsOf(batch []queue.Attempt) []store.Start {
	b.starts = slices.Grow(b.starts[:0], len(batch))
	for i := range batch {
		b.starts = append(b.starts, batch[i].Start)
	}
	return b.starts
}

// answered takes the answers of the store back, for those of the next batch, once they were acted on.
func (b *startBuffers) answered(answers []store.Started) {
	clear(answers)
	b.answers = answers[:0]
}

// drop leaves the memory to the call that still uses it.
func (b *startBuffers) drop() { *b = startBuffers{} }
