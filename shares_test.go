package xxljob

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestIdleShardsAreWatched: a shard counts as idle from when it is seen to be, and not from
// before a time in which this node did not look.
func TestIdleShardsAreWatched(t *testing.T) {
	for _, pause := range []string{"rests", "does not look"} {
		t.Run(pause, func(t *testing.T) {
			c := Config{}.withDefaults()
			l := newLeases("a-1", timesOf(&c.Cluster), func() []store.Attachment { return nil })
			l.seen.nodes = map[string]*observed{"a-1": {live: true}, "b-1": {live: true}}
			now, shards := time.Now(), []store.Shard{{ID: 0, Owner: "b-1"}, {ID: 1, Free: true}}
			l.shares(shards, now)
			l.mood.rests = pause == "rests"
			for range 60 {
				if now = now.Add(time.Second); l.mood.rests {
					l.shares(shards, now)
				}
			}
			l.mood.rests = false
			if _, take, above := l.shares(shards, now); len(take) != 1 || len(above) > 0 || !take[0].Free {
				t.Errorf("took %+v, want the free shard as a free one", take)
			}
		})
	}
}
