package postgres

import "sync"

// grouping is what a call has come across, while it puts what it was given into groups.
type grouping struct {
	ids    map[int64]int
	epochs map[int]int64 // of shards
}

func (g *grouping) clear() {
	clear(g.ids)
	clear(g.epochs)
}

// groupings keep what calls have used for others. They have maps of numbers and nothing else: no
// argument of a statement is among them, and who takes one gives it back before anything is sent.
// So no call that was abandoned can have one still.
type groupings struct{ pool sync.Pool }

// take returns an empty one.
func (p *groupings) take() *grouping {
	if g, ok := p.pool.Get().(*grouping); ok {
		return g
	}
	return &grouping{map[int64]int{}, map[int]int64{}}
}

// maxGrouping bounds what is kept: a map that was large once takes long to clear for ever.
const maxGrouping = 4 * claimBatch

func (p *groupings) giveBack(g *grouping) {
	if len(g.ids) > maxGrouping {
		return
	}
	g.clear()
	p.pool.Put(g)
}
