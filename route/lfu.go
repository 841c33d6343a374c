package route

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// day is how long a job's counts or order last. XXL-JOB: 24 hours.
	day = 24 * time.Hour

	// maxCount is where counters restart. XXL-JOB: above 1,000,000.
	maxCount = 1_000_000
)

// LFU is the router LEAST_FREQUENTLY_USED: the address the job used least; of
// several, the one listed first.
//
// XXL-JOB: the counts of a job are cleared every 24 hours. A count starts at a
// random number below the number of addresses, so that jobs do not all begin at
// the first one; so does that of an address that joins later, which therefore
// gets the job's triggers until it has caught up. An address that leaves the
// list is forgotten. XXL-JOB restarts a count alone when it passes a million,
// and then sends all triggers there until it has a million again; here the
// counts of the job are lowered together, which keeps their differences.
//
// While the list stays as it is a choice takes O(log n) for n addresses, and
// allocates nothing.
type LFU struct {
	now func() time.Time

	mu   sync.Mutex
	intn func(n int) int      // guarded by mu
	jobs *bounded[*frequency] // guarded by mu
	own  copies               // guarded by mu
}

// NewLFU returns the router LEAST_FREQUENTLY_USED with a clock; nil means
// time.Now.
func NewLFU(now func() time.Time) *LFU {
	return &LFU{now: clock(now), intn: rand.IntN, jobs: newBounded[*frequency](maxJobs, maxAddrs)}
}

// Route returns the address the job used least, and counts the use.
func (l *LFU) Route(_ context.Context, jobID int64, addrs []string) ([]string, error) {
	if len(addrs) == 0 {
		return nil, ErrNoAddress
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	e, fresh := l.jobs.get(jobID)
	if fresh || now.Sub(e.state.since) >= day {
		e.state = &frequency{since: now}
	}
	if f := e.state; !follow(f.addrs, addrs) {
		f.adopt(l.own.of(addrs), l.intn)
		l.jobs.weigh(e, len(addrs))
	}
	return only(addrs, e.state.pick()), nil
}

// Forget drops the job's counts.
func (l *LFU) Forget(jobID int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs.drop(jobID)
}

// frequency is how often a job used its addresses.
type frequency struct {
	since time.Time
	addrs []string // a copy of our own, since the caller's may change
	heap  []tally  // least first, one for each different address
}

// tally is a node of the heap.
type tally struct {
	count int32
	index int32 // in addrs
}

func (t tally) less(u tally) bool {
	return t.count < u.count || t.count == u.count && t.index < u.index
}

// adopt goes over to another list, a copy of our own: addresses in both keep
// their counts.
func (f *frequency) adopt(addrs []string, intn func(int) int) {
	const taken = -1 // the count of an address already in the new heap
	counts := make(map[string]int32, len(f.heap))
	for _, t := range f.heap {
		counts[f.addrs[t.index]] = t.count
	}
	f.heap = make([]tally, 0, len(addrs))
	for i, a := range addrs {
		c, known := counts[a]
		if c == taken {
			continue
		}
		if !known {
			c = int32(intn(len(addrs)))
		}
		counts[a] = taken
		f.heap = append(f.heap, tally{count: c, index: int32(i)})
	}
	f.addrs = addrs
	for i := len(f.heap)/2 - 1; i >= 0; i-- {
		f.sink(i)
	}
}

// pick returns the index of the address used least, and counts the use.
func (f *frequency) pick() int {
	if low := f.heap[0].count; low >= maxCount {
		for i := range f.heap {
			f.heap[i].count -= low
		}
	}
	index := f.heap[0].index
	f.heap[0].count++
	f.sink(0)
	return int(index)
}

// sink moves a node down to where it belongs.
func (f *frequency) sink(i int) {
	h, t := f.heap, f.heap[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].less(h[child]) {
			child = right
		}
		if !h[child].less(t) {
			break
		}
		h[i], i = h[child], child
	}
	h[i] = t
}
