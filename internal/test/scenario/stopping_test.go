package scenario_test

// What a node does between the call of Stop and its end: it takes nothing any more, neither shards
// nor runs, and what it has is given back or ends.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// held are the shards that a node has, as the store has it.
func held(t *testing.T, st *memory.Store, n *stage.Node) (shards int) {
	t.Helper()
	view, err := st.View(t.Context()) // wakes nobody, as a node that joins would
	stage.Must(t, err)
	for _, sh := range view.Shards {
		if name, _, _ := strings.Cut(sh.Owner, "-"); name == n.Name {
			shards++
		}
	}
	return shards
}

// requirePairs checks that a node has told of the loss of each shard that it has told the taking
// of, and of nothing else.
func requirePairs(t *testing.T, events <-chan xxljob.Event) {
	t.Helper()
	has := map[int]bool{}
	for e := range events {
		switch e.Kind {
		case xxljob.EventShardTaken, xxljob.EventShardLost:
			if taken := e.Kind == xxljob.EventShardTaken; has[e.Shard.ID] == taken {
				t.Errorf("told of shard %d: %s, twice in a row", e.Shard.ID, e.Kind)
			} else {
				has[e.Shard.ID] = taken
			}
		}
	}
	for id, kept := range has {
		if kept {
			t.Errorf("shard %d was never lost, as far as was told", id)
		}
	}
}

// threeShards are three nodes with a shard each, and what the first tells of. A handler runs there
// until it is let go, so that its Stop waits.
func threeShards(t *testing.T) (st *memory.Store, nodes []*stage.Node, events <-chan xxljob.Event, letGo func()) {
	t.Helper()
	st = memory.New()
	running := make(chan struct{})
	for _, name := range []string{"a", "b", "c"} {
		n := stage.NewNode(t, st, name, &stage.Journal{}, func(cfg *xxljob.Config) { cfg.Cluster.Shards = 3 })
		nodes = append(nodes, n)
	}
	events = nodes[0].Events(t.Context())
	stage.Must(t, nodes[0].Handle("long", func(context.Context, *xxljob.Task) error { <-running; return nil }))
	for _, n := range nodes {
		stage.Must(t, n.Start(context.Background()))
		time.Sleep(20 * time.Second)
	}
	stage.TriggerNew(t, nodes[1], xxljob.Job{Name: "long", Handler: "long"})
	time.Sleep(time.Second)
	return st, nodes, events, func() { close(running) }
}

// TestShardsUnderWayAtStop: a node asks the store for a shard that has become free, and the store
// answers behind the beginning of Stop. From that moment on another node has the shard, although
// the one that stops waits for its handler.
func TestShardsUnderWayAtStop(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		free time.Duration   // when the shard becomes free, counted from Stop
		take storetest.Fault // what the taking meets
		plan time.Duration   // how long what the node has asked for as it plans is under way
		dead bool            // the context of Stop has ended
	}{
		"the answer is late":                       {free: -time.Second, take: storetest.Fault{Late: 3 * time.Second}},
		"the store is late":                        {free: -time.Second, take: storetest.Fault{Delay: 3 * time.Second}},
		"the answer is late, and is an error":      {free: -time.Second, take: storetest.Fault{Late: 3 * time.Second, After: true}},
		"it becomes free while plans end":          {free: time.Second, take: storetest.Fault{Late: time.Second}, plan: 4 * time.Second},
		"the answer comes when plans have ended":   {free: time.Second, take: storetest.Fault{Late: 3 * time.Second}, plan: 3 * time.Second},
		"the answer is late, and Stop has no time": {free: -time.Second, take: storetest.Fault{Late: 1500 * time.Millisecond}, dead: true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, nodes, events, letGo := threeShards(t)
				a, b := nodes[0], nodes[1]
				jobs := stage.AddSeconds(t, a, 10)
				time.Sleep(5 * time.Second)
				a.Faults.Inject("TakeShards", c.take)
				b.Faults.Inject("TakeShards", storetest.Fault{Delay: 10 * time.Millisecond}) // the other one is quicker
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if c.dead {
					cancel()
				}
				begin := time.Now().Add(max(0, -c.free) + time.Second/2)
				go func() { time.Sleep(time.Until(begin.Add(c.free))); stage.Stop(t, nodes[2]) }()
				time.Sleep(time.Until(begin))
				if c.plan > 0 {
					a.Faults.Inject("Start", storetest.Fault{Late: c.plan})
					for _, job := range jobs {
						stage.Trigger(t, b, job)
					}
					synctest.Wait()
				}
				stopped := make(chan error)
				go func() { stopped <- a.Stop(ctx) }()
				answer := c.free + c.take.Delay + c.take.Late
				time.Sleep(max(0, answer) + time.Second/2)
				if n, own := held(t, st, a), stage.One(c.plan > answer); n > own {
					t.Errorf("the node that stops has %d shards, want %d at most", n, own)
				}
				time.Sleep(max(0, c.plan-answer-time.Second/2) + 100*time.Millisecond)
				if n := held(t, st, a); n > 0 {
					t.Errorf("the node that stops has %d shards when plans have ended", n)
				}
				time.Sleep(time.Second)
				if n := held(t, st, b); n != 3 {
					t.Errorf("the node that is left has %d of 3 shards", n)
				}
				letGo()
				<-stopped
				requirePairs(t, events)
				stage.Stop(t, b)
			})
		})
	}
}

// TestNoHandlerBeginsBehindStop: a node has asked the store for a run of another node's when Stop
// begins, whose context has ended or ends meanwhile, and the store answers behind the end of it.
// Others may have decided about the run by then: its handler is not called any more.
func TestNoHandlerBeginsBehindStop(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		take storetest.Fault
		ctx  time.Duration // of Stop
	}{
		"at once":            {storetest.Fault{Late: 4 * time.Second}, 0},
		"soon":               {storetest.Fault{Late: 4500 * time.Millisecond}, time.Second},
		"just before it":     {storetest.Fault{Late: 3900 * time.Millisecond}, 2 * time.Second},
		"error, and at once": {storetest.Fault{Late: 4 * time.Second, After: true}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				owner := stage.StartNode(t, st, "a", j, oneShard)
				time.Sleep(time.Second)
				n := stage.NewNode(t, st, "b", j, oneShard)
				var over atomic.Bool
				stage.Must(t, n.Handle("mine", func(context.Context, *xxljob.Task) error {
					if over.Load() {
						t.Error("the handler was called when Stop had returned")
					}
					return nil
				}))
				stage.Must(t, n.Start(context.Background()))
				time.Sleep(10 * time.Second)
				n.Faults.Inject("Take", c.take)
				n.Faults.Inject("Inbox", storetest.Fault{Delay: 10 * time.Millisecond, Calls: 1}) // all are taken together
				job, err := owner.AddJob(t.Context(), xxljob.Job{Name: "mine", Handler: "mine", Block: block.Concurrent})
				stage.Must(t, err)
				var ids []int64
				for range 20 {
					ids = append(ids, stage.Trigger(t, owner, job))
				}
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), c.ctx)
				defer cancel()
				_ = n.Stop(ctx)
				over.Store(true)
				time.Sleep(2 * time.Minute)
				for i, id := range ids {
					run, err := st.Run(t.Context(), id)
					stage.Must(t, err)
					if run.State != xxljob.StateLost {
						t.Errorf("run %d is %v: %s", i, run.State, run.HandleMsg)
					}
				}
				stage.Stop(t, owner)
			})
		})
	}
}

// TestStopWithAStoreThatIsClosed: what a handler has returned cannot be stored any more, which no patience
// mends. Stop waits for the handler, and then no longer than one call may take, though its ctx has no end.
func TestStopWithAStoreThatIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := stage.NewNode(t, memory.New(), "a", &stage.Journal{})
		goOn := make(chan struct{})
		stage.Must(t, n.Handle("hold", func(context.Context, *xxljob.Task) error { <-goOn; return nil }))
		stage.Must(t, n.Start(t.Context()))
		time.Sleep(10 * time.Second)
		stage.TriggerNew(t, n, xxljob.Job{Name: "j", Handler: "hold"})
		time.Sleep(time.Second)
		n.Faults.Inject(storetest.All, storetest.Fault{Before: true, Err: fmt.Errorf("%w: by the host", xxljob.ErrStoreClosed)})
		ended, stopped := time.Time{}, make(chan error, 1)
		go func() { stopped <- n.Stop(context.Background()) }()
		time.Sleep(time.Hour)
		select {
		case err := <-stopped:
			t.Fatalf("Stop has not waited for the handler: %v", err)
		default:
		}
		close(goOn)
		ended = time.Now()
		err := <-stopped
		if took := time.Since(ended); !errors.Is(err, xxljob.ErrStoreClosed) || took > 20*time.Second {
			t.Errorf("Stop took %v behind the handler: %v", took, err)
		}
	})
}
