package xxljob

// Starts that a store makes one by one, each in a transaction of its own: those of
// broadcasts, with their parts, and refusals. Input: such entries, as start.go finds them
// when they are due. Output: few of them at a time, to be started behind the other runs of a
// pass. Until then they wait in a lot, and take no places but what they were let in for. When
// a store has been away for a while hundreds are due at once, and together they would take
// longer than a call may, with all other runs behind them. Those whose start had no effect,
// for a row is locked, perhaps, come again in calls of their own, and do not hold up those
// that were not tried yet.

import (
	"context"
	"time"
)

// startApart starts some of those that wait for their first turn, and then some of those
// that were tried before.
func (s *starter) startApart(ctx context.Context) (some, locked bool, err error) {
	first := lot{kind: lotApart}
	n, took, locked, err := s.startFrom(ctx, first, s.herds.first.size())
	if n > 0 {
		s.herds.first.took(n, took)
	}
	if err != nil {
		return n > 0, locked, err
	}
	again := s.engine.room.nextRound()
	left := s.engine.room.countLot(again.next())
	m, took, stuck, err := s.startFrom(ctx, again, s.herds.again.size())
	switch {
	case m == 0:
	case s.engine.room.countLot(again.next()) > left: // one is stuck, and the others were with it
		s.herds.again = herd{}
	default:
		s.herds.again.took(m, took)
	}
	return n+m > 0, locked || stuck, err
}

// startFrom starts up to most entries from a lot, and returns how many the store was asked
// about, and how long that took.
func (s *starter) startFrom(ctx context.Context, from lot, most int) (n int, took time.Duration, locked bool, err error) {
	if from.kind != lotDue && !s.engine.room.waits(from) {
		return 0, 0, false, nil
	}
	if ctx.Err() != nil || !s.leases.trusted(time.Now()) {
		return 0, 0, false, nil
	}
	collecting := time.Now()
	batch, err := s.collector.collect(ctx, from, most)
	if err != nil || len(batch) == 0 {
		return 0, 0, false, err
	}
	began := time.Now()
	if locked, err = s.batches.startBatch(ctx, batch, from.kind == lotDue); from.kind == lotDue {
		s.engine.lead.started(len(batch), time.Since(collecting))
	}
	return len(batch), time.Since(began), locked, err
}
