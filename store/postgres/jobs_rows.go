package postgres

// The columns of a job, as they are written and read.

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// column is a column of a job: its type, what a job has in it, and where it is read into,
// if it is.
type column struct {
	name, kind string
	value      func(*store.Job) any
	dest       func(*jobRow) any
}

// columns are those of a table. All that is written and read of it follows from them.
type columns []column

// infoColumns are those of xxl_job_info, which is what an edit changes.
var infoColumns = columns{
	{"id", "int", func(j *store.Job) any { return j.ID }, func(r *jobRow) any { return &r.job.ID }},
	{"shard", "smallint", func(j *store.Job) any { return j.Shard }, func(r *jobRow) any { return &r.job.Shard }},
	{"version", "bigint", func(j *store.Job) any { return j.Version }, func(r *jobRow) any { return &r.job.Version }},
	{"app_name", "text", func(j *store.Job) any { return j.App }, func(r *jobRow) any { return &r.job.App }},
	{"job_key", "text", func(j *store.Job) any { return nonempty(j.Key) }, func(r *jobRow) any { return &r.key }},
	{"job_desc", "text", func(j *store.Job) any { return j.Name }, func(r *jobRow) any { return &r.job.Name }},
	{"author", "text", func(j *store.Job) any { return j.Author }, func(r *jobRow) any { return &r.job.Author }},
	{"alarm_email", "text", func(j *store.Job) any { return j.AlarmEmail }, func(r *jobRow) any { return &r.job.AlarmEmail }},
	{"schedule_type", "text", func(j *store.Job) any { return string(j.Schedule.Type) }, func(r *jobRow) any { return &r.kind }},
	{"schedule_conf", "text", func(j *store.Job) any { return j.Schedule.Conf }, func(r *jobRow) any { return &r.job.Schedule.Conf }},
	{"schedule_zone", "text", func(j *store.Job) any { return j.Schedule.Zone }, func(r *jobRow) any { return &r.job.Schedule.Zone }},
	{"schedule_dst", "text", func(j *store.Job) any { return string(j.Schedule.DST) }, func(r *jobRow) any { return &r.dst }},
	{"misfire_strategy", "text", func(j *store.Job) any { return string(j.Misfire) }, func(r *jobRow) any { return &r.misfire }},
	{"catch_up", "text", func(j *store.Job) any { return string(j.CatchUp) }, func(r *jobRow) any { return &r.catch }},
	{"executor_route_strategy", "text", func(j *store.Job) any { return j.Route }, func(r *jobRow) any { return &r.job.Route }},
	{"executor_handler", "text", func(j *store.Job) any { return j.Handler }, func(r *jobRow) any { return &r.job.Handler }},
	{"executor_param", "text", func(j *store.Job) any { return j.Param }, func(r *jobRow) any { return &r.job.Param }},
	{"executor_block_strategy", "text", func(j *store.Job) any { return j.Block }, func(r *jobRow) any { return &r.job.Block }},
	{"executor_timeout", "bigint", func(j *store.Job) any { return int64(j.Timeout / time.Second) }, func(r *jobRow) any { return &r.timeout }},
	{"executor_fail_retry_count", "int", func(j *store.Job) any { return j.Retries }, func(r *jobRow) any { return &r.job.Retries }},
	{"glue_type", "text", func(j *store.Job) any { return j.GlueType }, func(r *jobRow) any { return &r.job.GlueType }},
	{"glue_source", "text", func(j *store.Job) any { return j.GlueSource }, func(r *jobRow) any { return &r.job.GlueSource }},
	{"glue_remark", "text", func(j *store.Job) any { return j.GlueRemark }, func(r *jobRow) any { return &r.job.GlueRemark }},
	{"glue_updatetime", "timestamptz", func(j *store.Job) any { return nullTime(j.GlueUpdated) }, func(r *jobRow) any { return &r.glue }},
	{"child_jobid", "text", func(j *store.Job) any { return joinIDs(j.Children) }, func(r *jobRow) any { return &r.children }},
	{"trigger_status", "smallint", func(j *store.Job) any { return status(j) }, func(r *jobRow) any { return &r.status }},
	{"stop_reason", "text", func(j *store.Job) any { return stopReason(j) }, func(r *jobRow) any { return &r.job.StopReason }},
	{"ensured", "text", func(j *store.Job) any { return j.Ensured }, func(r *jobRow) any { return &r.job.Ensured }},
	{"add_time", "timestamptz", func(j *store.Job) any { return j.Added }, func(r *jobRow) any { return &r.added }},
	{"update_time", "timestamptz", func(j *store.Job) any { return j.Updated }, func(r *jobRow) any { return &r.updated }},
	{"not_before", "bigint", func(j *store.Job) any { return milli(j.NotBefore) }, func(r *jobRow) any { return &r.notBefore }},
	{"not_after", "bigint", func(j *store.Job) any { return milli(j.NotAfter) }, func(r *jobRow) any { return &r.notAfter }},
	{"max_runs", "int", func(j *store.Job) any { return j.MaxRuns }, func(r *jobRow) any { return &r.job.MaxRuns }},
	{"max_per_executor", "int", func(j *store.Job) any { return j.MaxPerExecutor }, func(r *jobRow) any { return &r.job.MaxPerExecutor }},
	{"on_lost", "text", func(j *store.Job) any { return string(j.OnLost) }, func(r *jobRow) any { return &r.onLost }},
	{"retry_pause", "bigint", func(j *store.Job) any { return j.RetryBackoff.First.Milliseconds() }, func(r *jobRow) any { return &r.pause }},
	{"retry_pause_max", "bigint", func(j *store.Job) any { return j.RetryBackoff.Max.Milliseconds() }, func(r *jobRow) any { return &r.pauseMax }},
	{"retry_jitter", "smallint", func(j *store.Job) any { return j.RetryBackoff.Jitter }, func(r *jobRow) any { return &r.job.RetryBackoff.Jitter }},
	{"retry_aside", "boolean", func(j *store.Job) any { return j.RetryAside }, func(r *jobRow) any { return &r.job.RetryAside }},
	{"max_reruns", "int", func(j *store.Job) any { return j.MaxReruns }, func(r *jobRow) any { return &r.job.MaxReruns }},
	{"max_snoozes", "int", func(j *store.Job) any { return j.MaxSnoozes }, func(r *jobRow) any { return &r.job.MaxSnoozes }},
	{"child_keys", "text", func(j *store.Job) any { return joinKeys(j.ChildKeys) }, func(r *jobRow) any { return &r.childKeys }},
	{"child_param", "text", func(j *store.Job) any { return string(j.ChildParam) }, func(r *jobRow) any { return &r.childParam }},
	{"after_jobs", "text", func(j *store.Job) any { return joinIDs(j.After) }, func(r *jobRow) any { return &r.after }},
	{"after_keys", "text", func(j *store.Job) any { return joinKeys(j.AfterKeys) }, func(r *jobRow) any { return &r.afterKeys }},
	{"after_window", "bigint", func(j *store.Job) any { return j.AfterWindow.Milliseconds() }, func(r *jobRow) any { return &r.afterWindow }},
	{"after_zone", "text", func(j *store.Job) any { return j.AfterZone }, func(r *jobRow) any { return &r.job.AfterZone }},
	{"after_timeout", "bigint", func(j *store.Job) any { return j.AfterTimeout.Milliseconds() }, func(r *jobRow) any { return &r.afterTimeout }},
	{"late_after", "bigint", func(j *store.Job) any { return j.LateAfter.Milliseconds() }, func(r *jobRow) any { return &r.lateAfter }},
	{"tags", "text", func(j *store.Job) any { return joinKeys(j.Tags) }, func(r *jobRow) any { return &r.tags }},
	{"catch_up_most", "int", func(j *store.Job) any { return j.CatchUpMost }, func(r *jobRow) any { return &r.job.CatchUpMost }},
	{"catch_up_age", "bigint", func(j *store.Job) any { return j.CatchUpAge.Milliseconds() }, func(r *jobRow) any { return &r.catchAge }},
	{"keep_runs", "bigint", func(j *store.Job) any { return j.KeepRuns.Milliseconds() }, func(r *jobRow) any { return &r.keepRuns }},
	{"secret", "boolean", func(j *store.Job) any { return j.Secret }, func(r *jobRow) any { return &r.job.Secret }},
	{"on_no_executor", "text", func(j *store.Job) any { return string(j.OnNoExecutor) }, func(r *jobRow) any { return &r.onNoExecutor }},
}

// nextColumns are those of xxl_job_next. What a claim changes is read; the others are
// copies of what xxl_job_info has.
var nextColumns = columns{
	{"trigger_next_time", "bigint", func(j *store.Job) any { return milli(j.Next) }, func(r *jobRow) any { return &r.next }},
	{"trigger_last_time", "bigint", func(j *store.Job) any { return milli(j.Last) }, func(r *jobRow) any { return &r.last }},
	{"wait_run", "bigint", func(j *store.Job) any { return j.WaitRun }, func(r *jobRow) any { return &r.job.WaitRun }},
	{"run_count", "bigint", func(j *store.Job) any { return j.Runs }, func(r *jobRow) any { return &r.job.Runs }},
	{"version", "bigint", func(j *store.Job) any { return j.Version }, nil},
	{"delay", "bigint", func(j *store.Job) any { return delayOf(j.Schedule) }, nil},
	{"job_id", "int", func(j *store.Job) any { return j.ID }, nil},
	{"shard", "smallint", func(j *store.Job) any { return j.Shard }, nil},
	{"trigger_status", "smallint", func(j *store.Job) any { return status(j) }, nil},
	{"manual", "boolean", func(j *store.Job) any { return j.Schedule.IsManual() }, nil},
	{"app_name", "text", func(j *store.Job) any { return j.App }, nil},
	{"not_after", "bigint", func(j *store.Job) any { return milli(j.NotAfter) }, nil},
	{"max_runs", "int", func(j *store.Job) any { return j.MaxRuns }, nil},
}

// definitionColumns are what a jobRow reads of a definition, which has the alias i;
// jobColumns what it reads of the whole job, with the alias n for what a claim changes.
var (
	definitionColumns = infoColumns.readBehind("i")
	jobColumns        = definitionColumns + ", " + nextColumns.readBehind("n")
)

// linkColumns are what a definition says of other jobs: no text of it that may be long.
var linkColumns = infoColumns.named("id", "app_name", "job_key", "child_jobid", "child_keys", "child_param", "after_jobs", "after_keys")

// jobsListed are jobColumns for a list of the context: see listedColumns.
func (q *listing) jobsListed(ctx context.Context) string {
	most := textsOf(ctx)
	if most == allTexts {
		return jobColumns
	}
	param := "''"
	if most > 0 {
		param = "pg_catalog.left(i.executor_param, " + q.arg(most) + "::int)"
	}
	short := []string{"i.executor_param", param, "i.glue_source", "''"}
	if store.ShortLinks(ctx) {
		short = append(short, "i.child_keys", firstKey("i.child_keys"), "i.after_keys", firstKey("i.after_keys"))
	}
	return strings.NewReplacer(short...).Replace(jobColumns)
}

// firstKey is a list of joinKeys with the first of them alone: in such a list quotes on both sides of a
// comma stand between two, and nowhere else, since within one they are escaped.
func firstKey(column string) string {
	return `pg_catalog.regexp_replace(` + column + `, '",".*', '"]')`
}

// named are those with the names.
func (c columns) named(names ...string) (some columns) {
	for _, col := range c {
		if slices.Contains(names, col.name) {
			some = append(some, col)
		}
	}
	return some
}

// readInto appends a job with what each row has of it to the list.
func (c columns) readInto(list *[]store.Job) result {
	return func(rows pgx.Rows) error {
		var row jobRow
		if err := rows.Scan(c.dests(&row)...); err != nil {
			return err
		}
		*list = append(*list, row.value())
		return nil
	}
}

// list joins what f makes of each column; nothing is left out.
func (c columns) list(f func(column) string) string {
	var list []string
	for _, col := range c {
		if text := f(col); text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}

func (c columns) names() string { return c.list(func(col column) string { return col.name }) }

// args are the arguments of a row of the table; unnested is the same for many rows.
func (c columns) args() string { return c.list(func(col column) string { return argument(col.name) }) }

func (c columns) unnested() string {
	return "unnest(" + c.list(func(col column) string { return argument(col.name) + "::" + col.kind + "[]" }) + ")"
}

// assigned is the set clause of an update, without the columns by which it finds its row.
func (c columns) assigned(keys ...string) string {
	return c.list(func(col column) string {
		if slices.Contains(keys, col.name) {
			return ""
		}
		return col.name + " = " + argument(col.name)
	})
}

// readBehind are the columns that are read, behind the alias of their table.
func (c columns) readBehind(alias string) string {
	return c.list(func(col column) string {
		if col.dest == nil {
			return ""
		}
		return alias + "." + col.name
	})
}

// argument is the hole for an argument (see template).
func argument(name string) string { return "{{arg." + name + "}}" }

// of are the arguments for one job, and ofAll for many, as unnest takes them.
func (c columns) of(j *store.Job) named {
	args := make(named, len(c))
	for i, col := range c {
		args[i].name, args[i].value = col.name, col.value(j)
	}
	return args
}

func (c columns) ofAll(jobs []store.Job) named {
	args := make(named, len(c))
	for i, col := range c {
		args[i].name = col.name
		for k := range jobs {
			args[i].value = appendTo(args[i].value, col.value(&jobs[k]), len(jobs))
		}
	}
	return args
}

// appendTo adds a value to a list of its type, which is made for n of them. Integers of
// any size become a list of bigint.
func appendTo(list, v any, n int) any {
	switch v := v.(type) {
	case string:
		return appended(list, v, n)
	case *string:
		return appended(list, v, n)
	case int:
		return appended(list, int64(v), n)
	case int64:
		return appended(list, v, n)
	case bool:
		return appended(list, v, n)
	case time.Time:
		return appended(list, v, n)
	case *time.Time:
		return appended(list, v, n)
	}
	panic("postgres: no list is made of such values")
}

func appended[T any](list any, v T, n int) []T {
	have, _ := list.([]T)
	if have == nil {
		have = make([]T, 0, n)
	}
	return append(have, v)
}

// dests are where a row reads the columns into that are read.
func (c columns) dests(r *jobRow) []any {
	list := make([]any, 0, len(c))
	for _, col := range c {
		if col.dest != nil {
			list = append(list, col.dest(r))
		}
	}
	return list
}

// jobRow is a job as it is read.
type jobRow struct {
	job                  store.Job
	key                  pgtype.Text
	kind, misfire, catch string
	onLost, onNoExecutor string
	pause, pauseMax      int64
	dst, children        string
	childKeys, after     string
	afterKeys, tags      string
	childParam           string
	afterWindow          int64
	afterTimeout         int64
	lateAfter, keepRuns  int64
	catchAge             int64
	timeout              int64
	status               int16
	glue, added, updated pgtype.Timestamptz
	next, last           int64
	notBefore, notAfter  int64
}

func (r *jobRow) value() store.Job {
	j := r.job
	j.Key = r.key.String
	j.Schedule.Type, j.Schedule.DST = schedule.Type(r.kind), schedule.DST(r.dst)
	j.OnLost, j.OnNoExecutor = store.OnLost(r.onLost), store.OnNoExecutor(r.onNoExecutor)
	j.RetryBackoff.First = time.Duration(r.pause) * time.Millisecond
	j.RetryBackoff.Max = time.Duration(r.pauseMax) * time.Millisecond
	j.Misfire, j.CatchUp = store.Misfire(r.misfire), store.CatchUp(r.catch)
	j.Timeout = time.Duration(r.timeout) * time.Second
	j.Children, j.ChildKeys = parseIDs(r.children), parseKeys(r.childKeys)
	j.After, j.AfterKeys = parseIDs(r.after), parseKeys(r.afterKeys)
	j.Tags = parseKeys(r.tags)
	j.ChildParam = store.ChildParam(r.childParam)
	j.AfterWindow, j.AfterTimeout = time.Duration(r.afterWindow)*time.Millisecond, time.Duration(r.afterTimeout)*time.Millisecond
	j.KeepRuns = time.Duration(r.keepRuns) * time.Millisecond
	j.CatchUpAge = time.Duration(r.catchAge) * time.Millisecond
	j.LateAfter = time.Duration(r.lateAfter) * time.Millisecond
	j.Stopped = r.status == statusStopped && j.StopReason != reasonManual
	if !j.Stopped {
		j.StopReason = ""
	}
	j.GlueUpdated, j.Added, j.Updated = stamp(r.glue), stamp(r.added), stamp(r.updated)
	j.Next, j.Last = fromMilli(r.next), fromMilli(r.last)
	j.NotBefore, j.NotAfter = fromMilli(r.notBefore), fromMilli(r.notAfter)
	return j
}

// readJobs appends each row of jobColumns to the list.
func readJobs(list *[]store.Job) result {
	return func(rows pgx.Rows) error {
		var row jobRow
		if err := rows.Scan(append(infoColumns.dests(&row), nextColumns.dests(&row)...)...); err != nil {
			return err
		}
		*list = append(*list, row.value())
		return nil
	}
}

// reasonManual is the stop_reason of a job that has no schedule and is not stopped. Its
// trigger_status is that of a stopped job, as XXL-JOB has it.
const reasonManual = "manual"

func status(j *store.Job) int {
	if j.Stopped || j.Schedule.IsManual() {
		return statusStopped
	}
	return statusEnabled
}

func stopReason(j *store.Job) string {
	if !j.Stopped && j.Schedule.IsManual() {
		return reasonManual
	}
	return j.StopReason
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

// parseIDs reads it; what cannot be the id of a job is left out.
func parseIDs(list string) (ids []int64) {
	for part := range strings.SplitSeq(list, ",") {
		if id, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// delayOf is the delay of a FixedDelay schedule in milliseconds, else 0.
func delayOf(s schedule.Schedule) int64 {
	if s.Type != schedule.TypeFixDelay {
		return 0
	}
	d, _ := s.Every() // an invalid one re-arms nothing
	return d.Milliseconds()
}
