package postgres

// Results whose rows others may have locked: what can be locked at once is, and the rest is left
// out for the moment.

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// lockable locks what can be locked at once: the runs, and the jobs that their
// ends concern. It returns the places of their results.
func (f *finishing) lockable(ctx context.Context, t *tx) ([]int, error) {
	s := f.store
	var ids []int64
	for _, i := range f.places {
		ids = append(ids, f.results[i].RunID)
	}
	lo, hi := rangeOf(ids)
	jobOf, firsts, triggerOf := map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
	var jobs, idle, free, triggers, parts []int64
	if err := t.do(ctx, s.sql.lockRuns.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}).into(func(rows pgx.Rows) error {
		var id, job, first int64
		err := rows.Scan(&id, &job, &first)
		if first != id {
			firsts[id] = first
		}
		jobOf[id], triggerOf[id] = job, first
		jobs, triggers = append(jobs, job), append(triggers, first)
		return err
	})); err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		if err := t.do(ctx, s.sql.idleJobs.with(jobs).into(readIDs(&idle)), s.sql.heldParts.with(triggers).into(readIDs(&parts))); err != nil {
			return nil, err
		}
	}
	if len(idle) > 0 {
		if err := t.do(ctx, s.sql.lockIdleFree.with(idle).into(readIDs(&free))); err != nil {
			return nil, err
		}
	}
	held, err := f.held(ctx, t, firsts, jobOf)
	if err != nil {
		return nil, err
	}
	f.free = map[int64]bool{}
	var places []int
	for _, i := range f.places {
		job, ok := jobOf[f.results[i].RunID]
		if ok && !held[f.results[i].RunID] && !slices.Contains(parts, triggerOf[f.results[i].RunID]) && (!slices.Contains(idle, job) || slices.Contains(free, job)) {
			f.free[f.results[i].RunID] = true
			places = append(places, i)
		}
	}
	return places, nil
}

// held are those of the runs, after which others may come, whose triggers' first runs or whose
// jobs others have locked. The others it locks; what is gone holds nobody up.
func (f *finishing) held(ctx context.Context, t *tx, firsts, jobOf map[int64]int64) (runs map[int64]bool, err error) {
	var jobs, ids, heldJobs, heldRuns []int64
	followed := f.mayBeFollowed(f.places)
	for _, id := range followed {
		if job := jobOf[id]; job != 0 {
			jobs = append(jobs, job)
		}
		if first := firsts[id]; first != 0 {
			ids = append(ids, first)
		}
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	lock := []statement{f.store.sql.heldJobs.with(jobs).into(readIDs(&heldJobs))}
	if len(ids) > 0 {
		lo, hi := rangeOf(ids)
		lock = append([]statement{f.store.sql.heldRuns.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}).into(readIDs(&heldRuns))}, lock...)
	}
	if err := t.do(ctx, lock...); err != nil {
		return nil, err
	}
	runs = map[int64]bool{}
	for _, id := range followed {
		runs[id] = slices.Contains(heldRuns, firsts[id]) || slices.Contains(heldJobs, jobOf[id])
	}
	return runs, nil
}

// locked are the places of results that were left out though their runs have not
// ended.
func (f *finishing) locked(ctx context.Context) ([]int, error) {
	var rest []int64
	for _, i := range f.places {
		if id := f.results[i].RunID; !f.free[id] {
			rest = append(rest, id)
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	lo, hi := rangeOf(rest)
	var unended []int64
	err := f.store.read(ctx, f.store.sql.unended.by(named{{"runs", rest}, {"lo", lo}, {"hi", hi}}).into(readIDs(&unended)))
	return slices.DeleteFunc(f.places, func(i int) bool { return !slices.Contains(unended, f.results[i].RunID) }), err
}

// finishFreeQueries are the statements of this file.
type finishFreeQueries struct {
	unended, lockRuns, heldRuns, heldJobs query
}

func (q *finishFreeQueries) define(sql template) {
	q.unended = sql(`select l.id from {{schema}}.xxl_job_log l where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}}
	and l.state + 0 in ({{state.started}}, {{state.dispatched}})`)
	q.lockRuns = sql(`select l.id, l.job_id, coalesce(l.trigger_id, l.id) from {{schema}}.xxl_job_log l
	where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}} and l.state + 0 in ({{state.started}}, {{state.dispatched}})
		order by l.id for no key update skip locked`)
	of := `l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}} and ` + mayBeLocked
	q.heldRuns = sql(`with free as materialized (select l.id from {{schema}}.xxl_job_log l where ` + of + ` order by l.id for no key update skip locked)
	select l.id from {{schema}}.xxl_job_log l where ` + of + ` and l.id not in (select id from free)`)
	q.heldJobs = sql(`with free as materialized (
		select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for key share skip locked)
	select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) and n.job_id not in (select job_id from free)`)
}
