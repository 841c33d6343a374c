package xxljob

// How much of what executors elsewhere have sent may wait for the store. What nobody waits
// for any more is stored while there is room, since some peers never send a result again;
// it is the first to be dropped where there is none.

import (
	"slices"
	"time"
)

// parcelSize is what a parcel takes beside its items, in bytes, and itemSize what an item
// takes beside its texts: rather too much than too little.
const (
	parcelSize = 256
	itemSize   = 256
)

// makeRoom makes room for so many bytes more of a line, and reports whether it could. What
// the line itself has left behind goes first; a line of which nothing is here takes in one
// request, however large. Where all of the intake is full, whoever has most gives way to
// those who have less.
func (in *intake[T]) makeRoom(l *line[T], size int) bool {
	for l.size > 0 && l.size+size > in.most.ofApp {
		if !in.dropLeft(l) {
			return false
		}
	}
	for in.size+size > in.most.inAll {
		if !in.giveWay(l, size) {
			return false
		}
	}
	return true
}

// giveWay drops a parcel to make room for so many bytes more of a line: of the token that
// has most, and of its app that has most, of those that something can be dropped of. The
// line itself gives up only what nobody waits for.
func (in *intake[T]) giveWay(l *line[T], size int) bool {
	for _, s := range largest(in.scopes, l.scope, size, func(s *scope[T]) int { return s.size }) {
		ours, least := l, size
		if s != l.scope {
			ours, least = nil, 0
		}
		for _, other := range largest(s.apps, ours, least, func(l *line[T]) int { return l.size }) {
			if in.dropLeft(other) || other != l && in.dropLast(other) {
				return true
			}
		}
	}
	return false
}

// largest are those that have more than one of them would have with so much more, the
// largest first, and that one at the end. Where that is nil they are all.
func largest[T comparable](all map[string]T, one T, more int, size func(T) int) (list []T) {
	var none T
	for _, x := range all {
		if x != one && (one == none || size(x) > size(one)+more) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b T) int { return size(b) - size(a) })
	if one != none {
		list = append(list, one)
	}
	return list
}

// dropLeft drops the oldest parcel of a line that nobody waits for, if there is one.
func (in *intake[T]) dropLeft(l *line[T]) bool {
	i := slices.IndexFunc(l.waiting, func(p *parcel[T]) bool { return p.left && p.taken == 0 })
	if i < 0 {
		return false
	}
	in.drop(l, i, errNoRoom)
	return true
}

// dropLast drops the newest parcel of a line, if there is one.
func (in *intake[T]) dropLast(l *line[T]) bool {
	last := len(l.waiting) - 1
	if last < 0 || l.waiting[last].taken > 0 {
		return false
	}
	in.drop(l, last, errNoRoom)
	return true
}

// drop drops a parcel that waits, by its place in the line.
func (in *intake[T]) drop(l *line[T], i int, why error) {
	in.refused.Add(1)
	p := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(l.waiting) == 0 {
		l.scope.turn = slices.DeleteFunc(l.scope.turn, func(other *line[T]) bool { return other == l })
	}
	if len(l.scope.turn) == 0 {
		in.turn = slices.DeleteFunc(in.turn, func(other *scope[T]) bool { return other == l.scope })
	}
	in.end(p, why)
}

// add takes in what a request has brought, size bytes of memory. The items are the loop's
// until that is done. It is an error where there is no room.
func (in *intake[T]) add(from origin, size int, items ...*T) (*parcel[T], error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l := in.line(from)
	size += parcelSize
	if !in.makeRoom(l, size) {
		in.refused.Add(1)
		return nil, errNoRoom
	}
	p := &parcel[T]{in: in, line: l, items: items, size: size, each: size / max(1, len(items)), came: time.Now(), done: make(chan struct{})}
	in.count(l, size)
	in.queue(l)
	l.waiting = append(l.waiting, p)
	in.wake.poke()
	return p, nil
}
