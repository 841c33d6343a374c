package postgres_test

import (
	"testing"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestPartitionsAreMadeInSteps: a slow server has a bounded time for a transaction, so none makes
// all partitions of a new schema, and none makes one without its indexes.
func TestPartitionsAreMadeInSteps(t *testing.T) {
	t.Parallel()
	pool := pgtest.SharedPool(t)
	schema := pgtest.Schema(t)
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
	const made = `select count(*) as tables, c.xmin from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent in (($1 || '.xxl_job_log')::regclass, ($1 || '.xxl_job_log_page')::regclass) group by c.xmin`
	if n := ask[int](t, pool, "select sum(m.tables)::int from ("+made+") m", schema); n != 2*allPartitions {
		t.Errorf("%d partitions, want %d", n, 2*allPartitions)
	}
	if n := ask[int](t, pool, "select max(m.tables)::int from ("+made+") m", schema); n > 4 {
		t.Errorf("one transaction makes %d partitions, want 4 at most", n)
	}
}
