package postgres_test

// Another role of the database, which may connect and nothing else, and takes what advisory
// locks it finds.

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// squatter is a session of a role without rights.
func squatter(t *testing.T) (conn *pgx.Conn, role string) {
	t.Helper()
	super := superPool(t)
	role = fmt.Sprintf("squatter_%d", rand.Uint64())
	run(t, super, "create role "+role+" login")
	t.Cleanup(func() { super.Exec(context.Background(), "drop role "+role) })
	conn, err := pgx.Connect(t.Context(), as(t, pgtest.DSN(t), role))
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "set application_name = 'squat'"); err != nil {
		t.Fatal(err)
	}
	return conn, role
}

// squats takes locks of a schema: those of shards, and any other of its class.
func squats(t *testing.T, conn *pgx.Conn, s *postgres.Store, ids ...int) {
	t.Helper()
	for _, id := range ids {
		_, err := conn.Exec(t.Context(), "select pg_advisory_lock($1, $2)", postgres.LockClassOf(s), int32(id))
		must(t, err)
	}
}

// TestSquattedShards: shards whose locks a stranger holds are taken at once, and the log
// says who holds them.
func TestSquattedShards(t *testing.T) {
	inServer(t)
	t.Parallel()
	log := &sharedLog{}
	a, b := twoStores(t, func(c *postgres.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	conn, role := squatter(t)
	squats(t, conn, a, 0, 1, 2, 3, 4)
	first, view := join(t, a, inc(t, "a"), 5)
	taken, err := a.TakeShards(t.Context(), first.inc, view.Shards)
	must(t, err)
	if len(taken) != 5 {
		t.Errorf("took %d of 5 shards whose locks a stranger holds", len(taken))
	}
	for _, want := range []string{role, "squat", fmt.Sprintf("pid=%d", conn.PgConn().PID()), "shards=5", "LeaseRow"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log)
		}
	}
	// It is said once, and another node does not take them from this one: they are not free.
	for range 3 {
		if v := first.beat(); free(v) != 0 {
			t.Errorf("%d shards are free", free(v))
		}
	}
	if n := strings.Count(log.String(), "no rights on the tables"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	second, _ := join(t, b, inc(t, "b"), 5)
	if v := second.beat(); free(v) != 0 {
		t.Errorf("%d shards of a live node are free", free(v))
	}
	// When the stranger has gone the locks are taken with the next beat.
	must(t, conn.Close(t.Context()))
	await.Until(t, "the node has its locks", func() bool {
		first.beat()
		return locksOf(t, holder(t, first.inc)) == 5
	})
	must(t, a.Leave(t.Context(), first.inc))
	must(t, b.Leave(t.Context(), second.inc))
}

// TestSquattedNode: a stranger that holds the locks of a dead node, its own and those of its
// shards, makes it neither free nor away; but it is silent, and so its shards are taken, as
// without locks.
func TestSquattedNode(t *testing.T) {
	inServer(t)
	t.Parallel()
	a, b := twoStores(t)
	conn, _ := squatter(t)
	dead := own(t, a, inc(t, "a"), 3)
	next, _ := join(t, b, inc(t, "b"), 3)
	waiting := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), fmt.Sprintf("select pg_advisory_lock(%d, 0), pg_advisory_lock(%[1]d, 1), pg_advisory_lock(%[1]d, 2), pg_advisory_lock(%d, hashtext('%s'))",
			postgres.LockClassOf(a), postgres.NodeClassOf(a), dead.inc))
		waiting <- err
	}()
	await.Until(t, "the stranger waits for the first of them", func() bool {
		return ask[bool](t, pgtest.SharedPool(t), "select exists (select from pg_locks where pid = $1 and not granted)", int32(conn.PgConn().PID()))
	})
	kill(t, holder(t, dead.inc))
	must(t, <-waiting)
	view := next.beat()
	if free(view) != 0 {
		t.Fatalf("%d shards are free: the stranger has not got their locks", free(view))
	}
	taken, err := b.TakeShards(t.Context(), next.inc, view.Shards) // as after a LeaseTTL of silence
	must(t, err)
	if len(taken) != 3 {
		t.Errorf("took %d of 3 shards of a silent node", len(taken))
	}
	must(t, b.Leave(t.Context(), next.inc))
}

// TestSquattedDefinitions: the number of shards and partitions are under the lock of a row,
// which only roles with rights on the tables can take.
func TestSquattedDefinitions(t *testing.T) {
	inServer(t)
	t.Parallel()
	s := open(t, postgres.Config{})
	conn, _ := squatter(t)
	squats(t, conn, s, -1)
	must(t, s.SetShards(t.Context(), 7))
	run(t, pgtest.SharedPool(t), fmt.Sprintf(`drop table "%s".xxl_job_log_%s`, postgres.SchemaOf(s), time.Now().UTC().Format("20060102")))
	must(t, postgres.Migrate(t.Context(), pgtest.SharedPool(t), postgres.Config{Schema: postgres.SchemaOf(s)}))
}

// TestSquattedMigration ends when its patience does, and names who holds it up.
func TestSquattedMigration(t *testing.T) {
	inServer(t)
	t.Parallel()
	s := open(t, postgres.Config{})
	conn, role := squatter(t)
	squats(t, conn, s, -2)
	set := `update "` + postgres.SchemaOf(s) + `".xxl_job_setting set value = $1 where name = 'schema_version'`
	version := ask[string](t, pgtest.SharedPool(t), `select value from "`+postgres.SchemaOf(s)+`".xxl_job_setting where name = 'schema_version'`)
	run(t, pgtest.SharedPool(t), set, "5")
	defer run(t, pgtest.SharedPool(t), set, version)
	err := postgres.MigrateWithin(t.Context(), 100*time.Millisecond, pgtest.SharedPool(t), postgres.Config{Schema: postgres.SchemaOf(s)})
	wantText(t, err, role, "squat", "may not migrate", "end it")
}

// isAway reports whether a view says that a node has gone.
func isAway(v store.View, inc string) bool {
	for _, n := range v.Nodes {
		if n.Incarnation == inc {
			return n.Away
		}
	}
	return true
}

// TestSquattedPresence: a stranger that holds the lock by which a node is known to be there,
// when that node connects, and gives it back later, makes nobody take the live node for dead.
func TestSquattedPresence(t *testing.T) {
	inServer(t)
	t.Parallel()
	log := &sharedLog{}
	a, b := twoStores(t, func(c *postgres.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	conn, role := squatter(t)
	first := own(t, a, inc(t, "a"), 3)
	second, _ := join(t, b, inc(t, "b"), 3)
	waiting := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), fmt.Sprintf("select pg_advisory_lock(%d, hashtext('%s'))", postgres.NodeClassOf(a), first.inc))
		waiting <- err
	}()
	await.Until(t, "the stranger waits", func() bool {
		return ask[bool](t, pgtest.SharedPool(t), "select exists (select from pg_locks where pid = $1 and not granted)", int32(conn.PgConn().PID()))
	})
	kill(t, holder(t, first.inc))
	must(t, <-waiting)
	first.beat() // connects anew, and does not get the lock
	if isAway(second.beat(), first.inc) {
		t.Error("away while the stranger has the lock")
	}
	for _, want := range []string{role, "squat", fmt.Sprintf("pid=%d", conn.PgConn().PID()), "the advisory lock of a node"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log)
		}
	}
	_, err := conn.Exec(t.Context(), "select pg_advisory_unlock_all()")
	must(t, err)
	away := 0
	for range 10 {
		first.beat()
		if isAway(second.beat(), first.inc) {
			away++
		}
	}
	if away > 0 {
		t.Errorf("a node that beats was away in %d of 10 views after the stranger let go", away)
	}
	must(t, a.Leave(t.Context(), first.inc))
	must(t, b.Leave(t.Context(), second.inc))
}

// TestEvictedWhileEvicting: the lock connection ends in the statement that ends those of
// silent nodes, as when two nodes take each other for silent.
func TestEvictedWhileEvicting(t *testing.T) {
	t.Parallel()
	a, b := twoStores(t)
	silent := own(t, a, inc(t, "a"), 3)
	next, _ := join(t, b, inc(t, "b"), 3)
	view := next.beat()
	run(t, pgtest.SharedPool(t), fmt.Sprintf(`update %q.xxl_job_node n set lock_pid = m.lock_pid, lock_start = m.lock_start, lock_name = m.lock_name
		from %[1]q.xxl_job_node m where n.incarnation = $1 and m.incarnation = $2`, postgres.SchemaOf(b)), silent.inc, next.inc)
	taken, err := b.TakeShards(t.Context(), next.inc, view.Shards)
	must(t, err)
	if len(taken) != 3 {
		t.Errorf("took %d of 3 shards by their epochs", len(taken))
	}
	kill(t, holder(t, silent.inc)) // which was spared, for its row named another
	if v := next.beat(); locksOf(t, holder(t, next.inc)) != 3 {
		t.Errorf("the new lock connection has not the locks of %v", v.Shards)
	}
	must(t, b.Leave(t.Context(), next.inc))
}

// TestSharedSquat: a stranger that holds the locks in shared mode is one too.
func TestSharedSquat(t *testing.T) {
	t.Parallel()
	a, _ := twoStores(t)
	conn, _ := squatter(t)
	_, err := conn.Exec(t.Context(), fmt.Sprintf("select pg_advisory_lock_shared(%d, n) from generate_series(0, 2) n", postgres.LockClassOf(a)))
	must(t, err)
	first, view := join(t, a, inc(t, "a"), 3)
	taken, err := a.TakeShards(t.Context(), first.inc, view.Shards)
	must(t, err)
	if len(taken) != 3 {
		t.Errorf("took %d of 3", len(taken))
	}
	must(t, a.Leave(t.Context(), first.inc))
}

// sharedLog is a log that several goroutines write.
type sharedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestRightsOfAnotherRole: a login that has its rights by set role is no stranger, though it
// inherits none, and may not know when its own session began.
func TestRightsOfAnotherRole(t *testing.T) {
	inServer(t)
	t.Parallel()
	super := superPool(t)
	owner, login := fmt.Sprintf("owner_%d", rand.Uint64()), fmt.Sprintf("login_%d", rand.Uint64())
	run(t, super, "create role "+owner)
	run(t, super, "create role "+login+" login noinherit in role "+owner)
	run(t, super, "alter role "+login+" set role = "+owner)
	run(t, super, "create schema "+owner+" authorization "+owner)
	t.Cleanup(func() {
		super.Exec(context.Background(), "drop owned by "+owner+" cascade")
		super.Exec(context.Background(), "drop role "+login)
		super.Exec(context.Background(), "drop role "+owner)
	})
	pool := pgtest.Pool(t, pgtest.At(as(t, pgtest.DSN(t), login)))
	log := &sharedLog{}
	cfg := postgres.Config{Schema: owner, AutoMigrate: true, Logger: slog.New(slog.NewTextHandler(log, nil))}
	s, err := postgres.New(t.Context(), pool, cfg)
	must(t, err)
	defer s.Close()
	own(t, s, "a", 3)

	conn, err := pgx.Connect(t.Context(), as(t, pgtest.DSN(t), login))
	must(t, err)
	defer conn.Close(context.Background())
	squats(t, conn, s, -2)
	set := `update "` + owner + `".xxl_job_setting set value = '5' where name = 'schema_version'`
	run(t, pool, set)
	err = postgres.MigrateWithin(t.Context(), 100*time.Millisecond, pool, postgres.Config{Schema: owner})
	wantText(t, err, "the lock of migrations is held by", login)
	if strings.Contains(err.Error(), "may not migrate") {
		t.Errorf("taken for a stranger: %v", err)
	}
	if _, err := s.Join(t.Context(), nodeOf("b")); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "has no rights") {
		t.Errorf("log: %s", log)
	}
}

// TestSquattedByPreparedTransactions: they hold their locks without a session.
func TestSquattedByPreparedTransactions(t *testing.T) {
	inServer(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{NoFsync: true, Settings: map[string]string{"max_prepared_transactions": "2"}})
	pool := pgtest.Pool(t, pgtest.At(cluster.DSN("postgres")))
	log := &sharedLog{}
	s, err := postgres.New(t.Context(), pool, postgres.Config{AutoMigrate: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	must(t, err)
	defer s.Close()
	conn, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
	must(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), fmt.Sprintf(`begin; select pg_advisory_xact_lock(%[1]d, 1), pg_advisory_xact_lock(%[1]d, -2); prepare transaction 'squat'`, postgres.LockClassOf(s)))
	must(t, err)
	own(t, s, "a", 3) // all three
	if !strings.Contains(log.String(), "prepared transaction") {
		t.Errorf("log: %s", log)
	}
	run(t, pool, `update "`+postgres.SchemaOf(s)+`".xxl_job_setting set value = '5' where name = 'schema_version'`)
	err = postgres.MigrateWithin(t.Context(), 100*time.Millisecond, pool, postgres.Config{Schema: postgres.SchemaOf(s)})
	wantText(t, err, "prepared transaction", "may not migrate")
}
