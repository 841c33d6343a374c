package postgres

// The record of changes, as it is written: entries go into the transaction of what they are
// about. What reads them is in reads_changes.go.

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

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
	if err := t.do(ctx, s.sql.definitions.with([]int64{job}).into(readDefinitions(&found))); err != nil || len(found) == 0 {
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
