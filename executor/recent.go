package executor

import "time"

// generations keep something of runs for a while, in two generations: what is new goes
// to the young one, and when that is old enough it becomes the old one, and what the old
// one had is forgotten. Nothing needs a timestamp or a deletion of its own. They are
// guarded by Executor.mu.
type generations[T any] struct {
	keep       time.Duration
	young, old byRun[T]
	since      time.Time // when young was begun
	lostBefore time.Time // what is from before may be forgotten, what came later is not; zero while nothing is
}

// find returns what is kept for a run.
func (g *generations[T]) find(k runID, now time.Time) (T, bool) {
	g.age(now)
	if val, ok := g.young.find(k); ok {
		return val, true
	}
	return g.old.find(k)
}

// age forgets what is too old, with its memory.
func (g *generations[T]) age(now time.Time) {
	switch old := now.Sub(g.since); {
	case old >= 2*g.keep:
		g.turn()
		g.turn()
		g.since = now
	case old >= g.keep:
		g.turn()
	}
}

// turn makes the young generation, which has had its time, the old one.
func (g *generations[T]) turn() {
	if g.old.n > 0 {
		g.lostBefore = g.since
	}
	g.young, g.old = byRun[T]{}, g.young
	g.since = g.since.Add(g.keep) // not now, or the old ones would stay for longer
}

// recent remembers runs for a while.
type recent struct {
	generations[struct{}]
	max int // runs of one generation
}

// newRecent remembers runs for keep at least and less than twice as long, but no more
// than max of them, the last half as many always.
func newRecent(keep time.Duration, max int) recent {
	return recent{generations[struct{}]{keep: keep}, (max + 1) / 2}
}

func (g *recent) add(k runID, now time.Time) {
	g.age(now)
	if g.young.n >= g.max {
		g.turn()
		g.since = now
	}
	g.young.put(k, struct{}{})
}

func (g *recent) has(k runID, now time.Time) bool {
	_, ok := g.find(k, now)
	return ok
}

// forgets reports whether a run of that time, or of a later one, may be forgotten.
// It is asked after has.
func (g *recent) forgets(at time.Time) bool { return at.Before(g.lostBefore) }
