package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// BenchmarkParentToChild measures the time from the return of a parent's handler to the call of
// its child's: with the scheduler alone, and with two whose stores are as far apart as those of
// two processes, so that either may own the shard of the other's parent.
func BenchmarkParentToChild(b *testing.B) {
	for _, nodes := range []int{1, 2} {
		for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
			b.Run(fmt.Sprintf("%d nodes/%s", nodes, mode), func(b *testing.B) {
				for range b.N {
					parentToChild(b, nodes, mode)
				}
			})
		}
	}
}

// parentToChild runs 16 pairs of jobs, whose shards differ, 15 times each, one after the other.
func parentToChild(b *testing.B, nodes int, mode postgres.LeaseMode) {
	const pairs, rounds = 16, 15
	x := &hostBench{B: b, pool: benchPool(b)}
	cfg := postgres.Config{Schema: (&schemas{pool: x.pool}).take(b), LeaseMode: mode, Logger: slog.New(slog.DiscardHandler)}
	var mu sync.Mutex
	ended := map[string]time.Time{}
	began := make(chan time.Duration, 1)
	for n := range nodes {
		s, err := postgres.New(b.Context(), x.pool, cfg)
		x.must(err)
		b.Cleanup(s.Close)
		sched, err := xxljob.New(s, xxljob.Config{App: "bench", Node: fmt.Sprint("node-", n), Logger: cfg.Logger})
		x.must(err)
		x.must(sched.Handle("parent", func(_ context.Context, t *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			ended[t.JobKey] = time.Now()
			return nil
		}))
		x.must(sched.Handle("child", func(_ context.Context, t *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			began <- time.Since(ended[t.Param])
			return nil
		}))
		x.must(sched.Start(b.Context()))
		defer func() { x.must(sched.Stop(context.Background())) }()
		x.sched = sched
	}
	var parents []int64
	for i := range pairs {
		key := fmt.Sprint("parent-", i)
		child, err := x.sched.AddJob(b.Context(), store.Job{Name: "child of " + key, Handler: "child", Param: key})
		x.must(err)
		parent, err := x.sched.AddJob(b.Context(), store.Job{Key: key, Name: key, Handler: "parent", Children: []int64{child.ID}})
		x.must(err)
		parents = append(parents, parent.ID)
	}
	time.Sleep(6 * time.Second) // until the nodes have shared out the shards
	var took []float64
	for range rounds {
		for _, id := range parents {
			_, err := x.sched.Trigger(b.Context(), id, store.Trigger{})
			x.must(err)
			took = append(took, (<-began).Seconds()*1000)
			time.Sleep(10 * time.Millisecond)
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(0, "ns/op")
}
