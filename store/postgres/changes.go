package postgres

// The record of changes: what is read of it, and below what an edit notes there. A search goes by the index of the filter that is likely to
// choose fewest; where there are others too, it finds out first how far it may look, as a
// search for runs does.

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

var _ store.ChangeRecord = (*Store)(nil)

// changeColumns are what readChanges reads.
const changeColumns = `c.id, c.at, c.actor, c.client, c.request_id, c.verb, c.object, case when c.object = 'job' then c.job_id::text else c.object_id end,
	c.app_name, c.job_id, c.version, c.before, c.after`

func readChanges(list *[]store.Change) result {
	return func(rows pgx.Rows) error {
		var c store.Change
		err := rows.Scan(&c.ID, &c.At, &c.Actor, &c.Client, &c.RequestID, &c.Verb, &c.Object, &c.ObjectID, &c.App, &c.JobID, &c.Version, &c.Before, &c.After)
		c.At = c.At.UTC()
		*list = append(*list, c)
		return err
	}
}

// Changes returns what was done to the job, newest first.
func (s *Store) Changes(ctx context.Context, jobID int64, limit int) (list []store.Change, err error) {
	if noJobID(jobID) {
		return nil, nil
	}
	err = s.read(ctx, s.sql.changes.with(jobID, max(limit, 0)).into(readChanges(&list)))
	if err != nil {
		return nil, failed(err, "changes of job %d", jobID)
	}
	return list, nil
}

// JobAt returns the definition that the job had at the version.
func (s *Store) JobAt(ctx context.Context, jobID, version int64) (job store.Job, err error) {
	err = ended(ctx)
	if err == nil && (noJobID(jobID) || version <= 0) {
		err = store.ErrNotFound
	}
	text := ""
	if err == nil {
		err = s.readByIndex(ctx, s.sql.jobAt.with(jobID, version).into(scanInto(&text)))
	}
	if err == nil && text == "" {
		err = store.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &job)
	}
	if err != nil {
		return store.Job{}, failed(err, "version %d of job %d", version, jobID)
	}
	job.Version = version
	return job, nil
}

// clockMargin is how far ids and times of entries may disagree: an entry gets both in one
// statement, which may have waited between the two.
const clockMargin = time.Minute

// SearchChanges returns entries that the search chooses, newest first.
func (s *Store) SearchChanges(ctx context.Context, q store.ChangeSearch) (store.ChangesFound, error) {
	if err := ended(ctx); err != nil {
		return store.ChangesFound{}, err
	}
	if err := q.Validate(); err != nil {
		return store.ChangesFound{}, err
	}
	all := store.ChangesFound{SearchedTo: 1}
	cs := changeSearch{store: s, q: &q, low: 1}
	if !q.Complete() || !cs.choose() {
		return all, nil
	}
	if err := cs.narrow(ctx); err != nil {
		return store.ChangesFound{}, failed(err, "search for changes")
	}
	limit := min(q.Limit, q.Examine)
	if len(cs.rest) > 0 {
		limit = q.Limit
		n, err := cs.reach(ctx)
		if err != nil {
			return store.ChangesFound{}, failed(err, "search for changes")
		}
		if n == 0 {
			return all, nil
		}
		if n == q.Examine {
			all.SearchedTo = cs.low
		}
	}
	if err := s.list(ctx, cs.matches(&all.Changes, limit)); err != nil {
		return store.ChangesFound{}, failed(err, "search for changes")
	}
	if n := len(all.Changes); n == limit {
		all.SearchedTo = all.Changes[n-1].ID
	}
	return all, nil
}

// filter is a condition on entries, in which %s stands for its value. One that an index knows,
// which has the id behind its columns, has the columns too, and a value for each.
type filter struct {
	condition string
	values    []any
	columns   []string
	casts     []string
	also      string // what the index is for
}

// changeSearch is a search under way. The entries of one filter, if there is any, are in an
// index of their own; the rest is looked at.
type changeSearch struct {
	store *Store
	q     *store.ChangeSearch
	low   int64 // the least id
	by    *filter
	rest  []filter
}

// choose chooses the filter that is gone by: the first of these is likely to choose fewest. It
// reports whether there can be any entry.
func (cs *changeSearch) choose() bool {
	q := cs.q
	var all []filter
	indexed := func(use bool, column, cast string, value any) {
		if use {
			all = append(all, filter{column + " = %s::" + cast, []any{value}, []string{column}, []string{cast}, ""})
		}
	}
	if ofJob := q.Object == store.ObjectJob && q.ObjectID != ""; ofJob {
		id, err := strconv.ParseInt(q.ObjectID, 10, 64)
		if err != nil || noJobID(id) || strconv.FormatInt(id, 10) != q.ObjectID {
			return false
		}
		all = append(all, filter{"", []any{id}, []string{"c.job_id"}, []string{"int"}, "c.object = 'job'"})
	} else if q.ObjectID != "" {
		all = append(all, filter{"", []any{q.ObjectID, q.Object}, []string{"c.object_id", "c.object"}, []string{"text", "text"}, ""})
	}
	if q.JobID > math.MaxInt32 {
		return false
	}
	indexed(q.JobID != 0, "c.job_id", "int", q.JobID)
	indexed(q.Actor != "", "c.actor", "text", q.Actor)
	indexed(q.Verb != "", "c.verb", "text", q.Verb)
	indexed(len(q.Apps) == 1, "c.app_name", "text", first(q.Apps))
	indexed(q.Object != "" && q.ObjectID == "", "c.object", "text", q.Object)
	if len(all) > 0 {
		cs.by, all = &all[0], all[1:]
	}
	looked := func(use bool, condition string, value any) {
		if use {
			all = append(all, filter{condition: condition, values: []any{value}})
		}
	}
	looked(len(q.Apps) > 1, "c.app_name = any(%s::text[])", q.Apps)
	looked(!q.Since.IsZero(), "c.at >= %s::timestamptz", ceilMilli(q.Since))
	looked(!q.Until.IsZero(), "c.at < %s::timestamptz", ceilMilli(q.Until))
	cs.rest = all
	return true
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// narrow finds the ids between which the entries of the time lie.
func (cs *changeSearch) narrow(ctx context.Context) error {
	if cs.q.Since.IsZero() && cs.q.Until.IsZero() {
		return nil
	}
	var since, until *time.Time
	if !cs.q.Since.IsZero() {
		at := cs.q.Since.Add(-clockMargin)
		since = &at
	}
	if !cs.q.Until.IsZero() {
		at := cs.q.Until.Add(clockMargin)
		until = &at
	}
	var low, high int64
	if err := cs.store.readByIndex(ctx, cs.store.sql.changesBetween.with(since, until).into(scanInto(&low, &high))); err != nil {
		return err
	}
	cs.low, cs.q.Before = max(cs.low, low), min(cs.q.Before, high)
	return nil
}

// reach finds out how far the search may look: at how many entries, of which the oldest is then
// the least. Where there is none, there is nothing to look for.
func (cs *changeSearch) reach(ctx context.Context) (n int, err error) {
	oldest := int64(0)
	if err := cs.store.list(ctx, cs.edge(&n, &oldest)); err != nil {
		return 0, err
	}
	if n > 0 {
		cs.low = oldest
	}
	return n, nil
}

// foundChanges are entries, newest first.
const foundChanges = `%sselect ` + changeColumns + ` from (%s) c order by c.id desc`

// edge counts the entries that may be looked at, and reads the oldest of them.
func (cs *changeSearch) edge(n *int, oldest *int64) statement {
	return cs.statement(`%sselect pg_catalog.count(*)::int, coalesce(pg_catalog.min(c.id), 0) from (%s) c`, "c.id", false, cs.q.Examine, scanInto(n, oldest))
}

// matches reads those that are chosen.
func (cs *changeSearch) matches(list *[]store.Change, limit int) statement {
	sql := foundChanges
	if cs.q.Brief {
		sql = strings.Replace(sql, "c.before, c.after", "'', ''", 1)
	}
	return cs.statement(sql, "c.*", true, limit, readChanges(list))
}

// statement has the entries of the range, as far as the limit, in the place of %s.
func (cs *changeSearch) statement(sql, columns string, rest bool, limit int, read result) statement {
	var q listing
	order := cs.bounded(&q)
	if rest {
		for _, f := range cs.rest {
			q.filtered(&f)
		}
	}
	entries := fmt.Sprintf("select %s from {{schema}}.xxl_job_change c where %s order by %s limit %s", columns, q.conditions(), order, q.arg(limit))
	return statement{sql: strings.ReplaceAll(fmt.Sprintf(sql, mark, entries), "{{schema}}", cs.store.schema), args: q.args, read: read}
}

// bounded bounds the entries to the range of the index that is gone by, and returns their order.
// It is the order of that index, of which the first columns have one value only, so that no
// plan goes by the order of the ids of all entries, however rare the value is.
func (cs *changeSearch) bounded(q *listing) (order string) {
	columns, low, high, order := "", "", "", ""
	if cs.by != nil {
		for i, column := range cs.by.columns {
			value := q.arg(cs.by.values[i]) + "::" + cs.by.casts[i] + ", "
			columns, low, high, order = columns+column+", ", low+value, high+value, order+column+" desc, "
		}
		if cs.by.also != "" {
			q.add(cs.by.also)
		}
	}
	q.add(fmt.Sprintf("(%sc.id) >= (%s%s::bigint)", columns, low, q.arg(cs.low)))
	q.add(fmt.Sprintf("(%sc.id) < (%s%s::bigint)", columns, high, q.arg(cs.q.Before)))
	return order + "c.id desc"
}

// filtered adds a condition on entries.
func (q *listing) filtered(f *filter) {
	q.add(fmt.Sprintf(f.condition, q.arg(f.values[0])))
}

// searchChangeQueries are the statements of this file.
type searchChangeQueries struct {
	changes, jobAt, changesBetween query
}

func (q *searchChangeQueries) define(sql template) {
	q.changes = sql(`select ` + changeColumns + ` from {{schema}}.xxl_job_change c where c.job_id = $1::bigint and c.object = 'job' order by c.id desc limit $2`)
	q.jobAt = sql(`select c.definition from {{schema}}.xxl_job_change c
	where c.job_id = $1::bigint and c.version = $2::bigint and c.definition is not null order by c.id desc limit 1`)
	q.changesBetween = sql(`select coalesce((select c.id from {{schema}}.xxl_job_change c where c.at < $1::timestamptz order by c.at desc, c.id desc limit 1), 0) + 1,
	coalesce((select c.id from {{schema}}.xxl_job_change c where c.at >= $2::timestamptz order by c.at, c.id limit 1), 9223372036854775807)`)
}

// The record of changes, as it is written: entries go into the transaction of what they are
// about. What is read of it is above.

// changed is an entry, with the definition of the job that it is about, if it is about one.
type changed struct {
	store.Change
	definition *string
}

// jobChange is an entry about a job, of which before is nil where it is added, and after where
// it is removed.
func jobChange(ctx context.Context, verb string, before, after *store.Job) changed {
	c := changed{Change: store.Change{Verb: verb}}
	c.OfJob(ctx, before, after)
	if after == nil {
		after = before
	}
	c.definition = definitionText(after)
	return c
}

// definitionText is a job's definition as the record keeps it; nil where it cannot be kept.
func definitionText(j *store.Job) *string {
	text, err := json.Marshal(j.Definition())
	if err != nil {
		return nil
	}
	kept := string(text)
	return &kept
}

// note is the statement that writes an entry.
func (s *Store) note(c changed) statement { return s.sql.insertChange.by(c.args()) }

// noteJob is the statement that writes an entry about a job.
func (s *Store) noteJob(ctx context.Context, verb string, before, after *store.Job) statement {
	return s.note(jobChange(ctx, verb, before, after))
}

func (c *changed) args() named {
	return named{
		{"job_id", c.JobID}, {"version", c.Version}, {"actor", c.Actor}, {"client", c.Client}, {"request_id", c.RequestID}, {"verb", c.Verb},
		{"object", c.Object}, {"object_id", c.otherID()}, {"app_name", c.App}, {"before", c.Before}, {"after", c.After}, {"definition", c.definition},
	}
}

// otherID is the object's, where it is not a job: that is in a column of its own.
func (c *changed) otherID() string {
	if c.Object == store.ObjectJob {
		return ""
	}
	return c.ObjectID
}

// noteAdded is the statement that writes entries about jobs which were added.
func (s *Store) noteAdded(ctx context.Context, jobs []store.Job) statement {
	n := len(jobs)
	ids, apps, afters, definitions := make([]int64, n), make([]string, n), make([]string, n), make([]*string, n)
	var c changed
	for i := range jobs {
		c = jobChange(ctx, "add", nil, &jobs[i])
		ids[i], apps[i], afters[i], definitions[i] = c.JobID, c.App, c.After, c.definition
	}
	return s.sql.insertChanges.by(named{
		{"jobs", ids}, {"apps", apps}, {"afters", afters}, {"definitions", definitions},
		{"actor", c.Actor}, {"client", c.Client}, {"request_id", c.RequestID},
	})
}

// noteStops is the statement that writes entries about jobs which the scheduler has stopped for
// reasons, with their definitions, as far as these are given.
func (s *Store) noteStops(jobs []int64, reasons []string, definitions []*string) statement {
	afters := make([]string, len(jobs))
	var c store.Change
	for i, id := range jobs {
		c.OfStop(id, "", 0, reasons[i])
		afters[i] = c.After
	}
	return s.sql.noteStops.by(named{{"jobs", jobs}, {"before", c.Before}, {"afters", afters}, {"definitions", definitions}})
}

// noteStop is noteStops for a job whose version is raised by the stop: the record is to have
// its definition at each version.
func (s *Store) noteStop(ctx context.Context, t *tx, job int64, reason string) error {
	var found []store.Job
	if err := t.do(ctx, s.sql.definitions.with([]int64{job}).into(infoColumns.readInto(&found))); err != nil || len(found) == 0 {
		return err
	}
	return t.do(ctx, s.noteStops([]int64{job}, []string{reason}, []*string{definitionText(&found[0])}))
}

// RecordChange writes an entry about what is no change of the store's.
func (s *Store) RecordChange(ctx context.Context, c store.Change) (store.Change, error) {
	if err := ended(ctx); err != nil {
		return store.Change{}, err
	}
	if err := c.Validate(); err != nil {
		return store.Change{}, err
	}
	c.Complete()
	o := store.OriginOf(ctx)
	c.Actor, c.Client, c.RequestID = o.Actor, o.Client, o.RequestID
	given := changed{Change: c}
	err := s.one(ctx, bounds{name: "record_change"}, s.sql.recordChange.by(given.args()).into(scanInto(&c.ID, &c.At)))
	if err != nil {
		return store.Change{}, failed(err, "record a change")
	}
	c.At = c.At.UTC()
	return c, nil
}

// DropChanges forgets entries that were written before the given time.
func (s *Store) DropChanges(ctx context.Context, before time.Time) error {
	for n := endBatch; n == endBatch; {
		n = 0
		err := s.one(ctx, bounds{name: "drop_changes"}, s.sql.dropChanges.with(before, endBatch).into(func(pgx.Rows) error { n++; return nil }))
		if err != nil {
			return failed(err, "drop old entries of xxl_job_change")
		}
	}
	return nil
}

// recordQueries are the statements of this file.
type recordQueries struct {
	insertChange, recordChange, noteRun, insertChanges, noteStops, dropChanges query
}

func (q *recordQueries) define(sql template) {
	row := assigned{
		{"job_id", "{{arg.job_id}}"}, {"version", "{{arg.version}}"}, {"at", "{{now}}"}, {"actor", "{{arg.actor}}"}, {"client", "{{arg.client}}"},
		{"request_id", "{{arg.request_id}}"}, {"verb", "{{arg.verb}}"}, {"object", "{{arg.object}}"}, {"object_id", "{{arg.object_id}}"},
		{"app_name", "{{arg.app_name}}"}, {"before", "{{arg.before}}"}, {"after", "{{arg.after}}"}, {"definition", "{{arg.definition}}"},
	}
	insert := `insert into {{schema}}.xxl_job_change (` + row.columns() + `) values (` + row.values() + `) returning id`
	q.insertChange, q.recordChange = sql(insert).saying(), sql(insert+`, at`).saying()
	// It is for transactions of the host's, whose path is whatever the host has set.
	q.noteRun = sql(`insert into {{schema}}.xxl_job_change (job_id, version, at, actor, client, request_id, verb, object, object_id, app_name, after)
	select i.id, 0, {{now}}, {{arg.actor}}::text, {{arg.client}}::text, {{arg.request_id}}::text, {{arg.verb}}::text, 'run', {{arg.run}}::text, i.app_name, {{arg.after}}::text
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) {{arg.job}} returning id`).saying()
	q.insertChanges = sql(`insert into {{schema}}.xxl_job_change (job_id, version, at, actor, client, request_id, verb, app_name, after, definition)
	select c.id, 1, {{now}}, {{arg.actor}}::text, {{arg.client}}::text, {{arg.request_id}}::text, 'add', c.app, c.after, c.definition
	from unnest({{arg.jobs}}::int[], {{arg.apps}}::text[], {{arg.afters}}::text[], {{arg.definitions}}::text[]) c(id, app, after, definition)`).saying()
	q.noteStops = sql(`insert into {{schema}}.xxl_job_change (job_id, version, at, actor, verb, app_name, before, after, definition)
	select i.id, i.version, {{now}}, '` + store.Scheduler + `', 'stop', i.app_name, {{arg.before}}::text, c.after, c.definition
	from unnest({{arg.jobs}}::int[], {{arg.afters}}::text[], {{arg.definitions}}::text[]) c(id, after, definition)
	join {{schema}}.xxl_job_info i on i.id = c.id order by i.id`).saying()
	q.dropChanges = sql(`delete from {{schema}}.xxl_job_change d where d.id = any(array(select c.id from {{schema}}.xxl_job_change c
	where c.at < $1::timestamptz order by c.at limit $2)) returning 1`)
}
