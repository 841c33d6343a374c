package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestLockedReportsHoldUpNothing: whoever has locked rows of reports, runs end as before, and are
// counted.
func TestLockedReportsHoldUpNothing(t *testing.T) {
	t.Parallel()
	s, a, _, hold, exec := holding(t)
	a.succeeds(jobWith(a))
	exec(`insert into xxl_job_report (quarter, app_name, slot) select r.quarter, r.app_name, n from xxl_job_report r, generate_series(1, 16) n on conflict do nothing`)
	hold("select from xxl_job_report for update")
	began := time.Now()
	for range 5 {
		a.succeeds(jobWith(a))
	}
	run := a.started(jobWith(a))
	_, err := s.Settle(t.Context(), []store.Verdict{{RunID: run.ID, Shard: run.Shard, Epoch: a.epoch(run.Shard), Owner: run.Owner, Token: run.Token, Taken: !run.Taken.IsZero(), To: store.StateLost}})
	must(t, err)
	must(t, s.FoldReports(t.Context()))
	found, err := s.Reports(t.Context(), store.ReportQuery{From: store.QuarterOf(began).Add(-store.ReportDay), To: store.QuarterOf(began).Add(store.ReportDay), Length: 2 * store.ReportDay})
	must(t, err)
	if len(found.Reports) != 1 || found.Reports[0].Ended[store.StateSucceeded] != 6 || found.Reports[0].Ended[store.StateLost] != 1 {
		t.Errorf("the reports are %+v", found.Reports)
	}
}

// TestRemovalOfRunsOfManyQuarters: a job is removed whose runs are due in each quarter of an hour
// of years to come, more than one transaction may cancel, and each of them is counted. One that
// was cancelled before is not. A store without reports cancels them too.
func TestRemovalOfRunsOfManyQuarters(t *testing.T) {
	inServer(t)
	t.Parallel()
	for _, runs := range []int{1, 1000, 1001, 60_000} {
		for _, without := range []bool{false, true} {
			t.Run(fmt.Sprint(runs, without), func(t *testing.T) { removeFarAhead(t, runs, without) })
		}
	}
}

func removeFarAhead(t *testing.T, runs int, withoutReports bool) {
	pool := pgtest.Pool(t)
	s, a, schema, _, exec := holdingIn(t, pool, migrated(t, pool)) // no other test gets what it leaves behind
	job, from := jobWith(a), time.UnixMilli(1800000000000)
	if withoutReports {
		var err error
		s, err = postgres.New(t.Context(), pgtest.Pool(t), postgres.Config{Schema: schema, NoReports: true})
		must(t, err)
		t.Cleanup(s.Close)
	}
	exec(`insert into xxl_job_ahead (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, executor_fail_retry_count, move_time)
	select n, $1, $2, $3, case n when 0 then 11 else 0 end, 'MANUAL', $5 + n::bigint * 900000, now(), -1, $5 from generate_series(0, $4::int) n`, job.ID, job.Shard, job.App, runs, from.UnixMilli())
	exec(`create function few() returns trigger language plpgsql as $$begin
		if (select count(*) from changed) > 5000 then raise 'a statement cancels too many'; end if; return null; end$$`)
	exec(`create trigger few after update on xxl_job_ahead referencing new table as changed for each statement execute function few()`)
	began := time.Now()
	must(t, s.RemoveJob(t.Context(), job.ID))
	t.Logf("removed after %v", time.Since(began))
	found, err := s.Reports(t.Context(), store.ReportQuery{From: store.QuarterOf(from), To: store.QuarterOf(from).Add(700 * store.ReportDay),
		Length: 700 * store.ReportDay, Examine: 200_000})
	must(t, err)
	if counted := len(found.Reports) == 1 && found.Reports[0].Ended[store.StateCancelled] == int64(runs); counted == withoutReports {
		t.Errorf("%d reports: %+v", len(found.Reports), found.Reports)
	}
	left, err := s.SearchRuns(t.Context(), store.RunSearch{Ahead: true, States: []store.State{store.StatePlanned}})
	if err != nil || len(left.Runs) > 0 {
		t.Errorf("%d runs are left, %v", len(left.Runs), err)
	}
	if _, err := s.Job(t.Context(), job.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the job: %v", err)
	}
}

// TestTheFirstRowOfAReport is not seen by others before its commit, for which they wait: also
// where that takes longer than a batch waits for locks.
func TestTheFirstRowOfAReport(t *testing.T) {
	t.Parallel()
	s, a, schema, _, _ := holding(t)
	job := jobWith(a)
	run := a.started(job)
	tx, err := pgtest.Pool(t).Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), "insert into "+schema+".xxl_job_report (quarter, app_name, slot) select $1::bigint, $2::text, n from generate_series(1, 16) n", store.QuarterOf(run.Scheduled).UnixMilli(), job.App)
	must(t, err)
	began := time.Now()
	committed := make(chan error, 1)
	time.AfterFunc(500*time.Millisecond, func() { committed <- tx.Commit(context.Background()) })
	finished, err := s.Finish(t.Context(), nil, []store.Result{result(run)})
	took := time.Since(began)
	must(t, <-committed)
	must(t, err)
	if len(finished) != 1 || took < 400*time.Millisecond {
		t.Errorf("%d results are stored after %v", len(finished), took)
	}
}
