package xxljob

// What the lease loop has to tell of: shards that came and went, and a store that is away.

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// leaseNews tells which shards this node has come to have and has no more, and whether the
// store answers. It is for the lease loop; Stop tells of shards too.
type leaseNews struct {
	teller *teller

	mu   sync.Mutex
	has  []store.Shard // guarded by mu
	good time.Time     // monotonic: the last answer of the store
	away bool          // it was told of
}

// took tells of shards that this node is about to schedule the jobs of.
func (n *leaseNews) took(shards []store.Shard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(slices.Concat(n.has, shards))
}

// shards compares what this node has with what it had.
func (n *leaseNews) shards(now []store.Shard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(now)
}

// look is called with mu held.
func (n *leaseNews) look(now []store.Shard) {
	for i := range now {
		now[i].Owner, now[i].Free = n.teller.leases.incarnation, false
	}
	for _, sh := range n.has {
		if !slices.Contains(now, sh) {
			n.teller.happened(Event{Kind: EventShardLost, Shard: &sh})
		}
	}
	for _, sh := range now {
		if !slices.Contains(n.has, sh) {
			n.teller.happened(Event{Kind: EventShardTaken, Shard: &sh})
		}
	}
	n.has = now
}

// answered notes that the store has answered a beat.
func (n *leaseNews) answered() {
	now := time.Now()
	if n.away {
		n.teller.happened(Event{Kind: EventStoreBack, Away: now.Sub(n.good)})
	}
	n.good, n.away = now, false
}

// failed notes that a beat has failed, and whether this node still relies on its shards.
func (n *leaseNews) failed(err error, trusted bool) {
	if n.good.IsZero() {
		n.good = time.Now()
	}
	if !trusted && !n.away {
		n.away = true
		n.teller.happened(Event{Kind: EventStoreAway, Err: err})
	}
}
