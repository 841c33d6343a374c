package scenario_test

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

// requireSpread checks that the live nodes hold equal shares of the shards,
// within one.
func requireSpread(t *testing.T, st xxljob.Store, want ...*stage.Node) {
	t.Helper()
	view := stage.Observe(t, st)
	counts := map[string]int{}
	for _, sh := range view.Shards {
		for _, n := range view.Nodes {
			if n.Incarnation == sh.Owner {
				counts[n.ID]++
			}
		}
	}
	least, most := 1<<30, 0
	for _, n := range want {
		least, most = min(least, counts[n.Name]), max(most, counts[n.Name])
	}
	if most-least > 1 || len(counts) != len(want) {
		t.Errorf("shards are spread as %v over %d nodes", counts, len(want))
	}
}

// TestClusterSurvives runs three nodes on one store: one dies, one is paused for
// longer than its lease and for longer than LostAfter, one joins. Nothing is
// lost or doubled.
func TestClusterSurvives(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{3 * time.Second, 8 * time.Second, 20 * time.Second, 50 * time.Second} {
		t.Run(fmt.Sprint("paused for ", pause), func(t *testing.T) {
			if (pause == 8*time.Second || pause == 20*time.Second) && testing.Short() {
				t.Skip("a pause between the shortest and the longest; leave out -short")
			}
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
				time.Sleep(10 * time.Second)
				requireSpread(t, st, a, b, c)
				jobs := stage.AddSeconds(t, a, 40)
				from := time.Now()
				time.Sleep(10 * time.Second)

				a.Pause() // dies: nothing of it is ever heard of again
				time.Sleep(60 * time.Second)
				requireSpread(t, st, b, c)

				b.Pause()
				time.Sleep(pause)
				b.Resume()
				time.Sleep(60 * time.Second)
				requireSpread(t, st, b, c)

				d := stage.StartNode(t, st, "d", j)
				time.Sleep(30 * time.Second)
				requireSpread(t, st, b, c, d)
				to := time.Now()
				time.Sleep(10 * time.Second)
				stage.Stop(t, b, c, d)

				got := stage.AuditSeconds(t, st, j, jobs, from, to)
				if got.Lost != 0 || got.Double != 0 || got.Early != 0 || got.Skipped != 0 {
					t.Errorf("audit: %+v", got)
				}
				t.Logf("audit: %+v of %d starts", got, len(j.All()))
				// The dead node's goroutines end, so that the bubble can.
				a.Resume()
				stage.Stop(t, a)
			})
		})
	}
}

// TestStoreAway takes the store away for ten lease times: no run of a live node
// is judged lost, and what is due meanwhile is run or recorded.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(5 * time.Second)
		jobs := stage.AddSeconds(t, a, 10)
		for _, n := range []*stage.Node{a, b} {
			stage.Must(t, n.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(90 * time.Second); return nil }))
		}
		long, err := a.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long"})
		stage.Must(t, err)
		ids, err := a.Trigger(t.Context(), long.ID, xxljob.Trigger{})
		stage.Must(t, err)
		from := time.Now()
		time.Sleep(10 * time.Second)
		for _, n := range []*stage.Node{a, b} {
			n.Faults.Inject(storetest.All, storetest.Fault{Before: true})
		}
		time.Sleep(50 * time.Second)
		for _, n := range []*stage.Node{a, b} {
			n.Faults.Clear()
		}
		time.Sleep(60 * time.Second)
		to := time.Now()
		run, err := a.Wait(t.Context(), ids[0])
		stage.Must(t, err)
		if run.State != xxljob.StateSucceeded {
			t.Errorf("the long run ended as %v: %s", run.State, run.HandleMsg)
		}
		time.Sleep(10 * time.Second)
		requireSpread(t, st, a, b)
		stage.Stop(t, a, b)
		got := stage.AuditSeconds(t, st, j, jobs, from, to)
		if got.Lost != 0 || got.Double != 0 || got.Early != 0 || got.Interrupted != 0 {
			t.Errorf("audit: %+v", got)
		}
		t.Logf("audit: %+v of %d starts", got, len(j.All()))
	})
}

// TestSerialQueueSurvives queues twenty runs of a serial job; the node that
// works on them dies. The queue is in the store: all others run, in order, on
// another node.
func TestSerialQueueSurvives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		ctx := t.Context()
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		var mu sync.Mutex
		running := 0
		for _, n := range []*stage.Node{a, b} {
			stage.Must(t, n.Handle("slow", func(_ context.Context, task *xxljob.Task) error {
				n.Gate.Pass()
				j.Note(n.Name, task)
				mu.Lock()
				if running++; running > 1 {
					t.Errorf("%d runs of a serial job at once", running)
				}
				mu.Unlock()
				time.Sleep(3 * time.Second)
				n.Gate.Pass()
				mu.Lock()
				running--
				mu.Unlock()
				return nil
			}))
		}
		time.Sleep(10 * time.Second)
		job, err := a.AddJob(ctx, xxljob.Job{Name: "serial", Handler: "slow", Route: "FIRST"})
		stage.Must(t, err)
		var ids []int64
		for range 20 {
			id, err := b.Trigger(ctx, job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			ids = append(ids, id...)
		}
		time.Sleep(10 * time.Second) // three or four have run on a, the first address
		a.Pause()
		// The handler that a was in the middle of is cut off, so it does not count
		// as running any more.
		mu.Lock()
		cut := running
		running = 0
		mu.Unlock()
		for i, id := range ids {
			run, err := b.Wait(ctx, id)
			stage.Must(t, err)
			if want := xxljob.StateSucceeded; run.State != want && run.State != xxljob.StateLost {
				t.Errorf("run %d of the queue: %v %s", i, run.State, run.TriggerMsg)
			}
		}
		if lost := stage.CountStates(stage.AllRuns(t, st))[xxljob.StateLost]; lost != cut {
			t.Errorf("%d runs are recorded lost, %d were cut off", lost, cut)
		}
		var order []int64
		for _, s := range j.All() {
			order = append(order, s.Run)
		}
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("%d started, in the order %v", len(order), order)
		}
		stage.Stop(t, b)
		mu.Lock()
		running = -cut
		mu.Unlock()
		a.Resume()
		stage.Stop(t, a)
	})
}

// ownersWatch sees which nodes own which shards, in the views that they get.
type ownersWatch struct {
	st     xxljob.Store
	mu     sync.Mutex
	owners map[int][]string // by shard: its owners, each once in a row
}

func (w *ownersWatch) Beat(ctx context.Context, inc string, at []store.Attachment) (xxljob.View, error) {
	v, err := w.st.Beat(ctx, inc, at)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sh := range v.Shards {
		if had := w.owners[sh.ID]; sh.Owner != "" && (len(had) == 0 || had[len(had)-1] != sh.Owner) {
			w.owners[sh.ID] = append(had, sh.Owner)
		}
	}
	return v, err
}

// changed counts the shards that have changed hands since the last call.
func (w *ownersWatch) changed() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, owners := range w.owners {
		n += stage.One(len(owners) > 1)
		w.owners[id] = owners[len(owners)-1:]
	}
	return n
}

// TestLeaseMaxHold lets nodes keep a shard for twenty seconds at most: shards go
// to and fro between two nodes for three minutes, and nothing is lost or doubled.
func TestLeaseMaxHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		watch, j := &ownersWatch{st: memory.New(), owners: map[int][]string{}}, &stage.Journal{}
		st := bent.StoreOf(watch.st, watch)
		hold := func(c *xxljob.Config) { c.Cluster.LeaseMaxHold = 20 * time.Second }
		a, b := stage.StartNode(t, st, "a", j, hold), stage.StartNode(t, st, "b", j, hold)
		time.Sleep(10 * time.Second)
		watch.changed() // when b came
		jobs := stage.AddSeconds(t, a, 40)
		from := time.Now()
		for minute := range 3 {
			time.Sleep(time.Minute)
			if n := watch.changed(); n < 16 {
				t.Errorf("%d of 32 shards changed hands in minute %d", n, minute)
			}
		}
		to := time.Now()
		time.Sleep(10 * time.Second)
		stage.Stop(t, a, b)
		if got := stage.AuditSeconds(t, st, j, jobs, from, to); got != (stage.Audit{}) {
			t.Errorf("audit: %+v", got)
		}
	})
}

// TestKillWhileDraining kills runs from another node while their node waits, in
// Stop, for the handlers to end: runs that itself had started, and runs that came
// from the other.
func TestKillWhileDraining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		two := func(c *xxljob.Config) { c.Cluster.Shards = 2 }
		a, b := stage.StartNode(t, st, "a", j, two), stage.StartNode(t, st, "b", j, two)
		stage.Must(t, b.Handle("long", func(ctx context.Context, _ *xxljob.Task) error {
			select {
			case <-time.After(40 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
		time.Sleep(10 * time.Second)
		var runs []int64
		for i := range 4 { // two of each node's shard
			job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("long ", i), Handler: "long"})
			stage.Must(t, err)
			ids, err := a.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			runs = append(runs, ids...)
		}
		time.Sleep(2 * time.Second)
		owners := map[string]bool{}
		for _, id := range runs {
			run, err := st.Run(t.Context(), id)
			stage.Must(t, err)
			owners[run.Owner] = true
		}
		if len(owners) != 2 {
			t.Errorf("the runs were started by %v, want both nodes", owners)
		}
		began := time.Now()
		stopped := make(chan time.Duration)
		go func() { stage.Stop(t, b); stopped <- time.Since(began) }()
		for i, id := range runs {
			time.Sleep(5 * time.Second)
			if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StateStarted {
				t.Errorf("run %d while the node drains: %v %v", i, run.State, err)
			}
			killed := time.Now()
			stage.Must(t, a.Kill(t.Context(), id))
			run, err := a.Wait(t.Context(), id)
			stage.Must(t, err)
			if took := run.Ended.Sub(killed); run.State != xxljob.StateKilled || took > 2*time.Second {
				t.Errorf("run %d, %v after its Kill: %v %s", i, took, run.State, run.HandleMsg)
			}
		}
		if took := <-stopped; took > 25*time.Second {
			t.Errorf("Stop took %v, the last handler ended after 20 s", took)
		}
		stage.Stop(t, a)
	})
}
