package postgres

// Alarms: rows that are inserted in the transaction of what causes them. In come runs that
// have ended, and jobs that have stopped; out go rows of xxl_job_alarm, with what their jobs
// are called at that moment. Then they are read, and done with once somebody was told.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

// alarming is a transaction's worth of alarms.
type alarming struct {
	store *Store
	list  []store.Alarm
	woken []int // the shards of those that were inserted

	dropped []store.Alarm // those that the database has refused
	why     error         // the last of them
}

// alarms begins the alarms of a transaction.
func (s *Store) alarms() alarming { return alarming{store: s} }

// ended adds the alarms that runs are which have ended.
func (a *alarming) ended(f *following, runs ...store.Run) {
	for i := range runs {
		followed := f != nil && f.next[runs[i].ID] != 0
		if one, ok := runs[i].Alarm(followed, false); ok {
			a.add(one)
		}
	}
}

// add adds one. Whether a rule wants it is looked at in the statement that inserts it: what a node
// knew of the rules of others would be of before.
func (a *alarming) add(one store.Alarm) { a.list = append(a.list, one) }

// insert inserts them, each once for its run, or its job and version, and its cause. One that the
// database refuses is dropped: what it tells of has happened all the same.
func (a *alarming) insert(ctx context.Context, t *tx) error {
	if len(a.list) == 0 {
		return nil
	}
	tries := alarmTries{alarming: a, tx: t}
	return tries.insert(ctx, a.list)
}

// alarmTries inserts alarms as far as the database takes them.
type alarmTries struct {
	*alarming
	tx    *tx
	alone int // how many were refused alone
	taken bool
}

// insert inserts some of them, and where the database refuses them together each half by itself. Where it
// takes too long nothing is dropped: what has caused them is tried again.
func (a *alarmTries) insert(ctx context.Context, list []store.Alarm) error {
	if a.alone >= asideFew && !a.taken { // it refuses all
		a.dropped = append(a.dropped, list...)
		return nil
	}
	err := a.tx.do(ctx, statement{sql: "savepoint xxljobalarms"}, a.statement(list), statement{sql: "release savepoint xxljobalarms"})
	code := codeOf(err)
	switch {
	case err == nil:
		a.taken = true
		return nil
	case !refuses(code) || noPartition(err) || ctx.Err() != nil || code == codeCancelled:
		return err
	}
	if _, back := a.tx.conn.Exec(ctx, "rollback to savepoint xxljobalarms"); back != nil {
		return err
	}
	if len(list) == 1 {
		a.alone++
		a.dropped, a.why = append(a.dropped, list[0]), err
		return nil
	}
	half := len(list) / 2
	if err := a.insert(ctx, list[:half]); err != nil {
		return err
	}
	return a.insert(ctx, list[half:])
}

// statement inserts some of them.
func (a *alarming) statement(list []store.Alarm) statement {
	n := len(list)
	shards, jobs, apps, causes := make([]int16, n), make([]int64, n), make([]string, n), make([]string, n)
	runs, triggers, states, attempts := make([]*int64, n), make([]*int64, n), make([]*string, n), make([]int16, n)
	instants, texts := make([]int64, n), make([]string, n)
	for i := range list {
		one := &list[i]
		shards[i], jobs[i], apps[i], causes[i] = int16(one.Shard), one.JobID, one.App, one.Cause
		runs[i], triggers[i], states[i], attempts[i] = nonzero(one.RunID), nonzero(one.TriggerID), nonempty(one.State), int16(one.Attempt)
		instants[i], texts[i] = milli(one.Instant), one.Text
	}
	return a.store.sql.insertAlarms.by(named{
		{"shards", shards}, {"jobs", jobs}, {"apps", apps}, {"causes", causes}, {"runs", runs}, {"triggers", triggers},
		{"states", states}, {"attempts", attempts}, {"instants", instants}, {"texts", texts},
	}).into(func(rows pgx.Rows) error {
		var shard int
		err := rows.Scan(&shard)
		if !slices.Contains(a.woken, shard) {
			a.woken = append(a.woken, shard)
		}
		return err
	})
}

// droppedAlarms are all that the database has refused. It is safe for concurrent use.
type droppedAlarms struct {
	mu    sync.Mutex
	total int
	said  time.Time // when the log had a line
}

// add counts them, and reports whether it is time for a line.
func (d *droppedAlarms) add(n int) (total int, say bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total += n
	if say = d.said.IsZero() || time.Since(d.said) >= time.Minute; say {
		d.said = time.Now()
	}
	return d.total, say
}

// tell passes on that there are alarms, and says which were dropped, after the commit.
func (a *alarming) tell() {
	if n := len(a.dropped); n > 0 {
		if total, say := a.store.dropped.add(n); say {
			first := &a.dropped[0]
			a.store.log.Error("xxljob: the database refuses alarms, which are dropped", "alarms", n, "first_job", first.JobID, "first_run", first.RunID, "cause", first.Cause, "dropped", total, "error", a.why)
		}
	}
	for _, shard := range a.woken {
		a.store.wakeAlarms(shard)
	}
}

// scanAlarm reads a row.
func scanAlarm(rows pgx.Rows) (a store.Alarm, err error) {
	var run, trigger, instant pgtype.Int8
	var attempt pgtype.Int2
	var state, trouble, address pgtype.Text
	var over pgtype.Bool
	err = rows.Scan(&a.ID, &a.Shard, &a.App, &a.JobKey, &a.JobName, &a.Email, &a.JobID, &a.JobVersion, &a.Cause, &run, &trigger, &state, &attempt, &instant, &a.Text, &a.At, &a.Told, &a.GaveUp, &trouble, &address, &over)
	a.RunID, a.TriggerID, a.State, a.Attempt = run.Int64, trigger.Int64, state.String, int(attempt.Int16)
	a.Instant, a.At = fromMilli(instant.Int64), a.At.UTC()
	if a.Trouble, a.Address, a.Over = store.TroubleCause(trouble.String), address.String, over.Bool; trouble.Valid {
		a.JobVersion = 0
	}
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
	if err != nil || least == 0 || q.Limit <= 0 {
		return late, failed(err, "look for jobs with a LateAfter")
	}
	why, err := halves(ctx, &s.aside.late, q.Limit, func(limit int, aside []int64) ([]int64, error) {
		a, ids, err := s.addLate(ctx, q, limit, aside)
		if err != nil {
			if len(ids) == 1 {
				err = fmt.Errorf("run %d: %w", ids[0], err)
			}
			return ids, err
		}
		a.tell()
		late.Alarms += len(a.list)
		return ids, nil
	})
	if err != nil {
		return store.Late{}, failed(err, "insert the alarms of late runs")
	}
	late.Refused = failed(why, "insert the alarms of late runs")
	return late, nil
}

// addLate inserts so many at most, but for runs that are left aside. It returns which runs it has
// chosen, also beside an error.
func (s *Store) addLate(ctx context.Context, q store.LateQuery, limit int, aside []int64) (a alarming, ids []int64, err error) {
	err = s.inTx(ctx, bounds{name: "add_late", lock: quickPatience}, func(t *tx) error {
		a, ids = s.alarms(), nil
		var runs []store.Run
		shards, epochs := fenceArgs(q.Shards)
		lo, hi := s.openRange()
		if err := t.do(ctx, s.sql.lateRuns.by(named{
			{"shards", shards}, {"epochs", epochs}, {"now", milli(stored(q.Now))}, {"limit", limit}, {"lo", lo}, {"hi", hi}, {"aside", aside},
		}).into(readRuns(&runs))); err != nil {
			return err
		}
		for i := range runs {
			ids = append(ids, runs[i].ID)
			if one, ok := runs[i].Alarm(false, true); ok {
				a.add(one)
			}
		}
		if len(a.list) == 0 {
			return nil
		}
		return t.do(ctx, a.statement(a.list)) // one that is refused stays to be told
	})
	return a, ids, err
}

// Alarms that are there: what is to be told, and what became of it.

// Alarms returns those that are not done with.
func (s *Store) Alarms(ctx context.Context, shards []store.Shard, rules []string, after int64, limit int) (list []store.Alarm, err error) {
	in := shardIDs(shards)
	if len(in) == 0 || limit <= 0 {
		return nil, ended(ctx)
	}
	err = s.readByIndex(ctx, s.sql.openAlarms.by(named{{"shards", in}, {"rules", rules}, {"after", after}, {"limit", limit}}).into(func(rows pgx.Rows) error {
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
		write = append(write, s.sql.tellAlarms.by(named{{"alarms", ids}, {"rules", rules}, {"gave_up", gaveUp}}), s.sql.endTold.by(named{{"alarms", ids}}))
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
func (s *Store) OpenAlarms(ctx context.Context, shards []store.Shard, rules []string, after store.JobTold, limit int) (recovered []store.JobTold, open int, err error) {
	in := shardIDs(shards)
	if len(in) == 0 {
		return nil, 0, ended(ctx)
	}
	err = s.readByIndex(ctx, s.sql.countOpen.by(named{{"shards", in}, {"rules", rules}}).into(scanInto(&open)),
		s.sql.recovered.by(named{{"shards", in}, {"rules", rules}, {"after", after.JobID}, {"rule", after.Rule}, {"limit", max(limit, 0)}}).into(func(rows pgx.Rows) error {
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

// timeOf is the time that a column has in milliseconds.
func timeOf(column string) string {
	return `pg_catalog.to_timestamp(` + column + `::double precision / 1000::double precision)`
}

// alarmQueries are the statements of this file.
type alarmQueries struct {
	insertAlarms, leastLate, lateRuns                                                                                     query
	openAlarms, tellAlarms, endTold, endAlarms, putTold, dropTold, forgetTold, toldJobs, countOpen, recovered, dropAlarms query
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
		{"content", `case when i.secret and a.cause in ('failed', 'lost', 'attempt') then '` + store.SecretText + `' else a.content end`},
		{"add_time", `{{now}}`},
	}
	q.insertAlarms = sql(`insert into {{schema}}.xxl_job_alarm as r (` + row.columns() + `)
	select ` + row.values() + ` from (select * from unnest({{arg.shards}}::smallint[], {{arg.jobs}}::int[], {{arg.apps}}::text[], {{arg.causes}}::text[],
		{{arg.runs}}::bigint[], {{arg.triggers}}::bigint[], {{arg.states}}::text[], {{arg.attempts}}::smallint[], {{arg.instants}}::bigint[], {{arg.texts}}::text[])
		with ordinality a(shard, job_id, app, cause, run, trigger, state, attempt, instant, content, ord) order by run, ord) a
	left join {{schema}}.xxl_job_info i on i.id = a.job_id
	where exists (select from {{schema}}.xxl_job_rule u where u.gone is null and ` + ruleWants(`coalesce(nullif(a.app, ''), i.app_name, '')`, `coalesce(i.job_key, '')`, `a.cause`) + `)
	on conflict do nothing returning r.shard`).saying()
	wantedLate := ` and exists (select from {{schema}}.xxl_job_rule u where u.gone is null and ` + ruleWants(`i.app_name`, `i.job_key`, `'late'`) + `)`
	q.leastLate = sql(`select coalesce((select min(i.late_after) from {{schema}}.xxl_job_info i where i.late_after > 0 and i.shard = any($1::smallint[])` + wantedLate + `), 0)`)
	// The limit keeps each job a look-up of its own.
	const due = ` and coalesce(case when l.trigger_type = 'RETRY' then l.last_time end, l.scheduled_time) <= {{arg.now}}::bigint - i.late_after
		and l.id between {{arg.lo}} and {{arg.hi}} and l.id <> all({{arg.aside}}::bigint[])
		and not exists (select from {{schema}}.xxl_job_alarm a where a.log_id = l.id and a.cause = 'late') order by l.job_id, l.id limit {{arg.limit}}`
	q.lateRuns = sql(`with ` + fence("") + `, jobs as materialized (select i.id, i.shard, i.late_after from {{schema}}.xxl_job_info i
		where i.late_after > 0 and i.shard = any(array(select shard from fence))` + wantedLate + `)
	select {{run}} from (select l.* from jobs i cross join lateral (select l.* from {{schema}}.xxl_job_log l where l.job_id = i.id and l.state = {{state.planned}}` + due + `) l
	union all select l.* from jobs i cross join lateral (select l.* from {{schema}}.xxl_job_log l
		where l.shard = i.shard and l.job_id = i.id and l.state in ({{state.started}}, {{state.dispatched}})` + due + `) l) l
	order by l.id limit {{arg.limit}}`)

	q.openAlarms = sql(`select a.id, a.shard, a.app_name, a.job_key, a.job_desc, a.alarm_email, a.job_id, a.job_version, a.cause, a.log_id, a.trigger_id,
		a.state, a.attempt, a.instant, a.content, a.add_time, a.told, a.gave_up, a.trouble, a.trouble_address, a.trouble_over
	from {{schema}}.xxl_job_alarm a where a.status = 0 and a.shard = any({{arg.shards}}::smallint[]) and a.id > {{arg.after}}::bigint
		and ({{arg.rules}}::text[] is null or exists (select from {{schema}}.xxl_job_rule u where u.rule = any({{arg.rules}}::text[]) and u.rule <> all(a.told) and ` + ruleWants(`a.app_name`, `a.job_key`, `a.cause`) + `))
	order by a.id limit {{arg.limit}}`)
	// What a row has been told is looked at under its lock: two owners may tell it at once.
	q.tellAlarms = sql(`update {{schema}}.xxl_job_alarm a set told = a.told operator(pg_catalog.||) array(select r.rule from unnest(r.rules) r(rule) where r.rule <> all(a.told)), gave_up = a.gave_up or r.gave_up
	from (select t.id, array_agg(distinct t.rule) rules, bool_or(t.gave_up) gave_up
		from unnest({{arg.alarms}}::bigint[], {{arg.rules}}::text[], {{arg.gave_up}}::boolean[]) t(id, rule, gave_up) group by t.id) r
	where a.id = r.id`)
	// A run whose row others have locked keeps the status that it has: nobody is to wait for that.
	runsOf := `
	r as materialized (select d.log_id id, max(d.status) status, 1 ord from done d where d.log_id is not null group by d.log_id),
	locked as materialized (select l.id, r.status, r.ord from r join {{schema}}.xxl_job_log l on l.id = r.id and ` + few + ` order by l.id for no key update of l skip locked)
	update {{schema}}.xxl_job_log l set alarm_status = greatest(l.alarm_status, r.status) from locked r where l.id = r.id and ` + few
	q.endAlarms = sql(`with done as (update {{schema}}.xxl_job_alarm a set status = r.status, done_time = {{now}}
		from unnest({{arg.alarms}}::bigint[], {{arg.statuses}}::smallint[]) r(id, status) where a.id = r.id and a.status = 0 returning a.log_id, a.status),` + runsOf)
	// It follows tellAlarms, whose locks it has: of two rules that tell at once the second sees both.
	q.endTold = sql(`with done as (update {{schema}}.xxl_job_alarm a set status = case when a.gave_up then 3 else 2 end, done_time = {{now}}
		where a.id = any({{arg.alarms}}::bigint[]) and a.status = 0 and not exists (select from {{schema}}.xxl_job_rule u
			where (u.gone is null or u.gone >= a.add_time) and u.rule <> all(a.told) and ` + ruleWants(`a.app_name`, `a.job_key`, `a.cause`) + `)
		returning a.log_id, a.status),` + runsOf)
	q.putTold = sql(`insert into {{schema}}.xxl_job_told as t (job_id, rule, shard, at, is_open, log_id, trigger_id)
	select i.id, r.rule, i.shard, r.at, r.is_open, r.run, r.trigger
	from unnest({{arg.jobs}}::int[], {{arg.rules}}::text[], {{arg.at}}::bigint[], {{arg.open}}::boolean[], {{arg.runs}}::bigint[], {{arg.triggers}}::bigint[]) r(job_id, rule, at, is_open, run, trigger)
	join {{schema}}.xxl_job_info i on i.id = r.job_id order by i.id, r.rule
	on conflict (job_id, rule) do update set at = excluded.at, is_open = excluded.is_open, log_id = excluded.log_id, trigger_id = excluded.trigger_id`)
	q.dropTold = sql(`delete from {{schema}}.xxl_job_told t where t.job_id = any($1::int[])
	and not exists (select from {{schema}}.xxl_job_info i where i.id = t.job_id)`)
	q.dropAlarms = sql(`delete from {{schema}}.xxl_job_alarm a where a.id = any(array(select o.id from {{schema}}.xxl_job_alarm o
		where o.add_time < {{arg.before}}::timestamptz and (o.status <> 0 or o.add_time < {{arg.untold}}::timestamptz)
			and (o.open_trouble is null or not exists (select from {{schema}}.xxl_job_node p where p.incarnation = any(o.noted_by) and not p.has_left)) order by o.add_time limit {{arg.limit}})) returning 1`)
	q.forgetTold = sql(`delete from {{schema}}.xxl_job_told t where t.job_id = $1`)
	const told = `t.job_id, t.shard, t.rule, t.at, t.is_open, t.log_id, t.trigger_id`
	q.toldJobs = sql(`select ` + told + ` from {{schema}}.xxl_job_told t where t.job_id = any($1::int[]) order by t.job_id, t.rule`)
	q.countOpen = sql(`select count(*)::int from {{schema}}.xxl_job_told t where t.is_open and t.shard = any({{arg.shards}}::smallint[])
		and ({{arg.rules}}::text[] is null or t.rule = any({{arg.rules}}::text[]))`)
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
	where t.is_open and t.shard = any({{arg.shards}}::smallint[]) and ({{arg.rules}}::text[] is null or t.rule = any({{arg.rules}}::text[]))
		and (t.job_id, t.rule) > ({{arg.after}}::int, {{arg.rule}}::text) and r.at is not null order by t.job_id, t.rule limit {{arg.limit}}`)
}
