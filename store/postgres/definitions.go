package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

// definitions are jobs as they were read, by version: a definition does not
// change within a version.
type definitions struct {
	mu    sync.Mutex
	jobs  map[int64]store.Job // guarded by mu
	texts map[string]string   // guarded by mu: one of each text that jobs have in common
}

// maxDefinitions bounds them.
const maxDefinitions = 200_000

// fetch reads the definitions that are not known.
func (c *definitions) fetch(ctx context.Context, s *Store, due []dueJob) error {
	c.mu.Lock()
	var missing []int64
	for _, d := range due {
		if job, ok := c.jobs[d.id]; !ok || job.Version != d.version {
			missing = append(missing, d.id)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	var found []store.Job
	if err := s.read(ctx, s.sql.definitions.with(missing).into(readDefinitions(&found))); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil || len(c.jobs)+len(found) > maxDefinitions {
		c.jobs = make(map[int64]store.Job, len(found))
	}
	for _, job := range found {
		c.share(&job)
		c.jobs[job.ID] = job
	}
	return nil
}

// readDefinitions appends each row of definitionColumns to the list.
func readDefinitions(list *[]store.Job) result {
	return func(rows pgx.Rows) error {
		var row jobRow
		if err := rows.Scan(infoColumns.dests(&row)...); err != nil {
			return err
		}
		*list = append(*list, row.value())
		return nil
	}
}

// share makes equal texts of different jobs one: most jobs have most of them in
// common, and a hundred thousand definitions are a lot for the collector to visit.
func (c *definitions) share(job *store.Job) {
	if c.texts == nil || len(c.texts) > maxTexts {
		c.texts = map[string]string{}
	}
	for _, text := range []*string{&job.App, &job.Author, &job.AlarmEmail, (*string)(&job.Schedule.Type), &job.Schedule.Conf,
		&job.Schedule.Zone, (*string)(&job.Misfire), (*string)(&job.CatchUp), &job.Route, &job.Handler, &job.Param, &job.Block,
		&job.GlueType, &job.GlueSource, &job.GlueRemark, &job.AfterZone, (*string)(&job.ChildParam)} {
		if len(*text) > maxText {
			continue
		}
		if same, ok := c.texts[*text]; ok {
			*text = same
		} else {
			c.texts[*text] = *text
		}
	}
}

// Bounds of the texts that are shared.
const (
	maxTexts = 10_000
	maxText  = 256
)

func (c *definitions) get(d dueJob) (store.Job, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	job, ok := c.jobs[d.id]
	return job.Clone(), ok && job.Version == d.version
}

// definitionQueries are the statements of this file.
type definitionQueries struct {
	definitions query
}

func (q *definitionQueries) define(sql template) {
	q.definitions = sql(`select ` + definitionColumns + ` from {{schema}}.xxl_job_info i where i.id = any($1::int[])`)
}
