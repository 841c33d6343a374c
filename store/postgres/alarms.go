package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Alarms: rows that are inserted in the transaction of what causes them. In come runs that
// have ended, and jobs that have stopped; out go rows of xxl_job_alarm, with what their jobs
// are called at that moment. How they are read and done with is in alarmrows.go.

// alarmPolicy is which alarms are asked for, as bits of Store.policy.
const (
	policyEnds = 1 << iota
	policyAttempts
)

// KnowAlarms notes which alarms are to be inserted.
func (s *Store) KnowAlarms(p store.AlarmPolicy) {
	if p.Ends {
		s.policy.Or(policyEnds)
	}
	if p.Attempts {
		s.policy.Or(policyAttempts)
	}
}

// alarming is a transaction's worth of alarms.
type alarming struct {
	store *Store
	list  []store.Alarm
	woken []int // the shards of those that were inserted
}

// alarms begins the alarms of a transaction.
func (s *Store) alarms() alarming { return alarming{store: s} }

// asked reports whether any alarms are asked for.
func (s *Store) asked() bool { return s.policy.Load() != 0 }

// ended adds the alarms that runs are which have ended.
func (a *alarming) ended(f *following, runs ...store.Run) {
	if !a.store.asked() {
		return
	}
	for i := range runs {
		followed := f != nil && f.next[runs[i].ID] != 0
		if one, ok := runs[i].Alarm(followed, false); ok {
			a.add(one)
		}
	}
}

// add adds one, if it is asked for.
func (a *alarming) add(one store.Alarm) {
	bit := int32(policyEnds)
	if one.Cause == string(alarm.Attempt) {
		bit = policyAttempts
	}
	if a.store.policy.Load()&bit != 0 {
		a.list = append(a.list, one)
	}
}

// insert inserts them, each once for its run, or its job and version, and its cause.
func (a *alarming) insert(ctx context.Context, t *tx) error {
	if len(a.list) == 0 {
		return nil
	}
	n := len(a.list)
	shards, jobs, apps, causes := make([]int16, n), make([]int64, n), make([]string, n), make([]string, n)
	runs, triggers, states, attempts := make([]*int64, n), make([]*int64, n), make([]*string, n), make([]int16, n)
	instants, texts := make([]int64, n), make([]string, n)
	for i := range a.list {
		one := &a.list[i]
		shards[i], jobs[i], apps[i], causes[i] = int16(one.Shard), one.JobID, one.App, one.Cause
		runs[i], triggers[i], states[i], attempts[i] = nonzero(one.RunID), nonzero(one.TriggerID), nonempty(one.State), int16(one.Attempt)
		instants[i], texts[i] = milli(one.Instant), one.Text
	}
	return t.do(ctx, a.store.sql.insertAlarms.by(named{
		{"shards", shards}, {"jobs", jobs}, {"apps", apps}, {"causes", causes}, {"runs", runs}, {"triggers", triggers},
		{"states", states}, {"attempts", attempts}, {"instants", instants}, {"texts", texts},
	}).into(func(rows pgx.Rows) error {
		var shard int
		err := rows.Scan(&shard)
		if !slices.Contains(a.woken, shard) {
			a.woken = append(a.woken, shard)
		}
		return err
	}))
}

// tell passes on that there are alarms, after the commit.
func (a *alarming) tell() {
	for _, shard := range a.woken {
		a.store.wakeAlarms(shard)
	}
}

// scanAlarm reads a row.
func scanAlarm(rows pgx.Rows) (a store.Alarm, err error) {
	var run, trigger, instant pgtype.Int8
	var attempt pgtype.Int2
	var state pgtype.Text
	err = rows.Scan(&a.ID, &a.Shard, &a.App, &a.JobKey, &a.JobName, &a.Email, &a.JobID, &a.JobVersion, &a.Cause, &run, &trigger, &state, &attempt, &instant, &a.Text, &a.At, &a.Told, &a.GaveUp)
	a.RunID, a.TriggerID, a.State, a.Attempt = run.Int64, trigger.Int64, state.String, int(attempt.Int16)
	a.Instant, a.At = fromMilli(instant.Int64), a.At.UTC()
	if len(a.Told) == 0 {
		a.Told = nil
	}
	return a, err
}

// AddLate inserts the alarms of runs that are late.
func (s *Store) AddLate(ctx context.Context, q store.LateQuery) (store.Late, error) {
	shards, _ := fenceArgs(q.Shards)
	if len(shards) == 0 {
		return store.Late{}, ended(ctx)
	}
	least := int64(0)
	err := s.read(ctx, s.sql.leastLate.with(shards).into(scanInto(&least)))
	late := store.Late{Least: time.Duration(least) * time.Millisecond}
	if err != nil || least == 0 || q.Limit <= 0 || s.policy.Load()&policyEnds == 0 {
		return late, failed(err, "look for jobs with a LateAfter")
	}
	var a alarming
	err = s.inTx(ctx, bounds{name: "add_late", lock: quickPatience}, func(t *tx) error {
		a = s.alarms()
		var runs []store.Run
		shards, epochs := fenceArgs(q.Shards)
		lo, hi := s.openRange()
		if err := t.do(ctx, s.sql.lateRuns.by(named{
			{"shards", shards}, {"epochs", epochs}, {"now", milli(stored(q.Now))}, {"limit", q.Limit}, {"lo", lo}, {"hi", hi},
		}).into(readRuns(&runs))); err != nil {
			return err
		}
		for i := range runs {
			if one, ok := runs[i].Alarm(false, true); ok {
				a.add(one)
			}
		}
		return a.insert(ctx, t)
	})
	if err != nil {
		return store.Late{}, failed(err, "look for late runs")
	}
	a.tell()
	late.Alarms = len(a.list)
	return late, nil
}

// alarmQueries are the statements of this file.
type alarmQueries struct {
	insertAlarms, leastLate, lateRuns query
}

func (q *alarmQueries) define(sql template) {
	row := assigned{
		{"shard", `a.shard`},
		{"job_id", `a.job_id`},
		{"job_version", `coalesce(i.version, 0)`},
		{"app_name", `coalesce(nullif(a.app, ''), i.app_name, '')`},
		{"job_key", `coalesce(i.job_key, '')`},
		{"job_desc", `coalesce(i.job_desc, '')`},
		{"alarm_email", `coalesce(i.alarm_email, '')`},
		{"cause", `a.cause`},
		{"log_id", `a.run`},
		{"trigger_id", `a.trigger`},
		{"state", `a.state`},
		{"attempt", `a.attempt`},
		{"instant", `nullif(a.instant, 0)`},
		{"content", `a.content`},
		{"add_time", `{{now}}`},
	}
	q.insertAlarms = sql(`insert into {{schema}}.xxl_job_alarm as r (` + row.columns() + `)
	select ` + row.values() + ` from (select * from unnest({{arg.shards}}::smallint[], {{arg.jobs}}::int[], {{arg.apps}}::text[], {{arg.causes}}::text[],
		{{arg.runs}}::bigint[], {{arg.triggers}}::bigint[], {{arg.states}}::text[], {{arg.attempts}}::smallint[], {{arg.instants}}::bigint[], {{arg.texts}}::text[])
		with ordinality a(shard, job_id, app, cause, run, trigger, state, attempt, instant, content, ord) order by run, ord) a
	left join {{schema}}.xxl_job_info i on i.id = a.job_id
	on conflict do nothing returning r.shard`)
	q.leastLate = sql(`select coalesce((select min(i.late_after) from {{schema}}.xxl_job_info i where i.late_after > 0 and i.shard = any($1::smallint[])), 0)`)
	// The limit keeps each job a look-up of its own.
	const due = ` and coalesce(case when l.trigger_type = 'RETRY' then l.last_time end, l.scheduled_time) <= {{arg.now}}::bigint - i.late_after
		and l.id between {{arg.lo}} and {{arg.hi}}
		and not exists (select from {{schema}}.xxl_job_alarm a where a.log_id = l.id and a.cause = 'late') order by l.job_id, l.id limit {{arg.limit}}`
	q.lateRuns = sql(`with ` + fence("") + `, jobs as materialized (select i.id, i.shard, i.late_after from {{schema}}.xxl_job_info i
		where i.late_after > 0 and i.shard = any(array(select shard from fence)))
	select {{run}} from (select l.* from jobs i cross join lateral (select l.* from {{schema}}.xxl_job_log l where l.job_id = i.id and l.state = {{state.planned}}` + due + `) l
	union all select l.* from jobs i cross join lateral (select l.* from {{schema}}.xxl_job_log l
		where l.shard = i.shard and l.job_id = i.id and l.state in ({{state.started}}, {{state.dispatched}})` + due + `) l) l
	order by l.id limit {{arg.limit}}`)
}
