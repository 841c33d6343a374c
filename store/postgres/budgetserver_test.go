package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/await"
)

// serverMeter reads what the server counts. The pool has one connection: what its session has
// done is told in its order.
type serverMeter struct {
	pool  *pgxpool.Pool
	marks int
	flush string // has the session tell at once, where the server can do that
}

func newServerMeter(t *testing.T, pool *pgxpool.Pool) *serverMeter {
	t.Helper()
	m := &serverMeter{pool: pool, flush: "select 1"}
	run(t, pool, "create table budget_mark ()")
	if ask[bool](t, pool, "select exists (select from pg_proc where proname = 'pg_stat_force_next_flush')") {
		m.flush = "select pg_stat_force_next_flush()"
	}
	return m
}

// written is what was written to tables, since the server was started.
type written struct {
	versions float64 // of rows, and marks of rows that were deleted
	entered  float64 // of these, the versions that enter each index anew: all but those of HOT updates
}

// written is what was written to the tables of a schema so far.
func (m *serverMeter) written(t *testing.T, schema string) (w written) {
	t.Helper()
	run(t, m.pool, "insert into budget_mark default values")
	m.marks++
	await.Until(t, "the server tells of all that was written", func() bool {
		run(t, m.pool, m.flush)
		return ask[int](t, m.pool, "select n_tup_ins::int from pg_stat_user_tables where relname = 'budget_mark'") == m.marks
	})
	must(t, m.pool.QueryRow(t.Context(), `select sum(n_tup_ins + n_tup_upd + n_tup_del)::float8, sum(n_tup_ins + n_tup_upd - n_tup_hot_upd)::float8
	from pg_stat_user_tables where schemaname = $1`, schema).Scan(&w.versions, &w.entered))
	return w
}

// indexes is how many indexes a table has.
func (m *serverMeter) indexes(t *testing.T, table string) float64 {
	t.Helper()
	return ask[float64](t, m.pool, "select count(*)::float8 from pg_index where indrelid = $1::text::regclass", table)
}

// wal is the position up to which the log is filled, in bytes.
func (m *serverMeter) wal(t *testing.T) float64 {
	t.Helper()
	return ask[float64](t, m.pool, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8")
}
