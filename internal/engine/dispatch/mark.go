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

// markAsync hands a run that its executor has accepted to the loop; f is its flight, nil where it
// has landed. Boot is which process has it, empty where that is as the store has it already. How
// tells what was done, and said what the executor has answered.
func (m *dispatchMarker) markAsync(f *queue.Flight, run *store.Run, boot, how, said string) {
	m.dispatching.Add(acceptance{store.Dispatch{RunID: run.ID, Owner: run.Owner, Token: run.Token, BootID: boot}, f, run.Address, [2]string{how, beginning(said)}})
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
		if (several || m.queue.Lead.Pause() > 0) && len(batch) < loop.StoreBatch && !m.Life.Draining.Load() {
			loop.Sleep(ctx, acceptedGather)
		}
		several = len(batch) > 1
		batch = slices.DeleteFunc(batch, func(a acceptance) bool { return a.flight != nil && !m.queue.Under.ToBeMarked(a.flight) })
		if len(batch) == 0 {
			return nil, 0
		}
		return m.mark(ctx, batch), dispatchAgain
	})
}

// mark tries until the store has answered, and returns the runs whose rows others
// have locked. From then on a run needs nothing of this node: its result comes to any of
// them.
func (m *dispatchMarker) mark(ctx context.Context, batch []acceptance) (locked []acceptance) {
	list := make([]store.Dispatch, len(batch))
	for i := range batch {
		list[i] = batch[i].dispatch()
	}
	backoff := loop.Backoff{Log: m.Logger, What: "marking runs dispatched"}
	mark := func(ctx context.Context) ([]store.Run, error) { return m.Store.Dispatched(ctx, list) }
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
		m.queue.LandStart(d.RunID, d.Token)
	}
	m.Life.Wakes.Watch.Poke() // for those who wait for one of them
	m.Life.Wakes.Unreported.PokeIf(len(changed) > 0)
	m.killer.killUnwanted(changed, others)
	return locked
}
