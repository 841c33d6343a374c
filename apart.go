package xxljob

// Starts that a store makes one by one, each in a transaction of its own: those of
// broadcasts, with their parts, and refusals. Input: attempts, as start.go collects them.
// Output: few of them at a time, behind the other starts; the rest wait in a lot, without
// places, and are routed anew when their turn comes. When a store has been away for a while
// hundreds are due at once, and together they would take longer than a call may, with all
// other runs behind them.

import (
	"slices"
	"time"
)

const (
	// apartMost is how many go together at most.
	apartMost = 64
	// apartTime is how long the others wait for them, as far as it can be foreseen.
	apartTime = 500 * time.Millisecond
)

// goesApart reports whether the start of a routed attempt is one of these.
func (a *attempt) goesApart() bool { return a.route.refused != "" || len(a.route.targets) > 0 }

// apart is how many go together in a pass of the start loop. A herd begins with one.
type apart struct{ most, n int }

// begins lets those go on whose turn it is in the pass that begins.
func (p *apart) begins(e *engine) {
	p.n, p.most = 0, max(p.most, 1)
	e.admitSome(lot{kind: lotApart}, p.most)
}

// isFull reports whether no further attempt fits into the pass.
func (p *apart) isFull() bool { return p.n >= p.most }

// took notes how long those of the pass took: the next ones are to take apartTime, and are
// no more than twice as many.
func (p *apart) took(d time.Duration) {
	each := max(d/time.Duration(p.n), time.Microsecond)
	few := max(1, int(apartTime/each))
	if p.isFull() {
		p.most *= 2
	}
	p.most = min(p.most, few, apartMost)
}

// split parts attempts that go apart from the others.
func split(batch []attempt) (plain, apart []attempt) {
	if !slices.ContainsFunc(batch, func(a attempt) bool { return a.goesApart() }) {
		return batch, nil
	}
	plain = make([]attempt, 0, len(batch))
	for _, a := range batch {
		if a.goesApart() {
			apart = append(apart, a)
		} else {
			plain = append(plain, a)
		}
	}
	return plain, apart
}

// parkApart has an entry wait until its turn comes. The later runs of its job, if that is a
// serial one, wait too.
func (e *engine) parkApart(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.park(lot{kind: lotApart}, en)
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
