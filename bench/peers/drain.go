package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// data is a contestant's database.
type data interface {
	// waiting makes the tables, and n units that wait, of so many jobs where there are jobs.
	waiting(ctx context.Context, n, jobs int) error
	// open is whether any unit is not over yet.
	open(ctx context.Context) (bool, error)
	// states counts the units.
	states(ctx context.Context) (states, error)
}

// dataOf is the database of a contestant.
func dataOf(who string, pool *pgxpool.Pool) data {
	if who == riverName {
		return riverData{pool}
	}
	return oursData{pool}
}

// patience is how long a round may take that no clock ends.
const patience = 5 * time.Minute

// drain is one round: so many processes do all units that wait, from the start of the processes'
// clients until the store has no unit that is not over.
func (b *bench) drain(ctx context.Context, who string, nodes int) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = b.withDatabase(ctx, func(dsn string, pool *pgxpool.Pool) error {
		d := dataOf(who, pool)
		if err := d.waiting(ctx, b.Units, b.Jobs); err != nil {
			return err
		}
		return b.withTeam(ctx, task{Who: who, DSN: dsn, Conns: b.Conns}, nodes, func(t team) error {
			s, err = b.drainBy(ctx, d, t)
			return err
		})
	})
	return s, err
}

func (b *bench) drainBy(ctx context.Context, d data, t team) (s sample, err error) {
	before, _, err := t.do(order{Do: "count"})
	if err == nil {
		err = b.server.checkpoint(ctx)
	}
	if err != nil {
		return s, err
	}
	meter := b.server.meter(t)
	from := meter.Now(ctx)
	if _, _, err = t.do(order{Do: "start"}); err != nil {
		return s, err
	}
	if err = b.untilDrained(ctx, d, t); err != nil {
		return s, err
	}
	used := from.To(meter.Now(ctx))
	after, _, err := t.do(order{Do: "count"})
	if err != nil {
		return s, err
	}
	end, err := t.see(window{})
	if err != nil {
		return s, err
	}
	s.costs(used, after.Alloc.Minus(before.Alloc), b.Units)
	s.drained(b.Units, from.At, used.Elapsed, end.Seen)
	found, err := d.states(ctx)
	if err == nil && found.succeeded != b.Units {
		err = fmt.Errorf("%w: %d of %d units are recorded as succeeded", errAudit, found.succeeded, b.Units)
	}
	return s, errors.Join(err, found.audit(end.Seen))
}

// untilDrained waits until handlers were called for all units, and then until the store has all
// of them as over. It asks the store only then, so as not to be a part of the load.
func (b *bench) untilDrained(ctx context.Context, d data, t team) error {
	for {
		sum, _, err := t.do(order{Do: "count"})
		if err != nil {
			return err
		}
		if sum.Calls >= b.Units {
			break
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d units: %w", sum.Calls, b.Units, err)
		}
	}
	for {
		open, err := d.open(ctx)
		if err != nil || !open {
			return err
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

// withDatabase does something with a new database, which is dropped then.
func (b *bench) withDatabase(ctx context.Context, do func(dsn string, pool *pgxpool.Pool) error) error {
	dsn, drop, err := b.server.database(ctx)
	if err != nil {
		return err
	}
	pool, err := openPool(ctx, dsn, 0)
	if err == nil {
		err = do(dsn, pool)
		pool.Close()
	}
	return errors.Join(err, drop())
}

// withTeam does something with processes of a contestant, which are ended then.
func (b *bench) withTeam(ctx context.Context, t task, n int, do func(team) error) error {
	all, err := startTeam(ctx, t, n)
	if err != nil {
		return err
	}
	err = do(all)
	return errors.Join(err, all.end())
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sleepUntil is sleep up to a time.
func sleepUntil(ctx context.Context, at time.Time) error { return sleep(ctx, time.Until(at)) }
