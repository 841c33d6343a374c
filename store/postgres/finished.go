package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// Jobs that the rules stop for being finished: why, and what is written of it.

// finished is a job that was stopped. Whether it is notAfter, in milliseconds, that has
// ended it is known once its schedule was read.
type finished struct {
	id       int64
	reason   string
	notAfter int64
	told     bool // to the caller: see mark
}

func (a *arming) readFinished(rows pgx.Rows) error {
	f := finished{reason: store.StopFinished}
	usedUp := false
	if err := rows.Scan(&f.id, &usedUp, &f.notAfter); err != nil {
		return err
	}
	if usedUp {
		f.reason, f.notAfter = store.StopFinished+store.ByMaxRuns, 0
	}
	a.finished = append(a.finished, f)
	return nil
}

// noteFinished completes the reasons and writes them beside the definitions, with the time
// of the stops, and these into the audit.
func (s *Store) noteFinished(ctx context.Context, t *tx, list []finished, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	if err := s.findBounded(ctx, t, list); err != nil {
		return err
	}
	all, reasons, by := make([]int64, len(list)), make([]string, len(list)), map[string][]int64{}
	for i, f := range list {
		all[i], reasons[i] = f.id, f.reason
		by[f.reason] = append(by[f.reason], f.id)
	}
	var write []statement
	for reason, ids := range by {
		write = append(write, s.sql.finishJob.by(named{{"jobs", ids}, {"reason", reason}, {"now", now}}))
	}
	return t.do(ctx, append(write, s.noteStops(all, reasons, make([]*string, len(list))))...)
}

// findBounded finds the jobs that NotAfter has ended: their schedules go on behind it.
func (s *Store) findBounded(ctx context.Context, t *tx, list []finished) error {
	var bounded []int64
	for _, f := range list {
		if f.notAfter != 0 {
			bounded = append(bounded, f.id)
		}
	}
	if len(bounded) == 0 {
		return nil
	}
	var jobs []store.Job
	if err := t.do(ctx, s.sql.definitions.with(bounded).into(readDefinitions(&jobs))); err != nil {
		return err
	}
	goesOn := map[int64]bool{}
	for _, j := range jobs {
		next, err := j.Schedule.Next(j.NotAfter)
		goesOn[j.ID] = err == nil && !next.IsZero()
	}
	for i := range list {
		if goesOn[list[i].id] {
			list[i].reason = store.StopFinished + store.ByNotAfter
		}
	}
	return nil
}

// uncount takes cancelled runs out of what their jobs have made. An edit sees to that
// itself. Runs that were killed are taken out where their job, which is locked, is stopped;
// otherwise somebody does not want them made up for. That of a settled run was stopped when
// that was looked at, which is what counts: whoever has started it since went by the run.
func (s *Store) uncount(ctx context.Context, t *tx, changed []store.Run, settled bool) error {
	var ids, jobs []int64
	for i := range changed {
		if r := &changed[i]; r.State == store.StateCancelled && counts(r, 0) {
			ids, jobs = append(ids, r.ID), append(jobs, r.JobID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return t.do(ctx, s.sql.lockIdle.with(jobs), s.sql.uncount.by(named{{"jobs", jobs}, {"runs", ids}, {"settled", settled}}))
}

// counts reports whether a run that has not begun is one of those that its job has made,
// which are those with greater ids than the given one. A part of a broadcast is none: that
// has begun.
func counts(r *store.Run, after int64) bool {
	return r.Type.ScheduleBorn() && r.Sharding == (store.Sharding{}) && r.ID > after
}

// finishedQueries are the statements of this file.
type finishedQueries struct {
	finishJob, uncount query
}

func (q *finishedQueries) define(sql template) {
	q.finishJob = sql(`update {{schema}}.xxl_job_info set trigger_status = {{status.stopped}}, stop_reason = {{arg.reason}}, update_time = {{arg.now}}
	where id = any({{arg.jobs}}::int[])`)
	q.uncount = sql(`update {{schema}}.xxl_job_next n set run_count = n.run_count - (select count(*)
		from unnest({{arg.jobs}}::int[], {{arg.runs}}::bigint[]) r(job, id) where r.job = n.job_id and r.id > n.counted_after)
	where n.job_id = any({{arg.jobs}}) and ({{arg.settled}}::boolean or n.trigger_status = {{status.stopped}})`)
}
