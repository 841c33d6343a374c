package xxljob

// Shards of which something has to be done as a whole.

import (
	"sync"

	"github.com/xxljob/xxljob/store"
)

// reloadSet are shards whose planned runs have to be read as a whole: after a
// take-over, and after a claim whose outcome is unknown.
type reloadSet struct {
	mu     sync.Mutex
	shards map[int]bool // guarded by mu
}

func (r *reloadSet) add(shards []store.Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shards == nil {
		r.shards = map[int]bool{}
	}
	for _, sh := range shards {
		r.shards[sh.ID] = true
	}
}

// take empties the set and returns those of the owned shards that were in it.
func (r *reloadSet) take(owned []store.Shard) []store.Shard {
	r.mu.Lock()
	defer r.mu.Unlock()
	var shards []store.Shard
	for _, sh := range owned {
		if r.shards[sh.ID] {
			shards = append(shards, sh)
		}
	}
	r.shards = nil
	return shards
}
