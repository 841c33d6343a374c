package postgres_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/await"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestTimeOfAnEditThatWaited: an edit that waits for the job's row, because somebody else
// has it, is told the time after the wait: what came due meanwhile is overdue, and not
// to be planned.
func TestTimeOfAnEditThatWaited(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "edit"), 1)
	pool := pgtest.SharedPool(t)
	job := a.job()
	holder, err := pool.Begin(a.ctx)
	must(t, err)
	defer func() { _ = holder.Rollback(a.ctx) }()
	_, err = holder.Exec(a.ctx, "select 1 from \""+postgres.SchemaOf(s)+"\".xxl_job_next where job_id = $1 for update", job.ID)
	must(t, err)

	var missed, next time.Time
	var edited store.Job
	done := make(chan error)
	go func() { // ends with the edit, which is let through below
		var err error
		edited, err = s.EditJob(a.ctx, job.ID, store.Edit{Verb: "update",
			Change: func(j *store.Job) (bool, error) { j.Schedule = schedule.FixedRate(time.Second); return true, nil },
			Missed: func(_ store.Job, now time.Time) (store.NewRun, bool) { missed = now; return store.NewRun{}, false },
			Next:   func(_ store.Job, _, now time.Time) (time.Time, error) { next = now; return now.Add(time.Second), nil }})
		done <- err
	}()
	await.Until(t, "the edit waits", func() bool {
		return ask[bool](t, pool, "select exists (select from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.query like '%"+postgres.SchemaOf(s)+"%')")
	})
	clock := func() time.Time {
		return ask[time.Time](t, pool, "select date_trunc('milliseconds', clock_timestamp())").UTC()
	}
	waited := clock().Add(5 * time.Millisecond) // no reading from before the wait says that
	await.Until(t, "time passes", func() bool { return clock().After(waited) })
	must(t, holder.Rollback(a.ctx))
	must(t, <-done)
	if next.Before(waited) || !missed.Equal(next) || !edited.Updated.Equal(next) || !edited.Next.Equal(next.Add(time.Second)) {
		t.Errorf("Next is told %v, Missed %v, and the job is updated at %v with next %v; want one time, not before %v",
			next, missed, edited.Updated, edited.Next, waited)
	}
}
