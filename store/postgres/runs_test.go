package postgres_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestAbsurdIDs: ids of runs name partitions, and come over the wire, as do those of jobs.
// Whatever they are, they are those of nothing that is there, make no table, and are no
// error of the database.
func TestAbsurdIDs(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := openOn(t, pool, postgres.Config{})
	schema := postgres.SchemaOf(s)
	a := own(t, s, "inc", 2)
	mine := a.started(a.job())
	tables := func() int {
		return ask[int](t, pool, "select count(*)::int from pg_class where relnamespace = '"+schema+"'::regnamespace")
	}
	before := tables()
	ids := []int64{math.MinInt64, -1, 0, 1, 1 << 31, 1 << 53, math.MaxInt64 - 8191, math.MaxInt64, mine.ID + 1<<40}
	var all []store.Result
	for _, id := range ids {
		one := store.Result{RunID: id, State: store.StateSucceeded}
		all = append(all, one)
		if got, err := s.Finish(a.ctx, nil, []store.Result{one}); err != nil || len(got) != 0 {
			t.Errorf("a result of run %d: %+v %v", id, got, err)
		}
		if got, err := s.RunsByID(a.ctx, []int64{id}); err != nil || len(got) != 0 {
			t.Errorf("run %d: %+v %v", id, got, err)
		}
		for what, err := range map[string]error{
			"run":  second(s.Run(a.ctx, id)),
			"kill": second(s.Kill(a.ctx, id, "x")),
			"log":  second(s.AskLog(a.ctx, store.Ask{Incarnation: a.inc, Run: store.Run{ID: id}, FromLine: 1})),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of run %d: %v", what, id, err)
			}
		}
		if id == 1 {
			continue // a job may have it
		}
		for what, err := range map[string]error{
			"job":                      second(s.Job(a.ctx, id)),
			"removal":                  s.RemoveJob(a.ctx, id),
			"trigger":                  second(s.AddRun(a.ctx, id, store.Trigger{})),
			"edit":                     second(s.EditJob(a.ctx, id, store.Edit{Verb: "stop", Change: func(*store.Job) (bool, error) { return true, nil }})),
			"trigger in a transaction": triggerIn(t, pool, s, id),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of job %d: %v", what, id, err)
			}
		}
	}
	if got, err := s.Changes(a.ctx, math.MaxInt64, 10); err != nil || len(got) != 0 {
		t.Errorf("changes: %+v %v", got, err)
	}
	// Among them, the result that matters is stored.
	all = append(all, result(mine))
	if got, err := s.Finish(a.ctx, nil, all); err != nil || len(got) != 1 || got[0].ID != mine.ID {
		t.Errorf("finished %+v %v", got, err)
	}
	if got, err := s.Runs(a.ctx, store.RunFilter{JobID: math.MaxInt64, From: time.UnixMilli(math.MinInt64 / 2), To: time.UnixMilli(math.MaxInt64 / 2), Limit: 10}); err != nil || len(got) != 0 {
		t.Errorf("runs of all times: %+v %v", got, err)
	}
	if after := tables(); after != before {
		t.Errorf("%d tables and indexes, were %d", after, before)
	}
}

// triggerIn triggers a job in a transaction of the host's.
func triggerIn(t *testing.T, pool *pgxpool.Pool, s *postgres.Store, job int64) error {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(t.Context())
	return second(s.TriggerTx(t.Context(), tx, job, store.Trigger{}))
}

func second[T any](_ T, err error) error { return err }

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
