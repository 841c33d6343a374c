package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

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

// dropPageQueries are the statements of this file.
type dropPageQueries struct {
	countPages, dropPagesOf, dropSomePages, lessUse query
}

func (q *dropPageQueries) define(sql template) {
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
