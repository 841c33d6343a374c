package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Starts that the store refuses: one of them holds up no other. Input: such batches, from
// startbatch.go. Output: runs that are started singly from then on, and those that are refused for ever as
// refused, to finish.go.

// startHalves starts the halves of a batch that the store has refused, down to those that it
// refuses alone. Starts that are made singly are transactions of their own, so each of them is tried alone.
func (s *starter) startHalves(ctx context.Context, batch []queue.Attempt, why error, since uint64) (locked bool, err error) {
	var alone []refusedStart
	if len(batch) > 1 {
		batch = s.stillPlanned(ctx, batch, false) // some may have been started before others were refused
	} else {
		alone, batch = append(alone, refusedStart{batch[0], why}), nil
	}
	tried := 0
	start := func(part []queue.Attempt) error {
		some, refused, err := s.startTogether(ctx, part, false)
		if locked = locked || some; refused == nil || len(part) == 1 {
			tried += len(part)
		}
		if refused == nil || len(part) > 1 {
			return errors.Join(refused, err)
		}
		alone = append(alone, refusedStart{part[0], refused})
		if len(alone) >= loop.RefusedFew && s.refusals.Taken() == since {
			return errAllRefused
		}
		return refused
	}
	for left := batch; len(left) > 0 && err == nil; {
		n := len(left)
		if left[0].StartsSingly() {
			n = 1
		}
		_, _, err = loop.Halve(left[:n], start)
		left = left[n:]
	}
	s.queue.TryAgain(false, batch[tried:]...)
	if err == errAllRefused {
		err = nil
	}
	s.judgeRefused(ctx, alone, since)
	return locked, err
}

// refusedStart is one that was refused alone.
type refusedStart struct {
	queue.Attempt
	why error
}

// errAllRefused ends the halving of a batch: it seems that all are refused.
var errAllRefused = errors.New("all are refused")

// judgeRefused records the runs as refused whose starts the store has refused for ever. The others
// are started singly, and are tried again. Where the store has taken none it may be refusing them all.
func (s *starter) judgeRefused(ctx context.Context, alone []refusedStart, since uint64) {
	var unclear error
	for i := range alone {
		a := &alone[i]
		again := s.refusals.IsKnown(a.Run.ID)
		switch times := s.refusals.Alone(a.Run.ID, since); {
		case times == 0:
			unclear = a.why
		case times >= loop.RefusedTries:
			s.turnDown(ctx, a)
			continue
		case again:
			s.Core.Troubles.Refused(s.Clock.Now(), a.Job.App, a.Job.ID, store.SeenRefusesStart, a.Run.ID, a.why)
		}
		s.queue.StartSingly(a.Attempt)
		s.queue.Rerouted(a.Attempt)
	}
	s.refusals.Len() // forgets those that are over
	s.restRefused()
	if unclear != nil && s.refusals.Taken() == since {
		err := fmt.Errorf("nothing is taken: %v", unclear) // and no refusal of a single one any more
		s.fitness.End(ctx, &s.fitness.Starts, s.fitness.Begin(&s.fitness.Starts), err)
		s.starting.Failed(ctx, err)
		loop.Sleep(ctx, s.starting.Delay())
	}
}

// restRefused has starts that were tried before rest for a while: one was refused.
func (s *starter) restRefused() { s.singly.rests = time.Now().Add(refusedRest) }

const refusedRest = 250 * time.Millisecond

// turnDown records a run as refused whose start the store refuses for ever. Where it refuses even
// that, the run stays planned, and is tried again.
func (s *starter) turnDown(ctx context.Context, a *refusedStart) {
	s.queue.TurnDown(&a.Attempt, core.RefusedText("to start this run", a.why))
	a.Start = s.startOf(&a.Attempt)
	_, refused, err := s.startTogether(ctx, []queue.Attempt{a.Attempt}, false)
	switch {
	case refused != nil:
		s.queue.StartSingly(a.Attempt)
		s.queue.Rerouted(a.Attempt)
		s.Core.Troubles.Refused(s.Clock.Now(), a.Job.App, a.Job.ID, store.SeenRefusesEnd, a.Run.ID, refused)
	case err == nil:
		s.Logger.ErrorContext(ctx, "xxljob: the store refuses the start of a run for ever: it is recorded as refused", "run", a.Run.ID, "job", a.Job.ID, "error", a.why)
	}
}
