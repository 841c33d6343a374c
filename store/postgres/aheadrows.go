package postgres

// Entries of xxl_job_ahead as runs: how they are read, cancelled and dropped. An entry that
// moves is deleted and inserted as a run at one moment. So where two statements look, that
// which looks for the entry comes first: an entry that it does not find has moved by then,
// and the other finds the run.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

// findRun reads one run with the names of its job, or nothing. Where it is read twice,
// because it moves at this moment, the later reading counts: see lastOf.
func (s *Store) findRun(id int64, runs *[]store.Run) []statement {
	return entryFirst(id, s.sql.aheadByID.with(id).into(readNamedRuns(runs)), s.sql.runByID.with(id).into(readNamedRuns(runs)))
}

// findAsItIs is findRun without the names.
func (s *Store) findAsItIs(id int64, runs *[]store.Run) []statement {
	return entryFirst(id, s.sql.aheadAsItIs.with(id).into(readRuns(runs)), s.sql.runAsItIs.with(id).into(readRuns(runs)))
}

// entryFirst is both statements, or only the other where no entry has such an id.
func entryFirst(id int64, entry, other statement) []statement {
	if !mayBeAhead(id) {
		return []statement{other}
	}
	return []statement{entry, other}
}

// lastOf is the run that findRun or findAsItIs has read.
func lastOf(runs []store.Run) (store.Run, bool) {
	if len(runs) == 0 {
		return store.Run{}, false
	}
	return runs[len(runs)-1], true
}

// entries reads those of the runs that are entries, with the names of their jobs, and
// returns the ids of the others.
func (s *Store) entries(ctx context.Context, ids []int64) (found []store.Run, others []int64, err error) {
	var may []int64
	for _, id := range ids {
		if mayBeAhead(id) {
			may = append(may, id)
		}
	}
	if len(may) == 0 {
		return nil, ids, nil
	}
	if err := s.readByIndex(ctx, s.sql.aheadByIDs.with(may).into(readNamedRuns(&found))); err != nil || len(found) == 0 {
		return nil, ids, err
	}
	is := make(map[int64]bool, len(found))
	for i := range found {
		is[found[i].ID] = true
	}
	for _, id := range ids {
		if !is[id] {
			others = append(others, id)
		}
	}
	return found, others, nil
}

// byID orders runs by their ids.
func byID(runs []store.Run) []store.Run {
	slices.SortFunc(runs, func(a, b store.Run) int { return cmp.Compare(a.ID, b.ID) })
	return runs
}

// killAhead cancels the run if it is an entry. It waits for one that moves, and does not
// find it then.
func (s *Store) killAhead(ctx context.Context, t *tx, runID int64, reason string) (cancelled []store.Run, err error) {
	if !mayBeAhead(runID) {
		return nil, nil
	}
	return cancelled, t.do(ctx, s.sql.killAhead.with(runID, reason).into(readRuns(&cancelled)))
}

// fewAhead is how many entries of a job are cancelled by the transaction that removes it: its
// tally has a report for each quarter of an hour in which one is due. manyAhead is how many
// another transaction cancels.
const fewAhead, manyAhead = 1000, 5000

// cancelAhead cancels the entries of a job, and counts them.
func (s *Store) cancelAhead(t *tx, jobID int64, reason string, cancelled *int) statement {
	return s.sql.cancelAhead.with(jobID, reason).into(func(rows pgx.Rows) error {
		var app string
		var quarter int64
		var n int
		err := rows.Scan(&app, &quarter, &n)
		*cancelled += n
		t.countCancelled(app, fromMilli(quarter), n)
		return err
	})
}

// cancelManyAhead cancels entries of a job that has more than few, in transactions of their
// own, in which the server counts them for the reports. It returns how many there were.
func (s *Store) cancelManyAhead(ctx context.Context, jobID int64, reason string) (cancelled int, err error) {
	n := 0
	if err := s.read(ctx, s.sql.countAhead.with(jobID, fewAhead+1).into(scanInto(&n))); err != nil || n <= fewAhead {
		return 0, err
	}
	for n, after := manyAhead, int64(0); n == manyAhead; cancelled += n {
		args := named{{"job", jobID}, {"reason", reason}, {"after", after}, {"limit", manyAhead}}
		cancel := s.sql.cancelUncounted
		if !s.cfg.NoReports {
			slot, spare := reportSlot()
			cancel, args = s.sql.cancelCounted, append(args, named{{"slot", slot}, {"spare", spare}}...)
		}
		if err := s.one(ctx, bounds{name: "cancel_ahead"}, cancel.by(args).into(scanInto(&n, &after))); err != nil {
			return cancelled, err
		}
	}
	return cancelled, nil
}

// dropCancelled forgets entries that were cancelled before the given time, and their keys.
func (s *Store) dropCancelled(ctx context.Context, before time.Time) error {
	for ids := make([]int64, endBatch); len(ids) == endBatch; {
		ids = ids[:0]
		if err := s.one(ctx, bounds{name: "drop_ahead"}, s.sql.dropCancelled.with(before, endBatch).into(readIDs(&ids))); err != nil {
			return err
		}
	}
	return nil
}

// aheadRowQueries are the statements of this file.
type aheadRowQueries struct {
	aheadByID, aheadByIDs, aheadAsItIs, keyAhead, killAhead, cancelAhead, countAhead, cancelCounted, cancelUncounted, dropCancelled query
}

func (q *aheadRowQueries) define(sql template) {
	entry := `select {{run}} from {{schema}}.xxl_job_ahead l `
	named := `select j.job_desc, j.job_key, {{run}} from {{schema}}.xxl_job_ahead l ` + namesOfJob
	q.aheadByID = sql(named + ` where l.id = $1`)
	q.aheadByIDs = sql(named + ` where l.id = any($1::bigint[])`)
	q.aheadAsItIs = sql(entry + `where l.id = $1`)
	q.keyAhead = sql(entry + `where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)`)
	cancelled := func(reason string) string {
		return `update {{schema}}.xxl_job_ahead l set state = {{state.cancelled}}, alarm_status = {{alarm.none}}, reason = ` + reason + `, handle_time = {{now}} `
	}
	q.killAhead = sql(cancelled(`$2`) + `where l.id = $1 and l.state = {{state.planned}} returning {{run}}`)
	q.cancelAhead = sql(`with c as (` + cancelled(`$2`) + `where l.job_id = $1 and l.state = {{state.planned}} returning l.app_name, l.scheduled_time)
	select c.app_name, c.scheduled_time / 900000::bigint * 900000::bigint, count(*) from c group by 1, 2`)
	q.countAhead = sql(`select count(*)::int from (select a.id from {{schema}}.xxl_job_ahead a where a.job_id = $1 and a.state = {{state.planned}} limit $2) a`)
	some := `with c as (` + cancelled(`{{arg.reason}}`) + `where l.state = {{state.planned}} and l.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.job_id = {{arg.job}} and a.state = {{state.planned}} and a.id > {{arg.after}} order by a.id limit {{arg.limit}} for no key update))
	returning l.id, l.app_name, l.scheduled_time)`
	q.cancelUncounted = sql(some + ` select count(*)::int, coalesce(max(c.id), 0) from c`)
	q.cancelCounted = sql(some + `, r as materialized (select c.app_name as app, c.scheduled_time / 900000::bigint * 900000::bigint as quarter, count(*) as n from c group by 1, 2),
	counted as (insert into {{schema}}.xxl_job_report as t (quarter, app_name, slot, cancelled)
	select r.quarter, r.app, ` + freeSlot + `, r.n from r order by r.quarter, r.app collate "C"
	on conflict (quarter, app_name, slot) do update set cancelled = t.cancelled + excluded.cancelled)
	select count(*)::int, coalesce(max(c.id), 0) from c`)
	q.dropCancelled = sql(`with gone as (delete from {{schema}}.xxl_job_ahead d where d.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.state = {{state.cancelled}} and a.handle_time < $1 order by a.handle_time limit $2)) returning d.id),
	keys as (delete from {{schema}}.xxl_job_trigger_key k where k.run_id = any(array(select id from gone)))
	select id from gone`)
}
