package postgres

// Changes of jobs.

import (
	"context"
	"reflect"
	"time"

	"github.com/xxljob/xxljob/store"
)

// EditJob changes one job. It is the one transaction that computes while it is
// open: edit.Change and edit.Next are pure.
func (s *Store) EditJob(ctx context.Context, id int64, edit store.Edit) (store.Job, error) {
	defer s.unknown.forget(id)
	e := editing{store: s, edit: edit, id: id}
	once := func() error {
		return s.withPartitions(ctx, func() error {
			e = editing{store: s, edit: edit, id: id}
			return s.inTx(ctx, bounds{name: "edit_job"}, func(t *tx) error { return e.run(ctx, t) })
		})
	}
	var err error
	if edit.Guard == nil {
		err = once()
	} else {
		err = pastHead(ctx, once)
	}
	if e.refused != nil {
		return store.Job{}, e.refused
	}
	if err != nil {
		return store.Job{}, failed(err, "%s job %d", edit.Verb, id)
	}
	if e.replan || e.before.Stopped {
		s.wakeScan(e.after.Shard, e.after.Next)
	}
	s.wakeEnded(len(e.cancelled))
	e.alarms.tell()
	if edit.Recorded != nil && e.recorded.ID != 0 {
		*edit.Recorded = e.recorded
	}
	return e.after, nil
}

// editing is an edit under way.
type editing struct {
	store         *Store
	edit          store.Edit
	id            int64
	before, after store.Job
	replan        bool
	cancelled     []store.Run
	recorded      store.Run // the record of instants that nothing is planned for
	refused       error     // of the edit's own functions
	alarms        alarming
}

func (e *editing) run(ctx context.Context, t *tx) error {
	s := e.store
	if err := s.guard(ctx, t, e.edit.Guard); err != nil {
		return err
	}
	var err error
	if e.before, err = s.lockJob(ctx, t, e.id); err != nil {
		return err
	}
	if err := s.guardJob(ctx, t, e.edit.Guard, &e.before); err != nil {
		return err
	}
	if e.edit.Version != 0 && e.edit.Version != e.before.Version {
		return conflict(e.edit.Version, e.before.Version)
	}
	if err := e.change(); err != nil {
		return err
	}
	if !e.replan && reflect.DeepEqual(e.before, e.after) {
		return nil
	}
	if e.refused = store.CheckTexts("job", e.after); e.refused != nil {
		return e.refused
	}
	now, err := s.nowIn(ctx, t)
	if err != nil {
		return err
	}
	e.after.Version, e.after.Updated = e.before.Version+1, now
	if e.after.GlueSource != e.before.GlueSource {
		e.after.GlueUpdated = now
	}
	if e.replan {
		if err := e.record(ctx, t); err != nil {
			return err
		}
		if err := e.plan(ctx, t); err != nil {
			return err
		}
	}
	write := []statement{s.sql.updateJob.by(infoColumns.of(&e.after)), s.sql.updateNext.by(nextColumns.of(&e.after)), s.noteJob(ctx, e.edit.Verb, &e.before, &e.after)}
	if isJoin(&e.before) || isJoin(&e.after) {
		write = append(write, s.link([]store.Job{e.after}))
	}
	if err := t.do(ctx, write...); err != nil {
		return keyTaken(err)
	}
	return e.finished(ctx, t)
}

// nowIn reads the server's clock in a statement of its own. So it is the time after
// whatever the transaction has waited for, which a column of the statement that locks a
// row is not: that may have been worked out before the wait.
func (s *Store) nowIn(ctx context.Context, t *tx) (time.Time, error) {
	now := time.Time{}
	err := t.do(ctx, s.sql.now.with().into(scanInto(&now)))
	return now.UTC(), err
}

// change applies edit.Change to a copy of the job; what is the store's stays.
func (e *editing) change() error {
	e.after = e.before.Clone()
	if e.edit.Change == nil {
		return nil
	}
	changed := e.after
	replan, err := e.edit.Change(&changed)
	if err != nil {
		e.refused = err
		return err
	}
	e.replan = replan
	b := &e.before
	changed = changed.Clone()
	changed.ID, changed.Version, changed.Shard = b.ID, b.Version, b.Shard
	changed.NotBefore, changed.NotAfter = stored(changed.NotBefore), stored(changed.NotAfter)
	changed.Next, changed.Last, changed.WaitRun, changed.Runs = b.Next, b.Last, b.WaitRun, b.Runs
	changed.Added, changed.Updated, changed.GlueUpdated = b.Added, b.Updated, b.GlueUpdated
	e.after = changed
	return nil
}

// plan cancels what is planned, reads how far the schedule has been started, and
// has the next instant computed.
func (e *editing) plan(ctx context.Context, t *tx) error {
	s := e.store
	lo, hi := wideRange()
	if err := t.do(ctx, s.sql.cancelPlanned.by(named{
		{"job", e.id}, {"reason", e.edit.Verb}, {"all", false}, {"retries", e.after.Stopped}, {"lo", lo}, {"hi", hi},
	}).into(readRuns(&e.cancelled))); err != nil {
		return err
	}
	t.count(e.cancelled...)
	e.after.Next, e.after.WaitRun = time.Time{}, 0
	var started, open, countedAfter int64
	if err := t.do(ctx, s.sql.startedFor.with(e.id, e.before.Shard).into(scanInto(&started, &open, &countedAfter))); err != nil {
		return err
	}
	if err := e.count(ctx, t, open, countedAfter); err != nil || e.edit.Next == nil {
		return err
	}
	given := e.after.Clone()
	next, err := e.edit.Next(given, fromMilli(started), e.after.Updated)
	e.refused = err
	e.after.Next = stored(next)
	return err
}

// count takes what was cancelled out of the runs that the schedule has made, which are
// those with ids behind countedAfter. Another schedule has made none: what is open still,
// with ids up to the given one, is none of its runs, also where it is put back.
func (e *editing) count(ctx context.Context, t *tx, open, countedAfter int64) error {
	if e.before.Schedule != e.after.Schedule {
		e.after.Runs = 0
		return t.do(ctx, e.store.sql.countAfter.with(e.id, open))
	}
	for i := range e.cancelled {
		if counts(&e.cancelled[i], countedAfter) {
			e.after.Runs--
		}
	}
	return nil
}

// record inserts the record of instants that nothing is planned for, if there are
// any.
func (e *editing) record(ctx context.Context, t *tx) error {
	b := &e.before
	if e.edit.Missed == nil || b.Stopped || b.Next.IsZero() {
		return nil
	}
	given := b.Clone()
	n, missed := e.edit.Missed(given, e.after.Updated)
	if !missed || !n.State.Ended() {
		return nil
	}
	var inserted []store.Run
	if err := t.do(ctx, e.store.sql.insertRecord.by(named{
		{"job_id", b.ID}, {"shard", b.Shard}, {"app_name", b.App}, {"trigger_type", string(n.Type)},
		{"state", int16(n.State)}, {"scheduled_time", milli(stored(n.At))},
		{"first_time", nonzero(milli(stored(n.First)))}, {"last_time", nonzero(milli(stored(n.Last)))},
		{"instants", nonzero(int64(n.Count))}, {"reason", nonempty(n.Reason)},
	}).into(readRuns(&inserted))); err != nil {
		return err
	}
	e.recorded = inserted[0]
	e.alarms = e.store.alarms()
	e.alarms.ended(nil, e.recorded)
	t.count(e.recorded)
	return e.alarms.insert(ctx, t)
}

// finished follows the rule for a job that was planned anew and has no next instant.
func (e *editing) finished(ctx context.Context, t *tx) error {
	a := &e.after
	if !e.replan || a.Stopped || !a.Next.IsZero() {
		return nil
	}
	armed, err := e.store.arm(ctx, t, nil, []int64{e.id})
	if err == nil && len(armed.finished) > 0 {
		a.Stopped, a.StopReason, a.Updated = true, armed.finished[0].reason, armed.now
	}
	return err
}

// editQueries are the statements of this file.
type editQueries struct {
	now, updateJob, updateNext, cancelPlanned, insertRecord, startedFor, countAfter query
}

func (q *editQueries) define(sql template) {
	// The time of the call, and not of the message that it came in.
	q.now = sql(`select date_trunc('milliseconds', clock_timestamp())`)
	q.updateJob = sql(`update {{schema}}.xxl_job_info set (` + infoColumns.names() + `)
	= row(` + infoColumns.args() + `)
	where id = {{arg.id}} and shard = {{arg.shard}}`)
	q.updateNext = sql(`update {{schema}}.xxl_job_next set ` + nextColumns.assigned("job_id", "shard") + ` where job_id = {{arg.job_id}} and shard = {{arg.shard}}`)
	q.cancelPlanned = sql(`update {{schema}}.xxl_job_log l set state = {{state.cancelled}}, alarm_status = {{alarm.none}},
	reason = {{arg.reason}}, handle_time = {{now}}
	where l.job_id = {{arg.job}} and l.state = {{state.planned}} and l.id between {{arg.lo}} and {{arg.hi}}
		and ({{arg.all}}::boolean or l.trigger_type in ({{born}}) or {{arg.retries}}::boolean and l.born)
	returning {{run}}`).saying()
	record := assigned{
		{"id", `{{run_id}}`},
		{"job_id", `{{arg.job_id}}`},
		{"shard", `{{arg.shard}}`},
		{"app_name", `{{arg.app_name}}`},
		{"trigger_type", `{{arg.trigger_type}}`},
		{"state", `{{arg.state}}`},
		{"alarm_status", `{{alarm.none}}`},
		{"scheduled_time", `{{arg.scheduled_time}}`},
		{"first_time", `{{arg.first_time}}`},
		{"last_time", `{{arg.last_time}}`},
		{"instants", `{{arg.instants}}`},
		{"reason", `{{arg.reason}}`},
		{"add_time", `{{now}}`},
		{"handle_time", `{{now}}`},
		{"executor_fail_retry_count", `{{retries.of_job}}`},
	}
	q.insertRecord = sql(`insert into {{schema}}.xxl_job_log as l (` + record.columns() + `)
	values (` + record.values() + `) returning {{run}}`).saying()
	// Claims of a job follow each other and plan later instants each time, so the
	// latest instant that was started is among the newest runs. What is planned here was put
	// back while cancelPlanned was under way, which had seen it as started.
	q.startedFor = sql(`select coalesce(max(r.scheduled_time), 0), coalesce(max(r.open), 0),
		(select n.counted_after from {{schema}}.xxl_job_next n where n.job_id = $1) from (
	(select l.scheduled_time, null::bigint as open from {{schema}}.xxl_job_log l
	where l.job_id = $1 and l.state > {{state.dispatched}} and l.state not in ({{state.skipped}}, {{state.cancelled}})
		and l.trigger_type in ({{born}}) order by l.id desc limit 1000)
	union all
	(select l.scheduled_time, l.id from {{schema}}.xxl_job_log l
	where l.shard = $2 and l.job_id = $1 and l.state in ({{state.started}}, {{state.dispatched}}) and l.trigger_type in ({{born}}))
	union all
	(select l.scheduled_time, l.id from {{schema}}.xxl_job_log l
	where l.job_id = $1 and l.state = {{state.planned}} and l.trigger_type in ({{born}}))) r`)
	q.countAfter = sql(`update {{schema}}.xxl_job_next set counted_after = $2 where job_id = $1`)
}
