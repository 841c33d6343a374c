package xxljob

// How much of what executors elsewhere have sent may wait for the store. What nobody waits
// for any more is stored while there is room, since some peers never send a result again;
// it is the first to be dropped where there is none.

import "slices"

// parcelSize is what a parcel takes beside its items, in bytes, and itemSize what an item
// takes beside its texts: rather too much than too little.
const (
	parcelSize = 256
	itemSize   = 256
)

// makeRoom makes room for so many bytes more of a line, and reports whether it could. What
// the line itself has left behind goes first. Where all of the intake is full, whoever has
// most gives way to those who have less.
func (in *intake[T]) makeRoom(l *line[T], size int) bool {
	for l.size+size > in.most.ofApp {
		if !in.dropLeft(l) {
			return false
		}
	}
	for in.size+size > in.most.inAll {
		victim := in.biggest(l, size)
		if victim == l && !in.dropLeft(l) || victim != l && !in.dropLeft(victim) && !in.dropLast(victim) {
			return false
		}
	}
	return true
}

// biggest returns the line that has to give way to so many bytes more of a line: that
// itself, unless another has more.
func (in *intake[T]) biggest(l *line[T], size int) *line[T] {
	s, most := l.scope, l.scope.size+size
	for _, other := range in.scopes {
		if other.size > most {
			s, most = other, other.size
		}
	}
	victim, most := l, l.size+size
	if s != l.scope {
		victim, most = nil, -1
	}
	for _, other := range s.apps {
		if other.size > most {
			victim, most = other, other.size
		}
	}
	return victim
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
