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
	"slices"
	"time"
)

const (
	// apartMost is how many go together at most.
	apartMost = 64
	// apartTime is how long one call for them is to take, as far as it can be foreseen.
	apartTime = 500 * time.Millisecond
)

// goesApart reports whether the start of a routed entry is one of these.
func (en *entry) goesApart() bool { return en.route.refused != "" || len(en.route.targets) > 0 }

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
func (s *scheduler) startApart(ctx context.Context) (some, locked bool, err error) {
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

// lotAgainOf is where those wait that were tried before. They have turns in rounds: one that
// is stuck comes again when all others of its round have had theirs.
func lotAgainOf(round int64) lot { return lot{kind: lotAgain, round: round} }

// next is the lot of the next round.
func (l lot) next() lot { return lotAgainOf(l.round + 1) }

// nextRound returns the lot of the round that goes on, which is the next one when this one
// is over.
func (e *engine) nextRound() lot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lots[lotAgainOf(e.round)] == nil {
		e.round++
	}
	return lotAgainOf(e.round)
}

// countLot is how many wait in a lot.
func (e *engine) countLot(at lot) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lenOf(at)
}

// isLeft reports whether something is due, or waits for a start that goes apart.
func (e *engine) isLeft() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc([]lot{{kind: lotDue}, {kind: lotApart}, lotAgainOf(e.round), lotAgainOf(e.round + 1)},
		func(at lot) bool { return e.lenOf(at) > 0 })
}

// waitApart has an entry wait for its turn, or for its next one. The room that it was let in
// for, if it was, is kept for it: others that are due would take it meanwhile.
func (e *engine) waitApart(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if en.route.refused != "" {
		e.letGoOn(en)
	}
	if en.keeps = en.waited && en.from.isRoom(); en.keeps {
		e.lanes.keep(en.from)
	}
	at := lot{kind: lotApart}
	if en.tried {
		at = lotAgainOf(e.round + 1)
	}
	e.parkApart(at, en)
}

// parkApart has an entry wait for its turn. The later runs of its job, if that is a serial
// one, wait too. Caller holds mu.
func (e *engine) parkApart(at lot, en *entry) {
	e.keepAhead(en)
	e.lots.park(at, en)
}

// parkTried is parkApart for one whose start had no effect.
func (e *engine) parkTried(en *entry) {
	en.tried = true
	e.parkApart(lotAgainOf(e.round+1), en)
}

// unkeep gives room back that is kept for an entry, which is still the one that was let in
// for it. Caller holds mu.
func (e *engine) unkeep(en *entry) {
	if en.keeps {
		en.keeps = false
		e.freed = e.freed || en.from.kind == lotRunning
		e.lanes.giveUp(en.from)
	}
}

// turnBegins has an entry whose turn it is routed anew, where what was decided about it is
// old, or some of its nodes have come to be doubted. Where somebody of the user's has to be
// asked, or probes have to be sent, it waits for that, and keeps what comes of it, however
// long its next turn takes to come.
func (s *scheduler) turnBegins(a *attempt) {
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
func (s *scheduler) isOutdated(a *attempt) bool {
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
