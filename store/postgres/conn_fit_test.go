package postgres_test

// Connections that answer and are of no use. There are servers and databases behind one address,
// and a connection lives on where it was made while later ones are made elsewhere.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// address is what the connections of a pool are made by; where that leads, a test says.
type address struct {
	to atomic.Pointer[pgx.ConnConfig]
}

func leading(t *testing.T, dsn string) *address {
	t.Helper()
	a := &address{}
	a.lead(t, dsn)
	return a
}

// lead has later connections made there.
func (a *address) lead(t *testing.T, dsn string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	must(t, err)
	a.to.Store(cfg)
}

// pool is one of four connections, on which no statement of the store's loops waits for the reserve.
func (a *address) pool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, pgtest.At(dsn), pgtest.MaxConns(4), pgtest.With(func(c *pgxpool.Config) {
		c.BeforeConnect = func(_ context.Context, cfg *pgx.ConnConfig) error {
			to := a.to.Load()
			cfg.Host, cfg.Port, cfg.Database = to.Host, to.Port, to.Database
			return nil
		}
	}))
}

// fillUp makes all connections of a pool that there may be, but for so many that the host has,
// which answer then and lead to dsn: one that a call of the store's own was making before the
// address led there is closed. It leaves the first with the host.
func fillUp(t *testing.T, pool *pgxpool.Pool, hosts int, dsn string) *pgxpool.Conn {
	t.Helper()
	to, err := pgx.ParseConfig(dsn)
	must(t, err)
	var held []*pgxpool.Conn
	for len(held) < int(pool.Config().MaxConns)-hosts {
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		if is := conn.Conn().Config(); is.Port != to.Port || is.Database != to.Database {
			conn.Conn().Close(t.Context())
			conn.Release()
			continue
		}
		if _, err := conn.Exec(t.Context(), "select 1"); err != nil {
			conn.Release() // it was cut
			continue
		}
		held = append(held, conn)
	}
	for _, conn := range held[1:] {
		conn.Release()
	}
	return held[0]
}

// cut ends all sessions of clients of a server.
func cut(t *testing.T, c *pgtest.Cluster) {
	t.Helper()
	_, err := c.Exec(t.Context(), "postgres", "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
	must(t, err)
}

// sessions is how many a server has of clients in a database, but for the one that asks.
func sessions(t *testing.T, c *pgtest.Cluster) string {
	t.Helper()
	n, err := c.Exec(t.Context(), "postgres", "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
	must(t, err)
	return n
}

// refusedAll has each kind of call refused in words, none of which says that it is for what was given.
func refusedAll(t *testing.T, a *actor, plan store.Plan, words string) {
	t.Helper()
	for name, call := range map[string]func() error{
		"a beat":  func() error { _, err := a.Beat(a.ctx, a.inc, nil); return err },
		"a claim": func() error { _, err := a.Claim(a.ctx, nil, []store.Plan{plan}); return err },
		"a read":  func() error { _, err := a.Now(a.ctx); return err },
		"a list":  func() error { _, err := a.Runs(a.ctx, store.RunFilter{}); return err },
	} {
		err := call()
		wantText(t, err, words)
		if errors.Is(err, store.ErrRefused) {
			t.Errorf("%s is refused for what it is about: %v", name, err)
		}
	}
}

// goesOn has a node go on, of whose first calls one may still find out what has happened.
func goesOn(t *testing.T, a *actor, plan store.Plan) {
	t.Helper()
	for name, call := range map[string]func() error{
		"a beat": func() error { _, err := a.Beat(a.ctx, a.inc, nil); return err },
		"a claim": func() error {
			runs, err := a.Claim(a.ctx, nil, []store.Plan{plan})
			if err == nil && len(runs) != 1 {
				err = fmt.Errorf("%d runs", len(runs))
			}
			return err
		},
		"a read": func() error { _, err := a.Now(a.ctx); return err },
	} {
		if err := call(); err != nil {
			must(t, call())
			t.Logf("%s at first: %v", name, err)
		}
	}
}

// elsewhere is a node whose next connections are made elsewhere, with one of the host's among them.
type elsewhere struct {
	*actor
	*address
	*pgxpool.Pool
	plan store.Plan
	host *pgxpool.Conn
}

// goElsewhere makes a node on a server, ends its connections there, and makes new ones at another address.
func goElsewhere(t *testing.T, home *pgtest.Cluster, mode postgres.LeaseMode, there string) *elsewhere {
	t.Helper()
	e := &elsewhere{address: leading(t, home.DSN("postgres"))}
	e.Pool = e.pool(t, home.DSN("postgres"))
	s, err := postgres.New(t.Context(), e.Pool, postgres.FewDays(postgres.Config{Schema: "fit_" + string(mode), AutoMigrate: true, LeaseMode: mode, NoReserve: true}))
	must(t, err)
	t.Cleanup(s.Close)
	e.actor = own(t, s, inc(t, "a"), 2)
	e.plan = e.actor.plan(e.job())
	e.lead(t, there)
	cut(t, home)
	e.host = fillUp(t, e.Pool, 0, there)
	t.Cleanup(func() { e.host.Release() })
	return e
}

// keptHost fails the test where a connection that the host has is closed.
func (e *elsewhere) keptHost(t *testing.T) {
	t.Helper()
	if _, err := e.host.Exec(t.Context(), "select 1"); err != nil {
		t.Errorf("the host's own connection: %v", err)
	}
}

// connectionsToAStandby are refused in words, and are not used again once the address leads to
// the primary.
func connectionsToAStandby(t *testing.T, primary, standby *pgtest.Cluster) {
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		e := goElsewhere(t, primary, mode, standby.DSN("postgres"))
		written := count(t, primary, "select pg_current_wal_lsn()")
		await.Until(t, "the standby has the tables", func() bool {
			return count(t, standby, "select pg_last_wal_replay_lsn() >= '"+written+"'") == "t"
		})
		refusedAll(t, e.actor, e.plan, "standby")
		fillUp(t, e.Pool, 1, standby.DSN("postgres")).Release()
		e.lead(t, primary.DSN("postgres"))
		goesOn(t, e.actor, e.plan)
		e.keptHost(t)
	}
}

// aSchedulerBesideAStandby runs nothing while its address leads there, says why it is not ready, and
// goes on once the address leads to the primary, though the connections to the standby live on.
func aSchedulerBesideAStandby(t *testing.T, primary, standby *pgtest.Cluster) {
	e := &elsewhere{address: leading(t, primary.DSN("postgres"))}
	e.Pool = e.pool(t, primary.DSN("postgres"))
	st, err := postgres.New(t.Context(), e.Pool, postgres.FewDays(postgres.Config{Schema: "fit_whole", AutoMigrate: true, Logger: stage.QuietLog()}))
	must(t, err)
	t.Cleanup(st.Close)
	s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
	must(t, err)
	var runs atomic.Int64
	must(t, s.Handle("h", func(context.Context, *xxljob.Task) error { runs.Add(1); return nil }))
	must(t, s.Start(t.Context()))
	t.Cleanup(func() { s.Stop(context.Background()) })
	_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "h", Schedule: xxljob.Cron("* * * * * ?")})
	must(t, err)
	await.Until(t, "a run", func() bool { return runs.Load() > 0 })
	e.lead(t, standby.DSN("postgres"))
	cut(t, primary)
	await.Until(t, "it is not ready, since it has a standby", func() bool {
		err := s.Ready()
		return err != nil && strings.Contains(err.Error(), "standby")
	})
	fillUp(t, e.Pool, 0, standby.DSN("postgres")).Release()
	had, began := runs.Load(), time.Now()
	e.lead(t, primary.DSN("postgres"))
	await.Until(t, "runs go on", func() bool { return runs.Load() > had })
	t.Logf("the first run came after %v", time.Since(began).Round(time.Millisecond))
	await.Until(t, "it is ready", func() bool { return s.Ready() == nil })
}

// connectionsToAnotherDatabase are refused in words, and nothing is written there, though it has
// all tables.
func connectionsToAnotherDatabase(t *testing.T, primary *pgtest.Cluster) {
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		name := "another_" + string(mode)
		dsn, err := primary.CreateDatabase(t.Context(), name, "", "")
		must(t, err)
		there := pgtest.Pool(t, pgtest.At(dsn))
		must(t, postgres.Migrate(t.Context(), there, postgres.FewDays(postgres.Config{Schema: "fit_" + string(mode)})))
		e := goElsewhere(t, primary, mode, dsn)
		refusedAll(t, e.actor, e.plan, `database "`+name+`"`)
		e.lead(t, primary.DSN("postgres"))
		goesOn(t, e.actor, e.plan)
		e.keptHost(t)
		there.Reset()
		if n := ask[int](t, there, fmt.Sprintf("select (select count(*) from fit_%s.xxl_job_node)::int + (select count(*) from fit_%[1]s.xxl_job_log)::int", mode)); n != 0 {
			t.Errorf("%d rows are written to another database", n)
		}
	}
}

// connectionsToAFormerPrimary, which goes on to take writes, are let go of once a later connection
// has found another one at the address, be they in the pool or beside it.
func connectionsToAFormerPrimary(t *testing.T, former, next *pgtest.Cluster) {
	_, err := former.Exec(t.Context(), "postgres", "drop schema if exists fit_lock cascade")
	must(t, err)
	e := goElsewhere(t, former, postgres.LeaseLock, former.DSN("postgres"))
	goesOn(t, e.actor, e.plan)
	job := e.job()
	await.Until(t, "the standby has it", func() bool {
		return count(t, next, fmt.Sprintf("select count(*) from fit_lock.xxl_job_info where id = %d", job.ID)) == "1"
	})
	must(t, next.Promote())
	e.lead(t, next.DSN("postgres"))
	var hosts []*pgxpool.Conn
	for range 3 { // so that what the store asks next is asked over a new one
		conn, err := e.Acquire(t.Context())
		must(t, err)
		hosts = append(hosts, conn)
	}
	must(t, hosts[2].Conn().Close(t.Context()))
	hosts[2].Release()
	_, err = e.Now(e.ctx)
	must(t, err)
	for _, conn := range hosts[:2] {
		conn.Release()
	}
	goesOn(t, e.actor, e.actor.plan(job))
	await.Until(t, "the former primary has no session but the host's", func() bool {
		var calls sync.WaitGroup
		for range 3 { // side by side: the pool gives what was given back last
			calls.Go(func() { e.Now(e.ctx) })
		}
		calls.Wait()
		return sessions(t, former) == "1"
	})
	e.keptHost(t)
	for c, want := range map[*pgtest.Cluster]string{former: "1", next: "2"} {
		if n := count(t, c, "select count(*) from fit_lock.xxl_job_log"); n != want {
			t.Errorf("%s runs are at one of the servers, want %s", n, want)
		}
	}
}

// count is what a query returns.
func count(t *testing.T, c *pgtest.Cluster, sql string) string {
	t.Helper()
	n, err := c.Exec(t.Context(), "postgres", sql)
	must(t, err)
	return strings.TrimSpace(n)
}

// TestAConnectionWhoseRoleIsLost is found out by the first call that is denied what it has to do.
func TestAConnectionWhoseRoleIsLost(t *testing.T) {
	inServer(t)
	t.Parallel()
	super, pool := superPool(t), pgtest.Pool(t, pgtest.MaxConns(1))
	role := "lost_" + strings.ToLower(rand.Text()[:12])
	run(t, super, "create role "+role+" role "+ask[string](t, pool, "select current_user::text"))
	t.Cleanup(func() { super.Exec(context.Background(), "drop role "+role) })
	s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, NoReserve: true})
	a := own(t, s, inc(t, "a"), 2)
	plan := a.plan(a.job())
	run(t, pool, "set role "+role)
	_, err := a.Claim(a.ctx, nil, []store.Plan{plan})
	wantText(t, err, role, "rights")
	runs, err := a.Claim(a.ctx, nil, []store.Plan{plan})
	must(t, err)
	if len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
}
