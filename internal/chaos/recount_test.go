//go:build unix

package chaos

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestRecount: the reports of a store are equal to a count of its runs, and each count that is
// changed behind its back is found.
func TestRecount(t *testing.T) {
	pool := pgtest.Pool(t)
	ctx := t.Context()
	s, err := postgres.New(ctx, pool, postgres.Config{Schema: "recounted", AutoMigrate: true})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	defer s.Close()
	must(s.SetShards(ctx, 1))
	job, err := s.AddJob(ctx, xxljob.Job{App: "app", Name: "n", Schedule: xxljob.Manual(), GlueType: xxljob.GlueBean}, nil)
	must(err)
	v, err := s.Join(ctx, xxljob.Node{ID: "n", Incarnation: "inc"})
	must(err)
	shards, err := s.TakeShards(ctx, "inc", v.Shards)
	must(err)
	for _, state := range []xxljob.State{xxljob.StateSucceeded, xxljob.StateFailed, xxljob.StateSnoozed, xxljob.StateCancelled} {
		run, err := s.AddRun(ctx, job.ID, xxljob.Trigger{})
		must(err)
		if state == xxljob.StateCancelled {
			_, err = s.Kill(ctx, run.ID, "no")
			must(err)
			continue
		}
		_, err = s.Start(ctx, []xxljob.Start{{RunID: run.ID, JobID: job.ID, Epoch: shards[0].Epoch, JobVersion: job.Version, State: xxljob.StateStarted,
			Owner: "inc", Token: run.ID, Address: store.LocalAddress("inc"), Handler: "h"}})
		must(err)
		_, err = s.Finish(ctx, []xxljob.Result{{RunID: run.ID, Incarnation: "inc", Token: run.ID, State: state}})
		must(err)
	}
	conn, err := pgx.Connect(ctx, pool.Config().ConnString())
	must(err)
	defer conn.Close(ctx)
	for what, wrong := range map[string]bool{
		"select": false,
		"update recounted.xxl_job_report set succeeded = succeeded + 1":  true,
		"update recounted.xxl_job_report set late_more = late_more + 1":  true,
		"update recounted.xxl_job_report set took_sum = took_sum + 1":    true,
		"update recounted.xxl_job_report set quarter = quarter - 900000": true,
		"delete from recounted.xxl_job_report":                           true,
		"update recounted.xxl_job_log set state = 9 where state = 4":     true,
	} {
		tx, err := conn.Begin(ctx)
		must(err)
		tag, err := tx.Exec(ctx, what)
		must(err)
		found, compared, err := recount(ctx, conn, "recounted")
		must(err)
		t.Logf("%s: %d rows: %q", what, tag.RowsAffected(), found)
		if compared < 7 || wrong != (len(found) > 0) {
			t.Errorf("%s: %d of %d counts differ: %q", what, len(found), compared, found)
		}
		must(tx.Rollback(ctx))
	}
}
