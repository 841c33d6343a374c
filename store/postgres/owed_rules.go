package postgres

// Rules of alarms: what those of all nodes are about, kept so that whoever ends a run inserts the
// alarms that others want, and who tells of what each of them wants.

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/xxljob/xxljob/store"
)

// KeepRules keeps the rules as those of the node.
func (s *Store) KeepRules(ctx context.Context, k store.RuleKeeper) (others []store.RuleKeeper, err error) {
	type row struct {
		Rule               string
		Apps, Jobs, Causes []string
	}
	rows, keys, names := make([]row, len(k.Rules)), make([]string, len(k.Rules)), make([]string, len(k.Rules))
	for i := range k.Rules {
		r := &k.Rules[i]
		rows[i] = row{r.Key, orEmpty(plainTexts(r.Apps)), orEmpty(plainTexts(r.Jobs)), orEmpty(plainTexts(r.Causes))}
		keys[i], names[i] = r.Key, store.PlainText(r.Name)
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	app, node := store.PlainText(k.App), store.PlainText(k.Node)
	err = s.inTx(ctx, bounds{name: "keep_rules"}, func(t *tx) error {
		others = nil
		return t.do(ctx,
			s.sql.putRules.by(named{{"rules", string(text)}}),
			s.sql.nameRules.by(named{{"keys", keys}, {"names", names}}),
			s.sql.dropReplaced.by(named{{"app", app}, {"node", node}, {"keys", keys}, {"names", names}}),
			s.sql.putRuleNode.by(named{{"app", app}, {"node", node}, {"incarnation", k.Incarnation}, {"keys", keys}}),
			s.sql.otherRules.by(named{{"app", app}, {"node", node}, {"keys", keys}}).into(func(rows pgx.Rows) error {
				o := store.RuleKeeper{App: k.App}
				var keys, names []string
				if err := rows.Scan(&o.Node, &o.Incarnation, &keys, &names); err != nil {
					return err
				}
				for i := range keys {
					o.Rules = append(o.Rules, store.AlarmRule{Key: keys[i], Name: names[i]})
				}
				others = append(others, o)
				return nil
			}))
	})
	return others, failed(err, "keep the rules of alarms")
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// HoldRule makes the incarnation the one who tells of what a rule wants.
func (s *Store) HoldRule(ctx context.Context, rule, incarnation string, d time.Duration) (hold store.RuleHold, err error) {
	there := false
	err = s.one(ctx, bounds{name: "hold_rule"}, s.sql.holdRule.by(named{{"rule", rule}, {"incarnation", incarnation}, {"millis", d.Milliseconds()}}).into(func(rows pgx.Rows) error {
		there = true
		var was string
		var left pgtype.Int8
		if err := rows.Scan(&was, &left); err != nil {
			return err
		}
		switch {
		case left.Valid:
			hold.Left = time.Duration(left.Int64) * time.Millisecond
		case d > 0:
			hold.Held, hold.Anew = true, was != incarnation
		}
		return nil
	}))
	if err == nil && !there {
		err = store.ErrNotFound
	}
	return hold, failed(err, "hold rule %q", rule)
}

// Rules returns the rules that are kept.
func (s *Store) Rules(ctx context.Context) (list []store.AlarmRule, err error) {
	err = s.read(ctx, s.sql.rules.with().into(func(rows pgx.Rows) error {
		var r store.AlarmRule
		var gone pgtype.Timestamptz
		err := rows.Scan(&r.Key, &r.Name, &r.Apps, &r.Jobs, &r.Causes, &gone)
		for _, of := range []*[]string{&r.Apps, &r.Jobs, &r.Causes} {
			if len(*of) == 0 {
				*of = nil
			}
		}
		r.Gone = stamp(gone)
		list = append(list, r)
		return err
	}))
	return list, failed(err, "read the rules of alarms")
}

// ruleForgotten is how long after a rule is gone it is forgotten.
const ruleForgotten = 2 * day

// DropRules makes rules Gone that no node has kept for a while.
func (s *Store) DropRules(ctx context.Context, before time.Time) (open bool, err error) {
	err = s.inTx(ctx, bounds{name: "drop_rules"}, func(t *tx) error {
		old := stored(before.Add(-ruleForgotten))
		return t.do(ctx, s.sql.dropRules.with(old), s.sql.dropRuleNodes.with(old), s.sql.endRules.with(stored(before)), s.sql.anyAlarm.with().into(scanInto(&open)))
	})
	return open, failed(err, "drop rules of alarms")
}

// ruleWants is whether a rule u wants what has happened to a job of the app.
func ruleWants(app, key, cause string) string {
	return `(pg_catalog.cardinality(u.apps) = 0 or ` + app + ` = any(u.apps)) and (pg_catalog.cardinality(u.jobs) = 0 or ` + app + ` operator(pg_catalog.||) '/' operator(pg_catalog.||) ` + key + ` = any(u.jobs)) and ` + cause + ` = any(u.causes)`
}

// keptRuleQueries are the statements of this file.
type keptRuleQueries struct {
	putRules, nameRules, dropReplaced, putRuleNode, otherRules, holdRule, rules, endRules, dropRules, dropRuleNodes, anyAlarm query
}

func (q *keptRuleQueries) define(sql template) {
	texts := func(field string) string {
		return `array(select x from pg_catalog.jsonb_array_elements_text(r.r operator(pg_catalog.->) '` + field + `') x)`
	}
	// Apps and jobs are names, which are never changed; what rules and nodes are called is for people.
	q.putRules = sql(`insert into {{schema}}.xxl_job_rule as u (rule, name, apps, jobs, causes, kept)
	select r.r operator(pg_catalog.->>) 'Rule', '', ` + texts("Apps") + `, ` + texts("Jobs") + `, ` + texts("Causes") + `, {{now}}
	from pg_catalog.jsonb_array_elements({{arg.rules}}::text::jsonb) r(r) order by 1
	on conflict (rule) do update set kept = excluded.kept, gone = null`)
	q.nameRules = sql(`update {{schema}}.xxl_job_rule u set name = r.name from unnest({{arg.keys}}::text[], {{arg.names}}::text[]) r(rule, name) where u.rule = r.rule and u.name = ''`).saying()
	// live are the rules that other apps have had, or that other live nodes have.
	const live = `select unnest(o.rules) from {{schema}}.xxl_job_rule_node o where o.app <> {{arg.app}}::text or o.node_id <> {{arg.node}}::text
		and exists (select from {{schema}}.xxl_job_node n where n.incarnation = o.incarnation and not n.has_left)`
	q.dropReplaced = sql(`delete from {{schema}}.xxl_job_rule u where u.name = any({{arg.names}}::text[]) and u.rule <> all({{arg.keys}}::text[])
	and exists (select from {{schema}}.xxl_job_rule_node o where o.app = {{arg.app}}::text and u.rule = any(o.rules)) and u.rule not in (` + live + `)`).saying()
	q.putRuleNode = sql(`insert into {{schema}}.xxl_job_rule_node (app, node_id, incarnation, rules, kept)
	values ({{arg.app}}::text, {{arg.node}}::text, {{arg.incarnation}}::text, array(select k from unnest({{arg.keys}}::text[]) k order by k collate "C"), {{now}})
	on conflict (app, node_id) do update set incarnation = excluded.incarnation, rules = excluded.rules, kept = excluded.kept`).saying()
	q.otherRules = sql(`select o.node_id, o.incarnation, o.rules, array(select coalesce(u.name, '') from unnest(o.rules) with ordinality r(rule, ord)
		left join {{schema}}.xxl_job_rule u on u.rule = r.rule order by r.ord)
	from {{schema}}.xxl_job_rule_node o join {{schema}}.xxl_job_node n on n.incarnation = o.incarnation and not n.has_left
	where o.app = {{arg.app}}::text and o.node_id <> {{arg.node}}::text
		and o.rules operator(pg_catalog.<>) array(select k from unnest({{arg.keys}}::text[]) k order by k collate "C") order by o.node_id collate "C"`).saying()
	q.holdRule = sql(`with was as materialized (select u.holder, case when u.holder <> {{arg.incarnation}}::text and u.until > {{now}} and u.until <= {{now}} + interval '1 hour'
			then pg_catalog.ceil(pg_catalog.date_part('epoch', u.until - {{now}}) * 1000::double precision)::bigint end theirs
		from {{schema}}.xxl_job_rule u where u.rule = {{arg.rule}}::text for update),
	held as (update {{schema}}.xxl_job_rule u set holder = case when {{arg.millis}}::bigint > 0 then {{arg.incarnation}}::text else u.holder end,
			until = case when {{arg.millis}}::bigint > 0 then {{now}} + {{arg.millis}}::bigint::double precision * interval '1 millisecond' end
		from was w where u.rule = {{arg.rule}}::text and w.theirs is null and ({{arg.millis}}::bigint > 0 or w.holder = {{arg.incarnation}}::text))
	select w.holder, w.theirs from was w`)
	q.rules = sql(`select u.rule, u.name, u.apps, u.jobs, u.causes, u.gone from {{schema}}.xxl_job_rule u order by u.rule`)
	q.endRules = sql(`update {{schema}}.xxl_job_rule u set gone = {{now}} where u.gone is null and u.kept < $1::timestamptz`)
	q.dropRules = sql(`delete from {{schema}}.xxl_job_rule u where u.kept < $1::timestamptz`)
	q.dropRuleNodes = sql(`delete from {{schema}}.xxl_job_rule_node o where o.kept < $1::timestamptz`)
	// By the index of open alarms, which has few entries where the table has many rows.
	q.anyAlarm = sql(`select (select a.id from {{schema}}.xxl_job_alarm a where a.status = 0 order by a.shard, a.id limit 1) is not null`)
}

// Mutes: what somebody knows of, so that its alarms are not sent.

var _ store.MuteKeeper = (*Store)(nil)

// PutMute keeps a mute.
func (s *Store) PutMute(ctx context.Context, m store.Mute) (store.Mute, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return store.Mute{}, err
	}
	if err := m.Validate(now); err != nil {
		return store.Mute{}, err
	}
	m.By, m.Until = store.Actor(ctx), m.Until.UTC().Truncate(time.Millisecond)
	err = s.inTx(ctx, bounds{name: "put_mute"}, func(t *tx) error {
		var had []store.Mute
		there := m.JobID == 0
		if err := t.do(ctx, s.sql.dropMutes.with(mutedAt(ctx)), s.sql.lockMute.with(m.Key).into(readMutes(&had)),
			s.sql.appOfMuted.with(m.JobID).into(func(rows pgx.Rows) error { there = true; return rows.Scan(&m.App) })); err != nil {
			return err
		}
		if !there {
			return store.ErrNotFound
		}
		if err := t.do(ctx, s.sql.putMute.by(named{{"key", m.Key}, {"app", m.App}, {"job", m.JobID}, {"by", m.By}, {"until", m.Until}, {"note", m.Note}}).into(scanInto(&m.At))); err != nil {
			return err
		}
		m.At = m.At.UTC()
		var before *store.Mute
		if len(had) > 0 {
			before = &had[0]
		}
		c := changed{}
		c.OfMute(ctx, before, &m)
		return t.do(ctx, s.note(c))
	})
	if err != nil {
		return store.Mute{}, failed(err, "mute %q", m.Key)
	}
	return m, nil
}

// mutedAt is the time by which mutes are over where that is before the store's; nil for that.
func mutedAt(ctx context.Context) *time.Time {
	if at := store.TrustedTime(ctx); !at.IsZero() {
		return &at
	}
	return nil
}

// DropMute ends a mute.
func (s *Store) DropMute(ctx context.Context, key string) error {
	if !store.CanBeStored(key) {
		return failed(store.ErrNotFound, "end the mute of %q", key)
	}
	err := s.inTx(ctx, bounds{name: "drop_mute"}, func(t *tx) error {
		var had []store.Mute
		if err := t.do(ctx, s.sql.dropMute.with(key, mutedAt(ctx)).into(readMutes(&had))); err != nil {
			return err
		}
		if len(had) == 0 {
			return store.ErrNotFound
		}
		c := changed{}
		c.OfMute(ctx, &had[0], nil)
		return t.do(ctx, s.note(c))
	})
	return failed(err, "end the mute of %q", key)
}

// Mutes returns those that are not over.
func (s *Store) Mutes(ctx context.Context) (list []store.Mute, err error) {
	if err = ended(ctx); err == nil {
		err = s.read(ctx, s.sql.mutes.with(mutedAt(ctx)).into(readMutes(&list)))
	}
	return list, failed(err, "read mutes")
}

func readMutes(list *[]store.Mute) result {
	return func(rows pgx.Rows) error {
		var m store.Mute
		err := rows.Scan(&m.Key, &m.App, &m.JobID, &m.At, &m.By, &m.Until, &m.Note)
		m.At, m.Until = m.At.UTC(), m.Until.UTC()
		*list = append(*list, m)
		return err
	}
}

// muteQueries are the statements of this file.
type muteQueries struct {
	dropMutes, lockMute, appOfMuted, putMute, dropMute, mutes query
}

func (q *muteQueries) define(sql template) {
	const columns = `m.mute_key, m.app_name, m.job_id, m.muted_time, m.muted_by, m.until_time, m.note`
	q.dropMutes = sql(`delete from {{schema}}.xxl_job_mute m where m.until_time <= least({{now}}, $1::timestamptz)`)
	q.lockMute = sql(`select ` + columns + ` from {{schema}}.xxl_job_mute m where m.mute_key = $1 for update`)
	q.appOfMuted = sql(`select i.app_name from {{schema}}.xxl_job_info i where i.id = $1`)
	q.putMute = sql(`insert into {{schema}}.xxl_job_mute as m (mute_key, app_name, job_id, muted_time, muted_by, until_time, note)
	values ({{arg.key}}, {{arg.app}}, {{arg.job}}, {{now}}, {{arg.by}}, {{arg.until}}, {{arg.note}})
	on conflict (mute_key) do update set app_name = excluded.app_name, job_id = excluded.job_id, muted_time = excluded.muted_time, muted_by = excluded.muted_by,
		until_time = excluded.until_time, note = excluded.note
	returning m.muted_time`)
	q.dropMute = sql(`delete from {{schema}}.xxl_job_mute m where m.mute_key = $1 and m.until_time > least({{now}}, $2::timestamptz) returning ` + columns)
	q.mutes = sql(`select ` + columns + ` from {{schema}}.xxl_job_mute m where m.until_time > least({{now}}, $1::timestamptz) order by m.mute_key`)
}
