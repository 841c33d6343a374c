package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// startsServers is for a test that does so: it runs beside others, and with -short not at all.
func startsServers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts servers; leave out -short")
	}
	t.Parallel()
}

// exec runs a statement that has to succeed.
func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the only value of a query.
func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// TestSchemas: concurrent tests have schemas of their own, which are gone after
// them, with a shared pool or one of their own.
func TestSchemas(t *testing.T) {
	startsServers(t)
	pgtest.DSN(t) // or skip
	names := make(chan string, 40)
	t.Run("cases", func(t *testing.T) {
		for i := range cap(names) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				pool := pgtest.SharedPool(t)
				if i%10 == 0 {
					pool = pgtest.Pool(t)
				}
				schema := pgtest.Schema(t)
				exec(t, pool, "CREATE TABLE "+schema+".mine (id int)")
				exec(t, pool, "INSERT INTO "+schema+".mine VALUES ($1)", i)
				if got := one[int](t, pool, "SELECT sum(id) FROM "+schema+".mine"); got != i {
					t.Errorf("%d, want %d", got, i)
				}
				names <- schema
			})
		}
	})
	close(names)
	seen := map[string]bool{}
	for name := range names {
		if seen[name] {
			t.Errorf("schema %s twice", name)
		}
		seen[name] = true
		if one[int](t, pgtest.SharedPool(t), "SELECT count(*) FROM pg_namespace WHERE nspname = $1", name) != 0 {
			t.Errorf("schema %s is not dropped", name)
		}
	}
}

// TestPool: a pool has its options, and is closed with its test.
func TestPool(t *testing.T) {
	startsServers(t)
	pgtest.DSN(t) // or skip
	var pool *pgxpool.Pool
	t.Run("inside", func(t *testing.T) {
		pool = pgtest.Pool(t, pgtest.MaxConns(2), pgtest.With(func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["application_name"] = "inside"
		}))
		if n := pool.Config().MaxConns; n != 2 {
			t.Errorf("%d connections at most, want 2", n)
		}
		if name := one[string](t, pool, "SHOW application_name"); name != "inside" {
			t.Errorf("application_name is %q", name)
		}
	})
	if err := pool.Ping(t.Context()); err == nil {
		t.Error("the pool of an ended test works")
	}
}

// TestSettings: on a server of ours, tests work as a service would, but that nothing is flushed, nor vacuumed.
func TestSettings(t *testing.T) {
	startsServers(t)
	super, ours := pgtest.SuperDSN(t)
	if !ours {
		pgtest.Skip(t, "the server is not ours: unset XXLJOB_TEST_DATABASE_URL")
	}
	for setting, want := range map[string]string{
		"is_superuser": "off", "fsync": "off", "synchronous_commit": "on", "full_page_writes": "off", "autovacuum": "off", "plan_cache_mode": "force_generic_plan",
		"max_connections": "400", "server_encoding": "UTF8", "TimeZone": "UTC",
	} {
		if got := one[string](t, pgtest.SharedPool(t), "SELECT current_setting($1)", setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	if got := one[string](t, pgtest.Pool(t, pgtest.At(super)), "SHOW is_superuser"); got != "on" {
		t.Errorf("is_superuser is %s at SuperDSN", got)
	}
}

// TestCollation: a database in which a comes before B, unlike in the usual one.
func TestCollation(t *testing.T) {
	startsServers(t)
	dsn := pgtest.Database(t, "und-x-icu")
	pool, schema := pgtest.Pool(t, pgtest.At(dsn)), pgtest.Schema(t, pgtest.At(dsn))
	exec(t, pool, "CREATE TABLE "+schema+".names (name text)")
	exec(t, pool, "INSERT INTO "+schema+".names VALUES ('B'), ('a')")
	first := "SELECT name FROM " + schema + ".names ORDER BY name LIMIT 1"
	if got := one[string](t, pool, first); got != "a" {
		t.Errorf("%s comes first", got)
	}
	if one[bool](t, pgtest.SharedPool(t), "SELECT 'a' < 'B'") {
		t.Error("the usual collation is not that of bytes")
	}
}
