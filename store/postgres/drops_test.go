package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// logging is a store in which no statement may delete more than a thousand pages.
type logging struct {
	*actor
	owner  *pgxpool.Pool
	schema string
	s      *postgres.Store
	job    store.Job
}

func newLogging(t *testing.T) *logging {
	t.Helper()
	owner := pgtest.Pool(t)
	l := &logging{owner: owner, schema: migrated(t, owner)}
	l.s, l.actor = openAt(t, owner, l.schema)
	l.job = l.actor.job()
	l.run(`create function %[1]s.few() returns trigger language plpgsql as $$begin
		if (select count(*) from gone) > 1000 then raise 'a statement deletes % pages', (select count(*) from gone); end if; return null; end$$`)
	l.run(`create trigger few after delete on %[1]s.xxl_job_log_page referencing old table as gone for each statement execute function %[1]s.few()`)
	return l
}

func (l *logging) run(sql string) {
	l.Helper()
	run(l.T, l.owner, fmt.Sprintf(sql, l.schema))
}

// logged are runs of the job that have ended, each with so many pages of a byte.
func (l *logging) logged(runs, pages int) (ids []int64) {
	l.Helper()
	for range runs {
		r, err := l.s.AddRun(l.ctx, l.job.ID, store.Trigger{})
		must(l.T, err)
		_, err = l.s.Kill(l.ctx, r.ID, "over")
		must(l.T, err)
		ids = append(ids, r.ID)
		l.run(fmt.Sprintf("insert into %%[1]s.xxl_job_log_page select %d, n, n, 1, '\\x01' from generate_series(1, %d) n", r.ID, pages))
	}
	l.run(fmt.Sprintf("insert into %%[1]s.xxl_job_log_use as u select %d / 8192 / 86400000, %d, %d on conflict (day, job_id) do update set bytes = u.bytes + excluded.bytes",
		ids[0], l.job.ID, runs*pages))
	return ids
}

// left is how many pages there are, and how many the job is known to have.
func (l *logging) left() string {
	l.Helper()
	return ask[string](l.T, l.owner, fmt.Sprintf("select (select count(*) from %[1]s.xxl_job_log_page) || ' ' || (select sum(bytes) from %[1]s.xxl_job_log_use)", l.schema))
}

// TestDropsFewPagesAtATime: however many pages runs have, no transaction deletes more than a
// thousand of them, and what the job has is what is left.
func TestDropsFewPagesAtATime(t *testing.T) {
	inServer(t)
	t.Parallel()
	l := newLogging(t)
	l.logged(30, 90)
	l.logged(2, 2700)
	l.logged(200, 3)
	l.logged(1, 1001)
	got, err := l.s.DropEnded(l.ctx, store.RunDrop{All: true})
	if want := (store.Dropped{Runs: 233, Examined: 233}); err != nil || got != want {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	if left := l.left(); left != "0 0" {
		t.Errorf("left are %s", left)
	}
}

// TestDropsGoOnLater: a call ends once it has deleted so many pages, and the next one goes on
// in the middle of a run. The log of a run that something needs stays as it is.
func TestDropsGoOnLater(t *testing.T) {
	t.Parallel()
	l := newLogging(t)
	needed := l.logged(1, 1500)
	l.run(fmt.Sprintf("update %%[1]s.xxl_job_next set wait_run = %d", needed[0]))
	l.logged(1, 10)
	ids := l.logged(1, 30_000)
	l.logged(1, 10)
	q := store.RunDrop{All: true, JobIDs: []int64{l.job.ID}}
	got, err := l.s.DropEnded(l.ctx, q)
	next := got.Next
	got.Next = store.DropMark{}
	if want := (store.Dropped{Runs: 1, Kept: 1, Examined: 2, More: true}); err != nil || got != want || next.RunID == 0 || next.RunID >= ids[0] {
		t.Fatalf("%+v from %+v on, %v, want %+v", got, next, err, want)
	}
	if left := l.left(); left != "11510 11510" {
		t.Errorf("after the first call %s are left", left)
	}
	q.After = next
	got, err = l.s.DropEnded(l.ctx, q)
	if want := (store.Dropped{Runs: 2, Examined: 2}); err != nil || got != want {
		t.Fatalf("the next call: %+v, %v, want %+v", got, err, want)
	}
	if left := l.left(); left != "1500 1500" {
		t.Errorf("after the next call %s are left", left)
	}
}

// TestALockedRunHoldsUpNoDrop: a run whose row is held stays, with many pages or with few, and
// the others go at once.
func TestALockedRunHoldsUpNoDrop(t *testing.T) {
	inServer(t)
	t.Parallel()
	s := open(t, postgres.Patient(postgres.Config{}))
	l := &logging{actor: own(t, s, inc(t, "a"), 1), owner: pgtest.SharedPool(t), schema: fmt.Sprintf("%q", postgres.SchemaOf(s)), s: s}
	l.job = l.actor.job()
	for _, pages := range []int{1, 1001} {
		held := l.logged(1, pages)[0]
		l.logged(1, 1)
		x := begin(t, pgx.ReadCommitted)
		_, err := x.Exec(t.Context(), fmt.Sprintf("select from %s.xxl_job_log where id = %d for update", l.schema, held))
		must(t, err)
		got, err := l.s.DropEnded(l.ctx, store.RunDrop{All: true})
		if want := (store.Dropped{Runs: 1, Kept: 1, Examined: 2}); err != nil || got != want {
			t.Errorf("a run with %d pages is held: %+v, %v, want %+v", pages, got, err, want)
		}
		must(t, x.Rollback(t.Context()))
		got, err = l.s.DropEnded(l.ctx, store.RunDrop{All: true})
		if want := (store.Dropped{Runs: 1, Examined: 1}); err != nil || got != want {
			t.Errorf("nobody holds it: %+v, %v, want %+v", got, err, want)
		}
	}
}

// TestExpiryPassesAJobBy: what cannot be deleted of one job is left to the next walk.
func TestExpiryPassesAJobBy(t *testing.T) {
	t.Parallel()
	l := newLogging(t)
	stuck := l.logged(1, 3)
	l.job = l.actor.job()
	l.logged(2, 3)
	l.run("update %[1]s.xxl_job_info set keep_runs = 60000")
	x, err := l.owner.Begin(t.Context())
	must(t, err)
	defer x.Rollback(t.Context())
	_, err = x.Exec(t.Context(), fmt.Sprintf("select from %s.xxl_job_log_page where run_id = %d for update", l.schema, stuck[0]))
	must(t, err)
	q := store.KeepQuery{Now: time.Now().Add(time.Hour), EndedBefore: time.Now().Add(time.Hour)}
	got, err := l.s.DropExpired(l.ctx, q)
	if err == nil || !got.More || got.Next.JobID == 0 || got.Next.JobID > l.job.ID || got.Runs != 0 {
		t.Fatalf("%+v, %v, want an error and where the next job is", got, err)
	}
	q.After = got.Next
	if got, err = l.s.DropExpired(l.ctx, q); err != nil || got.Runs != 2 || got.More {
		t.Errorf("behind that: %+v, %v, want both runs of the other job", got, err)
	}
	must(t, x.Rollback(t.Context()))
	if got, err = l.s.DropExpired(l.ctx, store.KeepQuery{Now: q.Now, EndedBefore: q.EndedBefore}); err != nil || got.Runs != 1 || got.More {
		t.Errorf("the next walk: %+v, %v, want the run that was left", got, err)
	}
}
