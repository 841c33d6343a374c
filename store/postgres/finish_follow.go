package postgres

// What follows runs that have ended, in the transaction that ends them. In comes what ended,
// as it then is; out go the runs that follow, which are inserted, and notes for those that
// nothing follows. The ended runs and the first runs of their triggers are locked before, then
// their jobs are kept as they are: whoever edits or removes one comes before, and is heeded, or
// after, and sees what was inserted.

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// follows reports whether a run that ends in this state may be followed by another.
func follows(state store.State) bool {
	switch state {
	case store.StateFailed, store.StateTimedOut, store.StateRefused, store.StateLost, store.StateSnoozed:
		return true
	}
	return false
}

// following is a transaction's worth of it.
type following struct {
	store *Store
	runs  []*store.Run            // that have ended
	after map[int64]time.Duration // store.Result.After, by run
	next  map[int64]int64         // the run that follows each, where one does
	woken []int                   // the shards of what follows
}

// follow inserts what follows the runs, and adds the notes to them.
func (s *Store) follow(ctx context.Context, t *tx, runs []*store.Run, after map[int64]time.Duration) (following, error) {
	f := following{store: s, runs: slices.DeleteFunc(runs, func(r *store.Run) bool { return !follows(r.State) }), after: after}
	if len(f.runs) == 0 {
		return f, nil
	}
	jobs, err := f.read(ctx, t)
	if err != nil {
		return f, err
	}
	return f, f.insert(ctx, t, jobs)
}

// read keeps the jobs as they are, and reads them.
func (f *following) read(ctx context.Context, t *tx) (map[int64]*store.Job, error) {
	ids, jobs := make([]int64, len(f.runs)), map[int64]*store.Job{}
	for i, r := range f.runs {
		ids[i] = r.JobID
	}
	var found []store.Job
	err := t.do(ctx, f.store.sql.keepJobs.with(ids), f.store.sql.definitions.with(ids).into(infoColumns.readInto(&found)))
	for i := range found {
		jobs[found[i].ID] = &found[i]
	}
	return jobs, err
}

// insert decides and inserts. The age of a trigger is that of the id of its first run, by which
// the row is dropped; so it is known where the row is gone as well, and a run that was planned
// far ahead is as young as the day that it has moved into.
func (f *following) insert(ctx context.Context, t *tx, jobs map[int64]*store.Job) error {
	var ids, due, noted, other []int64
	var left, attempts, retries, reruns, snoozes []int32
	var notes []string
	retention := time.Duration(f.store.retention.Load())
	for _, r := range f.runs {
		next, note := r.Follow(jobs[r.JobID], f.after[r.ID], idTime(r.TriggerID), retention)
		if note != "" {
			noted, notes = append(noted, r.ID), append(notes, note)
			addLine(&r.TriggerMsg, note)
		}
		if n := r.RetriesLeft(jobs[r.JobID], next.JobID != 0); n != r.Retries {
			other, left, r.Retries = append(other, r.ID), append(left, int32(n)), n
		}
		if next.JobID == 0 {
			continue
		}
		ids, due = append(ids, r.ID), append(due, milli(next.Scheduled))
		attempts, retries = append(attempts, int32(next.Attempt)), append(retries, int32(next.Retries))
		reruns, snoozes = append(reruns, int32(next.Reruns)), append(snoozes, int32(next.Snoozes))
		f.woken = append(f.woken, r.Shard)
	}
	var write []statement
	if len(noted) > 0 {
		write = append(write, f.store.sql.noteEnds.by(named{{"runs", noted}, {"lines", notes}}))
	}
	if len(other) > 0 {
		write = append(write, f.store.sql.retriesLeft.by(named{{"runs", other}, {"retries", left}}))
	}
	if len(ids) > 0 {
		f.next = make(map[int64]int64, len(ids))
		write = append(write, f.store.sql.insertFollowing.by(named{
			{"runs", ids}, {"due", due}, {"attempts", attempts}, {"retries", retries}, {"reruns", reruns}, {"snoozes", snoozes},
		}).into(func(rows pgx.Rows) error {
			var ended, next int64
			err := rows.Scan(&ended, &next)
			f.next[ended] = next
			return err
		}))
	}
	if len(write) == 0 {
		return nil
	}
	return t.do(ctx, write...)
}

// addLine adds a line to a TriggerMsg, as say does it in a statement.
func addLine(msg *string, line string) {
	if *msg != "" {
		*msg += "\n"
	}
	*msg += line
}

// end is the end of a run, with the one that follows it.
func (f *following) end(r *store.Run) runEnd {
	end := endOf(r)
	end.next = f.next[r.ID]
	return end
}

// ends are the ends of those of the runs that have ended.
func (f *following) ends(runs []store.Run) (ends []runEnd) {
	for i := range runs {
		if runs[i].State.Ended() {
			ends = append(ends, f.end(&runs[i]))
		}
	}
	return ends
}

func pointers(runs []store.Run) []*store.Run {
	all := make([]*store.Run, len(runs))
	for i := range runs {
		all[i] = &runs[i]
	}
	return all
}

// tellFollowing passes on what was planned, after the commit.
func (s *Store) tellFollowing(f *following) {
	slices.Sort(f.woken)
	for _, shard := range slices.Compact(f.woken) {
		s.wakeRun(shard)
	}
}

// lockTriggers locks runs that are about to end, and the first runs of their triggers, in order
// of their ids, whatever their ends are: of the two results in a batch the one may be followed.
func (s *Store) lockTriggers(ids []int64) statement {
	return s.sql.lockTriggers.by(named{{"runs", ids}})
}

// unendedAfter reads the newest run that has followed one, if that has not ended.
func (s *Store) unendedAfter(r *store.Run) statement {
	part := ""
	if p := shardingColumn(r.Sharding); p != nil {
		part = *p
	}
	return s.sql.unendedAfter.by(named{{"trigger", r.TriggerID}, {"run", r.ID}, {"sharding", part}})
}

// heldFirst locks the first run of the trigger of a run, where that is another one, or reads it
// where others have locked it.
func (s *Store) heldFirst(id int64) statement { return s.sql.heldFirst.with(id) }

// Tree returns the runs of a run's trigger.
func (s *Store) Tree(ctx context.Context, runID int64) ([]store.Run, error) {
	_, runs, err := s.tree(ctx, runID, store.MostTree)
	return runs[:min(len(runs), store.MostTree)], err
}

// Branches returns the first of the runs of a trigger, and counts the others.
func (s *Store) Branches(ctx context.Context, runID int64, limit int) (runs []store.Run, more int, err error) {
	limit = max(limit, 0)
	trigger, runs, err := s.tree(ctx, runID, limit)
	if err != nil || len(runs) < limit { // there are no others
		return runs, 0, err
	}
	all := 0
	if err := s.readByIndex(ctx, s.sql.countFurther.with(trigger).into(scanInto(&all))); err != nil {
		return nil, 0, failed(err, "count the runs of trigger %d", trigger)
	}
	if len(runs) > 0 && runs[0].ID == trigger {
		all++
	}
	runs = runs[:min(len(runs), limit)]
	return runs, max(min(all, store.MostTree)-len(runs), 0), nil
}

// tree reads the runs of the trigger of a run: its first, where that is still there, and at most limit others.
func (s *Store) tree(ctx context.Context, runID int64, limit int) (trigger int64, runs []store.Run, err error) {
	run, err := s.Run(ctx, runID)
	if err != nil {
		return 0, nil, err
	}
	id, texts := run.TriggerID, textsOf(ctx)
	if err := s.readByIndex(ctx,
		s.sql.aheadByIDs.by(named{{"runs", []int64{id}}, {"texts", texts}}).into(readNamedRuns(&runs)),
		s.sql.runsByID.by(named{{"runs", []int64{id}}, {"lo", id}, {"hi", id}, {"texts", texts}}).into(readNamedRuns(&runs)),
		s.sql.furtherRuns.by(named{{"trigger", id}, {"limit", limit}, {"texts", texts}}).into(readNamedRuns(&runs)),
	); err != nil {
		return 0, nil, failed(err, "read the runs of trigger %d", id)
	}
	return id, slices.CompactFunc(byID(runs), func(a, b store.Run) bool { return a.ID == b.ID }), nil
}

// mayBeLocked is the condition of a run l to be locked before its job: one that was given back
// is planned, and edits lock those behind the job. No result or verdict ends one that is.
const mayBeLocked = `l.state + 0 <> {{state.planned}}`

// followQueries are the statements of this file.
type followQueries struct {
	lockTriggers, heldFirst, keepJobs, noteEnds, retriesLeft, insertFollowing, unendedAfter, furtherRuns, countFurther query
}

func (q *followQueries) define(sql template) {
	q.lockTriggers = sql(`with r as materialized (select i.id, 1 ord from unnest({{arg.runs}}::bigint[]) i(id)
		union select t.trigger_id, 1 from unnest({{arg.runs}}::bigint[]) with ordinality r(id, ord)
			join {{schema}}.xxl_job_log t on t.id = r.id and ` + few + ` where t.trigger_id is not null)
	select l.id from r join {{schema}}.xxl_job_log l on l.id = r.id and ` + few + ` and ` + mayBeLocked + ` order by l.id for no key update of l`)
	first := `l.id = (select t.trigger_id from {{schema}}.xxl_job_log t where t.id = $1 and t.trigger_id <> t.id) and ` + mayBeLocked
	q.heldFirst = sql(`with free as materialized (select l.id from {{schema}}.xxl_job_log l where ` + first + ` for no key update skip locked)
	select l.id from {{schema}}.xxl_job_log l where ` + first + ` and l.id not in (select id from free)`)
	q.keepJobs = sql(`select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for key share`)
	q.noteEnds = sql(`update {{schema}}.xxl_job_log l set trigger_msg = ` + say("r.say") + `
	from unnest({{arg.runs}}::bigint[], {{arg.lines}}::text[]) with ordinality r(id, say, ord) where l.id = r.id and ` + few).saying()
	q.retriesLeft = sql(`update {{schema}}.xxl_job_log l set executor_fail_retry_count = r.retries
	from unnest({{arg.runs}}::bigint[], {{arg.retries}}::int[]) with ordinality r(id, retries, ord) where l.id = r.id and ` + few)
	next := assigned{
		{"id", `r.new_id`},
		{"job_id", `l.job_id`},
		{"shard", `l.shard`},
		{"app_name", `l.app_name`},
		{"trigger_id", `coalesce(l.trigger_id, l.id)`},
		{"parent_id", `l.parent_id`},
		{"depth", `l.depth`},
		{"business_time", `l.business_time`},
		{"instant_time", `l.instant_time`},
		{"attempt", `nullif(r.attempt, 0)`},
		{"trigger_type", `'RETRY'`},
		{"born", `case when l.born or l.trigger_type in ({{born}}) then true end`},
		{"scheduled_time", `r.due`},
		{"state", `{{state.planned}}`},
		{"executor_sharding_param", `l.executor_sharding_param`},
		{"executor_param", `case when l.param_set then l.executor_param end`},
		{"param_set", `l.param_set`},
		{"address_list", `l.address_list`},
		{"executor_fail_retry_count", `r.retries`},
		{"retries_set", `l.retries_set`},
		{"reruns", `nullif(r.reruns, 0)`},
		{"snoozes", `nullif(r.snoozes, 0)`},
		{"trace", `l.trace`},
		{"first_time", `case when l.last_time is null then l.scheduled_time else l.first_time end`},
		{"last_time", `coalesce(l.last_time, l.scheduled_time)`},
		{"instants", `l.instants`},
		{"add_time", `{{now}}`},
	}
	q.insertFollowing = sql(`with r as materialized (select u.*, {{run_id}} new_id from unnest({{arg.runs}}::bigint[], {{arg.due}}::bigint[], {{arg.attempts}}::int[],
		{{arg.retries}}::int[], {{arg.reruns}}::int[], {{arg.snoozes}}::int[]) with ordinality u(id, due, attempt, retries, reruns, snoozes, ord)),
	inserted as (insert into {{schema}}.xxl_job_log (` + next.columns() + `)
		select ` + next.values() + ` from r join {{schema}}.xxl_job_log l on l.id = r.id and ` + few + `)
	select r.id, r.new_id from r`)
	// The newest run of a trigger, and of one part of it, that has not ended.
	q.unendedAfter = sql(`select {{run}} from {{schema}}.xxl_job_log l where l.trigger_id = {{arg.trigger}} and l.id > {{arg.run}}
	and l.state + 0 in ({{state.planned}}, {{state.started}}, {{state.dispatched}}) and coalesce(l.executor_sharding_param, '') = {{arg.sharding}}
	order by l.id desc limit 1`)
	q.furtherRuns = sql(`select j.job_desc, j.job_key, j.secret, {{listed}} from (select l.* from {{schema}}.xxl_job_log l
		where l.trigger_id = {{arg.trigger}}::bigint order by l.id limit {{arg.limit}}) l ` + namesOfJob + ` order by l.id`)
	q.countFurther = sql(`select count(*)::int from (select from {{schema}}.xxl_job_log l where l.trigger_id = $1 and l.id <> $1 limit ` + strconv.Itoa(store.MostTree) + `) l`)
}
