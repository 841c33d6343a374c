package postgres

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// Ended runs that are deleted one by one, where their day stays. First some are read by an
// index, oldest first; then those of them go that nothing needs, which is found out by the
// statement that deletes them: what has ended for good begins nothing by itself, so what one
// snapshot shows of a run, and of all that may need it, stays true.

const (
	// dropBatch is how many runs one transaction deletes at most.
	dropBatch = 1000
	// dropJobs is how many jobs one call looks at.
	dropJobs = 200
)

// dropping is a call that deletes ended runs.
type dropping struct {
	store *Store
	q     *xxljob.RunDrop
	found store.Dropped
}

// dropRange is a range of ids of runs: of a job, or of all where that is 0. Both ends are
// outside.
type dropRange struct{ job, after, below int64 }

// DropEnded deletes runs that have ended and that the question chooses, or counts them.
func (s *Store) DropEnded(ctx context.Context, q xxljob.RunDrop) (store.Dropped, error) {
	if err := ended(ctx); err != nil {
		return store.Dropped{}, err
	}
	if err := q.Validate(); err != nil {
		return store.Dropped{}, err
	}
	q.Complete()
	d := dropping{store: s, q: &q}
	below := int64(maxRunID)
	if !q.Before.IsZero() {
		below = idAt(ceilMilli(q.Before))
	}
	if len(q.JobIDs) == 0 {
		full, err := d.drop(ctx, dropRange{0, q.After.RunID, below})
		d.found.More = full
		return d.done(err)
	}
	ids := slices.DeleteFunc(slices.Clone(q.JobIDs), func(id int64) bool { return noJobID(id) || id < max(q.After.JobID, 1) })
	slices.Sort(ids)
	var ranges []dropRange
	for _, id := range slices.Compact(ids) {
		ranges = append(ranges, dropRange{id, 0, below})
	}
	return d.done(d.dropJobs(ctx, ranges, q.After))
}

// DropExpired deletes runs that their jobs do not keep for any longer.
func (s *Store) DropExpired(ctx context.Context, k store.KeepQuery) (store.Dropped, error) {
	q := xxljob.RunDrop{All: true, EndedBefore: k.EndedBefore, Limit: k.Limit}
	if err := ended(ctx); err != nil {
		return store.Dropped{}, err
	}
	if err := q.Validate(); err != nil {
		return store.Dropped{}, err
	}
	q.Complete()
	var ranges []dropRange
	err := s.readByIndex(ctx, s.sql.keepers.by(named{{"after", max(k.After.JobID, 0)}, {"limit", dropJobs + 1}}).into(func(rows pgx.Rows) error {
		var id, keep int64
		err := rows.Scan(&id, &keep)
		ranges = append(ranges, dropRange{id, 0, idAt(k.Now.Add(-time.Duration(keep) * time.Millisecond))})
		return err
	}))
	if err != nil {
		return store.Dropped{}, failed(err, "read which jobs keep their runs for less")
	}
	d := dropping{store: s, q: &q}
	return d.done(d.dropJobs(ctx, ranges, k.After))
}

func (d *dropping) done(err error) (store.Dropped, error) {
	if !d.found.More {
		d.found.Next = store.DropMark{}
	}
	return d.found, failed(err, "delete ended runs")
}

// dropJobs goes through jobs in order of their ids, from the mark on. With KeepNewest it ends
// with the first of them that has more runs.
func (d *dropping) dropJobs(ctx context.Context, ranges []dropRange, mark store.DropMark) error {
	for i, r := range ranges {
		if i == dropJobs || d.found.Examined >= d.q.Limit {
			d.found.More, d.found.Next = true, store.DropMark{JobID: r.job}
			return nil
		}
		if r.job == mark.JobID {
			r.after = mark.RunID
		}
		if d.q.KeepNewest > 0 {
			oldest := int64(0)
			err := d.store.readByIndex(ctx, d.store.sql.oldestKept.by(named{{"job", r.job}, {"behind", d.q.KeepNewest - 1}}).into(scanInto(&oldest)))
			if err != nil {
				return err
			}
			if r.below = min(r.below, oldest); oldest == 0 {
				continue
			}
		}
		full, err := d.drop(ctx, r)
		if err != nil {
			return err
		}
		if full {
			d.found.More = true
			return nil
		}
		if d.q.KeepNewest > 0 && i+1 < len(ranges) {
			d.found.More, d.found.Next = true, store.DropMark{JobID: ranges[i+1].job}
			return nil
		}
	}
	return nil
}

// drop goes through a range, and reports whether it has come to the limit first.
func (d *dropping) drop(ctx context.Context, r dropRange) (full bool, err error) {
	for {
		room := min(dropBatch, d.q.Limit-d.found.Examined)
		if room <= 0 {
			return true, nil
		}
		var chosen []int64
		n := 0
		if err := d.store.readByIndex(ctx, d.candidates(r, room).into(func(rows pgx.Rows) error {
			n++
			goes := false
			err := rows.Scan(&r.after, &goes)
			if goes {
				chosen = append(chosen, r.after)
			}
			return err
		})); err != nil {
			return false, err
		}
		gone, err := d.delete(ctx, chosen)
		if err != nil {
			return false, err
		}
		d.found.Examined += n
		d.found.Runs += gone
		d.found.Kept += len(chosen) - gone
		d.found.Next = store.DropMark{JobID: r.job, RunID: r.after}
		if n < room {
			return false, nil
		}
	}
}

// candidates reads the next runs of a range, each with whether it may be one that is to go.
func (d *dropping) candidates(r dropRange, limit int) statement {
	args := named{{"after", r.after}, {"below", r.below}, {"limit", limit}, {"ended", nullTime(d.q.EndedBefore)}}
	var apps []string
	if len(d.q.Apps) > 0 {
		apps = d.q.Apps
	}
	args = append(args, named{{"apps", apps}}...)
	if r.job == 0 {
		return d.store.sql.anyEnded.by(args)
	}
	return d.store.sql.endedOfJob.by(append(args, named{{"job", r.job}}...))
}

// delete deletes those of the runs that nothing needs, with their keys and the pages of their logs, or counts them.
func (d *dropping) delete(ctx context.Context, runs []int64) (int, error) {
	if len(runs) == 0 {
		return 0, nil
	}
	s := d.store
	if d.q.DryRun {
		var free []int64
		err := s.readByIndex(ctx, s.sql.droppable.by(s.dropArgs(runs)).into(readIDs(&free)))
		return len(free), err
	}
	var gone []int64
	err := s.inTx(ctx, bounds{name: "drop_ended"}, func(t *tx) error {
		gone = nil
		if err := t.do(ctx, s.sql.dropEnded.by(s.dropArgs(runs)).into(readIDs(&gone))); err != nil || len(gone) == 0 {
			return err
		}
		lo, hi := rangeOf(gone)
		return t.do(ctx, s.sql.dropKeys.with(gone), s.sql.dropPagesOf.by(named{{"runs", gone}, {"lo", lo}, {"hi", hi}}))
	})
	return len(gone), err
}

func (s *Store) dropArgs(runs []int64) named {
	lo, hi := rangeOf(runs)
	openLo, openHi := s.openRange()
	return named{{"runs", runs}, {"lo", lo}, {"hi", hi}, {"open_lo", openLo}, {"open_hi", openHi}}
}

// dropQueries are the statements of this file.
type dropQueries struct {
	anyEnded, endedOfJob, oldestKept, keepers, droppable, dropEnded, dropKeys, dropPagesOf query
}

func (q *dropQueries) define(sql template) {
	goes := `l.state > {{state.dispatched}} and ({{arg.ended}}::timestamptz is null or l.handle_time < {{arg.ended}}::timestamptz)
		and ({{arg.apps}}::text[] is null or l.app_name = any({{arg.apps}}::text[]))`
	some := func(of string) string {
		return `select l.id, ` + goes + ` from (select l.id, l.state, l.handle_time, l.app_name from {{schema}}.xxl_job_log l
		where ` + of + `l.id > {{arg.after}} and l.id < {{arg.below}} order by l.id limit {{arg.limit}}) l order by l.id`
	}
	q.anyEnded = sql(some(``))
	q.endedOfJob = sql(some(`l.job_id = {{arg.job}} and ` + isOver + ` and `))
	q.oldestKept = sql(`select l.id from {{schema}}.xxl_job_log l where l.job_id = {{arg.job}} and ` + isOver + ` order by l.id desc offset {{arg.behind}} limit 1`)
	q.keepers = sql(`select i.id, i.keep_runs from {{schema}}.xxl_job_info i where i.keep_runs > 0 and i.id >= {{arg.after}} order by i.id limit {{arg.limit}}`)
	// Whatever needs a run p. A run that has not ended lies in the range of those.
	const open = `o.state + 0 in ({{state.planned}}, {{state.started}}, {{state.dispatched}})`
	orDay := func(column string) string {
		return `case when ` + column + ` > 0 then ` + column + ` else ` + strconv.FormatInt(day.Milliseconds(), 10) + ` end`
	}
	// Each of them is a look-up of its own, whatever the planner thinks of the numbers.
	no := func(column, from string) string {
		return `
		and (select ` + column + ` from {{schema}}.` + from + ` limit 1) is null`
	}
	free := `select p.id from unnest({{arg.runs}}::bigint[]) with ordinality r(id, ord)
		join {{schema}}.xxl_job_log p on p.id = r.id and ` + few + ` and p.id between {{arg.lo}} and {{arg.hi}} and p.state + 0 > {{state.dispatched}}
		where p.scheduled_time <= ` + milliseconds("{{now}}") +
		no(`o.id`, `xxl_job_log o where o.trigger_id = coalesce(p.trigger_id, p.id) and `+open+` and o.id between {{arg.open_lo}} and {{arg.open_hi}}`) +
		no(`o.id`, `xxl_job_log o where o.id = p.trigger_id and `+open+` and o.id between {{arg.open_lo}} and {{arg.open_hi}}`) +
		no(`o.log_id`, `xxl_job_owed o where o.log_id = p.id`) +
		no(`w.parent_id`, `xxl_job_window w where w.parent_id = p.id`) +
		no(`a.log_id`, `xxl_job_alarm a where a.log_id = p.id and a.status = 0`) +
		no(`t.job_id`, `xxl_job_told t where t.job_id = p.job_id and t.is_open
			and (t.log_id = p.id or p.state = {{state.succeeded}} and p.snoozed is null and p.id > coalesce(t.log_id, 0))`) +
		no(`n.job_id`, `xxl_job_next n where n.job_id = p.job_id and n.wait_run = p.id`) +
		no(`k.run_id`, `xxl_job_trigger_key k join {{schema}}.xxl_job_info i on i.id = k.job_id
			where k.run_id = p.id and pg_catalog.starts_with(k.trigger_key, '`+store.WindowKeys+`')
			and coalesce(p.business_time, 0) + `+orDay("i.after_window")+` + `+orDay("i.after_timeout")+` + 3600000 > `+milliseconds("{{now}}"))
	q.droppable = sql(free)
	q.dropEnded = sql(`delete from {{schema}}.xxl_job_log l where l.id between {{arg.lo}} and {{arg.hi}}
	and l.id = any(array(` + free + ` order by p.id for update of p skip locked)) returning l.id`)
	q.dropPagesOf = sql(`delete from {{schema}}.xxl_job_log_page p where p.run_id = any({{arg.runs}}::bigint[]) and p.run_id between {{arg.lo}} and {{arg.hi}}`)
	q.dropKeys = sql(`delete from {{schema}}.xxl_job_trigger_key k where k.run_id = any($1::bigint[])`)
}
