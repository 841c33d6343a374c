package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
)

// oursData is our database, as the measurement prepares it and looks into it. What is not
// measured is inserted in bulk.
type oursData struct{ pool *pgxpool.Pool }

// jobs makes the tables, and n jobs with a period, the first instant of each being its own.
func (d oursData) jobs(ctx context.Context, n int, period time.Duration, first func(i int) time.Time) error {
	st, err := postgres.New(ctx, d.pool, postgres.Config{AutoMigrate: true, Logger: errorsOnly()})
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := newOurs(st, &calls{}, 0)
	if err != nil {
		return err
	}
	if _, err = s.AddJob(ctx, xxljob.Job{Name: firstKey, Key: firstKey, Handler: handler, Schedule: xxljob.FixedRate(period), Stopped: true}); err != nil {
		return err
	}
	next := make([]int64, n)
	for i := range next {
		next[i] = first(i).UnixMilli()
	}
	if _, err = d.pool.Exec(ctx, copyFirst, next); err == nil {
		_, err = d.pool.Exec(ctx, "analyze xxljob.xxl_job_info; analyze xxljob.xxl_job_next")
	}
	return err
}

// waiting is n planned runs of so many jobs, all of them due.
func (d oursData) waiting(ctx context.Context, n, jobs int) error {
	if err := d.jobs(ctx, jobs, time.Hour, func(int) time.Time { return time.Now().Add(24 * time.Hour) }); err != nil {
		return err
	}
	if _, err := d.pool.Exec(ctx, planRuns, n, jobs); err != nil {
		return err
	}
	_, err := d.pool.Exec(ctx, "analyze xxljob.xxl_job_log")
	return err
}

// open is whether any run is not over yet.
func (d oursData) open(ctx context.Context) (open bool, err error) {
	err = d.pool.QueryRow(ctx, "select exists (select from xxljob.xxl_job_log where state <= 2)").Scan(&open)
	return open, err
}

func (d oursData) states(ctx context.Context) (s states, err error) {
	err = d.pool.QueryRow(ctx, "select count(*) filter (where state = $1), coalesce(sum(instants) filter (where state = $2), 0), count(*) filter (where state not in (0, $1, $2)) from xxljob.xxl_job_log",
		int(xxljob.StateSucceeded), int(xxljob.StateSkipped)).Scan(&s.succeeded, &s.skipped, &s.bad)
	return s, err
}

// firstKey is the key of the job that the others are copies of.
const firstKey = "first"

const copyFirst = `with d as (select *, nextval('xxljob.xxl_job_info_id')::int id from unnest($1::bigint[]) with ordinality u(next, ord)),
	i as (insert into xxljob.xxl_job_info select d.id, d.id % 32, 1, app_name, 'job ' || d.ord, 'job ' || d.ord, author, alarm_email, schedule_type,
		schedule_conf, schedule_zone, schedule_dst, misfire_strategy, catch_up, executor_route_strategy, executor_handler, executor_param,
		executor_block_strategy, executor_timeout, executor_fail_retry_count, on_lost, glue_type, glue_source, glue_remark, glue_updatetime,
		child_jobid, 1, '', ensured, add_time, update_time from xxljob.xxl_job_info f, d where f.job_key = 'first')
	insert into xxljob.xxl_job_next select d.next, 0, 0, 1, 0, d.id, d.id % 32, 1, false, f.app_name from xxljob.xxl_job_next f, d`

// planRuns leaves runs as claims do, which a node has planned that is gone. Those that somebody
// asks for with Trigger take one row version more: the owner of the shard marks them as read.
const planRuns = `insert into xxljob.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, executor_fail_retry_count, plan_epoch)
	select (extract(epoch from now())::bigint * 1000 - 1735689600000) * 8192 + n, j.id, j.shard, j.app_name, 0, 'FIX_RATE', extract(epoch from now())::bigint * 1000, date_trunc('milliseconds', now()), -1, 1
	from generate_series(1, $1::int) n join (select *, row_number() over (order by id) ord from xxljob.xxl_job_info where job_key <> 'first') j on j.ord = 1 + n % $2::int`
