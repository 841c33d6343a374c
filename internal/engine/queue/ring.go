package queue

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
)

// Input: planned runs of owned shards, from scan/scan.go. Output: the ids of those
// that are due, to dispatch/start.go.

// RingSlots is XXL-JOB's number: one slot for each second of a minute.
const RingSlots = 60

// NewTimeRing returns the ring that a Scheduler uses when Config.Ring is nil: 60
// slots of one second, each ordered by millisecond. It starts no goroutine.
func NewTimeRing() core.TimeRing { return &timeRing{} }

// timeRing keeps one heap a slot. Times more than a minute ahead share a slot
// with nearer ones and simply stay deeper in its heap.
type timeRing struct {
	mu     sync.Mutex
	slots  [RingSlots]slot // guarded by mu
	len    int             // guarded by mu
	cursor int64           // guarded by mu: the second that Pop reached last
	spare  []slot          // guarded by mu: memory of slots that are empty, for those that fill next
}

// A few slots fill at a time, and what they need they find where others have been emptied: 2 MB at
// most are kept for that. What a larger herd has made is given up.
const (
	spareSlots   = 8
	SpareEntries = 1 << 14
)

func (r *timeRing) Push(at time.Time, runID int64) {
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
	h.push(lease.RingEntry{At: ms, RunID: runID})
	r.len++
}

// giveUp leaves the memory of a slot that is empty to others.
func (r *timeRing) giveUp(h *slot) {
	if n := cap(*h); len(*h) == 0 && n > 0 {
		if n <= SpareEntries && len(r.spare) < spareSlots {
			r.spare = append(r.spare, *h)
		}
		*h = nil
	}
}

func (r *timeRing) Pop(now time.Time) []int64 {
	ms := now.UnixMilli()
	second := floorDiv(ms, 1000)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.len == 0 {
		r.cursor = max(r.cursor, second)
		return nil
	}
	if second-r.cursor >= RingSlots-1 {
		return r.popAll(ms, second)
	}
	var due []int64
	for s := r.cursor; s <= max(second, r.cursor); s++ {
		h := &r.slots[slotOf(s)]
		due = h.popDue(ms, due)
		r.giveUp(h)
	}
	r.len -= len(due)
	r.cursor = max(r.cursor, second)
	return due
}

// popAll is Pop after a stall of a minute or more, or the first time: every slot
// may hold something due, and slots no more follow each other in time.
func (r *timeRing) popAll(ms, second int64) []int64 {
	var late []lease.RingEntry
	for i := range r.slots {
		h := &r.slots[i]
		for len(*h) > 0 && (*h)[0].At <= ms {
			late = append(late, (*h)[0])
			h.pop()
		}
		r.giveUp(h)
	}
	slices.SortFunc(late, lease.RingEntry.Compare)
	due := make([]int64, len(late))
	for i, e := range late {
		due[i] = e.RunID
	}
	r.len -= len(due)
	r.cursor = second
	return due
}

func (r *timeRing) Len() int {
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
	return ((second % RingSlots) + RingSlots) % RingSlots
}

// slot is a binary heap, the earliest entry first.
type slot []lease.RingEntry

func (h *slot) push(e lease.RingEntry) {
	*h = append(*h, e)
	s, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.Before(s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
}

// popDue appends the ids of entries at or before ms to due.
func (h *slot) popDue(ms int64, due []int64) []int64 {
	n := h.due(ms, 0)
	due = slices.Grow(due, n)
	if n > len(*h)/2 { // a herd, which was pushed in its order mostly: to sort it takes one pass
		slices.SortFunc(*h, lease.RingEntry.Compare) // and what stays is a heap
		for _, e := range (*h)[:n] {
			due = append(due, e.RunID)
		}
		*h = (*h)[:copy(*h, (*h)[n:])]
		return due
	}
	for range n {
		due = append(due, (*h)[0].RunID)
		h.pop()
	}
	return due
}

// due counts the entries at or before ms among i and those below it.
func (h *slot) due(ms int64, i int) int {
	if i >= len(*h) || (*h)[i].At > ms {
		return 0
	}
	return 1 + h.due(ms, 2*i+1) + h.due(ms, 2*i+2)
}

func (h *slot) pop() {
	s := *h
	last := s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].Before(s[child]) {
			child++
		}
		if !s[child].Before(last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = last
	}
}
