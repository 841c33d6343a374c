package postgres

// Lists of jobs in several orders, and counts of them.

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// SearchJobs returns jobs that the search chooses, in its order.
func (s *Store) SearchJobs(ctx context.Context, q store.JobSearch) (jobs []store.Job, err error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	q.Complete()
	list := s.jobSearch(ctx, &q)
	err = s.list(ctx, statement{sql: list.sql, args: list.args, read: readJobs(&jobs)})
	return jobs, failed(err, "search for jobs")
}

// The columns that jobs are in the order of.
const (
	nameOrder = `i.job_desc collate pg_catalog."C"`
	nextOrder = "n.trigger_next_time"
)

func (s *Store) jobSearch(ctx context.Context, f *store.JobSearch) (q listing) {
	order := "i.id"
	behind := func(column, value string) {
		q.add("(" + column + ", i.id) > (" + value + ", " + q.arg(f.After.ID) + "::bigint)")
	}
	on := f.After.ID > 0
	switch f.Order {
	case store.ByName:
		order = nameOrder + ", i.id"
		if on {
			behind(nameOrder, q.arg(f.After.Name)+"::text")
		}
	case store.ByNext:
		order = nextOrder + ", i.id"
		q.add(fmt.Sprintf("n.trigger_status = %d and n.trigger_next_time > 0", statusEnabled))
		if on {
			at := q.arg(milli(stored(f.After.Next))) + "::bigint"
			q.add(nextOrder + " >= " + at)
			behind(nextOrder, at)
		}
	default:
		if on {
			id := q.arg(f.After.ID) + "::bigint"
			q.add("i.id > " + id + " and n.job_id > " + id)
		}
	}
	q.jobFilters(f)
	q.sql = fmt.Sprintf("%sselect %s from %s.xxl_job_info i join %[3]s.xxl_job_next n on n.job_id = i.id and n.shard = i.shard\n\twhere %s order by %s limit %s",
		mark, q.jobsListed(ctx), s.schema, q.conditions(), order, q.arg(f.Limit))
	return q
}

// jobFilters adds what jobs are chosen by.
func (q *listing) jobFilters(f *store.JobSearch) {
	if len(f.Apps) > 0 {
		q.add("i.app_name = any(" + q.arg(f.Apps) + "::text[])")
	}
	if len(f.Tags) > 0 {
		q.add("i.tags <> '' and nullif(i.tags, '')::jsonb @> " + q.arg(joinKeys(f.Tags)) + "::text::jsonb")
	}
	for _, c := range []struct{ column, value string }{{"i.executor_handler", f.Handler}, {"i.author", f.Author}} {
		if c.value != "" {
			q.add(c.column + " = " + q.arg(c.value))
		}
	}
	stopped := fmt.Sprintf("i.trigger_status = %d and i.stop_reason <> '%s'", statusStopped, reasonManual)
	if f.StopReason != "" {
		q.add(stopped + " and i.stop_reason = " + q.arg(f.StopReason))
	}
	if f.Stopped != nil {
		q.add(map[bool]string{true: stopped, false: "not (" + stopped + ")"}[*f.Stopped])
	}
	if f.Text != "" {
		text := "pg_catalog.lower(" + q.arg(f.Text) + "::text)"
		in := func(column string) string { return "position(" + text + " in pg_catalog.lower(" + column + ")) > 0" }
		tag := "i.tags <> '' and exists (select from pg_catalog.jsonb_array_elements_text(nullif(i.tags, '')::jsonb) t(t) where " + in("t.t") + ")"
		q.add("(" + in("i.job_desc") + " or " + in("coalesce(i.job_key, '')") + " or " + in("i.executor_handler") + " or " + tag + ")")
	}
}

// CountJobs counts the jobs of each app.
func (s *Store) CountJobs(ctx context.Context) (counts []store.JobCount, err error) {
	err = s.list(ctx, s.sql.countJobs.with().into(func(rows pgx.Rows) error {
		var c store.JobCount
		err := rows.Scan(&c.App, &c.Enabled, &c.Stopped, &c.Manual)
		counts = append(counts, c)
		return err
	}))
	return counts, failed(err, "count jobs")
}

// JobValues returns what jobs have in a field.
func (s *Store) JobValues(ctx context.Context, field, prefix string, limit int) (values []string, err error) {
	st, known := map[string]query{
		store.FieldApp: s.sql.valuesOfApp, store.FieldHandler: s.sql.valuesOfHandler,
		store.FieldAuthor: s.sql.valuesOfAuthor, store.FieldTag: s.sql.valuesOfTag,
	}[field]
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("postgres: values of jobs: %q is no field", field)
	}
	if limit <= 0 || !store.CanBeSought(prefix) {
		return nil, ended(ctx)
	}
	err = s.list(ctx, st.by(named{{"prefix", prefix}, {"limit", limit}}).into(func(rows pgx.Rows) error {
		var v string
		err := rows.Scan(&v)
		values = append(values, v)
		return err
	}))
	return values, failed(err, "read values of jobs")
}

// Schedules returns the jobs whose schedules are neither stopped nor absent.
func (s *Store) Schedules(ctx context.Context, after int64, limit int) (jobs []store.Job, err error) {
	if limit <= 0 {
		return nil, ended(ctx)
	}
	err = s.readByIndex(ctx, s.sql.schedules.by(named{{"after", after}, {"limit", limit}}).into(func(rows pgx.Rows) error {
		var j store.Job
		var notBefore, notAfter, next int64
		err := rows.Scan(&j.ID, &j.App, &j.Key, &j.Name, &j.Schedule.Type, &j.Schedule.Conf, &j.Schedule.Zone, &j.Schedule.DST,
			&notBefore, &notAfter, &j.MaxRuns, &j.Runs, &next)
		j.NotBefore, j.NotAfter, j.Next = fromMilli(notBefore), fromMilli(notAfter), fromMilli(next)
		jobs = append(jobs, j)
		return err
	}))
	return jobs, failed(err, "read schedules")
}

// jobSearchQueries are the statements of this file.
type jobSearchQueries struct {
	countJobs, valuesOfApp, valuesOfHandler, valuesOfAuthor, valuesOfTag, schedules query
}

func (q *jobSearchQueries) define(sql template) {
	stopped := fmt.Sprintf(`i.trigger_status = %d and i.stop_reason <> '%s'`, statusStopped, reasonManual)
	manual := fmt.Sprintf(`i.trigger_status = %d and i.stop_reason = '%s'`, statusStopped, reasonManual)
	q.countJobs = sql(`select i.app_name, sum(case when i.trigger_status = ` + fmt.Sprint(statusEnabled) + ` then 1 else 0 end)::int,
	sum(case when ` + stopped + ` then 1 else 0 end)::int, sum(case when ` + manual + ` then 1 else 0 end)::int
	from {{schema}}.xxl_job_info i group by i.app_name order by i.app_name collate "C"`)
	values := func(column, from string) query {
		return sql(`select v.v from (select distinct ` + column + ` v from ` + from + `) v
	where v.v <> '' and pg_catalog.left(pg_catalog.lower(v.v), pg_catalog.length({{arg.prefix}}::text)) = pg_catalog.lower({{arg.prefix}}::text) order by v.v collate "C" limit {{arg.limit}}`)
	}
	q.valuesOfApp = values(`i.app_name`, `{{schema}}.xxl_job_info i`)
	q.valuesOfHandler = values(`i.executor_handler`, `{{schema}}.xxl_job_info i`)
	q.valuesOfAuthor = values(`i.author`, `{{schema}}.xxl_job_info i`)
	q.valuesOfTag = values(`t.t`, `{{schema}}.xxl_job_info i cross join lateral pg_catalog.jsonb_array_elements_text(nullif(i.tags, '')::jsonb) t(t) where i.tags <> ''`)
	q.schedules = sql(`select i.id, i.app_name, coalesce(i.job_key, ''), i.job_desc, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst,
	i.not_before, i.not_after, i.max_runs, n.run_count, n.trigger_next_time
	from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard
	where n.trigger_status = ` + fmt.Sprint(statusEnabled) + ` and i.id > {{arg.after}}::bigint and n.job_id > {{arg.after}}::bigint order by i.id limit {{arg.limit}}`)
}
