package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// loggedRuns is how many runs of one day have pages, loggedPages how many each has.
const (
	loggedRuns  = 10_000
	loggedPages = 20
)

// loggedDay is the day of these runs. Nothing is in the partitions of other days, which
// autovacuum does not look at then.
func (d *planData) loggedDay() time.Time { return d.now.Truncate(day).Add(-2 * day) }

// fillLogs gives runs of one day pages.
func (d *planData) fillLogs(t testing.TB) {
	t.Helper()
	if err := d.ensurePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := d.loggedDay()
	rows, err := d.pool.Query(t.Context(), "select id from "+d.partition(from)+" where state > 2 order by id limit $1", 2*loggedRuns)
	if err != nil {
		t.Fatal(err)
	}
	if d.logged, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		t.Fatal(err)
	}
	d.exec(t, `insert into {{schema}}.xxl_job_log_page (run_id, first_line, last_line, size, content)
	select id, n * 10 + 1, n * 10 + 10, 600, decode(repeat('00ff', 100), 'hex') from unnest($1::bigint[]) id, generate_series(0, $2::int - 1) n`, d.logged[:loggedRuns], loggedPages)
	d.exec(t, `insert into {{schema}}.xxl_job_log_use (day, job_id, bytes) select $1 - d, n, 1000 from generate_series(1, 10000) n, generate_series(0, 9) d`,
		int(from.Sub(idTime(0))/(24*time.Hour)))
}

// pagesFor is a page of each of the runs.
func pagesFor(runs []int64, line int) []store.LogPage {
	pages := make([]store.LogPage, len(runs))
	for i, id := range runs {
		pages[i] = store.LogPage{RunID: id, FirstLine: line, LastLine: line + 9, Size: 600, Content: make([]byte, 200)}
	}
	return pages
}

func (d *planData) logPageCases() []planCase {
	q := d.sql
	from := d.loggedDay()
	run := d.logged[10]
	add := func(pages []store.LogPage, most int) statement {
		return q.addPages.by(append(pageArgs(pages), named{{"job_bytes", most}}...))
	}
	read := func(line, limit int) statement {
		return q.logPages.by(named{{"run", run}, {"from_line", line}, {"limit", limit}})
	}
	return []planCase{
		{name: "addPages 1000 new", st: add(pagesFor(d.logged[:1000], 1001), 1<<40), reach: reachIDs, batch: 4000},
		{name: "addPages 1000 there", st: add(pagesFor(d.logged[:1000], 1), 1<<40), reach: reachIDs, batch: 3000},
		{name: "addPages 1000 refused", st: add(pagesFor(d.logged[loggedRuns:loggedRuns+1000], 1), 1), rows: 1, reach: reachIDs, batch: 4000},
		{name: "addPages 1", st: add(pagesFor(d.logged[:1], 1001), 1<<40), reach: reachIDs, batch: 10},
		{name: "logPages first", st: read(1, 64), rows: loggedPages, reach: reachOne},
		{name: "logPages middle", st: read(101, 64), rows: 10, reach: reachOne},
		{name: "logPages tail", st: read(-50, 64), rows: 5, reach: reachOne},
		{name: "logPages behind", st: read(1000, 64), rows: 1, reach: reachOne},
		{name: "pagePartitions", st: q.pagePartitions.with(), rows: planDays},
		{name: "deletePages", st: q.deletePages.by(named{{"lo", idAt(from)}, {"hi", idAt(from.Add(day)) - 1}, {"limit", endBatch}}), rows: endBatch, reach: reachOne, batch: 2000},
		{name: "deleteUse", st: q.deleteUse.by(named{{"lo", 0}, {"hi", idAt(from) - 1}, {"limit", endBatch}}), rows: endBatch, batch: 2000},
	}
}
