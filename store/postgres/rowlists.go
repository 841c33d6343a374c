package postgres

import "sync"

// rowLists keep lists that rows were read into for other calls. They are for what nobody has after
// the call that has read it: rows are read by the goroutine that calls, so a call that has returned
// has no list any more, whatever has ended it. Arguments are not kept: see arrays.go.
type rowLists[T any] struct{ pool sync.Pool }

// maxRowList bounds what is kept: some megabytes, for as long as the collector lets the pool have
// them.
const maxRowList = 64 * claimBatch

// take returns an empty one.
func (p *rowLists[T]) take() *[]T {
	if list, ok := p.pool.Get().(*[]T); ok {
		return list
	}
	return new([]T)
}

func (p *rowLists[T]) giveBack(list *[]T) {
	if cap(*list) > maxRowList {
		return
	}
	clear(*list)
	*list = (*list)[:0]
	p.pool.Put(list)
}
