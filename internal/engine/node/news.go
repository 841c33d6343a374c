package node

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/store"
)

// What hooks are told by the heartbeat: shards that came and went, and a store that is away.

// leaseNews tells which shards this node has come to have and has no more, and whether the
// store answers. It is for the lease loop; Stop tells of shards too.
type leaseNews struct {
	bus *events.Bus

	mu   sync.Mutex
	has  []store.Shard // guarded by mu
	over bool          // guarded by mu: Stop has given up the shards, and no more is told of any
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

// end tells that this node has no shards any more. What the lease loop tells of shards after that
// is from before it.
func (n *leaseNews) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(nil)
	n.over = true
}

// look is called with mu held.
func (n *leaseNews) look(now []store.Shard) {
	if n.over {
		return
	}
	for i := range now {
		now[i].Owner, now[i].Free = n.bus.Leases.Incarnation, false
	}
	for _, sh := range n.has {
		if !slices.Contains(now, sh) {
			n.bus.Happened(core.Event{Kind: core.EventShardLost, Shard: &sh})
		}
	}
	for _, sh := range now {
		if !slices.Contains(n.has, sh) {
			n.bus.Happened(core.Event{Kind: core.EventShardTaken, Shard: &sh})
		}
	}
	n.has = now
}

// answered notes that the store has answered a beat.
func (n *leaseNews) answered() {
	now := time.Now()
	if n.away {
		n.bus.Happened(core.Event{Kind: core.EventStoreBack, Away: now.Sub(n.good)})
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
		n.bus.Happened(core.Event{Kind: core.EventStoreAway, Err: err})
	}
}
