package executor

import "github.com/xxljob/xxljob/internal/idmap"

// byRun holds something for each of some runs. Nearly always an id is there once; those
// that are there with several dates are linked. The zero value is empty.
type byRun[T any] struct {
	heads idmap.Map[dated[T]]
	n     int // runs

	// All ids lie within these two. Most schedulers count their runs, so that a new one is
	// beyond them, and known to be new without a look into the map.
	least, greatest int64
}

type dated[T any] struct {
	date int64
	val  T
	next *dated[T]
}

// head returns the last put with an id.
func (b *byRun[T]) head(id int64) (dated[T], bool) {
	if b.n == 0 || id < b.least || id > b.greatest {
		return dated[T]{}, false
	}
	return b.heads.Get(id)
}

// find returns what is held for the run that a request means: the one with its date, or
// else the last put with its id where one of both has no date.
func (b *byRun[T]) find(k runID) (val T, found bool) {
	head, ok := b.head(k.id)
	if !ok {
		return val, false
	}
	for at := &head; at != nil; at = at.next {
		if at.date == k.date {
			return at.val, true
		}
		if !found && k.is(runID{k.id, at.date}) {
			val, found = at.val, true
		}
	}
	return val, found
}

// exactly returns what is held for exactly this id and date.
func (b *byRun[T]) exactly(k runID) (val T, found bool) {
	head, ok := b.head(k.id)
	for at := &head; ok && at != nil; at = at.next {
		if at.date == k.date {
			return at.val, true
		}
	}
	return val, false
}

// all returns what is held under an id, whatever the date, the last put first.
func (b *byRun[T]) all(id int64) (vals []T) {
	head, ok := b.head(id)
	for at := &head; ok && at != nil; at = at.next {
		vals = append(vals, at.val)
	}
	return vals
}

// put holds val for exactly this id and date.
func (b *byRun[T]) put(k runID, val T) {
	n := dated[T]{date: k.date, val: val}
	if _, ok := b.head(k.id); ok {
		b.drop(k)
		if head, ok := b.head(k.id); ok {
			n.next = new(dated[T])
			*n.next = head
		}
	}
	if b.n == 0 {
		b.least, b.greatest = k.id, k.id
	}
	b.least, b.greatest = min(b.least, k.id), max(b.greatest, k.id)
	b.heads.Set(k.id, n)
	b.n++
}

// change puts val in the place of what is held for exactly this id and date, if there is
// anything.
func (b *byRun[T]) change(k runID, val T) {
	head, ok := b.head(k.id)
	switch {
	case !ok:
		return
	case head.date == k.date:
		head.val = val
		b.heads.Set(k.id, head)
		return
	}
	for at := head.next; at != nil; at = at.next { // these are shared with the map
		if at.date == k.date {
			at.val = val
			return
		}
	}
}

// drop forgets exactly this id and date.
func (b *byRun[T]) drop(k runID) {
	head, ok := b.head(k.id)
	if !ok {
		return
	}
	if head.date == k.date {
		b.n--
		if head.next == nil {
			b.heads.Delete(k.id)
		} else {
			b.heads.Set(k.id, *head.next)
		}
		return
	}
	for at := &head; at.next != nil; at = at.next {
		if at.next.date != k.date {
			continue
		}
		at.next = at.next.next
		b.heads.Set(k.id, head) // its own link may be the changed one
		b.n--
		return
	}
}
