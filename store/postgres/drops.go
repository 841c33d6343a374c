package postgres

// Ended runs that are deleted one by one, where their day stays. First some are read by an
// index, oldest first; then those of them go that nothing needs, which is found out by the
// statement that deletes them: what has ended for good begins nothing by itself, so what one
// snapshot shows of a run, and of all that may need it, stays true.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

const (
	// dropBatch is how many runs one transaction deletes at most, dropPageBatch how many pages of
	// logs: of these each is some rows where it is stored.
	dropBatch, dropPageBatch = 1000, 1000
	// dropPages is after how many pages a call leaves the rest to another one.
	dropPages = 20_000
	// dropJobs is how many jobs one call looks at.
	dropJobs = 200
)

// dropping is a call that deletes ended runs.
type dropping struct {
	store *Store
	q     *store.RunDrop
	found store.Dropped
	pages int // of logs that have gone
	lot   int // of how many runs pages are deleted at a time; see lots
}

// dropRange is a range of ids of runs: of a job, or of all where that is 0. Both ends are
// outside.
type dropRange struct{ job, after, below int64 }

// DropEnded deletes runs that have ended and that the question chooses, or counts them.
func (s *Store) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	if err := ended(ctx); err != nil {
		return store.Dropped{}, err
	}
	if err := q.Validate(); err != nil {
		return store.Dropped{}, err
	}
	q.Complete()
	d := dropping{store: s, q: &q, lot: dropBatch}
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
	q := store.RunDrop{All: true, EndedBefore: k.EndedBefore, Limit: k.Limit}
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
	d := dropping{store: s, q: &q, lot: dropBatch}
	if err = d.dropJobs(ctx, ranges, k.After); err != nil {
		d.found.More, d.found.Next = true, store.DropMark{JobID: d.found.Next.JobID + 1}
	}
	return d.done(err)
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
		d.found.Next = store.DropMark{JobID: r.job, RunID: r.after}
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
		var ids, chosen []int64
		if err := d.store.readByIndex(ctx, d.candidates(r, room).into(func(rows pgx.Rows) error {
			id, goes := int64(0), false
			err := rows.Scan(&id, &goes)
			if ids = append(ids, id); goes {
				chosen = append(chosen, id)
			}
			return err
		})); err != nil {
			return false, err
		}
		past, err := d.delete(ctx, chosen)
		if err != nil {
			return false, err
		}
		n := len(ids)
		if past < len(chosen) {
			n, _ = slices.BinarySearch(ids, chosen[past])
		}
		d.found.Examined += n
		if n > 0 {
			r.after = ids[n-1]
		}
		d.found.Next = store.DropMark{JobID: r.job, RunID: r.after}
		if n < len(ids) {
			return true, nil
		}
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

// delete deletes those of the runs that nothing needs, with their keys and the pages of their
// logs, or counts them. It returns how many of the runs it has come past: not all where so
// many pages have gone that the rest is for another call.
func (d *dropping) delete(ctx context.Context, runs []int64) (past int, err error) {
	if d.q.DryRun && len(runs) > 0 {
		var free []int64
		err := d.store.readByIndex(ctx, d.store.sql.droppable.by(d.store.dropArgs(runs)).into(readIDs(&free)))
		d.found.Runs, d.found.Kept = d.found.Runs+len(free), d.found.Kept+len(runs)-len(free)
		return len(runs), err
	}
	for past < len(runs) && d.pages < dropPages {
		n, pages, err := d.some(ctx, runs[past:])
		if err != nil {
			return past, err
		}
		goes := true
		if pages > dropPageBatch {
			goes, err = d.shorten(ctx, runs[past])
		} else if err = d.deleteRuns(ctx, runs[past:past+n]); err == nil {
			past += n
		}
		if err != nil {
			return past, err
		}
		if !goes {
			past, d.found.Kept = past+1, d.found.Kept+1
		}
	}
	return past, nil
}

// deleteRuns is delete in one transaction, of runs with no more pages than that may delete.
func (d *dropping) deleteRuns(ctx context.Context, runs []int64) error {
	s := d.store
	var gone goneRuns
	err := s.inTx(ctx, bounds{name: "drop_ended"}, func(t *tx) error {
		gone = goneRuns{}
		if err := t.do(ctx, s.sql.dropEnded.by(s.dropArgs(runs)).into(gone.read)); err != nil || len(gone.ids) == 0 {
			return err
		}
		lo, hi := rangeOf(gone.ids)
		err := t.do(ctx, s.sql.dropKeys.with(gone.ids), s.sql.dropPagesOf.by(named{{"runs", gone.ids}, {"lo", lo}, {"hi", hi}}).into(gone.readPages))
		if err != nil {
			return err
		}
		return gone.giveBack(ctx, t)
	})
	if err != nil {
		return err
	}
	d.found.Runs, d.found.Kept, d.pages = d.found.Runs+len(gone.ids), d.found.Kept+len(runs)-len(gone.ids), d.pages+gone.pages
	return nil
}

func (s *Store) dropArgs(runs []int64) named {
	lo, hi := rangeOf(runs)
	openLo, openHi := s.openRange()
	return named{{"runs", runs}, {"lo", lo}, {"hi", hi}, {"open_lo", openLo}, {"open_hi", openHi}}
}

// Pages of logs that go with their runs. Nothing bounds how many a run has, so they are counted
// first: a transaction deletes so many runs that their pages stay few, and a run that has too
// many loses pages in transactions of their own before it goes. What has gone is taken off what
// the job has of the day, in order of day and job, as what is added locks it.

// some is how many of the first of the runs have so few pages that one transaction can delete
// them, and how many they have. Of one run that has more it is 1.
func (d *dropping) some(ctx context.Context, runs []int64) (n, pages int, err error) {
	for n = min(d.lot, len(runs)); ; n = (n + 1) / 2 {
		lo, hi := rangeOf(runs[:n])
		err = d.store.readByIndex(ctx, d.store.sql.countPages.by(named{{"runs", runs[:n]}, {"lo", lo}, {"hi", hi}, {"limit", dropPageBatch + 1}}).into(scanInto(&pages)))
		if err != nil || pages <= dropPageBatch || n == 1 {
			d.lot = min(2*n, dropBatch)
			return n, pages, err
		}
	}
}

// shorten deletes the first pages of a run, as many as one transaction may, and reports whether
// the run may go: if something needs it, it keeps them.
func (d *dropping) shorten(ctx context.Context, run int64) (goes bool, err error) {
	s := d.store
	var gone goneRuns
	err = s.inTx(ctx, bounds{name: "drop_pages"}, func(t *tx) error {
		gone = goneRuns{}
		if err := t.do(ctx, s.sql.lockDroppable.by(s.dropArgs([]int64{run})).into(gone.read)); err != nil || len(gone.ids) == 0 {
			return err
		}
		if err := t.do(ctx, s.sql.dropSomePages.by(named{{"run", run}, {"limit", dropPageBatch}}).into(gone.readPages)); err != nil {
			return err
		}
		return gone.giveBack(ctx, t)
	})
	d.pages += gone.pages
	return len(gone.ids) > 0, err
}

// goneRuns are runs of which pages are deleted.
type goneRuns struct {
	ids, jobs []int64
	pages     int
	bytes     map[jobDay]int64
}

// jobDay is what pages are counted by.
type jobDay struct {
	day int32
	job int64
}

// read reads the runs, each with its job.
func (g *goneRuns) read(rows pgx.Rows) error {
	var id, job int64
	err := rows.Scan(&id, &job)
	g.ids, g.jobs = append(g.ids, id), append(g.jobs, job)
	return err
}

// readPages reads how many pages of a run have gone, and what they had.
func (g *goneRuns) readPages(rows pgx.Rows) error {
	var run, n, bytes int64
	key := jobDay{}
	if err := rows.Scan(&run, &key.day, &n, &bytes); err != nil {
		return err
	}
	key.job = g.jobs[slices.Index(g.ids, run)]
	if g.bytes == nil {
		g.bytes = map[jobDay]int64{}
	}
	g.bytes[key] += bytes
	g.pages += int(n)
	return nil
}

// giveBack takes what has gone off what the jobs have.
func (g *goneRuns) giveBack(ctx context.Context, t *tx) error {
	if len(g.bytes) == 0 {
		return nil
	}
	var days []int32
	var jobs, bytes []int64
	for _, key := range slices.SortedFunc(maps.Keys(g.bytes), func(a, b jobDay) int { return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.job, b.job)) }) {
		days, jobs, bytes = append(days, key.day), append(jobs, key.job), append(bytes, g.bytes[key])
	}
	return t.do(ctx, t.store.sql.lessUse.by(named{{"days", days}, {"jobs", jobs}, {"bytes", bytes}}))
}

// dropQueries are the statements of this file.
type dropQueries struct {
	anyEnded, endedOfJob, oldestKept, keepers, droppable, lockDroppable, dropEnded, dropKeys query
	countPages, dropPagesOf, dropSomePages, lessUse                                          query
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
	free := `from unnest({{arg.runs}}::bigint[]) with ordinality r(id, ord)
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
	q.droppable = sql(`select p.id ` + free)
	q.lockDroppable = sql(`select p.id, p.job_id ` + free + ` order by p.id for update of p skip locked`)
	q.dropEnded = sql(`delete from {{schema}}.xxl_job_log l where l.id between {{arg.lo}} and {{arg.hi}}
	and l.id = any(array(select p.id ` + free + ` order by p.id for update of p skip locked)) returning l.id, l.job_id`)
	q.dropKeys = sql(`delete from {{schema}}.xxl_job_trigger_key k where k.run_id = any($1::bigint[])`)

	const of = `p.run_id = any({{arg.runs}}::bigint[]) and p.run_id between {{arg.lo}} and {{arg.hi}}`
	q.countPages = sql(`select count(*)::int from (select p.run_id from {{schema}}.xxl_job_log_page p where ` + of + ` limit {{arg.limit}}) p`)
	counted := func(deletion string) string {
		return `with gone as (` + deletion + ` returning p.run_id, pg_catalog.octet_length(p.content) as bytes)
	select g.run_id, ` + dayOfID("g.run_id") + `, count(*), pg_catalog.sum(g.bytes)::bigint from gone g group by g.run_id`
	}
	q.dropPagesOf = sql(counted(`delete from {{schema}}.xxl_job_log_page p where ` + of))
	q.dropSomePages = sql(counted(`delete from {{schema}}.xxl_job_log_page p where p.run_id = {{arg.run}}
		and p.first_line = any(array(select f.first_line from {{schema}}.xxl_job_log_page f where f.run_id = {{arg.run}} order by f.first_line limit {{arg.limit}}))`))
	// A notice of a day that is full is not counted when it comes.
	q.lessUse = sql(`with held as materialized (select u.day, u.job_id, r.bytes
	from unnest({{arg.days}}::int[], {{arg.jobs}}::int[], {{arg.bytes}}::bigint[]) r(day, job_id, bytes)
	join {{schema}}.xxl_job_log_use u on u.day = r.day and u.job_id = r.job_id order by u.day, u.job_id for no key update of u)
	update {{schema}}.xxl_job_log_use u set bytes = greatest(u.bytes - h.bytes, 0) from held h where u.day = h.day and u.job_id = h.job_id`)
}
