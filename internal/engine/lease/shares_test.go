package lease

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestIdleShardsAreWatched: a shard counts as idle from when it is seen to be, and not from
// before a time in which this node did not look.
func TestIdleShardsAreWatched(t *testing.T) {
	times := Times{Window: 4 * time.Second, TTL: 5 * time.Second, LostAfter: 30 * time.Second}
	for _, pause := range []string{"rests", "does not look"} {
		t.Run(pause, func(t *testing.T) {
			l := New("a-1", times, func() []store.Attachment { return nil })
			l.Seen.nodes = map[string]*Observed{"a-1": {live: true}, "b-1": {live: true}}
			now, shards := time.Now(), []store.Shard{{ID: 0, Owner: "b-1"}, {ID: 1, Free: true}}
			l.Shares(shards, now)
			l.mood.rests = pause == "rests"
			for range 60 {
				if now = now.Add(time.Second); l.mood.rests {
					l.Shares(shards, now)
				}
			}
			l.mood.rests = false
			if _, take, above := l.Shares(shards, now); len(take) != 1 || len(above) > 0 || !take[0].Free {
				t.Errorf("took %+v, want the free shard as a free one", take)
			}
		})
	}
}
