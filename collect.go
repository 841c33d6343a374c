package xxljob

// Due runs on their way to a batch: from the queue, or from a lot of those that go apart, to
// an address and to the places that they need there.

import (
	"context"
	"time"
)

// startFrom starts up to most entries from a lot, and returns how many the store was asked
// about, and how long that took.
func (s *starter) startFrom(ctx context.Context, from lot, most int) (n int, took time.Duration, locked bool, err error) {
	if from.kind != lotDue {
		if !s.engine.room.waits(from) {
			return 0, 0, false, nil
		}
		s.sender.deliverEarly(ctx) // these may take longer than the others can wait
	}
	if ctx.Err() != nil || !s.leases.trusted(time.Now()) {
		return 0, 0, false, nil
	}
	batch, err := s.collect(ctx, from, most)
	if err != nil || len(batch) == 0 {
		return 0, 0, false, err
	}
	began := time.Now()
	locked, err = s.startBatch(ctx, batch, from.kind == lotDue)
	return len(batch), time.Since(began), locked, err
}

// collect takes entries from the due queue, or from a lot of those that go apart, routes
// them, and takes places for them. Those without room wait in lots, and so do those of the
// due queue that go apart.
func (s *starter) collect(ctx context.Context, from lot, most int) ([]attempt, error) {
	now := s.clock.now()
	for {
		batch, unknown := s.engine.pop(from, most)
		if len(unknown) > 0 {
			if err := s.loadJobs(ctx, unknown); err != nil {
				s.engine.room.putBack(from, batch)
				return nil, err
			}
			if len(batch) == 0 {
				continue
			}
		}
		if len(batch) == 0 {
			return nil, nil
		}
		ready := batch[:0] // the entries of batch move up as others wait
		for _, a := range batch {
			if _, owned := s.leases.epoch(a.run.Shard); !owned {
				s.engine.abandon(a.entry)
				continue
			}
			if from.kind != lotDue {
				s.turnBegins(&a)
			}
			if s.waitsItsTurn(a) {
				continue
			}
			if err := s.routeEntry(ctx, &a); err != nil {
				s.router.setAside(ctx, a.entry, err)
				continue
			}
			s.router.routedWell(ctx, a.run.App)
			if from.kind == lotDue && a.goesApart() {
				s.engine.room.waitApart(a.entry)
				continue
			}
			if s.reserve(&a, now) {
				ready = append(ready, a)
			}
		}
		if len(ready) > 0 || from.kind != lotDue {
			return ready, nil // those that wait for their turn are not to be routed long before it
		}
	}
}

// routeEntry routes an entry, unless it has waited for room at an address, or for its turn:
// then it keeps what was decided.
func (s *starter) routeEntry(ctx context.Context, a *attempt) error {
	decided := (a.route.address != "" || a.route.refused != "") && a.routedFor == a.job.Version && !a.route.probing
	if decided && (a.goesApart() || !isPart(&a.run) && !s.leases.anyDoubted(a.route)) {
		return nil
	}
	r, err := s.router.route(ctx, a.entry, a.job)
	if err != nil {
		return err
	}
	a.routedAt = time.Now()
	if r.serial != a.route.serial {
		s.engine.room.changeSerial(a.entry)
	}
	a.route, a.routedFor = r, a.job.Version
	return nil
}
