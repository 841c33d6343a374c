package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// AddJobs inserts jobs that a list names, in few statements. The head of the app is
// locked, so that two calls with the same keys do not wait for each other's rows.
func (s *Store) AddJobs(ctx context.Context, list store.ListID, jobs []store.Job, first store.FirstInstant) ([]store.Job, error) {
	shards, err := s.shards(ctx)
	if err != nil {
		return nil, failed(err, "add jobs of %q", list.App)
	}
	a := adding{store: s}
	err = s.inListTx(ctx, "add_jobs", func(t *tx) error {
		a = adding{store: s}
		if err := s.holdHead(ctx, t, s.sql.lockHead, list); err != nil {
			return err
		}
		if len(jobs) == 0 {
			return nil
		}
		if err := a.prepare(ctx, t, jobs, shards, first); err != nil {
			return err
		}
		return a.insert(ctx, t, list.Generation)
	})
	if a.refused != nil {
		return nil, a.refused
	}
	if err != nil {
		return nil, failed(err, "add %d jobs of %q", len(jobs), list.App)
	}
	soonest := map[int]time.Time{}
	for _, j := range a.jobs {
		if at := soonest[j.Shard]; !j.Next.IsZero() && (at.IsZero() || j.Next.Before(at)) {
			soonest[j.Shard] = j.Next
		}
	}
	for shard, at := range soonest {
		s.wakeScan(shard, at)
	}
	return a.jobs, nil
}

// adding is a batch of jobs that is being added.
type adding struct {
	store   *Store
	jobs    []store.Job
	refused error // by the caller's function
}

// prepare leaves out jobs whose keys are taken, and fills in what is the store's.
func (a *adding) prepare(ctx context.Context, t *tx, jobs []store.Job, shards int, first store.FirstInstant) error {
	s := a.store
	keys := make([]string, len(jobs))
	for i := range jobs {
		keys[i] = jobs[i].Key
	}
	taken := map[string]bool{}
	var ids []int64
	now := time.Time{}
	err := t.do(ctx, s.sql.takenKeys.by(named{{"app", jobs[0].App}, {"keys", keys}}).into(func(rows pgx.Rows) error {
		var key string
		err := rows.Scan(&key)
		taken[key] = true
		return err
	}), s.sql.newJobIDs.with(len(jobs)).into(func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}), s.sql.now.with().into(scanInto(&now)))
	if err != nil {
		return err
	}
	for i, job := range jobs {
		if taken[job.Key] {
			continue
		}
		taken[job.Key] = true
		job = freshJob(job, ids[i], shards, now.UTC())
		if a.refused = setNext(&job, first); a.refused != nil {
			return a.refused
		}
		a.jobs = append(a.jobs, job)
	}
	return nil
}

// insert inserts the jobs. One whose key a call without a list has taken meanwhile is
// left out.
func (a *adding) insert(ctx context.Context, t *tx, generation int64) error {
	s := a.store
	if len(a.jobs) == 0 {
		return nil
	}
	inserted := make(map[int64]bool, len(a.jobs))
	err := t.do(ctx, s.sql.insertJobs.by(infoColumns.ofAll(a.jobs)).into(func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		inserted[id] = true
		return err
	}))
	if err != nil {
		return err
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(j store.Job) bool { return !inserted[j.ID] })
	if len(a.jobs) == 0 {
		return nil
	}
	ids := make([]int64, len(a.jobs))
	for i := range a.jobs {
		ids[i] = a.jobs[i].ID
	}
	write := []statement{s.sql.insertNexts.by(nextColumns.ofAll(a.jobs)), s.noteAdded(ctx, a.jobs), s.sql.insertNamed.with(ids, generation)}
	if naming := linked(a.jobs); len(naming) > 0 {
		write = append(write, s.link(naming))
	}
	return t.do(ctx, write...)
}

// addQueries are the statements of this file.
type addQueries struct {
	takenKeys, newJobIDs, insertJobs, insertNexts, insertNamed query
}

func (q *addQueries) define(sql template) {
	q.takenKeys = sql(`select i.job_key from ` + byKeys("{{arg.app}}", "{{arg.keys}}"))
	q.newJobIDs = sql(`select nextval('{{literal}}.xxl_job_info_id') from generate_series(1, $1::int)`)
	q.insertJobs = sql(`insert into {{schema}}.xxl_job_info (` + infoColumns.names() + `)
	select * from ` + infoColumns.unnested() + ` on conflict (app_name, job_key) do nothing returning id`)
	q.insertNexts = sql(`insert into {{schema}}.xxl_job_next (` + nextColumns.names() + `)
	select * from ` + nextColumns.unnested())
	q.insertNamed = sql(`insert into {{schema}}.xxl_job_named (job_id, generation) select c.id, $2::bigint from unnest($1::int[]) c(id)`)
}
