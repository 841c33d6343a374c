// Package timering holds the ids of runs until their time: a ring of sixty slots of a second, each a
// heap by millisecond. Ring is safe for concurrent use and starts no goroutine; Heap is for one user at a
// time, and keeps other things by when they are due as well.
package timering

import (
	"slices"
	"sync"
	"time"
)

// Slots is XXL-JOB's number: one slot for each second of a minute.
const Slots = 60

// New returns an empty ring.
func New() *Ring { return &Ring{} }

// Ring is the ring that a Scheduler uses when Config.Ring is nil. Times more than a minute ahead share a slot
// with nearer ones and simply stay deeper in its heap.
type Ring struct {
	mu     sync.Mutex
	slots  [Slots]slot // guarded by mu
	len    int         // guarded by mu
	cursor int64       // guarded by mu: the second that Pop reached last
	next   nextDue     // guarded by mu
	spare  []slot      // guarded by mu: memory of slots that are empty, for those that fill next
}

// nextDue is when the next run of a ring is due, and how many are due then. It is found out when
// somebody asks, and kept true as long as nothing is taken off.
type nextDue struct {
	known bool
	ms    int64
	n     int
}

// A few slots fill at a time, and what they need they find where others have been emptied: 2 MB at
// most are kept for that. What a larger herd has made is given up.
const (
	spareSlots = 8
	SpareCap   = 1 << 14 // up to which capacity an empty heap is kept
)

// Push puts a run on the ring. Its time may be past.
func (r *Ring) Push(at time.Time, runID int64) {
	ms := at.UnixMilli()
	r.mu.Lock()
	defer r.mu.Unlock()
	// What is late already goes where the next Pop begins, or it would wait for
	// the slot to come round.
	second := max(floorDiv(ms, 1000), r.cursor)
	h := &r.slots[slotOf(second)]
	if n := len(r.spare); *h == nil && n > 0 {
		*h, r.spare[n-1] = r.spare[n-1], nil
		r.spare = r.spare[:n-1]
	}
	h.Push(Key{At: ms, RunID: runID}, struct{}{})
	r.len++
	switch n := &r.next; {
	case r.len == 1 || n.known && ms < n.ms:
		*n = nextDue{known: true, ms: ms, n: 1}
	case n.known && ms == n.ms:
		n.n++
	}
}

// giveUp leaves the memory of a slot that is empty to others.
func (r *Ring) giveUp(h *slot) {
	if n := cap(*h); len(*h) == 0 && n > 0 {
		if n <= SpareCap && len(r.spare) < spareSlots {
			r.spare = append(r.spare, *h)
		}
		*h = nil
	}
}

// Pop takes the runs whose time is at or before now off the ring, the earliest first.
func (r *Ring) Pop(now time.Time) []int64 {
	ms := now.UnixMilli()
	second := floorDiv(ms, 1000)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.len == 0 {
		r.cursor = max(r.cursor, second)
		return nil
	}
	if second-r.cursor >= Slots-1 {
		return r.popAll(ms, second)
	}
	var due []int64
	for s := r.cursor; s <= max(second, r.cursor); s++ {
		h := &r.slots[slotOf(s)]
		due = popDue(h, ms, due)
		r.giveUp(h)
	}
	r.len -= len(due)
	r.next.known = r.next.known && len(due) == 0
	r.cursor = max(r.cursor, second)
	return due
}

// popAll is Pop after a stall of a minute or more, or the first time: every slot
// may hold something due, and slots no more follow each other in time.
func (r *Ring) popAll(ms, second int64) []int64 {
	var late []Key
	for i := range r.slots {
		h := &r.slots[i]
		for len(*h) > 0 && h.At() <= ms {
			late = append(late, (*h)[0].key)
			h.Pop()
		}
		r.giveUp(h)
	}
	slices.SortFunc(late, Key.Compare)
	due := make([]int64, len(late))
	for i, e := range late {
		due[i] = e.RunID
	}
	r.len -= len(due)
	r.next.known = false
	r.cursor = second
	return due
}

// Next is when the next run is due, in milliseconds since 1970, and how many are due then; false where
// there is none.
func (r *Ring) Next() (ms int64, n int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.len == 0 {
		return 0, 0, false
	}
	if !r.next.known {
		r.next = r.findNext()
	}
	return r.next.ms, r.next.n, true
}

// findNext looks for the next run. There is one.
func (r *Ring) findNext() nextDue {
	var first *slot
	for s := r.cursor; s < r.cursor+Slots; s++ {
		h := &r.slots[slotOf(s)]
		if len(*h) > 0 && (first == nil || h.At() < first.At()) {
			first = h
			if floorDiv(h.At(), 1000) <= s {
				break // it is of this round, and so are those of later slots, or of a later one
			}
		}
	}
	return nextDue{known: true, ms: first.At(), n: first.due(first.At(), 0)}
}

// Len is how many runs are on the ring.
func (r *Ring) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.len
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func slotOf(second int64) int64 {
	return ((second % Slots) + Slots) % Slots
}

// slot is the runs of a slot: their keys are all there is of them.
type slot = Heap[struct{}]

// popDue appends the ids of the runs at or before ms to due, the earliest first.
func popDue(h *slot, ms int64, due []int64) []int64 {
	n := h.due(ms, 0)
	due = slices.Grow(due, n)
	if n > len(*h)/2 { // a herd, which was pushed in its order mostly: to sort it takes one pass
		slices.SortFunc(*h, func(a, b keyed[struct{}]) int { return a.key.Compare(b.key) }) // and what stays is a heap
		for _, e := range (*h)[:n] {
			due = append(due, e.key.RunID)
		}
		*h = (*h)[:copy(*h, (*h)[n:])]
		return due
	}
	for range n {
		due = append(due, (*h)[0].key.RunID)
		h.Pop()
	}
	return due
}
