package lease

import (
	"slices"
	"sync"

	"github.com/xxljob/xxljob/store"
)

// Shards of which something has to be done as a whole.

// ReloadSet are shards whose planned runs have to be read as a whole: after a
// take-over, and after a claim whose outcome is unknown.
type ReloadSet struct {
	Mu     sync.Mutex
	Shards map[int]bool // guarded by mu
}

func (r *ReloadSet) Add(shards []store.Shard) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Shards == nil {
		r.Shards = map[int]bool{}
	}
	for _, sh := range shards {
		r.Shards[sh.ID] = true
	}
}

// Take empties the set and returns those of the owned shards that were in it. It asks which are
// owned only where there is something in it: with almost every beat there is not.
func (r *ReloadSet) Take(owned func() []store.Shard) []store.Shard {
	r.Mu.Lock()
	set := r.Shards
	r.Shards = nil
	r.Mu.Unlock()
	if len(set) == 0 {
		return nil
	}
	return slices.DeleteFunc(owned(), func(sh store.Shard) bool { return !set[sh.ID] })
}
