package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The way down, in the order in which Stop takes these steps. The order is that of package node.

// TakeNoMore ends the taking of runs out of the inbox. What is being taken at
// this moment is under way when it returns.
func (d *Dispatcher) TakeNoMore(ctx context.Context) {
	d.all.Life.Draining.Store(true)
	select {
	case d.inbox.taking <- struct{}{}:
		<-d.inbox.taking
	case <-ctx.Done():
	}
}

// GiveBack puts runs that are started but not sent back to planned,
// also those whose start this node was not sure of: another node starts them.
func (d *Dispatcher) GiveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout)
	defer cancel()
	s, q := d.all, d.starter.queue
	var verdicts []store.Verdict
	for _, f := range q.InFlight.All() {
		// A run of a shard that is another's by now cannot be given back: it is sent.
		if _, owned := s.Leases.Epoch(int(f.Run.Planned.Shard)); owned && f.Run.Owner == s.Leases.Incarnation && q.InFlight.Intercept(f) {
			verdicts = append(verdicts, s.Leases.Verdict(f.Whole(), store.StatePlanned, putBackAtStop))
		}
	}
	if d.unconfirmed.stopInterrupted.Load() {
		verdicts = append(verdicts, d.startedUnheard(ctx)...)
	}
	if len(verdicts) == 0 {
		return
	}
	var runs []store.Run
	_, refused, err := loop.Halve(verdicts, func(part []store.Verdict) error {
		some, err := s.Store.Settle(ctx, part)
		runs = append(runs, some...)
		return err
	})
	if err = cmp.Or(err, refused); err != nil {
		s.Logger.Warn("xxljob: could not put started runs back; the next owner of their shards will find them", "runs", len(verdicts), "error", err)
	}
	for _, r := range runs {
		q.Land(r.ID, 0)
	}
	// What the store did not give back has ended otherwise, or is left to others.
	for _, v := range verdicts {
		q.Land(v.RunID, 0)
	}
}

const putBackAtStop = "put back: node stopped"

// startedUnheard finds runs that the store has as started by this node for
// itself, but that nobody here knows.
func (d *Dispatcher) startedUnheard(ctx context.Context) []store.Verdict {
	s := d.all
	runs, err := s.Store.StartedBy(ctx, s.Leases.Owned(), []string{s.Leases.Incarnation}, 0, loop.StoreBatch)
	if err != nil {
		return nil
	}
	var verdicts []store.Verdict
	for _, r := range runs {
		if r.Owner == s.Leases.Incarnation && r.Address == store.LocalAddress(s.Leases.Incarnation) && d.starter.queue.InFlight.Of(r.ID) == nil {
			verdicts = append(verdicts, s.Leases.Verdict(r, store.StatePlanned, putBackAtStop))
		}
	}
	return verdicts
}

// SendRest sends what was taken from other nodes a moment before its time.
func (d *Dispatcher) SendRest(ctx context.Context) { d.sender.sendRest(ctx) }

// Drain waits for the runs of this process to end. When ctx ends, or the store is closed, which nothing
// mends, it kills them and waits for their results, shortly.
func (d *Dispatcher) Drain(ctx, final context.Context) error {
	q := d.starter.queue
	err := d.idle(ctx)
	d.killer.over.Store(true) // a store may answer late, when others have decided about a run
	if err != nil {
		returned := d.inbox.attached.AllReturned()
		d.all.Life.End.Returned.Store(&returned)
		d.killer.killAll(final)
		last, cancel := context.WithTimeout(final, core.LastWords)
		defer cancel()
		_ = q.InFlight.Idle(last) // handlers that ignore cancellation are recorded all the same
	}
	return err
}

// idle waits until no run of this process is under way, or what handlers have returned cannot be
// stored any more: all have returned, and the store is closed and has not taken it for CallTimeout.
func (d *Dispatcher) idle(ctx context.Context) error {
	for {
		look, cancel := context.WithTimeout(ctx, time.Second)
		err := d.starter.queue.InFlight.Idle(look)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		n, since := d.Unstored()
		if why := d.starter.fitness.Silence(); n > 0 && time.Since(since) >= loop.CallTimeout && errors.Is(why, errs.ErrStoreClosed) && d.inbox.attached.AllReturned() {
			return fmt.Errorf("xxljob: %d results cannot be stored: %w", n, why)
		}
	}
}
