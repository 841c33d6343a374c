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
)

// Runs that remote executors have accepted, on their way to the store. From there on they need
// nothing of this node. Input: such runs, from send.go and indoubt.go.

// dispatchMarker marks them dispatched.
type dispatchMarker struct {
	*core.Core
	queue       *queue.Queue
	killer      *killer
	dispatching *loop.Batch[acceptance]
	refusals    loop.Refusals // of the loop: runs that the store has refused to have marked
}

// acceptance is a run that was accepted.
type acceptance struct {
	store.Dispatch               // but for its Msg: most are over before they are marked
	flight         *queue.Flight // nil where it has landed before
	address        string        // where it is
	said           [2]string     // what was done, and what the executor has said
	refused        int           // how often the store has refused it alone, while it took others
}

// dispatch is what the store is to note.
func (m *acceptance) dispatch() store.Dispatch {
	d := m.Dispatch
	if m.refused >= loop.RefusedTries { // the text is what others can have put into it
		d.Msg = m.address + ": accepted"
		return d
	}
	d.Msg = m.address + ": " + errs.PlainText(errs.Shorten(m.said[0]+m.said[1], core.MaxAnswer))
	return d
}

// markAsync hands a run that its executor has accepted to the loop; f is its flight, nil where it
// has landed. Boot is which process has it, empty where that is as the store has it already. How
// tells what was done, and said what the executor has answered.
func (m *dispatchMarker) markAsync(f *queue.Flight, run *store.Run, boot, how, said string) {
	m.dispatching.Add(acceptance{store.Dispatch{RunID: run.ID, Owner: run.Owner, Token: run.Token, BootID: boot}, f, run.Address, [2]string{how, beginning(said)}, 0})
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

// loop marks runs dispatched, in batches, until ctx ends. Of a run that is over before its
// turn comes nothing need be stored: its result says that it was accepted. This is so for most that
// are short, since batches gather for a moment: where the store is asked over a network, and where
// several runs are accepted at a time.
func (m *dispatchMarker) loop(ctx context.Context) {
	several := false
	m.dispatching.Loop(ctx, func(ctx context.Context, batch []acceptance) ([]acceptance, time.Duration) {
		if (several || m.queue.LeadTime.Pause() > 0) && len(batch) < loop.StoreBatch && !m.Life.Draining.Load() {
			loop.Sleep(ctx, acceptedGather)
		}
		several = len(batch) > 1
		batch = slices.DeleteFunc(batch, func(a acceptance) bool { return a.flight != nil && !m.queue.InFlight.ToBeMarked(a.flight) })
		if len(batch) == 0 {
			return nil, 0
		}
		return m.markAll(ctx, batch)
	})
}

// markAll marks a batch, and of one that the store refuses each half by itself. It returns the runs
// that are to be tried again, and after which pause: those whose rows others have locked, and those
// that the store has refused. Such a run loses nothing: it is under way at its executor, whose
// result counts without that it was marked, and should this node go, the next owner of its shard
// asks there. So it stays this node's, and is tried again until it is marked or has ended.
func (m *dispatchMarker) markAll(ctx context.Context, batch []acceptance) (rest []acceptance, pause time.Duration) {
	since := m.refusals.Taken()
	var apart [][]acceptance
	if m.refusals.Len() > 0 {
		batch = slices.DeleteFunc(batch, func(a acceptance) bool {
			switch {
			case m.refusals.Rests(a.RunID):
				rest = append(rest, a)
			case m.refusals.IsKnown(a.RunID):
				apart = append(apart, []acceptance{a})
			default:
				return false
			}
			return true
		})
	}
	locked, refused := m.mark(ctx, batch)
	if refused != nil {
		apart = append(apart, batch)
	}
	rest = append(rest, locked...)
	if len(rest) == 0 && len(apart) == 0 {
		return nil, 0
	}
	alone := map[int64]error{}
	for _, part := range apart {
		tried := 0
		_, _, _ = loop.Halve(part, func(some []acceptance) error {
			locked, refused := m.mark(ctx, some)
			rest = append(rest, locked...)
			if refused != nil && len(some) > 1 {
				return refused
			}
			if tried += len(some); refused != nil {
				rest, alone[some[0].RunID] = append(rest, some[0]), refused
			}
			if len(alone) >= loop.RefusedFew && m.refusals.Taken() == since {
				return errAllRefused
			}
			return refused
		})
		rest = append(rest, part[tried:]...)
	}
	for i := range rest {
		if why := alone[rest[i].RunID]; why != nil {
			m.judge(&rest[i], since, why)
		}
	}
	if len(alone) > 0 {
		return rest, loop.RefusedPause
	}
	return rest, dispatchAgain
}

// judge takes in that the store has refused a run alone.
func (m *dispatchMarker) judge(a *acceptance, since uint64, why error) {
	if a.refused = m.refusals.Alone(a.RunID, since); a.refused >= loop.RefusedTries && a.flight != nil {
		run := &a.flight.Run.Planned
		m.Core.Troubles.Refused(m.Clock.Now(), run.App, run.JobID, store.SeenRefusesAccepted, a.RunID, why)
	}
}

// mark tries until the store has answered, and returns the runs whose rows others
// have locked, or why the store refuses them. From then on a run needs nothing of this node: its
// result comes to any of them.
func (m *dispatchMarker) mark(ctx context.Context, batch []acceptance) (locked []acceptance, refused error) {
	if len(batch) == 0 {
		return nil, nil
	}
	list := make([]store.Dispatch, len(batch))
	for i := range batch {
		list[i] = batch[i].dispatch()
	}
	backoff := loop.Backoff{Log: m.Logger, What: "marking runs dispatched"}
	mark := func(ctx context.Context) (storeAnswer, error) { return answerOf(m.Store.Dispatched(ctx, list)) }
	answer, err := loop.CallUntil(ctx, &backoff, mark, mark)
	switch {
	case err != nil && !errors.Is(err, store.ErrLocked):
		return nil, nil // ctx has ended
	case answer.refused != nil:
		return nil, answer.refused
	}
	changed := answer.accepted
	m.refusals.Took(len(changed))
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
		m.queue.Land(d.RunID, d.Token)
		m.refusals.Over(d.RunID)
	}
	m.Life.Wakes.Watch.Poke() // for those who wait for one of them
	m.Life.Wakes.Unreported.PokeIf(len(changed) > 0)
	m.killer.killUnwanted(changed, others)
	return locked, nil
}
