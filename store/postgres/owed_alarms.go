package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

// Alarms that are there: what is to be told, and what became of it.

// Alarms returns those that are not done with.
func (s *Store) Alarms(ctx context.Context, shards []store.Shard, after int64, limit int) (list []store.Alarm, err error) {
	in := shardIDs(shards)
	if len(in) == 0 || limit <= 0 {
		return nil, ended(ctx)
	}
	err = s.readByIndex(ctx, s.sql.openAlarms.by(named{{"shards", in}, {"after", after}, {"limit", limit}}).into(func(rows pgx.Rows) error {
		a, err := scanAlarm(rows)
		list = append(list, a)
		return err
	}))
	return list, failed(err, "read alarms")
}

// shardIDs are the ids of shards that are read whoever owns them.
func shardIDs(shards []store.Shard) []int16 {
	in, _ := fenceArgs(shards)
	return in
}

// MarkAlarms notes what became of alarms.
func (s *Store) MarkAlarms(ctx context.Context, m store.AlarmMarks) error {
	var write []statement
	if n := len(m.Told); n > 0 {
		ids, rules, gaveUp := make([]int64, n), make([]string, n), make([]bool, n)
		for i, t := range m.Told {
			ids[i], rules[i], gaveUp[i] = t.ID, t.Rule, t.GaveUp
		}
		write = append(write, s.sql.tellAlarms.by(named{{"alarms", ids}, {"rules", rules}, {"gave_up", gaveUp}}))
	}
	if n := len(m.Done); n > 0 {
		ids, statuses := make([]int64, n), make([]int16, n)
		for i, d := range m.Done {
			ids[i], statuses[i] = d.ID, int16(d.Status)
		}
		write = append(write, s.sql.endAlarms.by(named{{"alarms", ids}, {"statuses", statuses}}))
	}
	if len(m.Jobs) > 0 {
		write = append(write, s.toldStatements(m.Jobs)...)
	}
	if len(write) == 0 {
		return ended(ctx)
	}
	err := s.inTx(ctx, bounds{name: "mark_alarms"}, func(t *tx) error { return t.do(ctx, write...) })
	return failed(err, "mark %d alarms", len(m.Told)+len(m.Done))
}

// toldStatements replace what is known of jobs and rules. Of a job and a rule that come twice
// the last stays.
func (s *Store) toldStatements(list []store.JobTold) []statement {
	type key struct {
		job  int64
		rule string
	}
	last := map[key]int{}
	for i := range list {
		last[key{list[i].JobID, list[i].Rule}] = i
	}
	var jobs, at, all []int64
	var rules []string
	var open []bool
	var runs, triggers []*int64
	for i := range list {
		t := &list[i]
		if last[key{t.JobID, t.Rule}] != i {
			continue
		}
		all = append(all, t.JobID)
		jobs, rules, at = append(jobs, t.JobID), append(rules, t.Rule), append(at, milli(stored(t.At)))
		open, runs, triggers = append(open, t.Open), append(runs, nonzero(t.RunID)), append(triggers, nonzero(t.TriggerID))
	}
	return []statement{
		s.sql.putTold.by(named{{"jobs", jobs}, {"rules", rules}, {"at", at}, {"open", open}, {"runs", runs}, {"triggers", triggers}}),
		s.sql.dropTold.with(all),
	}
}

// ToldJobs returns what is known of the jobs.
func (s *Store) ToldJobs(ctx context.Context, jobs []int64) (list []store.JobTold, err error) {
	if len(jobs) == 0 {
		return nil, ended(ctx)
	}
	err = s.readByIndex(ctx, s.sql.toldJobs.with(jobs).into(func(rows pgx.Rows) error {
		var t store.JobTold
		err := scanTold(rows, &t)
		list = append(list, t)
		return err
	}))
	return list, failed(err, "read when alarms were told")
}

// OpenAlarms returns the rows of jobs that have recovered, and how many are open.
func (s *Store) OpenAlarms(ctx context.Context, shards []store.Shard, after store.JobTold, limit int) (recovered []store.JobTold, open int, err error) {
	in := shardIDs(shards)
	if len(in) == 0 {
		return nil, 0, ended(ctx)
	}
	err = s.readByIndex(ctx, s.sql.countOpen.with(in).into(scanInto(&open)),
		s.sql.recovered.by(named{{"shards", in}, {"after", after.JobID}, {"rule", after.Rule}, {"limit", max(limit, 0)}}).into(func(rows pgx.Rows) error {
			var t store.JobTold
			var at time.Time
			err := scanTold(rows, &t, &at)
			t.Recovered = at.UTC()
			recovered = append(recovered, t)
			return err
		}))
	return recovered, open, failed(err, "look for jobs that have recovered")
}

// alarmsTried is for how long alarms that nobody was told of are kept beyond the age of runs:
// they are tried for a day.
const alarmsTried = 2 * day

// dropAlarms forgets the alarms from before a time, and later those that nobody was told of.
func (s *Store) dropAlarms(ctx context.Context, before time.Time) error {
	for n := endBatch; n == endBatch; {
		n = 0
		err := s.one(ctx, bounds{name: "drop_alarms"}, s.sql.dropAlarms.by(named{
			{"before", stored(before)}, {"untold", stored(before.Add(-alarmsTried))}, {"limit", endBatch},
		}).into(func(pgx.Rows) error { n++; return nil }))
		if err != nil {
			return err
		}
	}
	return nil
}

func scanTold(rows pgx.Rows, t *store.JobTold, more ...any) error {
	var at int64
	var run, trigger pgtype.Int8
	err := rows.Scan(append([]any{&t.JobID, &t.Shard, &t.Rule, &at, &t.Open, &run, &trigger}, more...)...)
	t.At, t.RunID, t.TriggerID = fromMilli(at), run.Int64, trigger.Int64
	return err
}

// alarmRowQueries are the statements of this file.
type alarmRowQueries struct {
	openAlarms, tellAlarms, endAlarms, putTold, dropTold, forgetTold, toldJobs, countOpen, recovered, dropAlarms query
}

func (q *alarmRowQueries) define(sql template) {
	q.openAlarms = sql(`select a.id, a.shard, a.app_name, a.job_key, a.job_desc, a.alarm_email, a.job_id, a.job_version, a.cause, a.log_id, a.trigger_id,
		a.state, a.attempt, a.instant, a.content, a.add_time, a.told, a.gave_up
	from {{schema}}.xxl_job_alarm a where a.status = 0 and a.shard = any({{arg.shards}}::smallint[]) and a.id > {{arg.after}}::bigint order by a.id limit {{arg.limit}}`)
	// What a row has been told is looked at under its lock: two owners may tell it at once.
	q.tellAlarms = sql(`update {{schema}}.xxl_job_alarm a set told = a.told operator(pg_catalog.||) array(select r.rule from unnest(r.rules) r(rule) where r.rule <> all(a.told)), gave_up = a.gave_up or r.gave_up
	from (select t.id, array_agg(distinct t.rule) rules, bool_or(t.gave_up) gave_up
		from unnest({{arg.alarms}}::bigint[], {{arg.rules}}::text[], {{arg.gave_up}}::boolean[]) t(id, rule, gave_up) group by t.id) r
	where a.id = r.id`)
	// A run whose row others have locked keeps the status that it has: nobody is to wait for that.
	q.endAlarms = sql(`with done as (update {{schema}}.xxl_job_alarm a set status = r.status, done_time = {{now}}
		from unnest({{arg.alarms}}::bigint[], {{arg.statuses}}::smallint[]) r(id, status) where a.id = r.id and a.status = 0 returning a.log_id, a.status),
	r as materialized (select d.log_id id, max(d.status) status, 1 ord from done d where d.log_id is not null group by d.log_id),
	locked as materialized (select l.id, r.status, r.ord from r join {{schema}}.xxl_job_log l on l.id = r.id and ` + few + ` order by l.id for no key update of l skip locked)
	update {{schema}}.xxl_job_log l set alarm_status = greatest(l.alarm_status, r.status) from locked r where l.id = r.id and ` + few)
	q.putTold = sql(`insert into {{schema}}.xxl_job_told as t (job_id, rule, shard, at, is_open, log_id, trigger_id)
	select i.id, r.rule, i.shard, r.at, r.is_open, r.run, r.trigger
	from unnest({{arg.jobs}}::int[], {{arg.rules}}::text[], {{arg.at}}::bigint[], {{arg.open}}::boolean[], {{arg.runs}}::bigint[], {{arg.triggers}}::bigint[]) r(job_id, rule, at, is_open, run, trigger)
	join {{schema}}.xxl_job_info i on i.id = r.job_id order by i.id, r.rule
	on conflict (job_id, rule) do update set at = excluded.at, is_open = excluded.is_open, log_id = excluded.log_id, trigger_id = excluded.trigger_id`)
	q.dropTold = sql(`delete from {{schema}}.xxl_job_told t where t.job_id = any($1::int[])
	and not exists (select from {{schema}}.xxl_job_info i where i.id = t.job_id)`)
	q.dropAlarms = sql(`delete from {{schema}}.xxl_job_alarm a where a.id = any(array(select o.id from {{schema}}.xxl_job_alarm o
		where o.add_time < {{arg.before}}::timestamptz and (o.status <> 0 or o.add_time < {{arg.untold}}::timestamptz) order by o.add_time limit {{arg.limit}})) returning 1`)
	q.forgetTold = sql(`delete from {{schema}}.xxl_job_told t where t.job_id = $1`)
	const told = `t.job_id, t.shard, t.rule, t.at, t.is_open, t.log_id, t.trigger_id`
	q.toldJobs = sql(`select ` + told + ` from {{schema}}.xxl_job_told t where t.job_id = any($1::int[]) order by t.job_id, t.rule`)
	q.countOpen = sql(`select count(*)::int from {{schema}}.xxl_job_told t where t.is_open and t.shard = any($1::smallint[])`)
	// Of a job the newest of its ended runs are looked at: whoever fails for longer has not
	// recovered by what is behind them.
	q.recovered = sql(`select ` + told + `, r.at from {{schema}}.xxl_job_told t
	cross join lateral (select min(e.handle_time) at from (
		select l.id, l.trigger_id, l.state, l.snoozed, l.handle_time, l.executor_sharding_param from {{schema}}.xxl_job_log l
			where l.job_id = t.job_id and l.state > {{state.dispatched}} and l.id >= coalesce(t.log_id, 0) order by l.id desc limit 1000) e
		where e.state = {{state.succeeded}} and e.snoozed is null
		and (t.log_id is null and e.handle_time > ` + timeOf("t.at") + ` or coalesce(e.trigger_id, e.id) > t.trigger_id
			or coalesce(e.trigger_id, e.id) = t.trigger_id and coalesce(e.executor_sharding_param, '') = coalesce(
				(select o.executor_sharding_param from {{schema}}.xxl_job_log o where o.id = t.log_id), ''))) r
	where t.is_open and t.shard = any({{arg.shards}}::smallint[]) and (t.job_id, t.rule) > ({{arg.after}}::int, {{arg.rule}}::text) and r.at is not null order by t.job_id, t.rule limit {{arg.limit}}`)
}

// timeOf is the time that a column has in milliseconds.
func timeOf(column string) string {
	return `pg_catalog.to_timestamp(` + column + `::double precision / 1000::double precision)`
}
