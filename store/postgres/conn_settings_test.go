package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// with makes the sessions of a pool begin with settings.
func with(settings map[string]string) pgtest.Option {
	return pgtest.With(func(c *pgxpool.Config) {
		for name, value := range settings {
			c.ConnConfig.RuntimeParams[name] = value
		}
	})
}

// by makes a pool send its statements in one of pgx's ways.
func by(mode pgx.QueryExecMode) pgtest.Option {
	return pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
}

// TestSettingsOfTheHostChangeNothing: the whole life of a job, in sessions that
// are set as odd as a role or a database may set them, several ways at once, with results that
// come as binary values and as text.
func TestSettingsOfTheHostChangeNothing(t *testing.T) {
	inServer(t)
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"ReadOnly": {"default_transaction_read_only": "on",
			"lock_timeout": "1ms", "idle_in_transaction_session_timeout": "1ms"},
		"RepeatableRead": {"default_transaction_isolation": "repeatable read",
			"datestyle": "German, DMY", "intervalstyle": "sql_standard", "timezone": "Asia/Kathmandu"},
		"Serializable": {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on",
			"datestyle": "SQL, MDY", "timezone": "America/St_Johns", "bytea_output": "escape",
			"array_nulls": "off", "quote_all_identifiers": "on", "transform_null_equals": "on"},
		"Deferrable": {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on", "default_transaction_read_only": "on",
			"datestyle": "Postgres, YMD", "intervalstyle": "postgres_verbose", "extra_float_digits": "-15",
			"plan_cache_mode": "force_custom_plan", "jit": "on", "jit_above_cost": "0"},
		"StatementTimeout": {"statement_timeout": "900ms", // as long as waitsForALock allows: what New asks has no more
			"standard_conforming_strings": "off", "backslash_quote": "off", "escape_string_warning": "on"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
				s := openOn(t, pgtest.Pool(t, with(settings), by(mode)), postgres.Config{})
				life(t, s)
				if name == "StatementTimeout" {
					waitsForALock(t, s)
				}
			}
			must(t, postgres.Migrate(t.Context(), pgtest.Pool(t, with(settings)), postgres.Config{Schema: pgtest.Schema(t)}))
		})
	}
}

// waitsForALock has a statement wait for a lock that it does not get, for longer than the
// host allows its own statements: what ends it is the store's patience for locks, a second.
func waitsForALock(t *testing.T, s *postgres.Store) {
	t.Helper()
	job, err := s.AddJob(t.Context(), newJob(), nil)
	must(t, err)
	x := begin(t, pgx.ReadCommitted)
	_, err = x.Exec(t.Context(), fmt.Sprintf("select from %q.xxl_job_info where id = $1 for update", postgres.SchemaOf(s)), job.ID)
	must(t, err)
	_, err = s.EditJob(t.Context(), job.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Author = "somebody"; return false, nil }})
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "55P03" { // and not 57014: by the statement's time
		t.Errorf("a statement that waits for a lock: %v", err)
	}
	must(t, x.Rollback(t.Context()))
}

func TestTextsInAnotherEncodingAreRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, with(map[string]string{"client_encoding": "LATIN1"}))
	wantText(t, newStore(t, pool, postgres.Config{}), "client_encoding is LATIN1", "client_encoding=UTF8")
}

// TestSearchPathLeadsNowhere: not to tables, and not to functions.
func TestSearchPathLeadsNowhere(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool, hostile := pgtest.Pool(t), pgtest.Schema(t)
	var sql strings.Builder
	for _, table := range []string{"xxl_job_log", "xxl_job_info", "xxl_job_next", "xxl_job_setting", "pg_stat_activity", "pg_locks", "pg_class", "pg_settings"} {
		sql.WriteString("create table " + hostile + "." + table + " (nothing int); ")
	}
	for _, f := range []string{"unnest(smallint[]) returns setof smallint", "unnest(text[]) returns setof text", "unnest(anyarray) returns setof anyelement",
		"statement_timestamp() returns timestamptz", "clock_timestamp() returns timestamptz", "date_trunc(text, timestamptz) returns timestamptz",
		"nextval(regclass) returns bigint", "substr(text, int) returns text", "lower(text) returns text", "count() returns bigint",
		"generate_series(int, int) returns setof int", "pg_notify(text, text) returns void", "pg_backend_pid() returns int",
		"pg_try_advisory_lock(int, int) returns boolean", "current_setting(text) returns text", "set_config(text, text, boolean) returns text",
		"current_database() returns name", "to_regclass(text) returns regclass"} {
		sql.WriteString("create function " + hostile + "." + f + " language plpgsql as $$begin raise 'hostile'; end$$; ")
	}
	run(t, pool, sql.String())
	path := with(map[string]string{"search_path": hostile + ", pg_catalog"})
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		pool := pgtest.Pool(t, path, by(mode))
		must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: migrated(t, pgtest.SharedPool(t))}))
		life(t, openOn(t, pool, postgres.Config{}))
		life(t, openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow}))
	}
	bare := pgtest.Schema(t)
	must(t, postgres.Migrate(t.Context(), pgtest.Pool(t, path), postgres.Config{Schema: bare}))
}

// TestCommitsWait: what synchronous_commit is in the transactions of the loop,
// whatever the sessions are set to, as a trigger in the database sees it.
func TestCommitsWait(t *testing.T) {
	inServer(t)
	t.Parallel()
	owner := pgtest.Pool(t)
	schema := migrated(t, owner)
	for _, sql := range []string{
		"create table %s.seen (event text, value text)",
		`create function %s.note() returns trigger language plpgsql as
		$$begin insert into %[1]s.seen values (tg_table_name || ' ' || tg_op, current_setting('synchronous_commit')); return null; end$$`,
	} {
		run(t, owner, strings.NewReplacer("%s", schema, "%[1]s", schema).Replace(sql))
	}
	for _, table := range []string{"xxl_job_log", "xxl_job_next", "xxl_job_info", "xxl_job_trigger_key", "xxl_job_lock"} {
		run(t, owner, "create trigger note after insert or update or delete on "+schema+"."+table+" for each statement execute function "+schema+".note()")
	}
	for _, c := range []struct {
		session, want string
		async         bool
	}{
		{"on", "on", false}, {"off", "on", false}, {"local", "on", false}, {"remote_write", "on", false}, {"remote_apply", "remote_apply", false},
		{"off", "off", true}, {"on", "on", true}, {"remote_apply", "remote_apply", true},
	} {
		run(t, owner, "truncate "+schema+".seen")
		var log bytes.Buffer
		s, err := postgres.New(t.Context(), pgtest.Pool(t, with(map[string]string{"synchronous_commit": c.session})),
			postgres.Config{Schema: schema, AllowAsyncCommit: c.async, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		life(t, s)
		s.Close()
		got := ask[[]string](t, owner, "select array_agg(distinct value) from "+schema+".seen where event like 'xxl_job_log %'")
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("session %s, AllowAsyncCommit %v: transactions ran with %v, want %s", c.session, c.async, got, c.want)
		}
		if warned := strings.Contains(log.String(), "AllowAsyncCommit"); warned != (c.async && c.session == "off") {
			t.Errorf("session %s, AllowAsyncCommit %v: log %s", c.session, c.async, &log)
		}
	}
}

// topics returns what passes by the cases of other topics of the suite. A topic that the suite
// does not have fails the test, but where -run chooses cases.
func topics(t *testing.T, names ...string) (only func(*testing.T)) {
	among := amongTopics(t, names...)
	return func(t *testing.T) {
		if !among(t) {
			t.Skip("another topic")
		}
	}
}

// otherTopics returns what passes by the cases of these topics.
func otherTopics(t *testing.T, names ...string) (only func(*testing.T)) {
	among := amongTopics(t, names...)
	return func(t *testing.T) {
		if among(t) {
			t.Skip("the topic is run otherwise")
		}
	}
}

// cases returns what passes by all other cases of the suite than these, by topic; nil stands for all
// of a topic. One that the suite does not have fails the test, but where -run chooses cases.
func cases(t *testing.T, of map[string][]string) (only func(*testing.T)) {
	var met sync.Map
	t.Cleanup(func() {
		for topic, names := range of {
			for _, name := range append(slices.Clone(names), "") {
				if _, ok := met.Load(topic + "/" + name); !ok && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
					t.Errorf("the suite has no %s/%s", topic, name)
				}
			}
		}
	})
	return func(t *testing.T) {
		where := strings.Split(t.Name(), "/")
		topic, name := where[len(where)-2], where[len(where)-1]
		names, known := of[topic]
		if !known || names != nil && !slices.Contains(names, name) {
			t.Skip("another case")
		}
		met.Store(topic+"/", true)
		met.Store(topic+"/"+name, true)
	}
}

// amongTopics returns what tells whether a case is of one of the topics.
func amongTopics(t *testing.T, names ...string) func(*testing.T) bool {
	var met sync.Map
	t.Cleanup(func() { // when all cases are over
		for _, name := range names {
			if _, ok := met.Load(name); !ok && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
				t.Errorf("the suite has no topic %q", name)
			}
		}
	})
	return func(t *testing.T) bool {
		for _, name := range names {
			if strings.Contains(t.Name(), "/"+name+"/") {
				met.Store(name, true)
				return true
			}
		}
		return false
	}
}

// TestAnEndedContextEndsNew: it neither hangs nor leaves anything behind.
func TestAnEndedContextEndsNew(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := postgres.New(ctx, pgtest.Pool(t), postgres.Config{}); err == nil {
		s.Close()
		t.Error("a store was opened under an ended context")
	}
}

// flights counts the round trips of the connections that it dials.
type flights struct{ n atomic.Int64 }

func (f *flights) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &flightConn{Conn: conn, flights: f}, nil
}

type flightConn struct {
	net.Conn
	flights *flights
	mu      sync.Mutex
	asked   bool // guarded by mu: something was written since the last read
}

func (c *flightConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	first := !c.asked
	c.asked = true
	c.mu.Unlock()
	if first {
		c.flights.n.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *flightConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	c.asked = false
	c.mu.Unlock()
	return n, err
}

// TestALockConnectionTakesFewRoundTrips: where each takes a third of a second, one that made
// its dozen settings one by one would never be there in time.
func TestALockConnectionTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) { lockConnectionTakesFewRoundTrips(t, mode) })
	}
}

func lockConnectionTakesFewRoundTrips(t *testing.T, mode pgx.QueryExecMode) {
	fly := &flights{}
	dsn := pgtest.DSN(t)
	var made *pgx.Conn
	connect := func(ctx context.Context) (*pgx.Conn, error) {
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		cfg.DialFunc, cfg.DefaultQueryExecMode = fly.dial, mode
		made, err = pgx.ConnectConfig(ctx, cfg)
		return made, err
	}
	bare, err := connect(t.Context())
	must(t, err)
	must(t, bare.Close(t.Context()))
	alone := fly.n.Swap(0)

	st := open(t, postgres.Config{LeaseMode: postgres.LeaseLock, LockConn: connect})
	must(t, st.SetShards(t.Context(), 8))
	_, err = st.Join(t.Context(), store.Node{ID: "a", Incarnation: "a-1"})
	must(t, err)
	if more := fly.n.Load() - alone; more < 2 || more > 7 {
		t.Errorf("%d round trips more than the %d of a bare connection, want 7 at most for settings, identity, the first beat and their preparation", more, alone)
	}
	for name, want := range map[string]string{"lock_timeout": "1s", "statement_timeout": "2s", "idle_session_timeout": "0", "client_connection_check_interval": "500ms"} {
		var got string
		must(t, made.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestAReadTakesOneRoundTrip: the path that it runs on goes with it.
func TestAReadTakesOneRoundTrip(t *testing.T) {
	inServer(t)
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		fly := &flights{}
		pool := pgtest.Pool(t, by(mode), pgtest.MaxConns(1), pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.DialFunc = fly.dial }))
		s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, NoReserve: true})
		var trips int64
		for range 2 { // the first prepares the statement
			fly.n.Store(0)
			_, err := s.Runs(t.Context(), store.RunFilter{})
			must(t, err)
			trips = fly.n.Load()
		}
		if trips != 1 {
			t.Errorf("%s: %d round trips, want 1", mode, trips)
		}
	}
}

// TestASettingThatIsRefused: the others are made all the same, and the connection is of use.
func TestASettingThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for name, settings := range map[string][]string{
			"some":  {"lock_timeout = 7", "there_is_no_such_thing = 1", "max_connections = 5", "statement_timeout = 8"},
			"first": {"there_is_no_such_thing = 1", "lock_timeout = 7", "statement_timeout = 8"},
			"last":  {"lock_timeout = 7", "statement_timeout = 8", "max_connections = 5"},
		} {
			t.Run(mode.String()+", "+name, func(t *testing.T) {
				cfg, err := pgx.ParseConfig(pgtest.DSN(t))
				must(t, err)
				cfg.DefaultQueryExecMode = mode
				conn, err := pgx.ConnectConfig(t.Context(), cfg)
				must(t, err)
				defer conn.Close(context.Background())
				before := slices.Clone(settings)
				must(t, postgres.SetAll(t.Context(), conn, settings))
				if !slices.Equal(settings, before) {
					t.Errorf("the caller's list is %q, was %q", settings, before)
				}
				must(t, postgres.SetAll(t.Context(), conn, []string{"max_connections = 5"}))
				var lock, statement string
				must(t, conn.QueryRow(t.Context(), "select current_setting('lock_timeout'), current_setting('statement_timeout')").Scan(&lock, &statement))
				if lock != "7ms" || statement != "8ms" {
					t.Errorf("lock_timeout %s, statement_timeout %s", lock, statement)
				}
				over, cancel := context.WithCancel(t.Context())
				cancel()
				if err := postgres.SetAll(over, conn, []string{"lock_timeout = 9"}); err == nil {
					t.Error("no error after the end of ctx")
				}
			})
		}
	}
}
