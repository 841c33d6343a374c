package lease

import (
	"slices"
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

// TestNothingIsTakenAfterStop: once Stop has begun a node keeps what it has until that is given up,
// and gives back what a call brings in that was under way.
func TestNothingIsTakenAfterStop(t *testing.T) {
	l := New("a-1", Times{TTL: 5 * time.Second}, func() []store.Attachment { return nil })
	l.Seen.nodes = map[string]*Observed{"a-1": {live: true}}
	known, taken, free := store.Shard{ID: 0, Owner: "a-1", Epoch: 1}, store.Shard{ID: 1, Owner: "a-1", Epoch: 7}, store.Shard{ID: 2, Free: true}
	if !l.Add([]store.Shard{known}, nil, time.Now()) {
		t.Error("a shard that was taken before Stop is not the node's")
	}
	l.StopTaking()
	if l.Add([]store.Shard{taken}, nil, time.Now()) {
		t.Error("a shard is the node's that was taken after Stop")
	}
	if found := l.own([]store.Shard{known, taken}, time.Now()); len(found) > 0 {
		t.Errorf("took up %+v", found)
	}
	if give, take, above := l.Shares([]store.Shard{known, taken, free}, time.Now()); len(give) != 1 || give[0] != taken || len(take)+len(above) > 0 {
		t.Errorf("gives up %+v and takes %+v, want to give up the one that it does not know", give, slices.Concat(take, above))
	}
	l.Drop([]store.Shard{known})
	if give, _, _ := l.Shares([]store.Shard{known, free}, time.Now()); len(give) != 1 || give[0] != known {
		t.Errorf("gives up %+v, want what the store still has as its own", give)
	}
}
