package main

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// inMemory is one round of a scheduler without a database: jobs that are due every second, all
// at once or spread over it.
func (b *bench) inMemory(ctx context.Context, who string, jobs int, spread bool) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = b.withTeam(ctx, task{Who: who, Jobs: jobs, Spread: spread}, 1, func(t team) error {
		if _, _, err := t.do(order{Do: "start"}); err != nil {
			return err
		}
		p := plan{jobs: jobs, every: time.Second, herd: !spread}
		w := p.window(time.Now().Truncate(time.Second).Add(2*time.Second+b.pace.warmUp), b.For)
		if s, err = b.during(ctx, t, measure.Meter{Children: t.pids()}, w); err != nil {
			return err
		}
		end, err := t.see(w)
		if err != nil {
			return err
		}
		s.lateness(end.Seen, p, w)
		if who != ours {
			return nil // it records nothing that calls could be compared with
		}
		found := states{succeeded: int(end.Done)}
		if end.Seen.Early > 0 {
			return &auditError{found, *end.Seen}
		}
		return found.audit(end.Seen)
	})
	return s, err
}

// drainInMemory is one round in which ours does runs that wait in memory, from its start until
// all of them are recorded.
func (b *bench) drainInMemory(ctx context.Context) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = b.withTeam(ctx, task{Who: ours, Jobs: b.Jobs, Units: b.Units}, 1, func(t team) error {
		before, _, err := t.do(order{Do: "count"})
		if err != nil {
			return err
		}
		meter := measure.Meter{Children: t.pids()}
		from := meter.Now(ctx)
		after, _, err := t.do(order{Do: "start"})
		for err == nil && after.Done < int64(b.Units) {
			if err = sleep(ctx, 2*time.Millisecond); err == nil {
				after, _, err = t.do(order{Do: "count"})
			}
		}
		if err != nil {
			return fmt.Errorf("%d of %d units: %w", after.Done, b.Units, err)
		}
		used := from.To(meter.Now(ctx))
		s.costs(used, after.Alloc.Minus(before.Alloc), b.Units)
		end, err := t.see(window{})
		if err != nil {
			return err
		}
		s.drained(b.Units, from.At, used.Elapsed, end.Seen)
		return states{succeeded: int(end.Done)}.audit(end.Seen)
	})
	return s, err
}
