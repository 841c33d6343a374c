package route

import (
	"context"
	"slices"
	"sync"
	"time"
)

// LRU is the router LEAST_RECENTLY_USED: the address the job has not used for
// longest. One it never used comes before those it did; of several such, the
// one listed first.
//
// An address that leaves the list is forgotten. XXL-JOB also forgets the whole
// order every 24 hours, so that a daily job always goes to the first address.
// Here a job's order is put back to that of the list every 24 hours too, but
// begins behind the address used last.
//
// While the list stays as it is a choice takes O(1) and allocates nothing.
type LRU struct {
	now func() time.Time

	mu   sync.Mutex
	jobs *bounded[*recency] // guarded by mu
	own  copies             // guarded by mu
}

// NewLRU returns the router LEAST_RECENTLY_USED with a clock; nil means
// time.Now.
func NewLRU(now func() time.Time) *LRU {
	return &LRU{now: clock(now), jobs: newBounded[*recency](maxJobs, maxAddrs)}
}

// Route returns the address the job has not used for longest, which it then
// used last.
func (l *LRU) Route(_ context.Context, jobID int64, addrs []string) ([]string, error) {
	if len(addrs) == 0 {
		return nil, ErrNoAddress
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	e, fresh := l.jobs.get(jobID)
	if fresh {
		e.state = &recency{since: now}
	}
	r, last := e.state, ""
	expired := now.Sub(r.since) >= day
	if expired {
		last = r.last()
		*r = recency{since: now}
	}
	if !follow(r.addrs, addrs) {
		r.adopt(l.own.of(addrs))
		l.jobs.weigh(e, len(addrs))
	}
	if expired {
		r.startBehind(last)
	}
	return only(addrs, r.pick()), nil
}

// Forget drops the job's order.
func (l *LRU) Forget(jobID int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs.drop(jobID)
}

// recency is in which order a job used its addresses. The choice is always the
// oldest, which then is the youngest, so the order is a circle and a choice
// turns it by one.
type recency struct {
	since  time.Time
	addrs  []string // a copy of our own, since the caller's may change
	order  []int32  // indices in addrs, one for each different address
	turn   int      // the place in order of the oldest
	unused int      // how many from there on were never used, in the list's order
}

// pick returns the index of the oldest, and makes it the youngest.
func (r *recency) pick() int {
	i := r.order[r.turn]
	if r.turn++; r.turn == len(r.order) {
		r.turn = 0
	}
	if r.unused > 0 {
		r.unused--
	}
	return int(i)
}

// last returns the address used last.
func (r *recency) last() string {
	n := len(r.order)
	return r.addrs[r.order[(r.turn+n-1)%n]]
}

// startBehind turns the circle to behind an address, if it is there. All of
// the circle then counts as used, in this order.
func (r *recency) startBehind(addr string) {
	at := slices.IndexFunc(r.order, func(i int32) bool { return r.addrs[i] == addr })
	r.turn, r.unused = (at+1)%len(r.order), 0
}

// adopt goes over to another list, a copy of our own: first what was never
// used, in the order of the new list, then what was, in the order of use.
func (r *recency) adopt(addrs []string) {
	age := make(map[string]int, len(r.order)) // 0 oldest
	for i := r.unused; i < len(r.order); i++ {
		age[r.addrs[r.order[(r.turn+i)%len(r.order)]]] = i
	}
	const taken = -1 // the age of an address that was met in addrs
	kept := make([]int32, len(r.order))
	for i := range kept {
		kept[i] = taken
	}
	order := make([]int32, 0, len(addrs))
	for i, a := range addrs {
		old, known := age[a]
		age[a] = taken
		switch {
		case !known:
			order = append(order, int32(i))
		case old != taken:
			kept[old] = int32(i)
		}
	}
	r.unused = len(order)
	for _, i := range kept {
		if i != taken {
			order = append(order, i)
		}
	}
	r.order, r.turn, r.addrs = order, 0, addrs
}
