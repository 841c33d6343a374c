package xxljob

// Runs that remote executors have accepted, on their way to the store. From there on they need
// nothing of this node.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// acceptor marks them dispatched.
type acceptor struct {
	*shared
	engine      *engine
	killer      *killer
	dispatching *batch[acceptance]
}

// acceptance is a run that was accepted.
type acceptance struct {
	store.Dispatch           // but for its Msg: most are over before they are marked
	flight         *flight   // nil where it has landed before
	address        string    // where it is
	said           [2]string // what was done, and what the executor has said
}

// dispatch is what the store is to note.
func (m *acceptance) dispatch() store.Dispatch {
	d := m.Dispatch
	d.Msg = m.address + ": " + plainText(shorten(m.said[0]+m.said[1], maxAnswer))
	return d
}

func newAcceptor(s *shared, e *engine, k *killer) *acceptor {
	return &acceptor{s, e, k, newBatch[acceptance]()}
}

// dispatchedAsync hands a run that its executor has accepted to the dispatch loop; f is its
// flight, nil where it has landed. How tells what was done, and said what the executor has answered.
func (a *acceptor) dispatchedAsync(f *flight, run *Run, how, said string) {
	a.dispatching.add(acceptance{store.Dispatch{RunID: run.ID, Owner: run.Owner, Token: run.Token}, f, run.Address, [2]string{how, beginning(said)}})
}

// beginning is as much of an answer as may be noted of it, and a little more, without the rest of it.
func beginning(said string) string {
	const most = 2 * maxAnswer
	if len(said) <= most {
		return said
	}
	return strings.Clone(said[:most])
}

// dispatchAgain is the pause before runs are tried again whose rows others have locked.
const dispatchAgain = 200 * time.Millisecond

// acceptedGather is how long accepted runs gather before they are marked.
const acceptedGather = 20 * time.Millisecond

// dispatchLoop marks runs dispatched, in batches, until ctx ends. Of a run that is over before its
// turn comes nothing need be stored: its result says that it was accepted. This is so for most that
// are short, since batches gather for a moment: where the store is asked over a network, and where
// several runs are accepted at a time.
func (a *acceptor) dispatchLoop(ctx context.Context) {
	several := false
	a.dispatching.loop(ctx, func(ctx context.Context, batch []acceptance) ([]acceptance, time.Duration) {
		if (several || a.engine.lead.pause() > 0) && len(batch) < storeBatch && !a.life.draining.Load() {
			sleep(ctx, acceptedGather)
		}
		several = len(batch) > 1
		batch = slices.DeleteFunc(batch, func(m acceptance) bool { return m.flight != nil && !a.engine.under.toBeMarked(m.flight) })
		if len(batch) == 0 {
			return nil, 0
		}
		return a.storeDispatched(ctx, batch), dispatchAgain
	})
}

// storeDispatched tries until the store has answered, and returns the runs whose rows others
// have locked. From then on a run needs nothing of this node: its result comes to any of
// them.
func (a *acceptor) storeDispatched(ctx context.Context, batch []acceptance) (locked []acceptance) {
	list := make([]store.Dispatch, len(batch))
	for i := range batch {
		list[i] = batch[i].dispatch()
	}
	backoff := backoff{log: a.log, what: "marking runs dispatched"}
	mark := func(ctx context.Context) ([]Run, error) { return a.store.Dispatched(ctx, list) }
	changed, err := callUntil(ctx, &backoff, mark, mark)
	if err != nil && !errors.Is(err, store.ErrLocked) {
		return nil // ctx has ended
	}
	var others []int64
	there := idsOf(changed)
	for _, d := range batch {
		switch {
		case err != nil && !there[d.RunID]:
			locked = append(locked, d)
			continue
		case !there[d.RunID]:
			others = append(others, d.RunID)
		}
		a.engine.landStart(d.RunID, d.Token)
	}
	a.life.wakes.watch.poke() // for those who wait for one of them
	a.life.wakes.unreported.pokeIf(len(changed) > 0)
	a.killer.killUnwanted(changed, others)
	return locked
}
