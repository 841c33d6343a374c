package postgres

// Troubles that a node passes on to rules of others: alarms without a run.

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

var _ store.TroubleNoter = (*Store)(nil)

// NoteTroubles inserts the alarms of troubles that have begun or are over.
func (s *Store) NoteTroubles(ctx context.Context, notes store.TroubleNotes) ([]bool, error) {
	n := len(notes.List)
	if n == 0 {
		return nil, ended(ctx)
	}
	all, overs := make([]string, n), make([]bool, n)
	for i := range notes.List {
		all[i], overs[i] = notes.List[i].Key(), notes.List[i].Over
	}
	told := plainTexts(notes.Told)
	if told == nil {
		told = []string{}
	}
	var mine []bool
	inserted := 0
	err := s.inTx(ctx, bounds{name: "note_troubles"}, func(t *tx) error {
		mine, inserted = make([]bool, n), 0
		left, over, begun, lasts := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]int64{}
		if err := t.do(ctx, s.sql.leaveTroubles.by(named{{"keys", all}, {"overs", overs}, {"incarnation", notes.Incarnation}, {"told", told}}).into(func(rows pgx.Rows) error {
			var key string
			var closed bool
			var again int64
			err := rows.Scan(&key, &closed, &again)
			if left[key], over[key] = true, closed; again != 0 {
				lasts[key] = again
			}
			return err
		})); err != nil {
			return err
		}
		var keys, apps, causes, addresses, texts []string
		var jobs, versions, again []int64
		var ends []bool
		for i := range notes.List {
			x := &notes.List[i]
			if mine[i] = x.Over && left[all[i]]; x.Over && !over[all[i]] {
				continue
			}
			delete(over, all[i])
			again = append(again, lasts[all[i]])
			delete(lasts, all[i])
			keys, apps, causes, addresses, texts = append(keys, all[i]), append(apps, x.App), append(causes, string(x.Cause)), append(addresses, x.Address), append(texts, x.Text)
			// Of alarms without a run there is one for a job, its version and a cause: these have none.
			jobs, versions, ends = append(jobs, x.JobID), append(versions, -1-rand.Int64N(1<<62)), append(ends, x.Over)
		}
		if len(keys) == 0 {
			return nil
		}
		if err := t.do(ctx, s.sql.noteTroubles.by(named{
			{"keys", keys}, {"jobs", jobs}, {"versions", versions}, {"apps", apps}, {"causes", causes}, {"addresses", addresses}, {"overs", ends}, {"texts", texts},
			{"again", again}, {"told", told}, {"incarnation", notes.Incarnation},
		}).into(func(pgx.Rows) error { inserted++; return nil }),
			s.sql.joinTroubles.by(named{{"keys", keys}, {"overs", ends}, {"incarnation", notes.Incarnation}, {"told", told}}).into(func(rows pgx.Rows) error {
				var key string
				err := rows.Scan(&key)
				begun[key] = true
				return err
			})); err != nil {
			return err
		}
		for i := range mine {
			mine[i] = mine[i] || !overs[i] && begun[all[i]]
		}
		return nil
	})
	if err != nil {
		return nil, failed(err, "note %d troubles", n)
	}
	if inserted > 0 {
		s.wakeAlarms(0)
	}
	return mine, nil
}

// troubleQueries are the statements of this file.
type troubleQueries struct {
	leaveTroubles, noteTroubles, joinTroubles query
}

func (q *troubleQueries) define(sql template) {
	// Whose end is noted leaves those who have noted it. Where none is left that lives, it is over; one
	// that is noted again then begins anew. One that lasts is the next alarm's where a rule was kept
	// when the alarm about it was done with.
	again := `not l.is_over and l.status <> 0 and pg_catalog.cardinality(l.noted_by) > 0 and exists (select from {{schema}}.xxl_job_rule u
		where u.gone is null and u.rule <> all(l.told) and u.rule <> all({{arg.told}}::text[]) and ` + ruleWants(`l.app_name`, `l.job_key`, `'trouble'`) + `
			and exists (select from {{schema}}.xxl_job_rule_node o join {{schema}}.xxl_job_node p on p.incarnation = o.incarnation and not p.has_left where u.rule = any(o.rules)))`
	q.leaveTroubles = sql(`with n as materialized (select t.key, bool_or(t.is_over) is_over from unnest({{arg.keys}}::text[], {{arg.overs}}::boolean[]) t(key, is_over) group by t.key),
	locked as materialized (select a.id, a.status, a.told, a.app_name, a.job_key, n.is_over, {{arg.incarnation}}::text = any(a.noted_by) mine,
			array(select p.incarnation from {{schema}}.xxl_job_node p where p.incarnation = any(a.noted_by) and not p.has_left and not (n.is_over and p.incarnation = {{arg.incarnation}}::text)) noted_by
		from n join {{schema}}.xxl_job_alarm a on a.open_trouble = n.key collate "C" order by a.id for no key update of a),
	left_by as materialized (select l.*, ` + again + ` again from locked l)
	update {{schema}}.xxl_job_alarm a set noted_by = l.noted_by, open_trouble = case when pg_catalog.cardinality(l.noted_by) > 0 and not l.again then a.open_trouble end
	from left_by l, n where a.id = l.id and a.open_trouble = n.key collate "C" and (l.is_over and l.mine or not l.is_over and pg_catalog.cardinality(l.noted_by) = 0 or l.again)
	returning n.key, pg_catalog.cardinality(l.noted_by) = 0, case when l.again then l.id else 0 end`)
	row := assigned{
		{"shard", `0`},
		{"job_id", `n.job_id`},
		{"job_version", `n.version`},
		{"app_name", `coalesce(nullif(n.app, ''), i.app_name, '')`},
		{"job_key", `coalesce(i.job_key, '')`},
		{"job_desc", `coalesce(i.job_desc, '')`},
		{"alarm_email", `coalesce(i.alarm_email, '')`},
		{"cause", `'trouble'`},
		{"content", `n.content`},
		{"told", `array(select x from unnest({{arg.told}}::text[]) x union select x from unnest(o.told) x order by 1)`},
		{"add_time", `{{now}}`},
		{"trouble", `n.cause`},
		{"trouble_address", `n.address`},
		{"trouble_over", `n.is_over`},
		{"noted_by", `array(select {{arg.incarnation}}::text union select x from unnest(o.noted_by) x)`},
		{"open_trouble", `case when not n.is_over then n.key end`},
	}
	q.noteTroubles = sql(`insert into {{schema}}.xxl_job_alarm as r (` + row.columns() + `)
	select ` + row.values() + ` from (select * from unnest({{arg.keys}}::text[], {{arg.jobs}}::int[], {{arg.versions}}::bigint[], {{arg.apps}}::text[], {{arg.causes}}::text[],
		{{arg.addresses}}::text[], {{arg.overs}}::boolean[], {{arg.texts}}::text[], {{arg.again}}::bigint[]) t(key, job_id, version, app, cause, address, is_over, content, again) order by key) n
	left join {{schema}}.xxl_job_info i on i.id = n.job_id left join {{schema}}.xxl_job_alarm o on o.id = n.again
	where o.id is not null or exists (select from {{schema}}.xxl_job_rule u where u.gone is null and u.rule <> all({{arg.told}}::text[]) and ` + ruleWants(`coalesce(nullif(n.app, ''), i.app_name, '')`, `coalesce(i.job_key, '')`, `'trouble'`) + `)
	on conflict do nothing returning 1`).saying()
	// Who joins once the alarm is done with tells its own rules by itself: the next alarm is not for these.
	q.joinTroubles = sql(`with locked as materialized (select a.id from {{schema}}.xxl_job_alarm a
		where a.open_trouble = any(array(select t.key from unnest({{arg.keys}}::text[], {{arg.overs}}::boolean[]) t(key, is_over) where not t.is_over)) order by a.id for no key update of a)
	update {{schema}}.xxl_job_alarm a set noted_by = case when {{arg.incarnation}}::text = any(a.noted_by) then a.noted_by else a.noted_by operator(pg_catalog.||) {{arg.incarnation}}::text end,
		told = case when a.status = 0 or {{arg.incarnation}}::text = any(a.noted_by) then a.told else array(select x from unnest({{arg.told}}::text[]) x union select x from unnest(a.told) x order by 1) end
	from locked l where a.id = l.id returning a.open_trouble`)
}
