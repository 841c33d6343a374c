package xxljob

// When a ring has something due.

// dueTimes are the distinct milliseconds at which the ring has something due, and how much, at
// most: a ring of the user's need not tell when its next entry is.
type dueTimes struct {
	counts map[int64]int
	heap   slot
}

func newDueTimes() dueTimes { return dueTimes{counts: map[int64]int{}} }

func (a *dueTimes) add(ms int64) {
	if a.counts[ms]++; a.counts[ms] == 1 {
		a.heap.push(ringEntry{at: ms})
	}
}

// next is the first of them, and how much is due then.
func (a *dueTimes) next() (ms int64, n int, ok bool) {
	if len(a.heap) == 0 {
		return 0, 0, false
	}
	ms = a.heap[0].at
	return ms, a.counts[ms], true
}

func (a *dueTimes) popUpTo(ms int64) {
	for len(a.heap) > 0 && a.heap[0].at <= ms {
		delete(a.counts, a.heap[0].at)
		a.heap.pop()
	}
}
