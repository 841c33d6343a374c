package xxljob

// When a ring has something due.

// dueTimes are the distinct milliseconds at which the ring has something due: a
// ring of the user's need not tell when its next entry is.
type dueTimes struct {
	set  map[int64]struct{}
	heap slot
}

func newDueTimes() dueTimes { return dueTimes{set: map[int64]struct{}{}} }

func (a *dueTimes) add(ms int64) {
	if _, ok := a.set[ms]; ok {
		return
	}
	a.set[ms] = struct{}{}
	a.heap.push(ringEntry{at: ms})
}

func (a *dueTimes) next() (int64, bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

func (a *dueTimes) popUpTo(ms int64) {
	for len(a.heap) > 0 && a.heap[0].at <= ms {
		delete(a.set, a.heap[0].at)
		a.heap.pop()
	}
}
