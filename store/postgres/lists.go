package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/xxljob/xxljob"
)

// defaultLimit is the page size where none is given.
const defaultLimit = 100

// query is a statement in the making.
type query struct {
	where []string
	args  []any
}

// arg adds an argument and returns its name.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *query) add(condition string) { q.where = append(q.where, condition) }

func (q *query) conditions() string {
	if len(q.where) == 0 {
		return "true"
	}
	return strings.Join(q.where, " and ")
}

// Jobs lists jobs in order of ID.
func (s *Store) Jobs(ctx context.Context, f xxljob.JobFilter) ([]xxljob.Job, error) {
	var q query
	for _, c := range []struct{ column, value string }{
		{"i.app_name", f.App}, {"i.job_key", f.Key}, {"i.executor_handler", f.Handler}, {"i.author", f.Author},
	} {
		if c.value != "" {
			q.add(c.column + " = " + q.arg(c.value))
		}
	}
	if f.Name != "" {
		q.add("position(lower(" + q.arg(f.Name) + ") in lower(i.job_desc)) > 0")
	}
	if f.Enabled != f.Stopped {
		q.add("i.trigger_status = " + map[bool]string{true: "1", false: "0"}[f.Enabled])
	}
	if f.IDs != nil {
		q.add("i.id = any(" + q.arg(f.IDs) + "::int[])")
	}
	if f.After > 0 {
		q.add("i.id > " + q.arg(f.After))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	sql := fmt.Sprintf(`%sselect %s, %s from %s.xxl_job_info i join %[4]s.xxl_job_next n on n.job_id = i.id and n.shard = i.shard
	where %[5]s order by i.id limit %[6]s`, mark, definitionColumns, dueColumns, s.schema, q.conditions(), q.arg(limit))
	var jobs []xxljob.Job
	err := s.read(ctx, statement{sql, q.args, readJobs(&jobs)})
	return jobs, failed(err, "list jobs")
}

// Run returns one run.
func (s *Store) Run(ctx context.Context, id int64) (xxljob.Run, error) {
	var runs []xxljob.Run
	err := s.read(ctx, statement{s.sql.runByID, []any{id}, readRuns(&runs)})
	if err == nil && len(runs) == 0 {
		err = xxljob.ErrNotFound
	}
	if err != nil {
		return xxljob.Run{}, failed(err, "run %d", id)
	}
	return runs[0], nil
}

// RunsByID returns those of the runs that exist, each once.
func (s *Store) RunsByID(ctx context.Context, ids []int64) ([]xxljob.Run, error) {
	if len(ids) == 0 {
		return nil, ctx.Err()
	}
	lo, hi := rangeOf(ids)
	var runs []xxljob.Run
	err := s.read(ctx, statement{s.sql.runsByID, []any{ids, lo, hi}, readRuns(&runs)})
	return runs, failed(err, "read %d runs", len(ids))
}

// isBad reports whether runs in the state are in the index of those that somebody
// may have to look at.
func isBad(s xxljob.State) bool { return s >= xxljob.StateFailed && s <= xxljob.StateDiscarded }

// Runs lists runs, newest first. Runs of one job are read from three indexes, by
// what the runs are at: no index holds all of them.
func (s *Store) Runs(ctx context.Context, f xxljob.RunFilter) ([]xxljob.Run, error) {
	var q query
	s.boundRuns(ctx, &q, &f)
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	n := q.arg(limit)
	page := func(extra string) string {
		return fmt.Sprintf("(select %s from %s.xxl_job_log l where %s%s order by l.id desc limit %s)", runColumns, s.schema, q.conditions(), extra, n)
	}
	sql := page("")
	if f.JobID != 0 && f.TriggerID == 0 {
		shard := fmt.Sprintf(" and l.shard = any(array(select i.shard from %s.xxl_job_lock i))", s.schema)
		sql = fmt.Sprintf("select * from (%s union all %s union all %s) l order by l.id desc limit %s",
			page(" and l.state = 0"), page(" and l.state in (1, 2)"+shard), page(" and l.state > 2"), n)
	}
	var runs []xxljob.Run
	err := s.read(ctx, statement{mark + sql, q.args, readRuns(&runs)})
	return runs, failed(err, "list runs")
}

// boundRuns turns the filter into conditions. Ids grow with the time of planning,
// so bounds on them leave out partitions.
func (s *Store) boundRuns(ctx context.Context, q *query, f *xxljob.RunFilter) {
	if f.App != "" {
		q.add("l.app_name = " + q.arg(f.App))
	}
	if f.JobID != 0 {
		q.add("l.job_id = " + q.arg(f.JobID))
	}
	if f.TriggerID != 0 {
		id := q.arg(f.TriggerID)
		q.add("l.id >= " + id + " and (l.id = " + id + " or l.trigger_id = " + id + ") and coalesce(l.trigger_id, l.id) = " + id)
	}
	if len(f.States) > 0 {
		states := make([]int16, len(f.States))
		bad := true
		for i, st := range f.States {
			states[i] = int16(st)
			bad = bad && isBad(st)
		}
		q.add("l.state = any(" + q.arg(states) + "::smallint[])")
		if bad {
			q.add("l.state in (4, 5, 6, 7, 8, 9)")
		}
	}
	if !f.From.IsZero() {
		q.add("l.scheduled_time >= " + q.arg(milli(stored(f.From))))
	}
	if !f.To.IsZero() {
		q.add("l.scheduled_time < " + q.arg(milli(stored(f.To))))
	}
	if f.Before > 0 {
		q.add("l.id < " + q.arg(f.Before))
	}
}
