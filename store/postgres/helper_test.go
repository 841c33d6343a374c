package postgres_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// schemas are those that the package's tests have made. One that a test is done
// with is emptied and given to the next, with the connections that it was used on: making the
// tables takes longer than most cases do, and so does it for a session to get to know them.
type schemas struct {
	mu   sync.Mutex
	pool *pgxpool.Pool // guarded by mu: where they are; nil stands for the shared pool
	all  []*schema     // guarded by mu
	free []*schema     // guarded by mu
}

// schema is one of them. Its pool is made when somebody asks for it.
type schema struct {
	name string
	pool *pgxpool.Pool
}

// connsOfSchema is as many as the cases of races use at once.
const connsOfSchema = 16

var made schemas

func TestMain(m *testing.M) {
	if postgres.ChildOfBench() {
		return
	}
	postgres.BePatient()
	if flag.Parse(); flag.Lookup("test.bench").Value.String() == "" {
		postgres.MakeFewDays() // to make a day's partitions takes as long as many a test does otherwise
	}
	// A test waits for its server, and for time to pass, more than it works: -parallel is what it
	// would be on four processors at least, unless it is given.
	if n := runtime.GOMAXPROCS(0); n < 4 && flag.Lookup("test.parallel").Value.String() == strconv.Itoa(n) {
		flag.Set("test.parallel", "4")
	}
	code := m.Run()
	made.drop()
	os.Exit(code)
}

// open makes a store in a schema of its own, on the connections of that schema.
func open(t testing.TB, cfg postgres.Config) *postgres.Store {
	t.Helper()
	return made.open(t, nil, cfg)
}

// inServer is postgres.InServer.
func inServer(t testing.TB) { postgres.InServer(t) }

// saidOf is a log without what New says of every server of the tests.
func saidOf(log string) string {
	var said strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "fsync = off") {
			said.WriteString(line)
		}
	}
	return said.String()
}

// openOn makes it on another pool on the same database.
func openOn(t testing.TB, pool *pgxpool.Pool, cfg postgres.Config) *postgres.Store {
	t.Helper()
	return made.open(t, pool, cfg)
}

// open makes a store on a pool on the database of the schemas; nil is the schema's own.
func (s *schemas) open(t testing.TB, pool *pgxpool.Pool, cfg postgres.Config) *postgres.Store {
	t.Helper()
	of := s.lend(t)
	if pool == nil {
		if cfg.LockConn == nil && of.pool != nil {
			cfg = postgres.KnownConns(cfg)
		}
		pool = of.conns(t, s.pool)
	}
	cfg.Schema = of.name
	store, err := postgres.New(t.Context(), pool, postgres.FewDays(cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// conns returns the pool of the schema, whose sessions know no other.
func (of *schema) conns(t testing.TB, like *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	if of.pool == nil {
		cfg := like.Config()
		cfg.MaxConns = connsOfSchema
		var err error
		if of.pool, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	return of.pool
}

// take returns an empty schema with all tables, for the time of the test.
func (s *schemas) take(t testing.TB) string {
	t.Helper()
	return s.lend(t).name
}

func (s *schemas) lend(t testing.TB) *schema {
	t.Helper()
	s.mu.Lock()
	if s.pool == nil {
		s.pool = pgtest.SharedPool(t)
	}
	var of *schema
	if n := len(s.free); n > 0 {
		of, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	if of == nil {
		of = &schema{name: "t_" + strings.ToLower(rand.Text())}
		if err := postgres.Migrate(t.Context(), s.pool, postgres.FewDays(postgres.Config{Schema: of.name})); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.all = append(s.all, of)
		s.mu.Unlock()
	}
	t.Cleanup(func() {
		if err := s.empty(of); err != nil {
			t.Errorf("empty schema %s: %v", of.name, err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, of)
	})
	return of
}

func (s *schemas) empty(of *schema) error {
	var all pgx.Batch // whose statements are planned once in a session
	for _, table := range []string{"xxl_job_info", "xxl_job_next", "xxl_job_log", "xxl_job_trigger_key", "xxl_job_change", "xxl_job_lock",
		"xxl_job_node", "xxl_job_group", "xxl_job_registry", "xxl_job_logglue", "xxl_job_log_report", "xxl_job_report", "xxl_job_alarm", "xxl_job_ask",
		"xxl_job_list_head", "xxl_job_list", "xxl_job_named", "xxl_job_ahead",
		"xxl_job_link", "xxl_job_owed", "xxl_job_part", "xxl_job_window", "xxl_job_told", "xxl_job_mute", "xxl_job_app_token", "xxl_job_served", "xxl_job_rule", "xxl_job_rule_node", "xxl_job_log_page", "xxl_job_log_use",
		"xxl_job_user", "xxl_job_user_session", "xxl_job_user_token", "xxl_job_user_try", "xxl_job_user_code"} {
		all.Queue(fmt.Sprintf("delete from %q.%s", of.name, table))
	}
	all.Queue(fmt.Sprintf("delete from %q.xxl_job_setting where name not in ('schema_version', 'schema_compatible')", of.name))
	all.Queue("select pg_catalog.setval($1::pg_catalog.text::pg_catalog.regclass, 1, false)", fmt.Sprintf("%q.xxl_job_info_id", of.name)) // no plan is made anew for it
	pool := s.pool
	if of.pool != nil {
		pool = of.pool
	}
	return pool.SendBatch(context.Background(), &all).Close()
}

// drop removes the schemas at the end.
func (s *schemas) drop() {
	for _, of := range s.all {
		if of.pool != nil {
			of.pool.Close()
		}
		if _, err := s.pool.Exec(context.Background(), fmt.Sprintf("drop schema %q cascade", of.name)); err != nil {
			fmt.Fprintln(os.Stderr, "drop schema", of.name, err)
		}
	}
}

// How tests see that somebody waits, so that none goes by how long something took. Comes in:
// calls of a store. Goes out: that one waits for the pool, or for a lock of the server.

// atPool is a tracer of pools. It tells a call that it waits for a connection of a pool
// that is used up for as long as its context lasts, and not for a moment, after which it
// would ask for the reserve: such a moment is a deadline.
type atPool struct{}

type waitsKey struct{}

// whenWaiting returns a context with which a call that comes to wait for the pool calls f.
func whenWaiting(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, waitsKey{}, f)
}

// impatient returns a context that ends when a call comes to wait for the pool with it.
// The pool has to be a noticing one.
func impatient(t *testing.T, ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	return whenWaiting(ctx, cancel)
}

// noticing has calls told that wait for the pool.
func noticing() pgtest.Option {
	return pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.Tracer = atPool{} })
}

func (atPool) TraceAcquireStart(ctx context.Context, pool *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	tell, told := ctx.Value(waitsKey{}).(func())
	_, bounded := ctx.Deadline()
	if stat := pool.Stat(); told && !bounded && stat.AcquiredConns() >= stat.MaxConns() {
		tell()
	}
	return ctx
}

func (atPool) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (atPool) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (atPool) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// blocked reports whether a statement that is about the tables of a store waits for a lock.
func blocked(t *testing.T, s *postgres.Store) bool {
	t.Helper()
	return ask[bool](t, pgtest.SharedPool(t), `select exists (select from pg_locks l join pg_stat_activity a using (pid)
		where not l.granted and a.query like '%' || $1 || '%' and a.pid <> pg_backend_pid())`, postgres.SchemaOf(s))
}

// patience is what a transaction of a store's begins with.
var patience = regexp.MustCompile(`'lock_timeout', '(\d+)'`)

// patiences are the least and the greatest patience for locks, in milliseconds, of the
// transactions with the text.
func (s *statements) patiences(t *testing.T, text string) (least, most int) {
	t.Helper()
	for _, sql := range s.with(text) {
		found := patience.FindStringSubmatch(sql)
		if found == nil {
			continue // a statement by itself
		}
		n, err := strconv.Atoi(found[1])
		must(t, err)
		if least == 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	if least == 0 {
		t.Fatalf("no transaction with %q was seen", text)
	}
	return least, most
}

// usual is the patience of what is not the loops', and may wait for who else writes.
func (s *statements) usual(t *testing.T, st *postgres.Store) int {
	t.Helper()
	must(t, st.SaveGroup(t.Context(), store.Group{App: "app"}))
	least, _ := s.patiences(t, "xxl_job_group")
	return least
}
