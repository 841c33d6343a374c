package memory

// The lists that a run is in: all runs of its job in order of id, and, once it
// has ended, those of its job and those of the store in order of their end.
const (
	ofJob = iota
	endedOfJob
	allEnded
	listKinds
)

// link is a run's place in one list.
type link struct{ prev, next *run }

// list is a list of runs that are linked through themselves: to add at the end
// and to take out anywhere costs no search and no memory. Guarded by Store.mu.
type list struct {
	by         int // which of a run's links
	head, tail *run
	n          int
}

func (l *list) push(r *run) {
	r.links[l.by] = link{prev: l.tail}
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.links[l.by].next = r
	}
	l.tail = r
	l.n++
}

func (l *list) remove(r *run) {
	at := r.links[l.by]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.by].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.by].prev = at.prev
	}
	r.links[l.by] = link{}
	l.n--
}
