package postgres

// Lists of jobs and runs, and the statements that filters make.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

// defaultLimit is the page size where none is given.
const defaultLimit = 100

// listing is a statement in the making.
type listing struct {
	sql   string
	where []string
	args  []any
	keyed bool // it looks jobs up by their keys
}

// arg adds an argument and returns its name.
func (q *listing) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *listing) add(condition string) { q.where = append(q.where, condition) }

func (q *listing) conditions() string {
	if len(q.where) == 0 {
		return "true"
	}
	return strings.Join(q.where, " and ")
}

// Jobs lists jobs in order of ID.
func (s *Store) Jobs(ctx context.Context, f store.JobFilter) ([]store.Job, error) {
	q := s.jobsQuery(ctx, f)
	var jobs []store.Job
	st := statement{sql: q.sql, args: q.args, read: readJobs(&jobs)}
	if q.keyed {
		return jobs, failed(s.readByIndex(ctx, st), "jobs by their keys")
	}
	return jobs, failed(s.list(ctx, st), "list jobs")
}

func (s *Store) jobsQuery(ctx context.Context, f store.JobFilter) (q listing) {
	from := q.jobsOf(&f)
	for _, c := range []struct{ column, value string }{
		{"i.job_key", f.Key}, {"i.executor_handler", f.Handler}, {"i.author", f.Author},
	} {
		if c.value != "" {
			q.add(c.column + " = " + q.arg(c.value))
		}
	}
	if f.Name != "" {
		q.add("position(pg_catalog.lower(" + q.arg(f.Name) + ") in pg_catalog.lower(i.job_desc)) > 0")
	}
	if f.Stopped != nil {
		stopped := fmt.Sprintf("i.trigger_status = %d and i.stop_reason <> '%s'", statusStopped, reasonManual)
		q.add(map[bool]string{true: stopped, false: "not (" + stopped + ")"}[*f.Stopped])
	}
	if len(f.IDs) > 0 {
		q.add("i.id = any(" + q.arg(f.IDs) + "::bigint[])")
	}
	if len(f.Keys) > 0 && !q.keyed {
		q.add("i.job_key = any(" + q.arg(f.Keys) + "::pg_catalog.text[]) and i.job_key <> ''")
	}
	if f.After > 0 {
		after := q.arg(f.After) + "::bigint"
		q.add("i.id > " + after + " and n.job_id > " + after)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	q.sql = fmt.Sprintf("%sselect %s from %s\n\twhere %s order by i.id limit %s", mark, q.jobsListed(ctx),
		strings.ReplaceAll(from, "{{schema}}", s.schema), q.conditions(), q.arg(limit))
	return q
}

// jobsOf are the jobs of the filter's app, or all, as the tables i and n. By the app alone,
// it is in the collation of the index xxl_job_info_of_app.
func (q *listing) jobsOf(f *store.JobFilter) string {
	switch {
	case f.App == "":
	case len(f.Keys) > 0:
		q.keyed = true
		return byKeys(q.arg(f.App), q.arg(f.Keys)) + nextOfEach
	case f.Key != "":
		q.add("i.app_name = " + q.arg(f.App))
	default:
		q.add("i.app_name = " + q.arg(f.App) + ` collate pg_catalog."POSIX"`)
	}
	return "{{schema}}.xxl_job_info i join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard"
}

// Run returns one run.
func (s *Store) Run(ctx context.Context, id int64) (store.Run, error) {
	var runs []store.Run
	err := s.read(ctx, s.findRun(id, &runs)...)
	run, there := lastOf(runs)
	if err == nil && !there {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Run{}, failed(err, "run %d", id)
	}
	return run, nil
}

// RunsByID returns those of the runs that exist, each once.
func (s *Store) RunsByID(ctx context.Context, ids []int64) ([]store.Run, error) {
	if len(ids) == 0 {
		return nil, ended(ctx)
	}
	entries, others, err := s.entries(ctx, ids)
	if err != nil || len(others) == 0 {
		return byID(entries), failed(err, "read %d runs", len(ids))
	}
	lo, hi := rangeOf(others)
	runs := entries
	if err := s.read(ctx, s.sql.runsByID.by(named{{"runs", others}, {"lo", lo}, {"hi", hi}, {"texts", textsOf(ctx)}}).into(readNamedRuns(&runs))); err != nil {
		return nil, failed(err, "read %d runs", len(ids))
	}
	return byID(runs), nil
}

// stateIndexes are the conditions of the indexes of runs that are in some states
// only. States that come as an argument do not tell the planner which one serves.
var stateIndexes = []struct {
	condition string
	states    []store.State
}{
	{isPlanned, []store.State{store.StatePlanned}},
	{isStarted, []store.State{store.StateStarted, store.StateDispatched}},
	{isBad, []store.State{store.StateFailed, store.StateTimedOut, store.StateKilled,
		store.StateLost, store.StateRefused, store.StateDiscarded}},
	{isSkipped, []store.State{store.StateSkipped}},
}

// The conditions are as the migrations have them.
var (
	isPlanned = fmt.Sprintf("l.state = %d", store.StatePlanned)
	isStarted = fmt.Sprintf("l.state in (%d, %d)", store.StateStarted, store.StateDispatched)
	isOver    = fmt.Sprintf("l.state > %d", store.StateDispatched)
	isSkipped = fmt.Sprintf("l.state = %d", store.StateSkipped)
	isBad     = fmt.Sprintf("l.state in (%d, %d, %d, %d, %d, %d)", store.StateFailed, store.StateTimedOut, store.StateKilled,
		store.StateLost, store.StateRefused, store.StateDiscarded)
)

// indexesOfJob are the conditions of those of the three indexes by job that hold runs in some of the
// states. Each part of a statement is planned for each partition, which costs more than to read it.
func indexesOfJob(states []store.State) (list []string) {
	for _, x := range []struct {
		condition   string
		least, most store.State
	}{{isPlanned, store.StatePlanned, store.StatePlanned}, {isStarted, store.StateStarted, store.StateDispatched}, {isOver, store.StateDispatched + 1, math.MaxUint8}} {
		if len(states) == 0 || slices.ContainsFunc(states, func(st store.State) bool { return x.least <= st && st <= x.most }) {
			list = append(list, x.condition)
		}
	}
	return list
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f store.RunFilter) ([]store.Run, error) {
	if noJobID(f.JobID) {
		return nil, nil
	}
	q := s.runsQuery(ctx, f)
	var runs []store.Run
	err := s.list(ctx, statement{sql: q.sql, args: q.args, read: readNamedRuns(&runs)})
	return runs, failed(err, "list runs")
}

// runsQuery reads runs of one job from three indexes, by what the runs are at, for
// no index holds all of them; and those of one trigger from two, for the first has
// no trigger but itself. Entries of xxl_job_ahead are among them where they can match.
func (s *Store) runsQuery(ctx context.Context, f store.RunFilter) (q listing) {
	s.boundRuns(&q, &f)
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	n, columns := q.arg(limit), q.runsListed(ctx)
	page := func(table, extra, order string) string {
		return fmt.Sprintf("(select %s from %s.%s l where %s%s order by %s desc limit %s)", columns, s.schema, table, q.conditions(), extra, order, n)
	}
	run := func(extra string) string { return page("xxl_job_log", extra, "l.id") }
	own, order := "", "l.id"
	var parts []string
	switch {
	case f.TriggerID != 0:
		id := q.arg(f.TriggerID)
		own = " and l.id = " + id
		parts = []string{run(own + " and coalesce(l.trigger_id, l.id) = " + id), run(" and l.trigger_id = " + id + " and l.id > " + id)}
	case f.JobID != 0:
		for _, condition := range indexesOfJob(f.States) {
			if condition == isStarted {
				condition += fmt.Sprintf(" and l.shard = (select %s::bigint %% nullif(pg_catalog.count(*), 0) from %s.xxl_job_lock)", q.arg(f.JobID), s.schema)
			}
			parts = append(parts, run(" and "+condition))
		}
	default:
		parts = []string{run("")}
		if f.App != "" { // see the index xxl_job_ahead_app
			order = "l.id + 0"
			if f.Before > 0 {
				own = " and l.id + 0 < " + q.arg(f.Before)
			}
		}
	}
	if len(f.States) == 0 || slices.Contains(f.States, store.StatePlanned) || slices.Contains(f.States, store.StateCancelled) {
		parts = append(parts, page("xxl_job_ahead", own, order))
	}
	if len(parts) > 1 {
		parts = []string{fmt.Sprintf("(select * from (%s) l order by l.id desc limit %s)", strings.Join(parts, " union all "), n)}
	}
	if !f.EndedSince.IsZero() {
		parts[0] = fmt.Sprintf("(select * from %s l where l.handle_time >= %s::timestamptz)", parts[0], q.arg(stored(f.EndedSince)))
	}
	q.sql = mark + fmt.Sprintf("select j.job_desc, j.job_key, j.secret, %s from %s l %s order by l.id desc", runColumns, parts[0],
		strings.ReplaceAll(namesOfJob, "{{schema}}", s.schema))
	return q
}

// boundRuns turns the filter into conditions. Ids grow with the time of planning,
// so bounds on them leave out partitions.
func (s *Store) boundRuns(q *listing, f *store.RunFilter) {
	if f.App != "" {
		q.add("l.app_name = " + q.arg(f.App))
	}
	if f.JobID != 0 {
		q.add("l.job_id = " + q.arg(f.JobID) + "::bigint")
	}
	if len(f.States) > 0 {
		q.states(f.States)
		if condition := stateIndex(f.States); condition != "" {
			q.add(condition)
		}
	}
	q.scheduled(f.From, f.To)
	if f.Before > 0 {
		q.add("l.id < " + q.arg(f.Before))
	}
}

// states chooses runs in one of the states.
func (q *listing) states(chosen []store.State) {
	states := make([]int16, len(chosen))
	for i, st := range chosen {
		if states[i] = int16(st); st == store.StateSnoozed {
			states[i] = int16(store.StateSucceeded)
		}
	}
	switch snoozed := slices.Contains(chosen, store.StateSnoozed); {
	case snoozed && !slices.Contains(chosen, store.StateSucceeded):
		q.add(fmt.Sprintf("(l.state <> %d or l.snoozed)", store.StateSucceeded))
	case !snoozed && slices.Contains(chosen, store.StateSucceeded):
		q.add("l.snoozed is null")
	}
	q.add("l.state = any(" + q.arg(states) + "::smallint[])")
}

// stateIndex is the condition of the index that holds runs in all of the states: empty where
// there is none.
func stateIndex(chosen []store.State) string {
	for _, x := range stateIndexes {
		if len(chosen) > 0 && !slices.ContainsFunc(chosen, func(st store.State) bool { return !slices.Contains(x.states, st) }) {
			return x.condition
		}
	}
	return ""
}

// scheduled bounds the instants of runs.
func (q *listing) scheduled(from, to time.Time) {
	if !from.IsZero() {
		q.add("l.scheduled_time >= " + q.arg(milli(stored(from))))
	}
	if !to.IsZero() {
		q.add("l.scheduled_time < " + q.arg(milli(stored(to))))
	}
}

// namesOfJob joins the job of each run l that is returned, as j: one look by the key for
// each, and for none that a filter has left out.
const namesOfJob = `left join lateral (select i.job_desc, i.job_key, i.secret from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true`

// runQueries are the statements of this file.
type runQueries struct {
	runByID, runsByID query
}

func (q *runQueries) define(sql template) {
	q.runByID = sql(`select j.job_desc, j.job_key, j.secret, {{run}} from {{schema}}.xxl_job_log l ` + namesOfJob + ` where l.id = $1`)
	q.runsByID = sql(`select j.job_desc, j.job_key, j.secret, {{listed}} from {{schema}}.xxl_job_log l ` + namesOfJob + `
	where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}} order by l.id`)
}

// Lists of jobs in several orders, and counts of them.

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
	const beginning = `
	where v.v <> '' and pg_catalog.left(pg_catalog.lower(v.v), pg_catalog.length({{arg.prefix}}::text)) = pg_catalog.lower({{arg.prefix}}::text) order by v.v collate "C" limit {{arg.limit}}`
	values := func(column, from string) query {
		return sql(`select v.v from (select distinct ` + column + ` v from ` + from + `) v` + beginning)
	}
	// Apps are few beside their jobs: from each the index leads to the next, and no job is read.
	next := func(where string) string {
		return `(select i.app_name from {{schema}}.xxl_job_info i` + where + ` order by i.app_name limit 1)`
	}
	q.valuesOfApp = sql(`with recursive v(v) as (` + next("") + ` union all select ` + next(" where i.app_name > v.v") + ` from v where v.v is not null)
	select v.v from v` + beginning)
	q.valuesOfHandler = values(`i.executor_handler`, `{{schema}}.xxl_job_info i`)
	q.valuesOfAuthor = values(`i.author`, `{{schema}}.xxl_job_info i`)
	q.valuesOfTag = values(`t.t`, `{{schema}}.xxl_job_info i cross join lateral pg_catalog.jsonb_array_elements_text(nullif(i.tags, '')::jsonb) t(t) where i.tags <> ''`)
	q.schedules = sql(`select i.id, i.app_name, coalesce(i.job_key, ''), i.job_desc, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst,
	i.not_before, i.not_after, i.max_runs, n.run_count, n.trigger_next_time
	from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard
	where n.trigger_status = ` + fmt.Sprint(statusEnabled) + ` and i.id > {{arg.after}}::bigint and n.job_id > {{arg.after}}::bigint order by i.id limit {{arg.limit}}`)
}
