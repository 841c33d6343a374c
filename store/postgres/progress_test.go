package postgres_test

import (
	"testing"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestProgressOfLockedRuns: a row that somebody has locked keeps no other run from being
// heard, and nobody waits for it.
func TestProgressOfLockedRuns(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "inc", 2)
	locked, free := a.started(a.job()), a.started(a.job())
	say := func(percent int) {
		t.Helper()
		must(t, s.SetProgress(a.ctx, []store.Progress{
			{RunID: locked.ID, Incarnation: "inc", Token: locked.Token, Percent: percent}, {RunID: free.ID, Incarnation: "inc", Token: free.Token, Percent: percent},
		}))
	}
	want := func(when string, id int64, percent int) {
		t.Helper()
		if run, err := s.Run(a.ctx, id); err != nil || run.Progress != percent {
			t.Errorf("%s: %d %%, %v; want %d", when, run.Progress, err, percent)
		}
	}
	x := lockRow(t, s, "xxl_job_log", "id = $1", locked.ID)
	say(10)
	want("the locked one", locked.ID, 0)
	want("the free one", free.ID, 10)
	must(t, x.Rollback(a.ctx))
	say(20)
	want("the one that is locked no more", locked.ID, 20)
	want("the free one", free.ID, 20)
}

// TestProgressIsInNoIndex: a change of it needs no new entry in any, where the page of the
// row has room.
func TestProgressIsInNoIndex(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	// The definitions of this schema's indexes alone: others are dropped at this moment.
	indexesWith := func(column string) int {
		return ask[int](t, pgtest.SharedPool(t), `with mine as materialized (
			select x.indexrelid id from pg_index x join pg_class c on c.oid = x.indrelid join pg_namespace n on n.oid = c.relnamespace
			where n.nspname = $1)
			select count(*)::int from mine where pg_get_indexdef(id) like $2`, postgres.SchemaOf(s), "%"+column+"%")
	}
	if n := indexesWith("progress"); n != 0 {
		t.Errorf("%d indexes have it", n)
	}
	if n := indexesWith("inbox"); n == 0 {
		t.Error("the test finds no index by a column")
	}
}
