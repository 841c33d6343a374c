package xxljob_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// lockedStore is a store that knows whose connection has ended: the named nodes'.
type lockedStore struct {
	xxljob.Store
	mu   sync.Mutex
	dead map[string]bool // guarded by mu: by Config.Node
}

func (s *lockedStore) Beat(ctx context.Context, inc string, at []xxljob.Attachment) (xxljob.View, error) {
	v, err := s.Store.Beat(ctx, inc, at)
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
	v, err := st.Beat(t.Context(), "observer", nil)
	must(t, err)
	must(t, st.Leave(t.Context(), "observer"))
	must(t, st.Bury(t.Context(), "observer", 1))
	n := map[string]int{}
	for _, sh := range v.Shards {
		name, _, _ := strings.Cut(sh.Owner, "-")
		n[name]++
	}
	return n
}

// TestSharesOfANodeThatIsAway: its shards go to the others with their next
// beats, and stay with them, though it is not silent for long enough to be gone.
func TestSharesOfANodeThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &lockedStore{Store: memory.New(), dead: map[string]bool{}}
		j := &journal{}
		a, b, c := startNode(t, st, "a", j), startNode(t, st, "b", j), startNode(t, st, "c", j)
		time.Sleep(20 * time.Second)
		b.pause()
		st.die("b")
		for _, after := range []time.Duration{1100 * time.Millisecond, time.Second, time.Second} {
			time.Sleep(after)
			if n := owners(t, st.Store); n["b"] != 0 || n["a"] != 16 || n["c"] != 16 {
				t.Errorf("shards by node after the death of b: %v, want 16 for a and c", n)
			}
		}
		b.resume()
		stop(t, a, b, c)
	})
}

// TestSharesOfANodeThatStops: a node that waits for its handlers leaves its share to
// the others at once.
func TestSharesOfANodeThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		j := &journal{}
		a, b, c := startNode(t, st, "a", j), startNode(t, st, "b", j), startNode(t, st, "c", j)
		held := make(chan struct{})
		must(t, b.Handle("long", func(context.Context, *xxljob.Task) error { <-held; return nil }))
		job, err := b.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long"})
		must(t, err)
		time.Sleep(20 * time.Second)
		_, err = b.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		must(t, err)
		time.Sleep(2 * time.Second)
		stopped := make(chan error)
		go func() { stopped <- b.Stop(context.Background()) }()
		for range 3 {
			time.Sleep(500 * time.Millisecond)
			if n := owners(t, st); n["b"] != 0 || n["a"] != 16 || n["c"] != 16 {
				t.Errorf("shards by node while b stops: %v, want 16 for a and c", n)
			}
		}
		close(held)
		must(t, <-stopped)
		stop(t, a, c)
	})
}
