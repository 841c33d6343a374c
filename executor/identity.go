package executor

import (
	"time"

	"github.com/xxljob/xxljob/wire"
)

// runID is the identity of a run of one admin. An admin whose database begins its ids
// anew, or a scheduler that keeps its runs in memory, gives an id twice: the date, which
// is when the run was made, tells the two runs apart. A request that carries no date
// means whichever run has the id.
type runID struct {
	id   int64 // the protocol's logId
	date int64 // the protocol's logDateTime in ms, 0 where it is missing
}

func idOf(req *wire.TriggerRequest) runID { return runID{req.LogID, req.LogDateTime} }

// is reports whether two requests may mean one run.
func (a runID) is(b runID) bool {
	return a.id == b.id && (a.date == b.date || a.date == 0 || b.date == 0)
}

// isAsked reports whether a log request of that date may mean the run: Java admins ask
// for whole seconds, cut off or, where their database has rounded, up to half a second
// too late.
func (a runID) isAsked(asked int64) bool {
	switch {
	case asked == 0 || a.date == 0 || asked == a.date:
		return true
	case asked%1000 != 0:
		return false
	}
	return secondOf(a.date) == asked/1000 || secondOf(a.date+roundedUp) == asked/1000
}

// roundedUp is how much later a date may be that a database has rounded, in ms.
const roundedUp = 500

// secondOf is the second that a date lies in.
func secondOf(ms int64) int64 {
	s := ms / 1000
	if ms%1000 < 0 {
		s--
	}
	return s
}

// instant is a date of the protocol as a time, and false where it is missing or beyond
// the years that have four digits: nobody means such a date.
func instant(ms int64) (time.Time, bool) {
	const year10000 = 253402300800000
	return time.UnixMilli(ms), ms > 0 && ms < year10000
}

// byRun holds something for each of some runs. Nearly always an id is there once; those
// that are there with several dates are linked. The zero value is empty.
type byRun[T any] struct {
	heads map[int64]dated[T]
	n     int // runs
}

type dated[T any] struct {
	date int64
	val  T
	next *dated[T]
}

// find returns what is held for the run that a request means: the one with its date, or
// else the last put with its id where one of both has no date.
func (b *byRun[T]) find(k runID) (val T, found bool) {
	head, ok := b.heads[k.id]
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

// exactly reports whether something is held for exactly this id and date.
func (b *byRun[T]) exactly(k runID) bool {
	head, ok := b.heads[k.id]
	for at := &head; ok && at != nil; at = at.next {
		if at.date == k.date {
			return true
		}
	}
	return false
}

// all returns what is held under an id, whatever the date, the last put first.
func (b *byRun[T]) all(id int64) (vals []T) {
	head, ok := b.heads[id]
	for at := &head; ok && at != nil; at = at.next {
		vals = append(vals, at.val)
	}
	return vals
}

// put holds val for exactly this id and date.
func (b *byRun[T]) put(k runID, val T) {
	b.drop(k)
	if b.heads == nil {
		b.heads = make(map[int64]dated[T])
	}
	n := dated[T]{date: k.date, val: val}
	if head, ok := b.heads[k.id]; ok {
		n.next = new(dated[T])
		*n.next = head
	}
	b.heads[k.id] = n
	b.n++
}

// drop forgets exactly this id and date.
func (b *byRun[T]) drop(k runID) {
	head, ok := b.heads[k.id]
	if !ok {
		return
	}
	if head.date == k.date {
		b.n--
		if head.next == nil {
			delete(b.heads, k.id)
		} else {
			b.heads[k.id] = *head.next
		}
		return
	}
	for at := &head; at.next != nil; at = at.next {
		if at.next.date != k.date {
			continue
		}
		at.next = at.next.next
		b.heads[k.id] = head // its own link may be the changed one
		b.n--
		return
	}
}

// clear forgets everything, and keeps the memory.
func (b *byRun[T]) clear() {
	clear(b.heads)
	b.n = 0
}
