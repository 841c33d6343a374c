package dispatch

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
)

// Starts that a store makes one by one, each in a transaction of its own: those of
// broadcasts, with their parts, and refusals. Input: such entries, as the loop finds them when
// they are due. Output: few of them at a time, to be started behind the other runs of a
// pass. Until then they wait in a waitlist, and take no places but what they were let in for. When
// a store has been away for a while hundreds are due at once, and together they would take
// longer than a call may, with all other runs behind them. Those whose start had no effect,
// for a row is locked, perhaps, come again in calls of their own, and do not hold up those
// that were not tried yet.

// singly is how many of them go together: of those that wait for their first turn, and of those
// that were tried before, which rest while one was refused.
type singly struct {
	first, again batchSizer
	rests        time.Time // until then
}

// startSingly starts some of those that wait for their first turn, and then some of those
// that were tried before.
func (s *starter) startSingly(ctx context.Context) (some, locked bool, err error) {
	first := queue.ForTurn()
	n, took, locked, err := s.startFrom(ctx, first, s.singly.first.size())
	if n > 0 {
		s.singly.first.took(n, took)
	}
	if err != nil {
		return n > 0, locked, err
	}
	if time.Until(s.singly.rests) > 0 {
		return n > 0, locked, nil
	}
	again := s.queue.Due.NextRound()
	left := s.queue.Due.Count(again.Next())
	m, took, stuck, err := s.startFrom(ctx, again, s.singly.again.size())
	switch {
	case m == 0:
	case s.queue.Due.Count(again.Next()) > left: // one is stuck, and the others were with it
		s.singly.again = batchSizer{}
	default:
		s.singly.again.took(m, took)
	}
	return n+m > 0, locked || stuck, err
}

// batchSizer is how many of those that wait go together. It begins with one when nobody waits any
// more. It belongs to the start loop.
type batchSizer struct{ most int }

func (b *batchSizer) size() int { return max(1, b.most) }

// took notes that n of them went together, and how long they took: the next ones are to
// take singlyTime, and are no more than twice as many.
func (b *batchSizer) took(n int, d time.Duration) {
	few := max(1, int(singlyTime/max(d/time.Duration(n), time.Microsecond)))
	most := b.size()
	if n >= most {
		most *= 2
	}
	b.most = min(most, few, singlyMost)
}

const (
	// singlyMost is how many go together at most.
	singlyMost = 64
	// singlyTime is how long one call for them is to take, as far as it can be foreseen.
	singlyTime = 500 * time.Millisecond
)
