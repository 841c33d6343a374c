package postgres

import (
	"slices"
	"strings"
	"time"

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
	{"keep_runs", "bigint", func(j *store.Job) any { return j.KeepRuns.Milliseconds() }, func(r *jobRow) any { return &r.keepRuns }},
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
