package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob"
)

// jobColumns are what an edit changes, in the order in which jobRow reads it.
var jobColumns = columns[xxljob.Job]{
	{"id", "int", func(j *xxljob.Job) any { return j.ID }},
	{"shard", "smallint", func(j *xxljob.Job) any { return j.Shard }},
	{"version", "bigint", func(j *xxljob.Job) any { return j.Version }},
	{"app_name", "text", func(j *xxljob.Job) any { return j.App }},
	{"job_key", "text", func(j *xxljob.Job) any { return nonempty(j.Key) }},
	{"job_desc", "text", func(j *xxljob.Job) any { return j.Name }},
	{"author", "text", func(j *xxljob.Job) any { return j.Author }},
	{"alarm_email", "text", func(j *xxljob.Job) any { return j.AlarmEmail }},
	{"schedule_type", "text", func(j *xxljob.Job) any { return string(j.Schedule.Type) }},
	{"schedule_conf", "text", func(j *xxljob.Job) any { return j.Schedule.Conf }},
	{"schedule_zone", "text", func(j *xxljob.Job) any { return j.Schedule.Zone }},
	{"schedule_dst", "text", func(j *xxljob.Job) any { return string(j.Schedule.DST) }},
	{"misfire_strategy", "text", func(j *xxljob.Job) any { return string(j.Misfire) }},
	{"catch_up", "text", func(j *xxljob.Job) any { return string(j.CatchUp) }},
	{"executor_route_strategy", "text", func(j *xxljob.Job) any { return j.Route }},
	{"executor_handler", "text", func(j *xxljob.Job) any { return j.Handler }},
	{"executor_param", "text", func(j *xxljob.Job) any { return j.Param }},
	{"executor_block_strategy", "text", func(j *xxljob.Job) any { return j.Block }},
	{"executor_timeout", "bigint", func(j *xxljob.Job) any { return int64(j.Timeout / time.Second) }},
	{"executor_fail_retry_count", "int", func(j *xxljob.Job) any { return j.Retries }},
	{"glue_type", "text", func(j *xxljob.Job) any { return j.GlueType }},
	{"glue_source", "text", func(j *xxljob.Job) any { return j.GlueSource }},
	{"glue_remark", "text", func(j *xxljob.Job) any { return j.GlueRemark }},
	{"glue_updatetime", "timestamptz", func(j *xxljob.Job) any { return nullTime(j.GlueUpdated) }},
	{"child_jobid", "text", func(j *xxljob.Job) any { return joinIDs(j.Children) }},
	{"trigger_status", "smallint", func(j *xxljob.Job) any { return status(j) }},
	{"stop_reason", "text", func(j *xxljob.Job) any { return j.StopReason }},
	{"ensured", "text", func(j *xxljob.Job) any { return j.Ensured }},
	{"add_time", "timestamptz", func(j *xxljob.Job) any { return j.Added }},
	{"update_time", "timestamptz", func(j *xxljob.Job) any { return j.Updated }},
}

// nextColumns are when a job is next due, and what that goes by.
var nextColumns = columns[xxljob.Job]{
	{"trigger_next_time", "bigint", func(j *xxljob.Job) any { return milli(j.Next) }},
	{"trigger_last_time", "bigint", func(j *xxljob.Job) any { return milli(j.Last) }},
	{"wait_run", "bigint", func(j *xxljob.Job) any { return j.WaitRun }},
	{"version", "bigint", func(j *xxljob.Job) any { return j.Version }},
	{"delay", "bigint", func(j *xxljob.Job) any { return delayOf(j.Schedule) }},
	{"job_id", "int", func(j *xxljob.Job) any { return j.ID }},
	{"shard", "smallint", func(j *xxljob.Job) any { return j.Shard }},
	{"trigger_status", "smallint", func(j *xxljob.Job) any { return status(j) }},
	{"manual", "boolean", func(j *xxljob.Job) any { return j.Schedule.IsManual() }},
	{"app_name", "text", func(j *xxljob.Job) any { return j.App }},
}

// dueColumns are what a claim changes, behind the alias n. definitionColumns are the
// definition, behind i.
const dueColumns = `n.trigger_next_time, n.trigger_last_time, n.wait_run`

var definitionColumns = jobColumns.names("i.")

// jobRow is a job as it is read.
type jobRow struct {
	job                  xxljob.Job
	key                  pgtype.Text
	kind, misfire, catch string
	dst, children        string
	timeout              int64
	status               int16
	glue, added, updated pgtype.Timestamptz
	next, last           int64
}

func (r *jobRow) definition() []any {
	j := &r.job
	return []any{&j.ID, &j.Shard, &j.Version, &j.App, &r.key, &j.Name, &j.Author, &j.AlarmEmail,
		&r.kind, &j.Schedule.Conf, &j.Schedule.Zone, &r.dst, &r.misfire, &r.catch,
		&j.Route, &j.Handler, &j.Param, &j.Block,
		&r.timeout, &j.Retries, &j.GlueType, &j.GlueSource, &j.GlueRemark,
		&r.glue, &r.children, &r.status, &j.StopReason, &j.Ensured, &r.added, &r.updated}
}

func (r *jobRow) due() []any { return []any{&r.next, &r.last, &r.job.WaitRun} }

func (r *jobRow) value() xxljob.Job {
	j := r.job
	j.Key = r.key.String
	j.Schedule.Type, j.Schedule.DST = xxljob.ScheduleType(r.kind), xxljob.DST(r.dst)
	j.Misfire, j.CatchUp = xxljob.Misfire(r.misfire), xxljob.CatchUp(r.catch)
	j.Timeout = time.Duration(r.timeout) * time.Second
	j.Children = parseIDs(r.children)
	j.Stopped = r.status == 0
	j.GlueUpdated, j.Added, j.Updated = stamp(r.glue), stamp(r.added), stamp(r.updated)
	j.Next, j.Last = fromMilli(r.next), fromMilli(r.last)
	return j
}

// readJobs appends each row of definitionColumns and dueColumns to the list.
func readJobs(list *[]xxljob.Job) result {
	return func(rows pgx.Rows) error {
		var row jobRow
		if err := rows.Scan(append(row.definition(), row.due()...)...); err != nil {
			return err
		}
		*list = append(*list, row.value())
		return nil
	}
}

func status(j *xxljob.Job) int {
	if j.Stopped {
		return 0
	}
	return 1
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// joinIDs is XXL-JOB's child_jobid.
func joinIDs(ids []int64) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	return b.String()
}

func parseIDs(list string) (ids []int64) {
	for part := range strings.SplitSeq(list, ",") {
		if id, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// delayOf is the delay of a FixedDelay schedule in milliseconds, else 0.
func delayOf(s xxljob.Schedule) int64 {
	if s.Type != xxljob.ScheduleFixDelay {
		return 0
	}
	d, _ := s.Every() // an invalid one re-arms nothing
	return d.Milliseconds()
}

// AddJob inserts the job. Its first instant is worked out inside the transaction, which
// by then has locked nothing.
func (s *Store) AddJob(ctx context.Context, job xxljob.Job, first xxljob.FirstInstant) (xxljob.Job, error) {
	shards, err := s.shards(ctx)
	if err != nil {
		return xxljob.Job{}, failed(err, "add job %q of %q", job.Key, job.App)
	}
	var refused error // by first
	err = s.inTx(ctx, bounds{name: "add_job"}, func(t *tx) error {
		now, id := time.Time{}, int64(0)
		if err := t.do(ctx, statement{s.sql.newJobID, nil, scanInto(&id, &now)}); err != nil {
			return err
		}
		job = freshJob(job, id, shards, now.UTC())
		if refused = setNext(&job, first); refused != nil {
			return refused
		}
		var added []int64
		err := t.do(ctx, s.insertJob(&job, &added), s.insertNext(&job), s.note(ctx, &job, "add"))
		if err == nil && len(added) == 0 {
			return xxljob.ErrDuplicateKey // and the rest is rolled back
		}
		return err
	})
	if refused != nil {
		return xxljob.Job{}, refused
	}
	if err != nil {
		return xxljob.Job{}, failed(err, "add job %q of %q", job.Key, job.App)
	}
	s.wakeScan(job.Shard, job.Next)
	return job, nil
}

// freshJob sets what is the store's.
func freshJob(job xxljob.Job, id int64, shards int, now time.Time) xxljob.Job {
	job.ID, job.Shard, job.Version = id, shardOf(id, shards), 1
	job.Next, job.Last, job.WaitRun = stored(job.Next), time.Time{}, 0
	job.Added, job.Updated = now, now
	job.Children = append([]int64(nil), job.Children...)
	if job.GlueUpdated = (time.Time{}); job.GlueSource != "" {
		job.GlueUpdated = now
	}
	return job
}

// setNext gives a job that is added its first instant. The function gets a copy.
func setNext(job *xxljob.Job, first xxljob.FirstInstant) error {
	if first == nil {
		return nil
	}
	given := *job
	given.Children = slices.Clone(job.Children)
	at, err := first(given, job.Added)
	job.Next = stored(at)
	return err
}

// insertJob inserts nothing where the key is taken, as it is when replicas ensure their
// jobs side by side: an error of the server's would be in its log, for nothing.
func (s *Store) insertJob(j *xxljob.Job, added *[]int64) statement {
	return statement{s.sql.insertJob, jobColumns.values(j), readIDs(added)}
}

func (s *Store) insertNext(j *xxljob.Job) statement {
	return statement{sql: s.sql.insertNext, args: nextColumns.values(j)}
}

// note is an entry of the audit for the job as it then is.
func (s *Store) note(ctx context.Context, j *xxljob.Job, verb string) statement {
	return statement{sql: s.sql.insertChange, args: []any{j.ID, j.Version, xxljob.Actor(ctx), verb}}
}

// keyTaken turns the database's word for a taken key into ours. An id that is taken
// is another matter: then the sequence has been set back.
func keyTaken(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeUnique && pg.ConstraintName == "xxl_job_info_key" {
		return xxljob.ErrDuplicateKey
	}
	return err
}

// RemoveJob deletes the job and cancels its planned runs.
func (s *Store) RemoveJob(ctx context.Context, id int64) error {
	var runs []xxljob.Run
	err := s.inTx(ctx, bounds{name: "remove_job"}, func(t *tx) error {
		runs = nil
		job, err := s.lockJob(ctx, t, id)
		if err != nil {
			return err
		}
		lo, hi := wideRange()
		return t.do(ctx,
			statement{s.sql.deleteNext, []any{id}, nil},
			statement{s.sql.deleteJob, []any{id}, nil},
			statement{s.sql.deleteNamed, []any{id}, nil},
			statement{s.sql.cancelPlanned, cancelArgs.values(named{"job": id, "reason": "remove", "all": true, "lo": lo, "hi": hi}), readRuns(&runs)},
			s.note(ctx, &job, "remove"))
	})
	if err != nil {
		return failed(err, "remove job %d", id)
	}
	s.wakeEnded(len(runs))
	return nil
}

// lockJob reads the job and keeps it from being claimed, edited or removed until
// the end of the transaction. The row of xxl_job_next is locked first, as
// everybody does.
func (s *Store) lockJob(ctx context.Context, t *tx, id int64) (xxljob.Job, error) {
	var jobs []xxljob.Job
	if noJobID(id) {
		return xxljob.Job{}, xxljob.ErrNotFound
	}
	if err := t.do(ctx, statement{s.sql.lockNext, []any{id}, nil}); err != nil {
		return xxljob.Job{}, err
	}
	if err := t.do(ctx, statement{s.sql.lockJob, []any{id}, readJobs(&jobs)}); err != nil {
		return xxljob.Job{}, err
	}
	if len(jobs) == 0 {
		return xxljob.Job{}, xxljob.ErrNotFound
	}
	return jobs[0], nil
}

// Job returns one job.
func (s *Store) Job(ctx context.Context, id int64) (xxljob.Job, error) {
	if noJobID(id) {
		return xxljob.Job{}, failed(xxljob.ErrNotFound, "job %d", id)
	}
	return oneJob(ctx, s.read, fmt.Sprintf("job %d", id), s.sql.jobByID, id)
}

// JobByKey returns the job with the key.
func (s *Store) JobByKey(ctx context.Context, app, key string) (xxljob.Job, error) {
	return oneJob(ctx, s.readByIndex, fmt.Sprintf("job %q of %q", key, app), s.sql.jobByKey, app, key)
}

func oneJob(ctx context.Context, read func(context.Context, ...statement) error, what, sql string, args ...any) (xxljob.Job, error) {
	var jobs []xxljob.Job
	err := read(ctx, statement{sql, args, readJobs(&jobs)})
	if err == nil && len(jobs) == 0 {
		err = xxljob.ErrNotFound
	}
	if err != nil {
		return xxljob.Job{}, failed(err, "%s", what)
	}
	return jobs[0], nil
}

// Changes returns what was done to the job, newest first.
func (s *Store) Changes(ctx context.Context, jobID int64, limit int) ([]xxljob.Change, error) {
	if noJobID(jobID) {
		return nil, nil
	}
	var list []xxljob.Change
	read := func(rows pgx.Rows) error {
		var c xxljob.Change
		err := rows.Scan(&c.At, &c.JobID, &c.Version, &c.Actor, &c.Verb)
		c.At = c.At.UTC()
		list = append(list, c)
		return err
	}
	if err := s.read(ctx, statement{s.sql.changes, []any{jobID, max(limit, 0)}, read}); err != nil {
		return nil, failed(err, "changes of job %d", jobID)
	}
	return list, nil
}

// scanInto reads the one row of a statement.
func scanInto(dest ...any) result {
	return func(rows pgx.Rows) error { return rows.Scan(dest...) }
}

// failed says what was attempted.
func failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || err == errNoContext {
		return err
	}
	return fmt.Errorf("postgres: "+format+": %w", append(args, err)...)
}

// stored is t as the store keeps times: in UTC, to the millisecond.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// jobQueries are the statements of this file.
type jobQueries struct {
	now, newJobID, insertJob, insertNext, insertChange, changes, deleteJob, deleteNext string
	lockNext, lockJob, jobByID, jobByKey                                               string
}

func (q *jobQueries) write() {
	// The time of the call, and not of the message that it came in.
	q.now = `select date_trunc('milliseconds', clock_timestamp())`
	q.newJobID = `select nextval('{{literal}}.xxl_job_info_id'), {{now}}`
	q.insertJob = `insert into {{schema}}.xxl_job_info (` + jobColumns.names("") + `)
	values (` + jobColumns.marks() + `)
	on conflict (app_name, job_key) do nothing returning id`
	q.insertNext = `insert into {{schema}}.xxl_job_next (` + nextColumns.names("") + `) values (` + nextColumns.marks() + `)`
	q.insertChange = `insert into {{schema}}.xxl_job_change (job_id, version, at, actor, verb) values ($1, $2, {{now}}, $3, $4)`
	q.changes = `select at, job_id, version, actor, verb from {{schema}}.xxl_job_change where job_id = $1::bigint order by id desc limit $2`
	q.deleteJob = `delete from {{schema}}.xxl_job_info where id = $1`
	q.deleteNext = `delete from {{schema}}.xxl_job_next where job_id = $1`
	q.lockNext = `select 1 from {{schema}}.xxl_job_next where job_id = $1 for no key update`
	job := `select ` + definitionColumns + `, ` + dueColumns + ` from {{schema}}.xxl_job_info i
	join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard `
	q.lockJob = job + `where i.id = $1`
	// An id that a host asks for may be larger than any: it finds nothing.
	q.jobByID = job + `where i.id = $1::bigint`
	q.jobByKey = job + `where i.app_name = $1 and i.job_key = $2 and $2 <> ''`
}
