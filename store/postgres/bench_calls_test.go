package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// commits are how a run that a transaction of the host's has planned is heard of.
var commits = []struct {
	name   string
	notify bool
	wake   bool
}{
	{"poll", false, false},
	{"Wake", false, true},
	{"TxNotify", true, false},
}

// BenchmarkCommitToHandler measures the time from the commit of a transaction with a
// TriggerTx to the call of the handler, one transaction after the other: in the process
// of the scheduler, and in one of its own. "poll" is without Wake and TxNotify.
func BenchmarkCommitToHandler(b *testing.B) {
	for _, where := range []string{"same process", "other process"} {
		for _, c := range commits {
			b.Run(where+"/"+c.name, func(b *testing.B) {
				for range b.N {
					// Orders do not come in step with what goes on here: the least gap
					// between two notifications, or the scans.
					n, within := 500, 40*time.Millisecond
					if !c.wake && !c.notify {
						n, within = 40, time.Second // each of them takes up to a second
					}
					x := newHostBench(b, c.notify, where == "other process")
					x.commitToHandler(n, within, c.wake)
				}
			})
		}
	}
}

// BenchmarkTxNotifyCommits counts the commits a second of eight writers that each insert
// a row and trigger a job in one transaction, without a notification in it and with one.
// There is no scheduler: what is measured is the host's part.
func BenchmarkTxNotifyCommits(b *testing.B) {
	for _, notify := range []bool{false, true} {
		b.Run(fmt.Sprintf("TxNotify=%v", notify), func(b *testing.B) {
			for range b.N {
				newHostBench(b, notify, true).writers(8, 5*time.Second)
			}
		})
	}
}

// hostBench is a host that triggers a job in its own transactions, and the scheduler.
type hostBench struct {
	*testing.B
	pool  *pgxpool.Pool
	host  *postgres.Store
	sched xxljob.Scheduler
	calls chan time.Time // when the handler was called
	job   int64
}

// newHostBench makes a table for the host's own rows. apart gives the host a store of its
// own, as another process has it.
func newHostBench(b *testing.B, notify, apart bool) *hostBench {
	b.Helper()
	x := &hostBench{B: b, pool: benchPool(b), calls: make(chan time.Time, 1)}
	(&bench{B: b, pool: x.pool}).settings()
	cfg := postgres.Config{TxNotify: notify, Schema: (&schemas{pool: x.pool}).take(b), Logger: slog.New(slog.DiscardHandler)}
	open := func() *postgres.Store {
		s, err := postgres.New(b.Context(), x.pool, cfg)
		x.must(err)
		b.Cleanup(s.Close)
		return s
	}
	node := open()
	x.host = node
	if apart {
		x.host = open()
	}
	var err error
	x.sched, err = xxljob.New(node, xxljob.Config{App: "bench", Logger: cfg.Logger})
	x.must(err)
	x.must(x.sched.Handle("noop", func(context.Context, *xxljob.Task) error {
		select {
		case x.calls <- time.Now():
		default:
		}
		return nil
	}))
	job, err := x.sched.EnsureJob(b.Context(), store.Job{Name: "noop", Handler: "noop"})
	x.must(err)
	x.job = job.Job.ID
	_, err = x.pool.Exec(b.Context(), fmt.Sprintf("create table if not exists %q.orders (id bigserial primary key, note text)", cfg.Schema))
	x.must(err)
	return x
}

func (x *hostBench) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// order is a transaction of the host's. It returns when the commit was acknowledged.
func (x *hostBench) order(ctx context.Context) error {
	tx, err := x.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, fmt.Sprintf("insert into %q.orders (note) values ('an order')", postgres.SchemaOf(x.host))); err != nil {
		return err
	}
	if _, err := x.host.TriggerTx(ctx, tx, x.job, store.Trigger{}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// commitToHandler measures n orders, each some time within the given one after the
// handler of the one before.
func (x *hostBench) commitToHandler(n int, within time.Duration, wake bool) {
	ctx := context.Background()
	x.must(x.sched.Start(ctx))
	defer func() { x.must(x.sched.Stop(ctx)) }()
	took := make([]time.Duration, 0, n)
	for i := range n + n/10 {
		x.must(x.order(ctx))
		committed := time.Now()
		if wake {
			x.must(x.host.Wake(ctx, x.job))
		}
		called := <-x.calls
		if i >= n/10 { // the first are for the caches
			took = append(took, called.Sub(committed))
		}
		time.Sleep(30*time.Millisecond + rand.N(within))
	}
	slices.Sort(took)
	at := func(p float64) float64 {
		return float64(took[min(int(p*float64(n)), n-1)].Microseconds()) / 1000
	}
	x.ReportMetric(at(0.5), "p50-ms")
	x.ReportMetric(at(0.99), "p99-ms")
	x.ReportMetric(at(1), "max-ms")
	x.ReportMetric(0, "ns/op")
}

func (x *hostBench) writers(n int, during time.Duration) {
	var done atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), during)
	defer cancel()
	began := time.Now()
	for range n {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := x.order(ctx); err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					x.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	x.ReportMetric(float64(done.Load())/time.Since(began).Seconds(), "commits/s")
	x.ReportMetric(0, "ns/op")
}
