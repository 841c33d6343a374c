package xxljob

// Starts that a store makes one by one, each in a transaction of its own: those of
// broadcasts, with their parts, and refusals. Input: attempts, as start.go collects them.
// Output: few of them at a time, behind the other starts. The rest wait in a lot, without
// places; broadcasts are routed anew when their turn comes, and so are refusals that were
// not decided a moment ago. When a store has been away for a while hundreds are due at
// once, and together they would take longer than a call may, with all other runs behind
// them.

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/route"
)

const (
	// apartMost is how many go together at most.
	apartMost = 64
	// apartTime is how long the others wait for them, as far as it can be foreseen.
	apartTime = 500 * time.Millisecond
)

// goesApart reports whether the start of a routed attempt is one of these.
func (a *attempt) goesApart() bool { return a.route.refused != "" || len(a.route.targets) > 0 }

// herd is how many of those go together that have not been tried before. It begins with one
// when nobody waits any more. It belongs to the start loop.
type herd struct {
	most, n int
	first   bool // they go before the others in the next pass
}

// begins lets those go on whose turn it is in the pass that begins. With them goes one that
// had no effect before: its row is locked, perhaps, for long.
func (h *herd) begins(e *engine) {
	h.n, h.most = 0, max(h.most, 1)
	e.admitSome(lot{kind: lotApart}, h.most)
	e.admitSome(lot{kind: lotAgain}, 1)
}

// isFullFor reports whether an attempt that goes apart has to wait for another pass.
func (h *herd) isFullFor(a *attempt) bool { return !a.tried && h.n >= h.most }

// takes notes that an attempt goes in this pass.
func (h *herd) takes(a *attempt) {
	if a.goesApart() && !a.tried {
		h.n++
	}
}

// took notes how long n attempts took, those of the pass: the next ones are to take
// apartTime, and are no more than twice as many.
func (h *herd) took(n int, d time.Duration) {
	few := max(1, int(apartTime/max(d/time.Duration(n), time.Microsecond)))
	if n >= h.most {
		h.most *= 2
	}
	h.most = min(h.most, few, apartMost)
}

// isLeft reports whether somebody waits for a start that goes apart.
func (e *engine) isLeft() bool {
	return e.waits(lot{kind: lotApart}) || e.waits(lot{kind: lotAgain})
}

// The parts of a batch.
const (
	partPlain = iota // attempts that go together
	partApart        // those that go apart
	partAgain        // those of these that were tried before: they hold up none of the others
)

// split parts a batch.
func split(batch []attempt) (parts [3][]attempt) {
	if !slices.ContainsFunc(batch, func(a attempt) bool { return a.goesApart() }) {
		parts[partPlain] = batch
		return parts
	}
	for _, a := range batch {
		at := partPlain
		switch {
		case a.goesApart() && a.tried:
			at = partAgain
		case a.goesApart():
			at = partApart
		}
		parts[at] = append(parts[at], a)
	}
	return parts
}

// order is the one in which the parts of this pass go: those that go apart last, but not
// twice in a row where the others took so long that there was no turn for them.
func (h *herd) order() [3]int {
	if h.first {
		h.first = false
		return [...]int{partApart, partAgain, partPlain}
	}
	return [...]int{partPlain, partApart, partAgain}
}

// parkApart has an entry wait until its turn comes, when a broadcast is routed anew. The
// later runs of its job, if that is a serial one, wait too.
func (e *engine) parkApart(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.route.refused == "" {
		e.freeSerial(a.route.serial, a.run.ID)
		a.entry.route = routed{}
		if a.job.Route == route.ShardingBroadcast {
			a.choice = nil
		}
	}
	e.park(lot{kind: lotApart}, a.entry)
}

// turnBack undoes attempts that the store was not asked to start: they are due again, or
// wait for another turn.
func (e *engine) turnBack(part []attempt) {
	for i := range part {
		a := &part[i]
		if !a.goesApart() || a.tried {
			e.retry(*a, false)
			continue
		}
		e.mu.Lock()
		e.giveBackPlaces(*a)
		e.mu.Unlock()
		e.parkApart(a)
	}
}

// admitSome moves up to n entries from a lot to the due queue, apps in turn.
func (e *engine) admitSome(at lot, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ; n > 0; n-- {
		en := e.lots.leave(at)
		if en == nil {
			return
		}
		e.due.push(en)
	}
}
