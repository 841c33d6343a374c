package scenario_test

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
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestAFailingNodeWhoseTrustRanOut: the node could not beat, and claims failed meanwhile, so
// that it comes to fail with the beat that brings its trust back. Its scans go on all the
// same, or it would never learn that claims succeed.
func TestAFailingNodeWhoseTrustRanOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		stage.AddSeconds(t, a, 20)
		time.Sleep(10 * time.Second)
		beats := make(chan struct{})
		mend := a.BreakDown([]string{"Beat"}, storetest.Fault{Hang: beats})
		time.Sleep(time.Second) // one is under way
		a.Faults.Inject("Scan", storetest.Fault{Hang: make(chan struct{}), Calls: 1})
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
		stage.Stop(t, a, b)
	})
}

// moved is which shards came to a node, each in its last epoch, and which were swept.
type moved struct {
	mu    sync.Mutex
	over  bool // the node has said that it fails
	came  map[int]int64
	swept map[store.Shard]bool
}

// ghost is a node that beats whenever the other one does, fails when it fails, and keeps its
// shards.
const ghost = "ghost-1"

var haunts = []store.Attachment{{App: "attic"}}

// shardsCome has its node and the ghost swap a shard with each beat, until the node says that
// it fails: as if an earlier call had taken it, and the answer were lost. Their shares stay
// equal, so that it is not given up again.
type shardsCome struct {
	st *memory.Store
	*moved
}

func (s shardsCome) Beat(ctx context.Context, inc string, at []store.Attachment) (xxljob.View, error) {
	if _, err := s.st.Beat(ctx, ghost, haunts); err != nil {
		return xxljob.View{}, err
	}
	view, err := s.st.Beat(ctx, inc, at)
	if err != nil || inc == "observer" {
		return view, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = s.over || slices.ContainsFunc(view.Nodes, func(n xxljob.Node) bool { return n.Incarnation == inc && n.Failing })
	var mine, others []store.Shard
	for _, sh := range view.Shards {
		if sh.Owner == inc {
			mine = append(mine, sh)
		} else if sh.Owner == ghost {
			others = append(others, sh)
		}
	}
	if s.over || len(others) == 0 || len(mine) < len(others) {
		return view, nil
	}
	if _, err := s.st.TakeShards(ctx, ghost, mine[len(mine)-1:]); err != nil {
		return view, err
	}
	taken, err := s.st.TakeShards(ctx, inc, others[:1])
	for _, sh := range taken {
		s.came[sh.ID] = sh.Epoch
	}
	if err != nil {
		return view, err
	}
	return s.st.Beat(ctx, inc, at)
}

func (s shardsCome) SetFailing(ctx context.Context, inc string, failing bool) error {
	if err := s.st.SetFailing(ctx, ghost, failing); err != nil {
		return err
	}
	return s.st.SetFailing(ctx, inc, failing)
}

func (s shardsCome) Sweep(ctx context.Context, shards []store.Shard) error {
	s.mu.Lock()
	for _, sh := range shards {
		s.swept[store.Shard{ID: sh.ID, Epoch: sh.Epoch}] = true
	}
	s.mu.Unlock()
	return s.st.Sweep(ctx, shards)
}

// TestShardsFoundByAFailingNode: a node finds a shard in the very look by which it comes to
// say that it fails. It is swept and its planned runs are read, as of any other.
func TestShardsFoundByAFailingNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		come := shardsCome{memory.New(), &moved{came: map[int]int64{}, swept: map[store.Shard]bool{}}}
		st := bent.AllOf(come.st, come)
		stage.Must(t, st.SetShards(t.Context(), 32))
		_, err := st.Join(t.Context(), xxljob.Node{ID: "ghost", Incarnation: ghost, Attached: haunts})
		stage.Must(t, err)
		n := stage.StartNode(t, st, "n", &stage.Journal{})
		time.Sleep(time.Second)
		rest := slices.DeleteFunc(stage.Observe(t, st).Shards, func(sh store.Shard) bool { return sh.Owner != "" })
		_, err = st.TakeShards(t.Context(), ghost, rest)
		stage.Must(t, err)
		mend := n.BreakDown([]string{"Start"}, before())
		var runs []int64
		for i := range 200 { // some of them in every shard
			runs = append(runs, stage.TriggerNew(t, n, xxljob.Job{Name: fmt.Sprint("job ", i), Handler: "work"}))
		}
		time.Sleep(15 * time.Second)
		if _, failing := shardsOf(t, st, n); !failing {
			t.Error("the node does not say that it fails")
		}
		mend()
		time.Sleep(20 * time.Second)
		mine := map[int]bool{}
		for _, sh := range stage.Observe(t, st).Shards {
			mine[sh.ID] = sh.Owner != ghost
			if epoch, came := come.came[sh.ID]; came && sh.Owner != ghost && sh.Epoch != epoch {
				t.Errorf("shard %d is at epoch %d, and came in %d", sh.ID, sh.Epoch, epoch)
			}
		}
		stage.Stop(t, n)
		found := 0
		for id, epoch := range come.came {
			found += stage.One(mine[id])
			if mine[id] && !come.swept[store.Shard{ID: id, Epoch: epoch}] {
				t.Errorf("shard %d was never swept in epoch %d", id, epoch)
			}
		}
		if found == 0 {
			t.Error("the node has no shard that came to it")
		}
		notStarted := map[int]int{}
		for _, id := range runs {
			run, err := st.Run(t.Context(), id)
			stage.Must(t, err)
			notStarted[run.Shard] += stage.One(mine[run.Shard] && run.State != xxljob.StateSucceeded)
		}
		for shard, n := range notStarted {
			if n > 0 {
				t.Errorf("%d runs of shard %d are not started", n, shard)
			}
		}
	})
}

// TestShardsGoRoundWhateverFails: a node that cannot mend jobs of the shards that it took,
// or settle runs there, takes and gives up shards as before, and gives all of them up when
// it comes to rest.
func TestShardsGoRoundWhateverFails(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Sweep", "StartedBy", "Settle", "Bury"} {
		for how, fault := range map[string]func() storetest.Fault{"fails": before, "hangs": hang} {
			t.Run(method+" "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					st, j := memory.New(), &stage.Journal{}
					a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
					stage.AddSeconds(t, b, 20)
					time.Sleep(20 * time.Second)
					a.Faults.Inject(method, before())
					stage.Stop(t, c)
					time.Sleep(5 * time.Second)
					requireSpread(t, st, a, b)
					d := stage.StartNode(t, st, "d", j)
					time.Sleep(5 * time.Second)
					requireSpread(t, st, a, b, d)
					a.BreakDown([]string{method, "Claim", "Start"}, fault())
					time.Sleep(fitTTL + 4*time.Second)
					if n, failing := shardsOf(t, st, a); n != 0 || !failing {
						t.Errorf("while it rests: %d shards, failing: %v", n, failing)
					}
					a.Faults.Clear()
					stage.Stop(t, a, b, d)
				})
			})
		}
	}
}
