package node

import (
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// TestShardsToldOfAfterTheEnd: Stop gives the shards up while the lease loop is about to tell of
// those that it had, or has just taken some: nobody hears that this node has shards after it has
// given them up.
func TestShardsToldOfAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []core.EventKind
		tell := func(kind core.EventKind) func(store.Shard) {
			return func(store.Shard) { told = append(told, kind) }
		}
		s, err := New(noStore{}, core.Config{App: "app", Hooks: core.Hooks{ShardTaken: tell(core.EventShardTaken), ShardLost: tell(core.EventShardLost)}})
		if err != nil {
			t.Fatal(err)
		}
		news := &s.heartbeat.told
		shard := []store.Shard{{ID: 0, Epoch: 1}}
		news.took(shard)
		news.end()
		news.shards([]store.Shard{{ID: 0, Epoch: 1}})
		news.took([]store.Shard{{ID: 1, Epoch: 1}})
		news.end()
		synctest.Wait()
		if len(told) != 2 || told[0] != core.EventShardTaken || told[1] != core.EventShardLost {
			t.Errorf("told of %q, want one shard taken and lost", told)
		}
	})
}

type noStore struct{ store.Store }
