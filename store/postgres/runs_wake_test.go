package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// watched are two processes on one schema: one that only plans runs, and one whose node
// owns all shards, listens, and has had all signals for what was before.
func watched(t *testing.T, change ...func(*postgres.Config)) (host *postgres.Store, node *actor, scan <-chan struct{}) {
	t.Helper()
	host, other := twoStores(t, change...)
	node = own(t, other, inc(t, "node"), 2)
	scan = other.Watch(t.Context(), node.inc).Scan
	if postgres.Listens(other) {
		await.Until(t, "the node listens", func() bool { _, inbox := other.Poll(); return inbox == time.Second })
	}
	return host, node, scan
}

// arrived waits until all that the senders have notified has arrived at a store that
// listens: a hint for nobody else that is sent after it comes after it.
func arrived(t *testing.T, at *postgres.Store, from ...*postgres.Store) {
	t.Helper()
	for _, s := range from {
		await.Until(t, "all hints are sent", func() bool { return postgres.NotesUnderWay(s) == 0 })
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	name := inc(t, "marker")
	marker := at.Watch(ctx, name).Inbox
	run(t, pgtest.SharedPool(t), "select pg_notify($1, 'i' || $2)", postgres.ChannelOf(at), name)
	await.Until(t, "the last hint arrives", func() bool { return signalled(marker) })
}

// quiet waits until nothing that was before makes a signal any more.
func quiet(t *testing.T, host *postgres.Store, node *actor, scan <-chan struct{}) {
	t.Helper()
	arrived(t, node.Store, host, node.Store)
	signalled(scan)
}

func signalled(scan <-chan struct{}) bool {
	select {
	case <-scan:
		return true
	default:
		return false
	}
}

// plan plans a run in a transaction of the host's and commits it.
func plan(t *testing.T, host *postgres.Store, job int64, trigger store.Trigger) {
	t.Helper()
	x := begin(t, pgx.ReadCommitted)
	_, err := host.TriggerTx(t.Context(), x, job, trigger)
	must(t, err)
	must(t, x.Commit(t.Context()))
}

// TestWakeReachesTheOwner: of a run that a transaction in another process has planned
// the owner of its shard hears, by Wake or, with TxNotify, by the commit itself; and of
// a rollback it hears nothing.
func TestWakeReachesTheOwner(t *testing.T) {
	t.Parallel()
	t.Run("Wake", func(t *testing.T) {
		t.Parallel()
		host, node, scan := watched(t)
		job := node.job()
		plan(t, host, job.ID, store.Trigger{})
		quiet(t, host, node, scan)
		must(t, host.Wake(t.Context(), job.ID))
		await.Until(t, "the node hears of the run", func() bool { return signalled(scan) })
	})
	t.Run("TxNotify", func(t *testing.T) {
		t.Parallel()
		host, node, scan := watched(t, func(c *postgres.Config) { c.TxNotify = true })
		job := node.job()
		for _, level := range levels {
			quiet(t, host, node, scan)
			x := begin(t, level)
			_, err := host.TriggerTx(t.Context(), x, job.ID, store.Trigger{Key: string(level)})
			must(t, err)
			must(t, x.Rollback(t.Context()))
			x = begin(t, level)
			_, err = host.TriggerTx(t.Context(), x, job.ID, store.Trigger{Key: string(level)})
			must(t, err)
			arrived(t, node.Store, host, node.Store)
			if signalled(scan) {
				t.Errorf("%s: the node hears of a run before its commit", level)
			}
			must(t, x.Commit(t.Context()))
			await.Until(t, "the node hears of the run", func() bool { return signalled(scan) })
		}
	})
	t.Run("TxNotify of database/sql", func(t *testing.T) {
		t.Parallel()
		host, node, scan := watched(t, func(c *postgres.Config) { c.TxNotify = true })
		job := node.job()
		quiet(t, host, node, scan)
		db, err := sql.Open("pgx", pgtest.DSN(t))
		must(t, err)
		defer db.Close()
		x, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		defer x.Rollback()
		id, err := host.TriggerSQLTx(t.Context(), x, job.ID, store.Trigger{})
		must(t, err)
		if _, err := host.TriggerSQLTx(t.Context(), x, job.ID+1000, store.Trigger{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an absent job: %v", err)
		}
		must(t, x.Commit())
		await.Until(t, "the node hears of the run", func() bool { return signalled(scan) })
		_, err = host.Run(t.Context(), id)
		must(t, err)
	})
}

// TestWakeIsSentBeforeTheEnd: by a process that ends right after it.
func TestWakeIsSentBeforeTheEnd(t *testing.T) {
	t.Parallel()
	host, node, scan := watched(t)
	job := node.job()
	quiet(t, host, node, scan)
	must(t, host.Wake(t.Context(), job.ID))
	host.Close()
	await.Until(t, "the node hears of the run", func() bool { return signalled(scan) })
}

// TestWakeOfWhatIsNotThere: ids that no job can have are an error, with which nothing is
// sent; those of jobs that are not there wake an owner for nothing, once for a shard
// however many there are.
func TestWakeOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	var sent statements
	host, node, scan := watched(t)
	quiet(t, host, node, scan)
	for _, id := range []int64{0, -1, math.MinInt64} {
		wantText(t, host.Wake(t.Context(), node.job().ID, id), "wake", fmt.Sprint(id), "positive")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := host.Wake(ended, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	must(t, host.Wake(t.Context()))
	if n := postgres.NotesUnderWay(host); n != 0 {
		t.Errorf("%d hints were sent for nothing", n)
	}

	traced, err := postgres.New(t.Context(), pgtest.Pool(t, traced(&sent)), postgres.Config{Schema: postgres.SchemaOf(host)})
	must(t, err)
	t.Cleanup(traced.Close)
	many := make([]int64, 100_000)
	for i := range many {
		many[i] = int64(i) + 1_000_000
	}
	before := sent.len()
	must(t, traced.Wake(t.Context(), many...))
	must(t, traced.Wake(t.Context(), math.MaxInt64))
	await.Until(t, "the hints are sent", func() bool { return postgres.NotesUnderWay(traced) == 0 })
	await.Until(t, "the node is woken", func() bool { return signalled(scan) })
	if n := sent.len() - before; n > 3 { // the number of shards, and at most two batches of hints
		t.Errorf("%d ids took %d batches of statements", len(many), n)
	}
	empty := migrated(t, pgtest.SharedPool(t))
	unused, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.Config{Schema: empty})
	must(t, err)
	defer unused.Close()
	wantText(t, unused.Wake(t.Context(), 1), "wake", "start a scheduler first")
}

// TestTxNotifyIsRefused: where nothing listens, and by the server in a transaction that is
// to be prepared.
func TestTxNotifyIsRefused(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.SharedPool(t)
	wantText(t, newStore(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, TxNotify: true}), "Config.TxNotify", `"row"`, "nothing listens", "Wake")
	cluster := pgtest.Start(t, pgtest.Options{NoFsync: true, Settings: map[string]string{"max_prepared_transactions": "4"}})
	superuser := pgtest.Pool(t, pgtest.At(cluster.DSN("postgres")))
	for _, notify := range []bool{false, true} {
		s, err := postgres.New(t.Context(), superuser, postgres.Config{AutoMigrate: true, TxNotify: notify})
		must(t, err)
		must(t, s.SetShards(t.Context(), 2))
		job, err := s.AddJob(t.Context(), store.Job{App: "app", Name: "job", Key: fmt.Sprint(notify)}, nil)
		must(t, err)
		x, err := superuser.Begin(t.Context())
		must(t, err)
		_, err = s.TriggerTx(t.Context(), x, job.ID, store.Trigger{})
		must(t, err)
		_, err = x.Exec(t.Context(), fmt.Sprintf("prepare transaction 'with %v'", notify))
		var pg *pgconn.PgError
		if refused := errors.As(err, &pg) && pg.Code == "0A000"; refused != notify {
			t.Errorf("TxNotify %v: prepare transaction: %v", notify, err)
		}
		x.Rollback(t.Context())
		s.Close()
	}
}

// TestALostNotificationStillRuns: what nobody is told of, the poll finds. The host's
// notifications go where nobody listens, or the nodes hear none at all.
func TestALostNotificationStillRuns(t *testing.T) {
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			cfg := postgres.Config{Schema: made.take(t), LeaseMode: mode}
			stores := [2]*postgres.Store{}
			for i := range stores {
				s, err := postgres.New(t.Context(), pgtest.SharedPool(t), cfg)
				must(t, err)
				t.Cleanup(s.Close)
				stores[i] = s
				cfg.TxNotify = mode == postgres.LeaseLock
			}
			node := logNode(t, stores[0], "node", func(s xxljob.Scheduler) error {
				return s.Handle("work", func(context.Context, *xxljob.Task) error { return nil })
			})
			job, err := node.EnsureJob(t.Context(), store.Job{Name: "work", Handler: "work"})
			must(t, err)
			host := stores[1]
			postgres.Misdirect(host)
			x := begin(t, pgx.ReadCommitted)
			id, err := host.TriggerTx(t.Context(), x, job.Job.ID, store.Trigger{})
			must(t, err)
			must(t, x.Commit(t.Context()))
			must(t, host.Wake(t.Context(), job.Job.ID))
			run, err := node.Wait(t.Context(), id)
			if err != nil || run.State != store.StateSucceeded {
				t.Errorf("the run is %v, %v", run.State, err)
			}
		})
	}
}
