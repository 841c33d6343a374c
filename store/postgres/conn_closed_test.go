package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestClosedPool: a host that closes its pool under a scheduler is told so by Ready; what a handler
// returns that is under way is stored all the same, and Stop ends.
func TestClosedPool(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t, pgtest.MaxConns(4))
			st := openOn(t, pool, postgres.Config{LeaseMode: mode})
			s, err := xxljob.New(st, xxljob.Config{App: "app", Cluster: xxljob.ClusterConfig{LeaseTTL: 30 * time.Second, LostAfter: time.Minute}})
			must(t, err)
			goOn, begun := make(chan struct{}), make(chan struct{})
			must(t, s.Handle("h", func(context.Context, *xxljob.Task) error {
				close(begun)
				<-goOn
				return nil
			}))
			must(t, s.Start(t.Context()))
			job, err := s.AddJob(t.Context(), xxljob.Job{Name: "n", Handler: "h"})
			must(t, err)
			ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			must(t, err)
			<-begun
			await.Until(t, "it is ready", func() bool { return s.Ready() == nil })

			var closed atomic.Bool
			go func() { pool.Close(); closed.Store(true) }()
			await.Until(t, "the pool is closed", closed.Load)
			await.Until(t, "it is not ready", func() bool { return s.Ready() != nil })
			var not *xxljob.NotReadyError
			if err := s.Ready(); !errors.Is(err, xxljob.ErrStoreClosed) || !errors.As(err, &not) || len(not.Reasons) != 1 || not.Reasons[0] != "store-away" {
				t.Errorf("it is not ready for: %v", err)
			}
			close(goOn)
			must(t, s.Stop(t.Context()))
			st.Close()

			after, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.Config{Schema: postgres.SchemaOf(st), LeaseMode: mode})
			must(t, err)
			t.Cleanup(after.Close)
			run, err := after.Run(t.Context(), ids[0])
			must(t, err)
			if run.State != store.StateSucceeded {
				t.Errorf("the run is %+v", run)
			}
		})
	}
}

// TestClosedPoolWithoutReserve: what a handler returns that is under way cannot be stored by anybody.
// Stop says so, and ends though its ctx does not.
func TestClosedPoolWithoutReserve(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(4))
	st := openOn(t, pool, postgres.Config{NoReserve: true})
	s, err := xxljob.New(st, xxljob.Config{App: "app", Executor: executor.Config{Grace: time.Second}, Cluster: xxljob.ClusterConfig{Shards: 2}})
	must(t, err)
	goOn, begun := make(chan struct{}), make(chan struct{})
	must(t, s.Handle("h", func(context.Context, *xxljob.Task) error {
		close(begun)
		<-goOn
		return nil
	}))
	must(t, s.Start(t.Context()))
	job, err := s.AddJob(t.Context(), xxljob.Job{Name: "n", Handler: "h"})
	must(t, err)
	_, err = s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
	must(t, err)
	<-begun
	pool.Close()
	close(goOn)
	if err := s.Stop(context.WithoutCancel(t.Context())); !errors.Is(err, xxljob.ErrStoreClosed) {
		t.Errorf("Stop says %v", err)
	}
}

// TestClosedPoolOfAnIdleNode: a node that asks for nothing but beats finds it out too, and one without a
// reserve ends when it is stopped.
func TestClosedPoolOfAnIdleNode(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(4))
	st := openOn(t, pool, postgres.Config{NoReserve: true})
	a, _ := join(t, st, inc(t, "a"), 2)
	a.beat()
	s, err := xxljob.New(st, xxljob.Config{App: "app", Cluster: xxljob.ClusterConfig{Shards: 2}})
	must(t, err)
	must(t, s.Start(t.Context()))
	await.Until(t, "it is ready", func() bool { return s.Ready() == nil })
	pool.Close()
	if _, err := a.Beat(a.ctx, a.inc, nil); !errors.Is(err, store.ErrStoreClosed) || errors.Is(err, store.ErrRefused) {
		t.Errorf("a beat: %v", err)
	}
	await.Until(t, "it is not ready", func() bool { return errors.Is(s.Ready(), store.ErrStoreClosed) })
	_ = s.Stop(t.Context()) // it cannot say that it leaves
	if err := s.Ready(); !errors.Is(err, xxljob.ErrStopped) {
		t.Errorf("after it: %v", err)
	}
}
