package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// hostilePaths are the one that sessions have by default, and one on which whatever is in
// public comes before what the server has.
var hostilePaths = map[string]string{"default": `"$user", public`, "public first": "public, pg_catalog"}

// oddSessions are settings that a database or a role may give its sessions, as far as they go
// together.
func oddSessions() map[string]string {
	return map[string]string{
		"default_transaction_read_only": "on", "default_transaction_isolation": "serializable", "default_transaction_deferrable": "on",
		"datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "bytea_output": "escape", "extra_float_digits": "-15", "timezone": "America/St_Johns",
		"statement_timeout": "1s", "lock_timeout": "1s", "idle_in_transaction_session_timeout": "1s",
	}
}

// endedSessions are limits of time that Postgres has from some version on: what is idle for longer than that
// is ended, which the pool notices, and a transaction that lasts longer.
func endedSessions(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	settings := map[string]string{"idle_session_timeout": "2s"}
	if ask[int](t, pool, "select current_setting('server_version_num')::int") >= 170_000 {
		settings["transaction_timeout"] = "1s"
	}
	return settings
}

// uncaptured fails the test where a hostile operator or function was called, or value of a
// hostile type made, by whomever: each call counts, though its transaction fails.
func uncaptured(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, postgres.HostileDSN(t))
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(ctx)
		var called bool
		var n int64
		if err := conn.QueryRow(ctx, "select is_called, last_value from public.captured").Scan(&called, &n); err != nil || called {
			t.Errorf("hostile operators and functions were called up to %d times: %v", n, err)
		}
	})
}

// hostileTopics are those that are run beside hostile operators, by the search path of the sessions.
func hostileTopics() map[string][]string {
	return map[string][]string{
		"default":      {"Job", "Ahead", "HandOver", "Accounts"},
		"none":         {"Edit", "Finish", "Read"},
		"public first": {"List", "Scan", "Claim", "Start", "Log", "Node", "Registry", "Reports", "Record"},
	}
}

// TestConformanceBesideHostileOperators: the store works as ever where public has hostile
// operators, functions and types, and calls none of them. What else a database or a host may have
// of its own is there as well, as it takes no suite of its own to find: texts are in another
// order than Go's, there is a publication for all tables, sessions are set as no other test has
// them, and statements are described once, or each time, instead of being prepared. Each topic is
// run on one of the paths; TestNamesOfStatements looks into each statement, and
// make hostile-postgres has each of these by itself.
func TestConformanceBesideHostileOperators(t *testing.T) {
	inServer(t)
	t.Parallel()
	uncaptured(t)
	there := &schemas{pool: pgtest.Pool(t, pgtest.At(postgres.HostileDSN(t)))}
	if since15 := ask[int](t, there.pool, "select current_setting('server_version_num')::int") >= 150_000; since15 && ask[bool](t, there.pool, "select 'a' > 'B'") {
		t.Error("texts are in the order of their bytes")
	}
	modes := map[string]pgx.QueryExecMode{"default": pgx.QueryExecModeCacheDescribe, "public first": pgx.QueryExecModeDescribeExec, "none": pgx.QueryExecModeCacheDescribe}
	for path, names := range hostileTopics() {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t, pgtest.At(postgres.HostileDSN(t)), with(map[string]string{"search_path": hostilePaths[path]}), with(oddSessions()), with(endedSessions(t, there.pool)), // of "none" it is empty
				by(modes[path]), pgtest.MaxConns(16))
			only := topics(t, names...)
			storetest.Run(t, func(t *testing.T) store.Store {
				only(t)
				cfg := postgres.Config{LeaseMode: postgres.LeaseRow}
				if strings.Contains(t.Name(), "/Node/") || strings.Contains(t.Name(), "/HandOver/") { // with sessions of nodes
					cfg.LeaseMode = postgres.LeaseLock
				}
				return there.open(t, pool, postgres.Patient(cfg))
			})
		})
	}
}

// TestLifeBesideHostileOperators is from the first Migrate on, by each of pgx's ways to send
// statements, with runs that are triggered in transactions of the host's.
func TestLifeBesideHostileOperators(t *testing.T) {
	inServer(t)
	t.Parallel()
	uncaptured(t)
	direct := pgtest.Pool(t, pgtest.At(postgres.HostileDSN(t)))
	// TestConformanceBesideHostileOperators has the modes that describe, each on one of the paths.
	for name, path := range hostilePaths {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				schema := "h_" + strings.ToLower(rand.Text())
				t.Cleanup(func() { direct.Exec(context.Background(), "drop schema "+schema+" cascade") })
				pool := pgtest.Pool(t, pgtest.At(postgres.HostileDSN(t)), with(map[string]string{"search_path": path}), by(mode), noticing())
				must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
				s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema, TxNotify: true})
				must(t, err)
				defer s.Close()
				life(t, s)
				a := own(t, s, inc(t, "a"), 2)
				triggered := triggeredByHost(t, a, pool, path, a.job().ID)
				for _, job := range []store.JobFilter{{App: "app"}, {App: "app", Key: "k"}, {App: "app", Keys: []string{"k"}}, {Name: "x"}} {
					_, err := s.Jobs(t.Context(), job)
					must(t, err)
				}
				if found := a.found(); len(found) != len(triggered) {
					t.Errorf("found runs %v, want %v", found, triggered)
				}
				must(t, postgres.RaiseStarted(t.Context(), s))
				must(t, s.Wake(t.Context(), 1))
			})
		}
	}
}

// TestAPathThatTheHostSetsLater: its sessions look into public first from some time after New
// on, which the store does not know of, and by then they have statements prepared, or not.
func TestAPathThatTheHostSetsLater(t *testing.T) {
	inServer(t)
	t.Parallel()
	uncaptured(t)
	there := &schemas{pool: pgtest.Pool(t, pgtest.At(postgres.HostileDSN(t)))}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, before := range []bool{false, true} {
			pool := pgtest.Pool(t, pgtest.At(postgres.HostileDSN(t)), by(mode), pgtest.MaxConns(1))
			s := there.open(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, NoReserve: true})
			if before {
				life(t, s)
			}
			run(t, pool, "set search_path = "+hostilePaths["public first"])
			life(t, s)
		}
	}
}

// triggeredByHost are runs that TriggerTx and TriggerSQLTx have planned, with a key and
// without, on the path of the host's session, which stays as it is.
func triggeredByHost(t *testing.T, a *actor, pool *pgxpool.Pool, path string, job int64) (ids []int64) {
	t.Helper()
	note := func(id int64, err error) {
		t.Helper()
		must(t, err)
		if len(ids) == 0 || id != ids[len(ids)-1] {
			ids = append(ids, id)
		}
	}
	var left string
	x, err := pool.Begin(t.Context())
	must(t, err)
	defer x.Rollback(context.Background())
	for _, key := range []string{"", "pgx", "pgx"} {
		note(a.TriggerTx(t.Context(), x, job, store.Trigger{Key: key, At: time.Now()}))
	}
	must(t, x.QueryRow(t.Context(), "show search_path").Scan(&left))
	must(t, x.Commit(t.Context()))
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	y, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	defer y.Rollback()
	for _, key := range []string{"", "sql", "sql"} {
		note(a.TriggerSQLTx(t.Context(), y, job, store.Trigger{Key: key, At: time.Now()}))
	}
	must(t, y.Commit())
	if left != path || len(ids) != 4 {
		t.Errorf("runs %v, and the path of the host's transaction is %q, was %q", ids, left, path)
	}
	return ids
}

// TestThePathOfTheHostsSessionsStays: what the store sets for its statements ends with them,
// outside of transactions too, by each way to send statements and behind a pooler that
// shares sessions out.
func TestThePathOfTheHostsSessionsStays(t *testing.T) {
	inServer(t)
	t.Parallel()
	bouncer := pgtest.PgBouncer(t, pgtest.DSN(t))
	const path = "public, pg_temp"
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for place, dsn := range map[string]string{"direct": pgtest.DSN(t), "pooler": bouncer} {
			if place == "pooler" && mode < pgx.QueryExecModeExec {
				continue
			}
			t.Run(mode.String()+", "+place, func(t *testing.T) {
				pool := pgtest.Pool(t, pgtest.At(dsn), by(mode), pgtest.MaxConns(1))
				s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, NoReserve: true})
				run(t, pool, "set search_path = "+path) // the one session of the pooler's that there is by now
				for name, ask := range map[string]func() error{
					"a read":        func() error { _, err := s.Now(t.Context()); return err },
					"a list":        func() error { _, err := s.Runs(t.Context(), store.RunFilter{JobID: 1}); return err },
					"a transaction": func() error { return s.SetShards(t.Context(), 2) },
					"an error":      func() error { return wantCode("22012", s.DivideByZero(t.Context())) },
				} {
					must(t, ask())
					if got := askPath(t, pool); got != path {
						t.Errorf("after %s the path is %q", name, got)
					}
				}
				run(t, pool, "reset search_path")
			})
		}
	}
}

// wantCode is nil for an error of the server's with this code.
func wantCode(code string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == code {
		return nil
	}
	return fmt.Errorf("%v, want SQLSTATE %s", err, code)
}

func askPath(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return ask[string](t, pool, "show search_path")
}

// TestAnIDThatNoJobHasCostsNoConnection: it is larger than the column holds, which the
// driver would find out in the middle of a message.
func TestAnIDThatNoJobHasCostsNoConnection(t *testing.T) {
	t.Parallel()
	const odd = 1 << 40
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		pool := pgtest.Pool(t, by(mode), pgtest.MaxConns(1))
		s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, NoReserve: true})
		before := ask[int](t, pool, "select pg_backend_pid()")
		if _, err := s.Job(t.Context(), odd); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: job: %v", mode, err)
		}
		_, err := s.Changes(t.Context(), odd, 10)
		must(t, err)
		_, err = s.Jobs(t.Context(), store.JobFilter{IDs: []int64{odd}, After: odd})
		must(t, err)
		_, err = s.Runs(t.Context(), store.RunFilter{JobID: odd})
		must(t, err)
		if after := ask[int](t, pool, "select pg_backend_pid()"); after != before {
			t.Errorf("%s: the pool's connection was lost", mode)
		}
	}
}

// TestAnotherRoleReadsNothingByOperators: a role with no rights but that to create in public
// makes an operator that fits "bigint & int", which the server has not, and that reads with
// the rights of whoever calls it. Runs are triggered, in all ways there are.
func TestAnotherRoleReadsNothingByOperators(t *testing.T) {
	inServer(t)
	t.Parallel()
	super := superPool(t)
	role := "r_" + strings.ToLower(rand.Text()[:12])
	run(t, super, "create role "+role+" login")
	t.Cleanup(func() { super.Exec(context.Background(), "drop role "+role) })
	dsn := pgtest.Database(t, "") // which is dropped before the role is
	owner, other := pgtest.Pool(t, pgtest.At(dsn)), pgtest.Pool(t, pgtest.At(as(t, dsn, role)))
	run(t, owner, "create schema vault")
	run(t, owner, "create table vault.secrets (secret text)")
	run(t, owner, "insert into vault.secrets values ('of the scheduler')")
	run(t, owner, "grant create, usage on schema public to "+role)
	if _, err := other.Exec(t.Context(), "select secret from vault.secrets"); err == nil {
		t.Fatal("the other role may read the secret as it is")
	}
	run(t, other, "create table public.loot (secret text)")
	run(t, other, "grant select, insert, delete on public.loot to public")
	run(t, other, `create function public.steal(bigint, int) returns bigint language plpgsql as
		$$begin insert into public.loot select secret from vault.secrets; return pg_catalog.int8and($1, $2); end$$`)
	run(t, other, "create operator public.& (function = public.steal, leftarg = bigint, rightarg = int)")
	loot := func() int { return ask[int](t, other, "select count(*)::int from public.loot") }
	run(t, owner, "select 5::bigint & 8191")
	if loot() != 1 {
		t.Fatal("the operator reads nothing: the test shows nothing")
	}
	run(t, owner, "delete from public.loot")

	for name, path := range hostilePaths {
		pool := pgtest.Pool(t, pgtest.At(dsn), with(map[string]string{"search_path": path}))
		s, err := postgres.New(t.Context(), pool, postgres.Config{AutoMigrate: true})
		must(t, err)
		defer s.Close()
		a := own(t, s, inc(t, "a"), 2)
		job := a.job()
		triggeredByHost(t, a, pool, path, job.ID)
		_, err = s.AddRun(t.Context(), job.ID, store.Trigger{Key: name})
		must(t, err)
		a.started(job)
		if n := loot(); n != 0 {
			t.Errorf("%s: the secret was read %d times", name, n)
		}
		must(t, s.Leave(t.Context(), a.inc))
	}
}

// TestTextsAreNoSQL: whatever texts come over the wire or from a host, by the whole way of a
// job, come back as they were, and no statement of theirs is run.
func TestTextsAreNoSQL(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	run(t, pool, "create table "+schema+".canary (id int)")
	do := schema + ".canary; --"
	for _, text := range []string{
		"'; drop table " + do, `"; drop table ` + do, `\'; drop table ` + do, "'); drop table " + do, "$$; drop table " + do,
		"$1", "$1::regclass", "{{schema}}", "%s %d %%", "/* */ -- \n;", `{"},{'`, "' or '1'='1", "%' or true --", `E'\x27`,
	} {
		s, err := postgres.New(t.Context(), pool, postgres.FewDays(postgres.Config{Schema: schema}))
		must(t, err)
		a := own(t, s, "inc"+text, 2)
		job := newJob()
		job.App, job.Key, job.Name, job.Author, job.AlarmEmail = "a"+text, "k"+text, "n"+text, text, text
		job.Handler, job.Param, job.GlueSource, job.GlueRemark = text, text, text, text
		added, err := s.AddJob(store.WithActor(a.ctx, text), job, nil)
		must(t, err)
		found, err := s.Jobs(a.ctx, store.JobFilter{App: job.App, Name: job.Name, Author: job.Author, Handler: job.Handler, Keys: []string{job.Key}, Limit: 10})
		must(t, err)
		if len(found) != 1 || found[0].ID != added.ID || found[0].Param != text || found[0].GlueSource != text {
			t.Errorf("%q: found %+v", text, found)
		}
		ended := a.started(added)
		res := result(ended)
		res.HandleMsg = text
		accepted, err := s.Finish(a.ctx, nil, []store.Result{res})
		must(t, err)
		if len(accepted) != 1 || accepted[0].HandleMsg != text {
			t.Errorf("%q: finished %+v", text, accepted)
		}
		param := text
		by, err := s.AddRun(a.ctx, added.ID, store.Trigger{Key: text, Param: &param, Addresses: []string{text}})
		must(t, err)
		if by.Param != text || by.Addresses[0] != text {
			t.Errorf("%q: triggered %+v", text, by)
		}
		must(t, s.PutAddresses(a.ctx, []store.Registration{{App: job.App, Address: text, BootID: text, Capabilities: []string{text}}}))
		regs, err := s.Addresses(a.ctx, job.App, time.Hour)
		must(t, err)
		if len(regs) != 1 || regs[0].Address != text || regs[0].BootID != text || regs[0].Capabilities[0] != text {
			t.Errorf("%q: registered %+v", text, regs)
		}
		must(t, s.SaveGroup(a.ctx, store.Group{App: job.App, Title: text, Addresses: []string{text}}))
		must(t, s.RemoveJob(a.ctx, added.ID))
		must(t, s.Leave(a.ctx, a.inc))
		s.Close()
	}
	if n := ask[int](t, pool, "select count(*)::int from "+schema+".canary"); n != 0 {
		t.Errorf("the canary has %d rows", n)
	}
	if n := ask[int](t, pool, "select count(*)::int from pg_class where relnamespace = '"+schema+"'::regnamespace and relname = 'canary'"); n != 1 {
		t.Error("the canary is gone")
	}
}
