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

const (
	// apartMost is how many go together at most.
	apartMost = 64
	// apartTime is how long one call for them is to take, as far as it can be foreseen.
	apartTime = 500 * time.Millisecond
)

// herd is how many of those that wait go together. It begins with one when nobody waits any
// more. It belongs to the start loop.
type herd struct{ most int }

func (h *herd) size() int { return max(1, h.most) }

// took notes that n of them went together, and how long they took: the next ones are to
// take apartTime, and are no more than twice as many.
func (h *herd) took(n int, d time.Duration) {
	few := max(1, int(apartTime/max(d/time.Duration(n), time.Microsecond)))
	most := h.size()
	if n >= most {
		most *= 2
	}
	h.most = min(most, few, apartMost)
}

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
	again := s.engine.nextRound()
	left := s.engine.countLot(again.next())
	m, took, stuck, err := s.startFrom(ctx, again, s.herds.again.size())
	switch {
	case m == 0:
	case s.engine.countLot(again.next()) > left: // one is stuck, and the others were with it
		s.herds.again = herd{}
	default:
		s.herds.again.took(m, took)
	}
	return n+m > 0, locked || stuck, err
}

// turnBegins has an entry whose turn it is routed anew, where what was decided about it is
// old, or some of its nodes have come to be doubted. Where somebody of the user's has to be
// asked, or probes have to be sent, it waits for that, and keeps what comes of it, however
// long its next turn takes to come.
func (s *starter) turnBegins(a *attempt) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unkeep(a.entry)
	if s.isOutdated(a) {
		e.freeSerial(a.route.serial, a.run.ID)
		a.entry.route = routed{}
	}
	a.turned = true
}

// isOutdated reports whether what was decided about an entry whose turn it is does not hold
// any more. A router of the user's is not asked about a broadcast again for its age.
func (s *starter) isOutdated(a *attempt) bool {
	old, targets := time.Since(a.routedAt) >= addressTTL, a.route.targets
	if left := s.leases.undoubted(targets); len(left) < len(targets) { // it is chosen among these then
		return old || !a.turned
	}
	switch {
	case len(targets) == 0:
		return old && !a.turned
	case s.cfg.Routers[a.job.Route] != nil:
		return false
	}
	return old && (!a.turned || s.cfg.Registry == nil)
}
