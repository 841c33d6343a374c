package postgres_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
)

// TestDaysStayWhileTheyAreNeeded: a day is not dropped while something is owed for one of its
// runs, nor while a later run of one of its triggers has not ended.
func TestDaysStayWhileTheyAreNeeded(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	ended := a.started(a.job())
	_, err := s.Finish(t.Context(), nil, []store.Result{result(ended)})
	must(t, err)
	aged(t, pool, schema)
	old := ask[int64](t, pool, "select id from "+schema+".xxl_job_log")
	there := func(what string, want bool) {
		t.Helper()
		must(t, s.DropRuns(t.Context(), time.UnixMilli(1735689600000).AddDate(0, 0, 2)))
		runs, err := s.RunsByID(t.Context(), []int64{old})
		must(t, err)
		if got := len(runs) == 1; got != want {
			t.Errorf("%s: the run is there: %v, want %v", what, got, want)
		}
	}
	run(t, pool, `insert into `+schema+`.xxl_job_owed (shard, log_id, trigger_id, parent_job, job_id, is_join, business_time, depth) values (0, $1, $1, 1, 1, false, 0, 1)`, old)
	there("while something is owed", true)
	run(t, pool, "delete from "+schema+".xxl_job_owed")
	later, err := s.AddRun(t.Context(), a.job().ID, store.Trigger{})
	must(t, err)
	run(t, pool, "update "+schema+".xxl_job_log set trigger_id = $1 where id = $2", old, later.ID)
	there("while its trigger goes on", true)
	_, err = s.Kill(t.Context(), later.ID, "no")
	must(t, err)
	there("when it is over", false)
}
