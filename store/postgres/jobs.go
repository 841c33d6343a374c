package postgres

// Jobs: how one is added, removed and read.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xxljob/xxljob/store"
)

// AddJob inserts the job. Its first instant is worked out inside the transaction, which
// by then has locked nothing.
func (s *Store) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (store.Job, error) {
	if err := store.CheckTexts("job", job); err != nil {
		return store.Job{}, failed(err, "add job")
	}
	shards, err := s.shards(ctx)
	if err != nil {
		return store.Job{}, failed(err, "add job %q of %q", job.Key, job.App)
	}
	var refused error // by first
	err = s.inTx(ctx, bounds{name: "add_job"}, func(t *tx) error {
		now, id := time.Time{}, int64(0)
		if err := t.do(ctx, s.sql.newJobID.with().into(scanInto(&id, &now))); err != nil {
			return err
		}
		job = freshJob(job, id, shards, now.UTC())
		if refused = setNext(&job, first); refused != nil {
			return refused
		}
		var added []int64
		insert := []statement{s.insertJob(&job, &added), s.insertNext(&job), s.noteJob(ctx, "add", nil, &job)}
		if isJoin(&job) {
			insert = append(insert, s.link([]store.Job{job}))
		}
		err := t.do(ctx, insert...)
		if err == nil && len(added) == 0 {
			return store.ErrDuplicateKey // and the rest is rolled back
		}
		return err
	})
	if refused != nil {
		return store.Job{}, refused
	}
	if err != nil {
		return store.Job{}, failed(err, "add job %q of %q", job.Key, job.App)
	}
	s.wakeScan(job.Shard, job.Next)
	return job, nil
}

// freshJob sets what is the store's.
func freshJob(job store.Job, id int64, shards int, now time.Time) store.Job {
	job.ID, job.Shard, job.Version = id, shardOf(id, shards), 1
	job.Next, job.Last, job.WaitRun, job.Runs = stored(job.Next), time.Time{}, 0, 0
	job.NotBefore, job.NotAfter = stored(job.NotBefore), stored(job.NotAfter)
	job.Added, job.Updated = now, now
	job = job.Clone()
	if job.GlueUpdated = (time.Time{}); job.GlueSource != "" {
		job.GlueUpdated = now
	}
	return job
}

// setNext gives a job that is added its first instant. The function gets a copy.
func setNext(job *store.Job, first store.FirstInstant) error {
	if first == nil {
		return nil
	}
	given := job.Clone()
	at, err := first(given, job.Added)
	job.Next = stored(at)
	return err
}

// insertJob inserts nothing where the key is taken, as it is when replicas ensure their
// jobs side by side: an error of the server's would be in its log, for nothing.
func (s *Store) insertJob(j *store.Job, added *[]int64) statement {
	return s.sql.insertJob.by(infoColumns.of(j)).into(readIDs(added))
}

func (s *Store) insertNext(j *store.Job) statement {
	return s.sql.insertNext.by(nextColumns.of(j))
}

// keyTaken turns the database's word for a taken key into ours. An id that is taken
// is another matter: then the sequence has been set back.
func keyTaken(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeUnique && pg.ConstraintName == "xxl_job_info_key" {
		return store.ErrDuplicateKey
	}
	return err
}

// RemoveJob deletes the job and cancels its planned runs.
func (s *Store) RemoveJob(ctx context.Context, id int64) error {
	if noJobID(id) {
		return failed(store.ErrNotFound, "remove job %d", id)
	}
	many, err := s.cancelManyAhead(ctx, id, "remove")
	if err != nil {
		return failed(err, "remove job %d", id)
	}
	var runs []store.Run
	entries := 0
	err = s.inTx(ctx, bounds{name: "remove_job"}, func(t *tx) error {
		runs, entries = nil, 0
		job, err := s.lockJob(ctx, t, id)
		if err != nil {
			return err
		}
		lo, hi := wideRange()
		err = t.do(ctx,
			s.sql.deleteNext.with(id),
			s.sql.deleteJob.with(id),
			s.sql.deleteNamed.with(id),
			s.link([]store.Job{{ID: id}}),
			s.sql.forgetTold.with(id),
			s.sql.cancelPlanned.by(named{
				{"job", id}, {"reason", "remove"}, {"all", true}, {"retries", true}, {"lo", lo}, {"hi", hi},
			}).into(readRuns(&runs)),
			s.cancelAhead(t, id, "remove", &entries),
			s.noteJob(ctx, "remove", &job, nil))
		t.count(runs...)
		return err
	})
	if err != nil {
		return failed(err, "remove job %d", id)
	}
	s.wakeEnded(len(runs) + entries + many)
	return nil
}

// lockJob reads the job and keeps it from being claimed, edited or removed until
// the end of the transaction. The row of xxl_job_next is locked first, as
// everybody does, and against those too who only keep the job as it is (keepJobs).
func (s *Store) lockJob(ctx context.Context, t *tx, id int64) (store.Job, error) {
	var jobs []store.Job
	if noJobID(id) {
		return store.Job{}, store.ErrNotFound
	}
	if err := t.do(ctx, s.sql.lockWhole.with(id)); err != nil {
		return store.Job{}, err
	}
	if err := t.do(ctx, s.sql.lockJob.with(id).into(readJobs(&jobs))); err != nil {
		return store.Job{}, err
	}
	if len(jobs) == 0 {
		return store.Job{}, store.ErrNotFound
	}
	return jobs[0], nil
}

// Job returns one job.
func (s *Store) Job(ctx context.Context, id int64) (store.Job, error) {
	if noJobID(id) {
		return store.Job{}, failed(store.ErrNotFound, "job %d", id)
	}
	return oneJob(ctx, s.read, fmt.Sprintf("job %d", id), s.sql.jobByID.with(id))
}

// JobByKey returns the job with the key.
func (s *Store) JobByKey(ctx context.Context, app, key string) (store.Job, error) {
	what := fmt.Sprintf("job %q of %q", key, app)
	if !store.CanBeStored(app, key) {
		return store.Job{}, failed(store.ErrNotFound, "%s", what)
	}
	return oneJob(ctx, s.readByIndex, what, s.sql.jobByKey.with(app, key))
}

func oneJob(ctx context.Context, read func(context.Context, ...statement) error, what string, st statement) (store.Job, error) {
	var jobs []store.Job
	err := read(ctx, st.into(readJobs(&jobs)))
	if err == nil && len(jobs) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Job{}, failed(err, "%s", what)
	}
	return jobs[0], nil
}

// scanInto reads the one row of a statement.
func scanInto(dest ...any) result {
	return func(rows pgx.Rows) error { return rows.Scan(dest...) }
}

// failed says what was attempted, unless the caller's context has ended.
func failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	var unanswered *unanswered
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if ended && !errors.As(err, &unanswered) || err == errNoContext {
		return err
	}
	if codeOf(err) == codeUntranslatable {
		err = fmt.Errorf("the encoding of the database lacks a character of a name, a key, a parameter or another text that is kept as it is given; a database made with encoding 'UTF8' has all: %w", err)
	}
	if !ended && refuses(codeOf(err)) && !noPartition(err) {
		err = refusal{err}
	}
	return fmt.Errorf("postgres: "+format+": %w", append(args, err)...)
}

// stored is t as the store keeps times: in UTC, to the millisecond.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// jobQueries are the statements of this file.
type jobQueries struct {
	newJobID, insertJob, insertNext, deleteJob, deleteNext, lockNext,
	lockWhole, lockJob, jobByID, jobByKey query
}

func (q *jobQueries) define(sql template) {
	q.newJobID = sql(`select nextval('{{literal}}.xxl_job_info_id'), {{now}}`)
	q.insertJob = sql(`insert into {{schema}}.xxl_job_info (` + infoColumns.names() + `)
	values (` + infoColumns.args() + `)
	on conflict (app_name, job_key) do nothing returning id`)
	q.insertNext = sql(`insert into {{schema}}.xxl_job_next (` + nextColumns.names() + `)
	values (` + nextColumns.args() + `)`)
	q.deleteJob = sql(`delete from {{schema}}.xxl_job_info where id = $1`)
	q.deleteNext = sql(`delete from {{schema}}.xxl_job_next where job_id = $1`)
	lock := `select 1 from {{schema}}.xxl_job_next where job_id = $1 for `
	q.lockNext, q.lockWhole = sql(lock+`no key update`), sql(lock+`update`)
	job := `select ` + jobColumns + ` from {{schema}}.xxl_job_info i
	join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard `
	q.lockJob = sql(job + `where i.id = $1`)
	// An id that a host asks for may be larger than any: it finds nothing.
	q.jobByID = sql(job + `where i.id = $1::bigint`)
	q.jobByKey = sql(job + `where i.app_name = $1 and i.job_key = $2 and $2 <> ''`)
}
