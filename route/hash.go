package route

import (
	"context"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
)

const (
	// maxRings and maxRingAddrs bound the rings kept: by number, and by the
	// sum of their addresses. An address takes up to 1.6 kB, so that is
	// some 50 MB.
	maxRings     = 4096
	maxRingAddrs = 1 << 15

	recentRings = 256  // slots; a power of two
	recentJobs  = 4096 // slots; a power of two
)

// Hash is the router CONSISTENT_HASH: a job keeps its address while the list
// lasts, and when an address comes or goes few jobs move. It chooses exactly as
// XXL-JOB does, so a scheduler that takes over leaves jobs where they were.
//
// A ring is made when its list is seen first, not for every trigger, and is
// kept. Rings are a function of the list, and points of the job id, so there
// is nothing to forget about a removed job.
type Hash struct {
	seed maphash.Seed

	// recent and jobs are looked at without a lock, and hold whatever came by
	// last in each slot, so a ring may live on here after rings dropped it. A
	// job's slot holds its point and its id, if that is of 32 bits as
	// XXL-JOB's are, in one word; 0 is empty.
	recent [recentRings]atomic.Pointer[ring]
	jobs   [recentJobs]atomic.Uint64

	mu    sync.Mutex
	rings *bounded[*ring] // by hash of the whole list; guarded by mu
}

// NewHash returns the router CONSISTENT_HASH.
func NewHash() *Hash {
	return &Hash{seed: maphash.MakeSeed(), rings: newBounded[*ring](maxRings, maxRingAddrs)}
}

// Route returns the address that owns the job's point on the ring of addrs.
func (h *Hash) Route(_ context.Context, jobID int64, addrs []string) ([]string, error) {
	if len(addrs) == 0 {
		return nil, ErrNoAddress
	}
	return only(addrs, h.ring(addrs).owner(h.point(jobID))), nil
}

// point is the job's point, which costs more to compute than all else here
// together.
func (h *Hash) point(jobID int64) uint32 {
	if jobID <= 0 || jobID > math.MaxUint32 {
		return jobPoint(jobID)
	}
	slot := &h.jobs[jobID%recentJobs]
	if v := slot.Load(); uint32(v) == uint32(jobID) {
		return uint32(v >> 32)
	}
	p := jobPoint(jobID)
	slot.Store(uint64(p)<<32 | uint64(jobID))
	return p
}

// ring returns the ring of a list. The slot to look into is told by the ends
// of the list alone: hashing all of it would take longer than the routing.
func (h *Hash) ring(addrs []string) *ring {
	n := len(addrs)
	key := maphash.String(h.seed, addrs[0]) + 3*maphash.String(h.seed, addrs[n-1]) + uint64(n)
	slot := &h.recent[key%recentRings]
	if r := slot.Load(); r != nil && same(r.addrs, addrs) {
		return r
	}
	r := h.find(addrs)
	slot.Store(r)
	return r
}

// find returns the ring of a list from those kept, or makes it. It is made
// outside the lock, once: who wants the same list waits, others do not.
func (h *Hash) find(addrs []string) *ring {
	r := h.keep(addrs)
	r.once.Do(r.build)
	return r
}

// keep returns the kept ring of a list, or keeps a new one that is yet to be
// built.
func (h *Hash) keep(addrs []string) *ring {
	key := h.listKey(addrs)
	h.mu.Lock()
	defer h.mu.Unlock()
	e, fresh := h.rings.get(key)
	if fresh || !same(e.state.addrs, addrs) { // two lists, one key: the later one stays
		e.state = newRing(addrs)
		h.rings.weigh(e, len(addrs))
	}
	return e.state
}

// listKey hashes a list, with the length of each address so that ("ab", "c")
// and ("a", "bc") differ.
func (h *Hash) listKey(addrs []string) int64 {
	var m maphash.Hash
	m.SetSeed(h.seed)
	for _, a := range addrs {
		maphash.WriteComparable(&m, len(a))
		m.WriteString(a)
	}
	return int64(m.Sum64())
}
