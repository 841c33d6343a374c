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

	"github.com/xxljob/xxljob"
)

// findRun reads one run with the names of its job, or nothing. Where it is read twice,
// because it moves at this moment, the later reading counts: see lastOf.
func (s *Store) findRun(id int64, runs *[]xxljob.Run) []statement {
	return entryFirst(id, s.sql.aheadByID.with(id).into(readNamedRuns(runs)), s.sql.runByID.with(id).into(readNamedRuns(runs)))
}

// findAsItIs is findRun without the names.
func (s *Store) findAsItIs(id int64, runs *[]xxljob.Run) []statement {
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
func lastOf(runs []xxljob.Run) (xxljob.Run, bool) {
	if len(runs) == 0 {
		return xxljob.Run{}, false
	}
	return runs[len(runs)-1], true
}

// entries reads those of the runs that are entries, with the names of their jobs, and
// returns the ids of the others.
func (s *Store) entries(ctx context.Context, ids []int64) (found []xxljob.Run, others []int64, err error) {
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
func byID(runs []xxljob.Run) []xxljob.Run {
	slices.SortFunc(runs, func(a, b xxljob.Run) int { return cmp.Compare(a.ID, b.ID) })
	return runs
}

// killAhead cancels the run if it is an entry. It waits for one that moves, and does not
// find it then.
func (s *Store) killAhead(ctx context.Context, t *tx, runID int64, reason string) (cancelled []xxljob.Run, err error) {
	if !mayBeAhead(runID) {
		return nil, nil
	}
	return cancelled, t.do(ctx, s.sql.killAhead.with(runID, reason).into(readRuns(&cancelled)))
}

// cancelAhead cancels the entries of a job, of which there may be very many, and counts them.
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
	aheadByID, aheadByIDs, aheadAsItIs, keyAhead, killAhead, cancelAhead, dropCancelled query
}

func (q *aheadRowQueries) define(sql template) {
	entry := `select {{run}} from {{schema}}.xxl_job_ahead l `
	named := `select j.job_desc, j.job_key, {{run}} from {{schema}}.xxl_job_ahead l ` + namesOfJob
	q.aheadByID = sql(named + ` where l.id = $1`)
	q.aheadByIDs = sql(named + ` where l.id = any($1::bigint[])`)
	q.aheadAsItIs = sql(entry + `where l.id = $1`)
	q.keyAhead = sql(entry + `where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)`)
	const cancel = `update {{schema}}.xxl_job_ahead l set state = {{state.cancelled}}, alarm_status = {{alarm.none}}, reason = $2, handle_time = {{now}} `
	q.killAhead = sql(cancel + `where l.id = $1 and l.state = {{state.planned}} returning {{run}}`)
	q.cancelAhead = sql(`with c as (` + cancel + `where l.job_id = $1 and l.state = {{state.planned}} returning l.app_name, l.scheduled_time)
	select c.app_name, c.scheduled_time / 900000::bigint * 900000::bigint, count(*) from c group by 1, 2`)
	q.dropCancelled = sql(`with gone as (delete from {{schema}}.xxl_job_ahead d where d.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.state = {{state.cancelled}} and a.handle_time < $1 order by a.handle_time limit $2)) returning d.id),
	keys as (delete from {{schema}}.xxl_job_trigger_key k where k.run_id = any(array(select id from gone)))
	select id from gone`)
}
