package executor

import "time"

// recent remembers ids for a while, in two generations: a new id goes to the
// young one, and when that is full or old enough it becomes the old one, whose
// ids are forgotten. No id needs a timestamp or a deletion of its own. It is
// guarded by Executor.mu.
type recent struct {
	keep       time.Duration
	max        int // ids of one generation
	young, old map[int64]struct{}
	since      time.Time // when young was begun
	lostBefore time.Time // ids of before may be forgotten, later ones are not; zero while none is
}

// newRecent remembers ids for keep at least and less than twice as long, but no more
// than max of them, the last half as many always.
func newRecent(keep time.Duration, max int) recent {
	return recent{keep: keep, max: (max + 1) / 2}
}

func (g *recent) add(id int64, now time.Time) {
	g.age(now)
	if len(g.young) >= g.max {
		// Under load the two maps change places, so that neither has to grow again.
		g.young, g.old = g.old, g.young
		if len(g.young) > 0 {
			g.lostBefore = g.since
		}
		clear(g.young)
		g.since = now
	}
	if g.young == nil {
		g.young = make(map[int64]struct{})
	}
	g.young[id] = struct{}{}
}

func (g *recent) has(id int64, now time.Time) bool {
	g.age(now)
	if _, ok := g.young[id]; ok {
		return true
	}
	_, ok := g.old[id]
	return ok
}

// age forgets what is too old, with its memory.
func (g *recent) age(now time.Time) {
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
func (g *recent) turn() {
	if len(g.old) > 0 {
		g.lostBefore = g.since
	}
	g.young, g.old = nil, g.young
	g.since = g.since.Add(g.keep) // not now, or the old ones would stay for longer
}

// forgets reports whether an id of that time, or of a later one, may be forgotten.
// It is asked after has.
func (g *recent) forgets(at time.Time) bool { return at.Before(g.lostBefore) }
