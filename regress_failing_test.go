package xxljob_test

// What a node notes with each look, also with the one by which it comes to say that it
// fails.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestAFailingNodeWhoseTrustRanOut: the node could not beat, and claims failed meanwhile, so
// that it comes to fail with the beat that brings its trust back. Its scans go on all the
// same, or it would never learn that claims succeed.
func TestAFailingNodeWhoseTrustRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a, b := startNode(t, st, "a", j), startNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		addSeconds(t, a, 20)
		time.Sleep(10 * time.Second)
		beats := make(chan struct{})
		mend := a.breakDown([]string{"Beat"}, storetest.Fault{Hang: beats})
		time.Sleep(time.Second) // one is under way
		a.faults.Inject("Scan", storetest.Fault{Hang: make(chan struct{}), Calls: 1})
		time.Sleep(7 * time.Second)
		close(beats) // of the second, which began before the scan was over
		mend()
		time.Sleep(300 * time.Millisecond)
		if _, failing := shardsOf(t, st, a); !failing {
			t.Fatal("the node does not say that it fails")
		}
		time.Sleep(2*fitTTL + 5*time.Second)
		if err := a.Ready(); err != nil {
			t.Error(err)
		}
		requireSpread(t, st, a, b)
		stop(t, a, b)
	})
}

// moved is which shards came to nodes, each in its last epoch, and which were swept.
type moved struct {
	mu    sync.Mutex
	over  bool // a node has said that it fails
	came  map[int]int64
	swept map[xxljob.Shard]bool
}

// shardsCome gives its node a shard of another with each beat, until a node says that it
// fails: as if an earlier call had taken it, and its answer were lost.
type shardsCome struct {
	*memory.Store
	*moved
}

func (m *moved) isOver(v xxljob.View) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = m.over || slices.ContainsFunc(v.Nodes, func(n xxljob.Node) bool { return n.Failing })
	return m.over
}

func (s shardsCome) Beat(ctx context.Context, inc string, at []xxljob.Attachment) (xxljob.View, error) {
	view, err := s.Store.Beat(ctx, inc, at)
	if err != nil || s.isOver(view) {
		return view, err
	}
	i := slices.IndexFunc(view.Shards, func(sh xxljob.Shard) bool { return sh.Owner != "" && sh.Owner != inc })
	if i < 0 {
		return view, nil
	}
	taken, err := s.TakeShards(ctx, inc, view.Shards[i:i+1])
	if err != nil {
		return view, err
	}
	s.mu.Lock()
	for _, sh := range taken {
		s.came[sh.ID] = sh.Epoch
	}
	s.mu.Unlock()
	return s.Store.Beat(ctx, inc, at)
}

func (s shardsCome) Sweep(ctx context.Context, shards []xxljob.Shard) error {
	s.mu.Lock()
	for _, sh := range shards {
		s.swept[xxljob.Shard{ID: sh.ID, Epoch: sh.Epoch}] = true
	}
	s.mu.Unlock()
	return s.Store.Sweep(ctx, shards)
}

// TestShardsFoundByAFailingNode: a node finds a shard in the very look by which it comes to
// say that it fails. It is swept and its planned runs are read, as of any other.
func TestShardsFoundByAFailingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		st := shardsCome{memory.New(), &moved{came: map[int]int64{}, swept: map[xxljob.Shard]bool{}}}
		a, b := startNode(t, st, "a", j), startNode(t, st, "b", j)
		var mends []func()
		for _, n := range []*node{a, b} {
			mends = append(mends, n.breakDown([]string{"Start"}, before()))
		}
		var runs []int64
		for i := range 200 { // some of them in every shard
			runs = append(runs, triggerNew(t, b, xxljob.Job{Name: fmt.Sprint("job ", i), Handler: "work"}))
		}
		time.Sleep(15 * time.Second)
		for _, n := range []*node{a, b} {
			if _, failing := shardsOf(t, st, n); !failing {
				t.Errorf("%s does not say that it fails", n.name)
			}
		}
		for _, mend := range mends {
			mend()
		}
		time.Sleep(20 * time.Second)
		stop(t, a, b)
		if len(st.came) == 0 {
			t.Error("no shard came to a node")
		}
		for id, epoch := range st.came {
			if !st.swept[xxljob.Shard{ID: id, Epoch: epoch}] {
				t.Errorf("shard %d was never swept in epoch %d", id, epoch)
			}
		}
		notStarted := map[int]int{}
		for _, id := range runs {
			run, err := st.Run(t.Context(), id)
			must(t, err)
			notStarted[run.Shard] += one(run.State != xxljob.StateSucceeded)
		}
		for shard, n := range notStarted {
			if n > 0 {
				t.Errorf("%d runs of shard %d are not started", n, shard)
			}
		}
	})
}
