package postgres

// The two rules for a job whose run has ended. Every transaction that ends runs
// follows them before it commits: arm, as its last step. What they read is read
// after the runs are locked by their end; so of two last runs that end at once
// the later transaction sees the end of the other.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// arming is what the rules did.
type arming struct {
	now      time.Time
	finished []finished
	rearmed  []rearmed
}

// rearmed is a job that is due again.
type rearmed struct {
	shard int
	next  time.Time
}

// arm makes jobs that wait for one of the ended runs due again, and stops those
// of the jobs that are finished.
func (s *Store) arm(ctx context.Context, t *tx, ended []runEnd, jobs []int64) (arming, error) {
	idle, err := s.idleJobs(ctx, t, ended, jobs)
	if err != nil {
		return arming{}, err
	}
	return s.armIdle(ctx, t, ended, idle)
}

// armIdle is arm where it is known which jobs are enabled and have no next instant.
func (s *Store) armIdle(ctx context.Context, t *tx, ended []runEnd, idle []int64) (arming, error) {
	var done arming
	if len(idle) == 0 {
		return done, nil
	}
	ids, ends, next := endsOf(ended)
	lo, hi := wideRange()
	err := t.do(ctx,
		s.sql.now.with().into(scanInto(&done.now)),
		s.sql.lockIdle.with(idle),
		s.sql.waitOn.by(named{{"jobs", idle}, {"runs", ids}, {"next", next}}),
		s.sql.rearm.by(named{{"jobs", idle}, {"runs", ids}, {"ends", ends}}).into(done.readRearmed),
		s.sql.finishNext.by(named{{"jobs", idle}, {"lo", lo}, {"hi", hi}}).into(done.readFinished))
	done.now = done.now.UTC()
	if err != nil {
		return done, err
	}
	return done, s.noteFinished(ctx, t, done.finished, done.now)
}

// idleJobs are those of the jobs that are enabled and have no next instant. Most
// often there are none, and the index says so without a look at a row.
func (s *Store) idleJobs(ctx context.Context, t *tx, ended []runEnd, jobs []int64) (idle []int64, err error) {
	for i := range ended {
		jobs = append(jobs, ended[i].job)
	}
	slices.Sort(jobs)
	jobs = slices.Compact(jobs)
	if len(jobs) == 0 {
		return nil, nil
	}
	err = t.do(ctx, s.sql.idleJobs.with(jobs).into(readIDs(&idle)))
	return idle, err
}

func endsOf(ended []runEnd) (ids, ends, next []int64) {
	for i := range ended {
		ids = append(ids, ended[i].id)
		ends = append(ends, ended[i].at)
		next = append(next, ended[i].next)
	}
	return ids, ends, next
}

// runEnd is what the rules need of a run that has ended.
type runEnd struct {
	id, job, at int64
	next        int64 // the run that follows it, or 0
}

// endOf is the end of a run that nothing follows.
func endOf(r *store.Run) runEnd { return runEnd{id: r.ID, job: r.JobID, at: milli(r.Ended)} }

// endedOf are the ends of those of the runs that have ended.
func endedOf(runs []store.Run) []runEnd {
	var ends []runEnd
	for i := range runs {
		if runs[i].State.Ended() {
			ends = append(ends, endOf(&runs[i]))
		}
	}
	return ends
}

func readIDs(list *[]int64) result {
	var id int64
	dest := []any{&id}
	return func(rows pgx.Rows) error {
		err := rows.Scan(dest...)
		*list = append(*list, id)
		return err
	}
}

func (a *arming) readRearmed(rows pgx.Rows) error {
	var r rearmed
	var next int64
	err := rows.Scan(&r.shard, &next)
	r.next = fromMilli(next)
	a.rearmed = append(a.rearmed, r)
	return err
}

// mark says in a run, as callers get it, that its end has stopped its job. Of several runs
// of a job it is the first that is asked about.
func (a *arming) mark(r *store.Run) {
	if !r.State.Ended() {
		return
	}
	for i := range a.finished {
		if f := &a.finished[i]; f.id == r.JobID && !f.told {
			f.told, r.StoppedJob = true, true
		}
	}
}

// tell passes on what became due, after the commit.
func (s *Store) tell(a arming) {
	for _, r := range a.rearmed {
		s.wakeScan(r.shard, r.next)
	}
}

// Sweep re-arms jobs that wait for a run which is over or gone, and stops jobs
// without a next instant that have nothing left to wait for.
func (s *Store) Sweep(ctx context.Context, shards []store.Shard) error {
	if len(shards) == 0 {
		return ended(ctx)
	}
	var refused error
	few := 0 // were refused alone before any was mended
	for lo, hi, done := int64(0), int64(math.MaxInt32), 0; lo <= math.MaxInt32; {
		jobs, err := s.sweepRange(ctx, shards, lo, hi)
		n := len(jobs)
		switch {
		case err == nil:
			lo, hi, done = hi+1, math.MaxInt32, done+n
		case n == 0 || !refuses(codeOf(err)) || ctx.Err() != nil || n == 1 && few >= asideFew && done == 0:
			return failed(err, "sweep %d shards", len(shards))
		case n == 1: // it is left as it is
			lo, hi, few = jobs[0]+1, math.MaxInt32, few+1
			refused = fmt.Errorf("job %d: %w", jobs[0], err)
		default:
			hi = jobs[n/2-1]
		}
	}
	return failed(refused, "sweep %d shards", len(shards))
}

// sweepRange is Sweep for jobs with such ids, which it returns, also beside an error.
func (s *Store) sweepRange(ctx context.Context, shards []store.Shard, lo, hi int64) (jobs []int64, err error) {
	var done arming
	err = s.inTx(ctx, bounds{name: "sweep"}, func(t *tx) error {
		done, jobs = arming{}, nil
		ids, epochs := fenceArgs(shards)
		if err := t.do(ctx, s.sql.sweepIdle.by(named{
			{"shards", ids}, {"epochs", epochs}, {"lo", lo}, {"hi", hi},
		}).into(readIDs(&jobs))); err != nil || len(jobs) == 0 {
			return err
		}
		if err := t.do(ctx, s.sql.sweepRearm.with(jobs).into(done.readRearmed)); err != nil {
			return err
		}
		_, err := s.arm(ctx, t, nil, jobs)
		return err
	})
	if err == nil {
		s.tell(done)
	}
	return jobs, err
}

// shardSet gathers the shards of a batch, which has one epoch for each, for a fence.
type shardSet struct {
	list []store.Shard
	has  []bool // by id
}

// add adds a shard. One that cannot be is in no fence.
func (x *shardSet) add(id int, epoch int64) {
	if id < 0 || id > maxShards || id < len(x.has) && x.has[id] {
		return
	}
	if id >= len(x.has) {
		x.has = append(x.has, make([]bool, id+1-len(x.has))...)
	}
	x.has[id] = true
	x.list = append(x.list, store.Shard{ID: id, Epoch: epoch})
}

// fenceArgs are the arguments of a fence: shards in order, each with the epoch
// of the caller.
func fenceArgs(shards []store.Shard) (ids []int16, epochs []int64) {
	shards = slices.Clone(shards)
	slices.SortFunc(shards, func(a, b store.Shard) int { return a.ID - b.ID })
	for _, sh := range shards {
		if sh.ID < 0 || sh.ID > maxShards {
			continue
		}
		ids = append(ids, int16(sh.ID))
		epochs = append(epochs, sh.Epoch)
	}
	return ids, epochs
}

func conflict(want, got int64) error {
	return fmt.Errorf("%w: version %d, not %d", store.ErrConflict, got, want)
}

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
	if err := t.do(ctx, s.sql.definitions.with(bounded).into(infoColumns.readInto(&jobs))); err != nil {
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

// ruleQueries are the statements of this file.
type ruleQueries struct {
	idleJobs, lockIdle, lockIdleFree, waitOn, rearm, finishNext, sweepIdle, sweepRearm query
	finishJob, uncount                                                                 query
}

func (q *ruleQueries) define(sql template) {
	q.idleJobs = sql(`select n.job_id from {{schema}}.xxl_job_next n
	where n.job_id = any($1::int[]) and n.trigger_next_time = 0 and (n.trigger_status = {{status.enabled}} and not n.manual or n.wait_run <> 0)`)
	lock := `select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for no key update`
	q.lockIdle = sql(lock)
	q.lockIdleFree = sql(lock + ` skip locked`)
	// armed is the next time of a job, within its bounds, whose run has ended.
	armed := func(end string) string {
		return `case when n.delay = 0 or n.max_runs > 0 and n.run_count >= n.max_runs
		or n.not_after > 0 and ` + end + ` + n.delay > n.not_after then 0 else ` + end + ` + n.delay end`
	}
	// A job goes on to wait for the run that follows the one it has waited for.
	const at = `[pg_catalog.array_position({{arg.runs}}::bigint[], n.wait_run)]`
	q.waitOn = sql(`update {{schema}}.xxl_job_next n set wait_run = ({{arg.next}}::bigint[])` + at + `
	where n.job_id = any({{arg.jobs}}::int[]) and n.wait_run <> 0 and n.wait_run = any({{arg.runs}}) and ({{arg.next}}::bigint[])` + at + ` <> 0`)
	// Not a join: the planner expects few runs and would compare each with each job.
	q.rearm = sql(`update {{schema}}.xxl_job_next n set wait_run = 0,
	trigger_next_time = ` + armed(`({{arg.ends}}::bigint[])[pg_catalog.array_position({{arg.runs}}::bigint[], n.wait_run)]`) + `
	where n.job_id = any({{arg.jobs}}::int[]) and n.trigger_next_time = 0 and n.wait_run <> 0 and n.wait_run = any({{arg.runs}})
	returning n.shard, n.trigger_next_time`)
	// Each job is looked at by itself: a join, which the planner would make of these without the
	// offset, reads all runs that are planned or under way where the statistics are of a quieter time.
	q.finishNext = sql(`update {{schema}}.xxl_job_next n set trigger_status = {{status.stopped}}
	where n.job_id = any({{arg.jobs}}::int[]) and n.trigger_status = {{status.enabled}} and n.trigger_next_time = 0 and n.wait_run = 0 and not n.manual
	and not exists (select from {{schema}}.xxl_job_log l where l.job_id = n.job_id and l.state = {{state.planned}}
		and l.id between {{arg.lo}} and {{arg.hi}} and (l.born or l.trigger_type in ({{born}})) offset 0)
	and not exists (select from {{schema}}.xxl_job_log l where l.shard = n.shard and l.job_id = n.job_id and l.state in ({{state.started}}, {{state.dispatched}})
		and l.id between {{arg.lo}} and {{arg.hi}} and (l.born or l.trigger_type in ({{born}})) offset 0)
	returning n.job_id, n.max_runs > 0 and n.run_count >= n.max_runs, n.not_after`)
	q.sweepIdle = sql(`with ` + fence("") + `
	select n.job_id from {{schema}}.xxl_job_next n join fence on fence.shard = n.shard
	where n.trigger_next_time = 0 and (n.trigger_status = {{status.enabled}} and not n.manual or n.wait_run <> 0)
	and n.job_id between {{arg.lo}}::int and {{arg.hi}}::int order by n.job_id for no key update of n`)
	// A run that is waited for is mostly there; where it is not, the time of the
	// sweep stands for its end.
	q.sweepRearm = sql(`update {{schema}}.xxl_job_next n set wait_run = 0,
	trigger_next_time = ` + armed(milliseconds(`coalesce(
		(select l.handle_time from {{schema}}.xxl_job_log l where l.id = n.wait_run), {{now}})`)) + `
	where n.job_id = any($1::int[]) and n.wait_run <> 0
	and coalesce((select l.state > {{state.dispatched}} from {{schema}}.xxl_job_log l where l.id = n.wait_run), true)
	returning n.shard, n.trigger_next_time`)

	q.finishJob = sql(`update {{schema}}.xxl_job_info set trigger_status = {{status.stopped}}, stop_reason = {{arg.reason}}, update_time = {{arg.now}}
	where id = any({{arg.jobs}}::int[])`).saying()
	q.uncount = sql(`update {{schema}}.xxl_job_next n set run_count = n.run_count - (select count(*)
		from unnest({{arg.jobs}}::int[], {{arg.runs}}::bigint[]) r(job, id) where r.job = n.job_id and r.id > n.counted_after)
	where n.job_id = any({{arg.jobs}}) and ({{arg.settled}}::boolean or n.trigger_status = {{status.stopped}})`)
}
