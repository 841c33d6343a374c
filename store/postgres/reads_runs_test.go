package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestLockHolders: whoever holds a shard, a job, a run or a table is named, and nobody else.
func TestLockHolders(t *testing.T) {
	s := open(t, postgres.Config{})
	must(t, s.SetShards(t.Context(), 2))
	job, err := s.AddJob(t.Context(), store.Job{App: "a", Key: "k", Name: "k", Handler: "h"}, nil)
	must(t, err)
	run, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
	must(t, err)
	pool := pgtest.SharedPool(t)
	schema := postgres.SchemaOf(s)
	q := store.LockQuery{Shards: []int{0, 1}, Jobs: []int64{job.ID}, Runs: []int64{run.ID}}
	for _, c := range []struct{ what, lock string }{
		{"nobody", "select 1"},
		{"a shard", "select 1 from %s.xxl_job_lock where shard = 1 for update"},
		{"a job", "select 1 from %s.xxl_job_info for update"},
		{"when it is due", "select 1 from %s.xxl_job_next for no key update"},
		{"a run", "select 1 from %s.xxl_job_log for update"},
		{"a table", "lock table %s.xxl_job_lock in access exclusive mode"},
		{"a table that may be read", "lock table %s.xxl_job_log in share mode"},
	} {
		tx, err := pool.Begin(t.Context())
		must(t, err)
		var pid int
		must(t, tx.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid))
		_, err = tx.Exec(t.Context(), strings.ReplaceAll(c.lock, "%s", pgx.Identifier{schema}.Sanitize()))
		must(t, err)
		began := time.Now()
		holders, err := s.LockHolders(t.Context(), q)
		must(t, err)
		took := time.Since(began)
		must(t, tx.Rollback(t.Context()))
		want := 1
		if c.what == "nobody" {
			want = 0
		}
		if len(holders) != want || want == 1 && !strings.HasPrefix(holders[0], fmt.Sprintf("pid %d, user ", pid)) {
			t.Errorf("%s is held by pid %d: told of %q", c.what, pid, holders)
		}
		if took > 5*time.Second {
			t.Errorf("%s: it took %v", c.what, took)
		}
	}
	if holders, err := s.LockHolders(t.Context(), store.LockQuery{}); err != nil || len(holders) != 0 {
		t.Errorf("of nothing: %q, %v", holders, err)
	}
}
