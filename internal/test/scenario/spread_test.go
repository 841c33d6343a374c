package scenario_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// lockedStore is a store that knows whose connection has ended: the named nodes'.
type lockedStore struct {
	st   xxljob.Store
	mu   sync.Mutex
	dead map[string]bool // guarded by mu: by Config.Node
}

func (s *lockedStore) Beat(ctx context.Context, inc string, at []store.Attachment) (xxljob.View, error) {
	v, err := s.st.Beat(ctx, inc, at)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, sh := range v.Shards {
		name, _, _ := strings.Cut(sh.Owner, "-")
		v.Shards[i].Free = sh.Free || s.dead[name]
	}
	for i, n := range v.Nodes {
		v.Nodes[i].Away = s.dead[n.ID]
	}
	return v, err
}

func (s *lockedStore) die(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[name] = true
}

// owners counts the shards of each node.
func owners(t *testing.T, st xxljob.Store) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, sh := range stage.Observe(t, st).Shards {
		name, _, _ := strings.Cut(sh.Owner, "-")
		n[name]++
	}
	return n
}

// TestSharesOfANodeThatIsAway: its shards go to the others with their next
// beats, and stay with them, though it is not silent for long enough to be gone.
func TestSharesOfANodeThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := &lockedStore{st: memory.New(), dead: map[string]bool{}}
		st := bent.StoreOf(dead.st, dead)
		j := &stage.Journal{}
		a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
		time.Sleep(20 * time.Second)
		b.Pause()
		dead.die("b")
		for _, after := range []time.Duration{1100 * time.Millisecond, time.Second, time.Second} {
			time.Sleep(after)
			if n := owners(t, dead.st); n["b"] != 0 || n["a"] != 16 || n["c"] != 16 {
				t.Errorf("shards by node after the death of b: %v, want 16 for a and c", n)
			}
		}
		b.Resume()
		stage.Stop(t, a, b, c)
	})
}

// TestSharesOfANodeThatStops: a node that waits for its handlers leaves its share to
// the others at once.
func TestSharesOfANodeThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
		time.Sleep(20 * time.Second)
		letGo := drain(t, b)
		for range 3 {
			time.Sleep(500 * time.Millisecond)
			if n := owners(t, st); n["b"] != 0 || n["a"] != 16 || n["c"] != 16 {
				t.Errorf("shards by node while b stops: %v, want 16 for a and c", n)
			}
		}
		letGo()
		stage.Stop(t, a, c)
	})
}

// TestSharesThatNobodyTakes: where the node that shards are due to does not take them,
// whatever the reason, the others do: none is left alone for much longer than two beats
// take.
func TestSharesThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(20 * time.Second)
		c := stage.StartNode(t, st, "c", j)
		c.Faults.Inject("TakeShards", storetest.Fault{Before: true})
		alone, longest, seconds := map[int]int{}, 0, 0
		for second := range 300 {
			time.Sleep(time.Second)
			any := false
			for _, sh := range stage.Observe(t, st).Shards {
				if alone[sh.ID]++; sh.Owner != "" {
					alone[sh.ID] = 0
				}
				longest = max(longest, alone[sh.ID])
				any = any || sh.Owner == ""
			}
			if any && second < 60 {
				seconds++
			}
		}
		if seconds > 4 {
			t.Errorf("in the first minute some shard was alone for %d s: what was rescued must not drive others out", seconds)
		}
		if longest < 2 || longest > 4 {
			t.Errorf("a shard was left alone for %d s, want a little more than two beats of 1 s", longest)
		}
		c.Faults.Clear()
		time.Sleep(3 * time.Minute) // nobody keeps for long what is above its share
		requireOwners(t, st, 2*time.Minute, "a", "b", "c")
		stage.Stop(t, a, b, c)
	})
}

// TestSharesOfSilentNodesWhenANewOneIsSilentToo: the shards of a node that has fallen silent
// are due to a node that has just come, which has not seen the other be silent, and falls
// silent itself before it could. The one that is well does not wait for it.
func TestSharesOfSilentNodesWhenANewOneIsSilentToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(20 * time.Second)
		b.Pause()
		time.Sleep(4 * time.Second)
		c := stage.StartNode(t, st, "c", j)
		time.Sleep(1500 * time.Millisecond)
		c.Pause()
		time.Sleep(4 * time.Second) // after a LeaseTTL, two beats, and the beats at which a has seen that
		if n := owners(t, st)["b"]; n != 0 {
			t.Errorf("%d shards are still those of the node that fell silent 9.5 s ago", n)
		}
		b.Resume()
		c.Resume()
		stage.Stop(t, a, b, c)
	})
}

// heldElsewhere is a store that does not let free shards be taken: a process that hangs
// has given them up, and their locks not.
type heldElsewhere struct {
	st     xxljob.Store
	shards int
}

func (s heldElsewhere) TakeShards(ctx context.Context, inc string, shards []store.Shard) ([]store.Shard, error) {
	return s.st.TakeShards(ctx, inc, slices.DeleteFunc(slices.Clone(shards), func(sh store.Shard) bool {
		return sh.Free && sh.ID < s.shards
	}))
}

// TestFreeShardsThatAreLocked: a shard that nobody owns, and that cannot be had, is taken
// by its epoch when it has stood still for longer than a lease lasts.
func TestFreeShardsThatAreLocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a := stage.StartNode(t, bent.StoreOf(st, heldElsewhere{st, 5}), "a", j)
		b := stage.StartNode(t, bent.StoreOf(st, heldElsewhere{st, 5}), "b", j)
		time.Sleep(4 * time.Second)
		if n := owners(t, st)[""]; n != 5 {
			t.Fatalf("%d shards have no owner, want the 5 that are locked", n)
		}
		time.Sleep(4 * time.Second)
		if n := owners(t, st); n[""] != 0 {
			t.Errorf("shards by node after 8 s: %v, want none without", n)
		}
		stage.Stop(t, a, b)
	})
}
