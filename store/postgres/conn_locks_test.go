package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// lockConn is a Config.LockConn that goes to the server itself.
func lockConn(t *testing.T) func(context.Context) (*pgx.Conn, error) {
	dsn := pgtest.DSN(t)
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) }
}

// holder is the backend that holds the locks of a node; 0 for none.
func holder(t *testing.T, inc string) int {
	t.Helper()
	return ask[int](t, pgtest.SharedPool(t), "select coalesce(max(pid), 0)::int from pg_stat_activity where application_name = $1", "xxljob "+inc)
}

// locksOf counts the advisory locks of sessions that the backend holds.
func locksOf(t *testing.T, pid int) int {
	t.Helper()
	return ask[int](t, pgtest.SharedPool(t), "select count(*)::int from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted and pid = $1", pid)
}

// kill ends a backend, as the death of its client does.
func kill(t *testing.T, pid int) {
	t.Helper()
	run(t, pgtest.SharedPool(t), "select pg_terminate_backend($1, 5000)", pid)
}

// beat is a beat that has to succeed.
func (a *actor) beat() store.View {
	a.Helper()
	v, err := a.Beat(a.ctx, a.inc, nil)
	must(a.T, err)
	return v
}

func free(v store.View) (n int) {
	for _, sh := range v.Shards {
		if sh.Free {
			n++
		}
	}
	return n
}

// twoStores are two processes on one schema.
func twoStores(t *testing.T, change ...func(*postgres.Config)) (a, b *postgres.Store) {
	t.Helper()
	var stores []*postgres.Store
	cfg := postgres.Config{Schema: made.take(t)}
	for _, f := range change {
		f(&cfg)
	}
	for range 2 {
		s, err := postgres.New(t.Context(), pgtest.SharedPool(t), cfg)
		must(t, err)
		t.Cleanup(s.Close)
		stores = append(stores, s)
	}
	return stores[0], stores[1]
}

func inc(t *testing.T, name string) string { return fmt.Sprintf("%s-%d", name, serial.Add(1)) }

// TestEachShardHasALock, on a connection that a dead client loses soon.
func TestEachShardHasALock(t *testing.T) {
	t.Parallel()
	var conn atomic.Pointer[pgx.Conn]
	dial := lockConn(t)
	s := open(t, postgres.Config{LockConn: func(ctx context.Context) (*pgx.Conn, error) {
		c, err := dial(ctx)
		conn.Store(c)
		return c, err
	}})
	a := own(t, s, inc(t, "a"), 5)
	pid := holder(t, a.inc)
	if n := locksOf(t, pid); n != 5 {
		t.Errorf("backend %d holds %d locks, want 5", pid, n)
	}
	for name, want := range map[string]string{"tcp_keepalives_idle": "2", "tcp_keepalives_interval": "1", "tcp_keepalives_count": "3",
		"tcp_user_timeout": "5000", "client_connection_check_interval": "500ms", "idle_session_timeout": "0", "lock_timeout": "1s",
		"statement_timeout": "2s", "application_name": "xxljob " + a.inc} {
		var got *string                                                                                 // null where the server does not know the setting
		must(t, conn.Load().QueryRow(t.Context(), "select current_setting($1, true)", name).Scan(&got)) // nothing else uses it at this time
		if got != nil && *got != want {
			t.Errorf("%s is %s, want %s", name, *got, want)
		}
	}
	if state := ask[string](t, pgtest.SharedPool(t), "select state from pg_stat_activity where pid = $1", pid); state != "idle" {
		t.Errorf("between calls the lock connection is %s", state)
	}
	must(t, s.ReleaseShards(t.Context(), a.inc, a.shards[:2]))
	if n := locksOf(t, pid); n != 3 {
		t.Errorf("after two shards were released: %d locks, want 3", n)
	}
	// Errors of other calls, and calls that fail, cost no locks.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.Beat(ended, a.inc, nil)
	s.TakeShards(t.Context(), a.inc, []store.Shard{{ID: 0, Owner: "nobody", Epoch: 99}, {ID: 77}})
	s.Finish(ended, nil, []store.Result{{RunID: 1, State: store.StateLost}})
	if n := locksOf(t, pid); n != 3 {
		t.Errorf("after errors: %d locks, want 3", n)
	}
	must(t, s.Leave(t.Context(), a.inc))
	await.Until(t, "the lock connection is closed", func() bool { return holder(t, a.inc) == 0 })
}

// TestADeadNodesShardsAreFree: when its connection is gone, the next beat of
// another shows its shards free, and they can be taken.
func TestADeadNodesShardsAreFree(t *testing.T) {
	t.Parallel()
	s, other := twoStores(t)
	a := own(t, s, inc(t, "a"), 3)
	b, _ := join(t, other, inc(t, "b"), 3)
	if n := free(b.beat()); n != 0 {
		t.Errorf("%d shards of a live node are free", n)
	}
	kill(t, holder(t, a.inc))
	v := b.beat()
	if n := free(v); n != 3 {
		t.Fatalf("%d shards of a dead node are free, want 3", n)
	}
	taken, err := b.TakeShards(t.Context(), b.inc, v.Shards)
	must(t, err)
	if len(taken) != 3 || locksOf(t, holder(t, b.inc)) != 3 {
		t.Errorf("taken %+v, with %d locks", taken, locksOf(t, holder(t, b.inc)))
	}
}

// TestALiveNodeHasItsLocksBack at its next beat.
func TestALiveNodeHasItsLocksBack(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "a"), 3)
	kill(t, holder(t, a.inc))
	a.beat()
	if n := locksOf(t, holder(t, a.inc)); n != 3 {
		t.Errorf("%d locks after the next beat, want 3", n)
	}
	if n := free(a.beat()); n != 0 {
		t.Errorf("%d of its shards are free", n)
	}
}

// TestASilentOwnerIsEnded: its lock connection, and only where it is surely its.
func TestASilentOwnerIsEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		ended  bool
	}{
		"itself":           {"lock_pid = lock_pid", true},
		"a later backend":  {"lock_start = lock_start - interval '1 microsecond'", false},
		"another program":  {"lock_name = 'psql'", false},
		"another's number": {"lock_pid = lock_pid + 1000000", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := made.take(t)
			s, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.Config{Schema: schema})
			must(t, err)
			defer s.Close()
			a := own(t, s, inc(t, "a"), 2)
			b, v := join(t, s, inc(t, "b"), 2)
			pid := holder(t, a.inc)
			run(t, pgtest.SharedPool(t), fmt.Sprintf("update %q.xxl_job_node set %s where incarnation = $1", schema, c.change), a.inc)
			taken, err := b.TakeShards(t.Context(), b.inc, v.Shards)
			must(t, err)
			if len(taken) != 2 {
				t.Errorf("taken %+v", taken)
			}
			gone := func() bool { return holder(t, a.inc) != pid }
			if c.ended { // a backend that is ended gives back its locks first, and is listed a while longer
				await.Until(t, "the backend of the silent owner is ended", gone)
			} else if gone() {
				t.Error("the backend of the silent owner was ended")
			}
			if n := locksOf(t, pid); !c.ended && n != 2 { // the take-over came before them
				t.Errorf("the silent owner has %d locks left", n)
			}
		})
	}
}

// stuck leaves a statement open that holds a shard's row against a take-over.
func stuck(t *testing.T, schema, mark string) (pid uint32) {
	t.Helper()
	conn, err := lockConn(t)(t.Context())
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "begin", pgx.QueryExecModeExec)
	must(t, err)
	_, err = conn.Exec(t.Context(), fmt.Sprintf("%s select 1 from %q.xxl_job_lock for key share", mark, schema), pgx.QueryExecModeExec)
	must(t, err)
	return conn.PgConn().PID()
}

// TestWhoBlocksATakeOver is ended where it is ours, directly and through a pooler,
// and is left alone where it is the host's.
func TestWhoBlocksATakeOver(t *testing.T) {
	t.Parallel()
	pooled := pgtest.Pool(t, pgtest.At(pgtest.PgBouncer(t, pgtest.DSN(t))), by(pgx.QueryExecModeExec))
	for _, c := range []struct {
		name string
		pool *pgxpool.Pool
		mode postgres.LeaseMode
	}{
		{"Lock", pgtest.SharedPool(t), postgres.LeaseLock},
		{"Row", pgtest.SharedPool(t), postgres.LeaseRow},
		{"Pooled", pooled, postgres.LeaseRow},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema := made.take(t)
			s, err := postgres.New(t.Context(), c.pool, postgres.Config{Schema: schema, LeaseMode: c.mode})
			must(t, err)
			defer s.Close()
			a, v := join(t, s, inc(t, "a"), 2)
			there := func(pid uint32) bool {
				return ask[bool](t, pgtest.SharedPool(t), "select exists (select from pg_stat_activity where pid = $1)", pid)
			}
			ours := stuck(t, schema, "/* xxljob */")
			taken, err := s.TakeShards(t.Context(), a.inc, v.Shards) // the blocker does not end by itself
			if err != nil || len(taken) != 2 {
				t.Errorf("blocked by ours: %+v, %v", taken, err)
			}
			await.Until(t, "a blocker of ours is ended", func() bool { return !there(ours) })
			foreign := stuck(t, schema, "")
			v, err = s.Beat(t.Context(), a.inc, nil)
			must(t, err)
			b, _ := join(t, s, inc(t, "b"), 2)
			if _, err = s.TakeShards(t.Context(), b.inc, v.Shards); err == nil {
				t.Error("blocked by the host: no error")
			}
			if !there(foreign) {
				t.Error("the host's transaction was ended")
			}
			if c.mode == postgres.LeaseLock {
				if n := locksOf(t, holder(t, b.inc)); n != 0 {
					t.Errorf("after the take-over that failed, %d locks are held", n)
				}
			}
		})
	}
}

// TestCloseLeavesNothing: no connection and no goroutine.
func TestCloseLeavesNothing(t *testing.T) {
	// Not in parallel: it counts goroutines.
	pool := pgtest.Pool(t)
	must(t, pool.Ping(t.Context()))
	schema := made.take(t)
	before := runtime.NumGoroutine()
	name := inc(t, "closer")
	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema, LockConn: func(ctx context.Context) (*pgx.Conn, error) {
		cfg := pool.Config().ConnConfig
		cfg.RuntimeParams["application_name"] = "xxljob " + name
		return pgx.ConnectConfig(ctx, cfg)
	}})
	must(t, err)
	a := own(t, s, name, 2)
	ctx, cancel := context.WithCancel(t.Context())
	s.Watch(ctx, a.inc)
	await.Until(t, "it listens", func() bool { _, inbox := s.Poll(); return inbox == time.Second })
	s.Close()
	await.Until(t, "no connection is left", func() bool { return holder(t, name) == 0 })
	if _, err := s.Beat(t.Context(), name, nil); err == nil || holder(t, name) != 0 {
		t.Errorf("a beat after Close: %v, and it has a connection: %v", err, holder(t, name) != 0)
	}
	cancel()
	s.Close() // again
	await.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+1 })
}

// TestSignalsCross: from one process to the other, each kind.
func TestSignalsCross(t *testing.T) {
	t.Parallel()
	s, other := twoStores(t)
	signalsCross(t, s, other)
}

// TestPoolsThatDiscardEverything: a hook of the host's pool that ends all that a session has, as
// those do that lend connections to others, makes nobody deaf and takes no shard: what listens and
// what holds locks is beside the pool.
func TestPoolsThatDiscardEverything(t *testing.T) {
	t.Parallel()
	var discarded atomic.Int64
	discard := func(ctx context.Context, conn *pgx.Conn) bool {
		discarded.Add(1)
		_, err := conn.Exec(ctx, "discard all", pgx.QueryExecModeSimpleProtocol)
		return err == nil
	}
	cfg := postgres.Config{Schema: made.take(t)}
	var stores [2]*postgres.Store
	for i := range stores {
		pool := pgtest.Pool(t, by(pgx.QueryExecModeExec), pgtest.With(func(c *pgxpool.Config) {
			c.AfterRelease = func(conn *pgx.Conn) bool { return discard(context.Background(), conn) }
			c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) { return discard(ctx, conn), nil }
		}))
		s, err := postgres.New(t.Context(), pool, postgres.Patient(cfg))
		must(t, err)
		t.Cleanup(s.Close)
		stores[i] = s
	}
	signalsCross(t, stores[0], stores[1])
	if discarded.Load() < 10 {
		t.Errorf("the hooks were called %d times", discarded.Load())
	}
}

// signalsCross has each kind of signal go from s to other, which begin with two shards, while both
// hold theirs.
func signalsCross(t *testing.T, s, other *postgres.Store) {
	t.Helper()
	a, v := join(t, s, inc(t, "a"), 2)
	b, _ := join(t, other, inc(t, "b"), 2)
	var err error
	a.shards, err = s.TakeShards(t.Context(), a.inc, v.Shards[:1])
	must(t, err)
	b.shards, err = other.TakeShards(t.Context(), b.inc, v.Shards[1:])
	must(t, err)
	signals := other.Watch(t.Context(), b.inc)
	s.Watch(t.Context(), a.inc)
	await.Until(t, "both listen", func() bool {
		_, x := s.Poll()
		_, y := other.Poll()
		return x == time.Second && y == time.Second
	})
	a.beat()
	b.beat()
	there := func(shard int) store.Job {
		for {
			if job := a.job(); job.Shard == shard {
				return job
			}
		}
	}
	theirs, mine := there(b.shards[0].ID), there(a.shards[0].ID)
	over := a.startOf(a.planned(mine), mine.Version)
	over.Address = store.LocalAddress(b.inc)
	for _, c := range []struct {
		name   string
		signal <-chan struct{}
		cause  func() error
	}{
		{"Scan", signals.Scan, func() error { _, err := s.AddRun(t.Context(), theirs.ID, store.Trigger{}); return err }},
		{"Inbox", signals.Inbox, func() error { _, err := s.Start(t.Context(), nil, []store.Start{over}); return err }},
		{"Ended", signals.Ended, func() error {
			_, err := s.Finish(t.Context(), nil, []store.Result{{RunID: over.RunID, State: store.StateSucceeded}})
			return err
		}},
		{"Nodes", signals.Nodes, func() error { return s.ReleaseShards(t.Context(), a.inc, a.shards) }},
	} {
		arrived(t, other, s, other)
		signalled(c.signal)
		must(t, c.cause())
		await.Until(t, c.name+": a signal", func() bool { return signalled(c.signal) })
	}
}

// TestPollIsQuickWhileNothingIsHeard, and slow again once it is.
func TestPollIsQuickWhileNothingIsHeard(t *testing.T) {
	t.Parallel()
	dial, name := lockConn(t), inc(t, "listener")
	var down atomic.Bool
	s := open(t, postgres.Config{LockConn: func(ctx context.Context) (*pgx.Conn, error) {
		if down.Load() {
			return nil, errors.New("down")
		}
		c, err := dial(ctx)
		if err == nil {
			_, err = c.Exec(ctx, "set application_name = 'xxljob "+name+"'")
		}
		return c, err
	}})
	poll := func() time.Duration { _, inbox := s.Poll(); return inbox }
	if poll() != 100*time.Millisecond {
		t.Errorf("before it listens it polls every %v", poll())
	}
	s.Watch(t.Context(), "a")
	await.Until(t, "it listens", func() bool { return poll() == time.Second })
	down.Store(true)
	kill(t, holder(t, name))
	await.Until(t, "it polls", func() bool { return poll() == 100*time.Millisecond })
	down.Store(false)
	await.Until(t, "it listens again", func() bool { return poll() == time.Second })
}

// statements is a tracer that keeps what the connections of a pool were sent.
type statements struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

func (s *statements) add(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, strings.ToLower(strings.TrimPrefix(sql, "/* xxljob */ ")))
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.add(d.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	var all []string
	for _, q := range d.Batch.QueuedQueries {
		all = append(all, strings.TrimPrefix(q.SQL, "/* xxljob */ "))
	}
	s.add(strings.Join(all, "; "))
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (s *statements) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func (s *statements) with(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sql := range s.all {
		if strings.Contains(sql, text) {
			found = append(found, sql)
		}
	}
	return found
}

func traced(s *statements) pgtest.Option {
	return pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.Tracer = s })
}

// TestHintsAreNeverInTheLoopsTransactions: a NOTIFY takes a lock of the whole
// server at its commit.
func TestHintsAreNeverInTheLoopsTransactions(t *testing.T) {
	t.Parallel()
	var sent statements
	s := openOn(t, pgtest.Pool(t, traced(&sent)), postgres.Config{})
	join(t, s, inc(t, "other"), 2) // there is somebody to be told
	life(t, s)
	await.Until(t, "hints are sent", func() bool { return len(sent.with("pg_notify")) > 0 })
	for _, sql := range sent.with("pg_notify") {
		if strings.Count(sql, ";") > 4 || strings.Contains(sql, "xxl_job_") {
			t.Errorf("a hint goes with other statements: %s", sql)
		}
	}
	if len(sent.with("insert into")) == 0 {
		t.Error("the tracer saw nothing of the life of a job")
	}
}

// TestRowModeKeepsNothingInSessions: so it works behind a pooler.
func TestRowModeKeepsNothingInSessions(t *testing.T) {
	t.Parallel()
	var sent statements
	s := openOn(t, pgtest.Pool(t, traced(&sent)), postgres.Config{LeaseMode: postgres.LeaseRow})
	s.Watch(t.Context(), "life")
	join(t, s, inc(t, "other"), 2)
	life(t, s)
	s.Close() // it waits for what is done in the background
	for _, session := range []string{"listen ", "pg_notify", "pg_try_advisory_lock", "pg_advisory_lock(", ", false)", "prepare ", "temp "} {
		if got := sent.with(session); len(got) > 0 {
			t.Errorf("row mode sends %q", got[0])
		}
	}
	for _, sql := range sent.with("set ") {
		if strings.HasPrefix(sql, "set ") && !strings.HasPrefix(sql, "set local ") || slices.ContainsFunc(strings.Split(sql, "; "), func(one string) bool {
			return strings.HasPrefix(one, "set ") && !strings.HasPrefix(one, "set local ")
		}) {
			t.Errorf("row mode sends %q", sql)
		}
	}
	if len(sent.with("set_config(")) == 0 {
		t.Error("the tracer saw no transaction")
	}
}

// TestAFreeShardThatIsLocked: who is paused between giving up a shard and giving up its
// lock keeps it from nobody who no longer takes it for free.
func TestAFreeShardThatIsLocked(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	a, b := twoStores(t, func(c *postgres.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	former := own(t, a, inc(t, "a"), 1)
	run(t, pgtest.SharedPool(t), `update "`+postgres.SchemaOf(a)+`".xxl_job_lock set owner = ''`)
	next, view := join(t, b, inc(t, "b"), 1)
	sh := view.Shards[0]
	if sh.Owner != "" || !sh.Free {
		t.Fatalf("shard %+v is not there for the taking", sh)
	}
	taken, err := b.TakeShards(t.Context(), next.inc, []store.Shard{sh})
	must(t, err)
	if len(taken) != 0 {
		t.Errorf("took %+v, which another process has locked", taken)
	}
	sh.Free = false
	taken, err = b.TakeShards(t.Context(), next.inc, []store.Shard{sh})
	must(t, err)
	if len(taken) != 1 {
		t.Error("a shard that stands still was not taken")
	}
	if said := saidOf(log.String()); said != "" {
		t.Errorf("a node of ours is taken for a stranger: %s", said)
	}
	must(t, a.Leave(t.Context(), former.inc))
}

// lingering is a connection of whose end the server hears only when the test ends, as
// one with too much to do hears of it late.
type lingering struct{ net.Conn }

func (l lingering) Write(b []byte) (int, error) {
	if len(b) > 0 && b[0] == 'X' { // Terminate
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (lingering) Close() error { return nil }

// TestLocksAreFreeAfterTheirConnection: when Leave or Close returns, the locks of the
// shards are there for others, whether the server has heard of the connection's end or
// not.
func TestLocksAreFreeAfterTheirConnection(t *testing.T) {
	for name, leave := range map[string]func(context.Context, *postgres.Store, string) error{
		"leave": func(ctx context.Context, s *postgres.Store, inc string) error { return s.Leave(ctx, inc) },
		"close": func(_ context.Context, s *postgres.Store, _ string) error { s.Close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := twoStores(t, func(cfg *postgres.Config) {
				cfg.LockConn = func(ctx context.Context) (*pgx.Conn, error) {
					conf, err := pgx.ParseConfig(pgtest.DSN(t))
					if err != nil {
						return nil, err
					}
					dial := conf.DialFunc
					conf.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
						conn, err := dial(ctx, network, addr)
						if err != nil {
							return nil, err
						}
						t.Cleanup(func() { conn.Close() })
						return lingering{conn}, nil
					}
					return pgx.ConnectConfig(ctx, conf)
				}
			})
			former := own(t, a, inc(t, "a"), 4)
			pid := holder(t, former.inc)
			if n := locksOf(t, pid); n != 4 {
				t.Fatalf("backend %d holds %d locks, want 4", pid, n)
			}
			must(t, leave(t.Context(), a, former.inc))
			if n := locksOf(t, pid); n != 0 {
				t.Errorf("backend %d still holds %d locks", pid, n)
			}
			if name == "leave" {
				own(t, b, inc(t, "b"), 4)
			}
		})
	}
}
