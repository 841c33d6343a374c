package postgres

// Reports: how runs have ended. A transaction that ends runs counts them in its tally, which is
// written together with the commit: so no transaction waits for anything else while it holds
// rows of reports.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// reportSlots is how many rows a report is spread over while runs end: two transactions that
// end runs at a time mostly add to different ones. Where they do not, or somebody else has locked
// the row, the later one adds to a row of a spare slot, and waits for no row that is there
// already. One that another has inserted and not committed yet is seen by nobody: who comes to
// it waits for that commit, which the other has sent together with the row.
const (
	reportSlots = 16
	spareSlots  = 30_000
)

// count has the reports count those of the runs that have ended, with the commit.
func (t *tx) count(runs ...store.Run) {
	for i := range runs {
		t.countEnd(&runs[i])
	}
}

// countEnd is count for one run.
func (t *tx) countEnd(r *store.Run) {
	if !t.store.cfg.NoReports {
		r.CountEnd(t.tally.Count)
	}
}

// countCancelled is count for runs of an app that were cancelled, with instants in one quarter of
// an hour.
func (t *tx) countCancelled(app string, quarter time.Time, n int) {
	if !t.store.cfg.NoReports {
		t.tally.Count(app, quarter).Ended[store.StateCancelled] += int64(n)
	}
}

// reportBatch is how many reports one statement writes. It is rarely more than a few; but a job
// that is removed may have runs for each quarter of an hour of a year.
const reportBatch = 1000

// awaitCommit has the statements behind it wait for the commit of another as long as a
// transaction may: it may take longer than a batch waits for locks, where the disk or a standby
// is slow, and who gives up does all of its work again.
func (s *Store) awaitCommit() statement {
	return statement{sql: "select pg_catalog.set_config('lock_timeout', '" + strconv.FormatInt((s.cfg.patience*lockPatience).Milliseconds(), 10) + "', true)"}
}

// writeReports are the statements that add what was counted.
func (s *Store) writeReports(reports []*store.Report) []statement {
	write := []statement{s.awaitCommit()}
	for some := range slices.Chunk(reports, reportBatch) {
		write = append(write, s.addReports(some))
	}
	return write
}

// addReports adds what was counted to rows of one slot.
func (s *Store) addReports(reports []*store.Report) statement {
	quarters, apps, counts := make([]int64, len(reports)), make([]string, len(reports)), make([]int64, 0, len(reports)*len(reportColumns))
	for i, r := range reports {
		quarters[i], apps[i] = r.From.UnixMilli(), r.App
		for _, c := range reportColumns {
			counts = append(counts, *c.of(r)/c.unit)
		}
	}
	slot, spare := reportSlot()
	return s.sql.addReports.by(named{{"counts", counts}, {"quarters", quarters}, {"apps", apps}, {"places", upTo(len(reports))}, {"slot", slot}, {"spare", spare}})
}

// reportSlot chooses the slot of a transaction, and what takes its place where another has it.
func reportSlot() (slot, spare int) {
	return 1 + rand.IntN(reportSlots), 1 + reportSlots + rand.IntN(spareSlots)
}

// freeSlot is the slot in which the quarter and the app of a row r are counted.
const (
	slotOf   = `from {{schema}}.xxl_job_report f where f.quarter = r.quarter and f.app_name = r.app collate "C" and f.slot = {{arg.slot}}::smallint`
	freeSlot = `coalesce((select f.slot ` + slotOf + ` for update skip locked), case when exists (select ` + slotOf + `) then {{arg.spare}}::smallint else {{arg.slot}}::smallint end)`
)

// reportColumn is a column of a report that is added up. It has the number in units.
type reportColumn struct {
	name string
	of   func(*store.Report) *int64
	unit int64
}

var reportColumns = func() (list []reportColumn) {
	add := func(unit int64, of func(*store.Report) *int64, name string, args ...any) {
		list = append(list, reportColumn{fmt.Sprintf(name, args...), of, unit})
	}
	for state := store.StateSucceeded; state <= store.StateSnoozed; state++ {
		add(1, func(r *store.Report) *int64 { return &r.Ended[state] }, "%s", strings.ReplaceAll(state.String(), " ", "_"))
	}
	histogram := func(name string, of func(*store.Report) *store.Histogram) {
		add(1_000_000, func(r *store.Report) *int64 { return (*int64)(&of(r).Sum) }, "%s_sum", name)
		for i, bound := range store.Bounds() {
			add(1, func(r *store.Report) *int64 { return &of(r).Counts[i] }, "%s_%d", name, bound.Milliseconds())
		}
		add(1, func(r *store.Report) *int64 { return &of(r).Counts[store.Buckets-1] }, "%s_more", name)
	}
	histogram("late", func(r *store.Report) *store.Histogram { return &r.Lateness })
	histogram("took", func(r *store.Report) *store.Histogram { return &r.Duration })
	return list
}()

// eachReportColumn writes something for each column, by its name and its place from 1 on.
func eachReportColumn(sep string, write func(name string, place int) string) string {
	list := make([]string, len(reportColumns))
	for i, c := range reportColumns {
		list[i] = write(c.name, i+1)
	}
	return strings.Join(list, sep)
}

// Parts of statements about reports: the columns; what adds a row that is there already to what
// was to be inserted; sums of rows r.
func reportNames() string {
	return eachReportColumn(", ", func(name string, _ int) string { return name })
}

func reportAdded() string {
	return eachReportColumn(", ", func(name string, _ int) string { return name + " = t." + name + " + excluded." + name })
}

func reportSums() string {
	return eachReportColumn(", ", func(name string, _ int) string { return "pg_catalog.sum(r." + name + ")::bigint" })
}

// Reports are read at a bounded cost: first it is found out how far so many rows lead, by
// indexes alone; then the rows up to there are added up. Where some apps are chosen, nothing has
// the rows of them all in order of time. Then they are counted; and where there are too many,
// each app has an equal share of what may be read, and the first that has more says how far it
// goes. That may be less far than so many rows lead, if one app has more rows than others.

// Reports returns reports that the query chooses.
func (s *Store) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	if err := ended(ctx); err != nil {
		return store.ReportsFound{}, err
	}
	if err := q.Validate(); err != nil {
		return store.ReportsFound{}, err
	}
	q.Complete()
	found := store.ReportsFound{Until: q.To.UTC()}
	if !q.From.Before(q.To) {
		return found, nil
	}
	sums, reach := s.sql.reports, s.reach
	if len(q.Apps) > 0 {
		q.Apps = slices.Compact(slices.Sorted(slices.Values(q.Apps)))
		sums, reach = s.sql.reportsOf, s.reachOf
	}
	until, err := reach(ctx, &q)
	if err != nil {
		return store.ReportsFound{}, err
	}
	found.Until = until
	args := append(reportArgs(&q, found.Until), named{{"length", q.Length.Milliseconds()}, {"together", q.Together}}...)
	err = s.readByIndex(ctx, sums.by(args).into(func(rows pgx.Rows) error {
		r, err := readReport(rows, &q)
		found.Reports = append(found.Reports, r)
		return err
	}))
	if err != nil {
		return store.ReportsFound{}, failed(err, "read reports")
	}
	return found, nil
}

// reach returns how far so many rows lead.
func (s *Store) reach(ctx context.Context, q *store.ReportQuery) (time.Time, error) {
	next := int64(0)
	args := append(reportArgs(q, q.To), named{{"limit", q.Examine}}...)
	if err := s.readByIndex(ctx, s.sql.reportEdge.by(args).into(scanInto(&next))); err != nil {
		return time.Time{}, failed(err, "read reports")
	}
	if next == 0 {
		return q.To.UTC(), nil
	}
	return q.Cut(fromMilli(next))
}

// reachOf is reach for some apps. Where the shares do not lead as far as one report, it looks
// whether all rows of that are too many.
func (s *Store) reachOf(ctx context.Context, q *store.ReportQuery) (time.Time, error) {
	if all, err := s.mayRead(ctx, q, q.To); all || err != nil {
		return q.To.UTC(), err
	}
	next := q.From.UnixMilli()
	if share := q.Examine / len(q.Apps); share > 0 {
		args := append(reportArgs(q, q.To), named{{"share", share}}...)
		if err := s.readByIndex(ctx, s.sql.reportShareOf.by(args).into(scanInto(&next))); err != nil {
			return time.Time{}, failed(err, "read reports")
		}
	}
	until, tooMany := q.Cut(fromMilli(next))
	if one := q.From.UTC().Add(q.Length); tooMany != nil && one.Before(q.To) {
		if all, err := s.mayRead(ctx, q, one); all || err != nil {
			return one, err
		}
	}
	return until, tooMany
}

// mayRead reports whether no more rows have to be read, up to a time, than may be.
func (s *Store) mayRead(ctx context.Context, q *store.ReportQuery, until time.Time) (bool, error) {
	n := 0
	args := append(reportArgs(q, until), named{{"limit", q.Examine}}...)
	err := s.readByIndex(ctx, s.sql.reportCountOf.by(args).into(scanInto(&n)))
	return n <= q.Examine, failed(err, "read reports")
}

// reportArgs choose rows up to a time.
func reportArgs(q *store.ReportQuery, until time.Time) named {
	day := func(t time.Time) time.Time { return store.DayOf(t.Add(store.ReportDay - time.Millisecond)) }
	args := named{{"lo", q.From.UnixMilli()}, {"hi", until.UnixMilli()}, {"from_day", day(q.From)}, {"to_day", day(until)}}
	if len(q.Apps) > 0 {
		args = append(args, named{{"apps", q.Apps}}...)
	}
	return args
}

func readReport(rows pgx.Rows, q *store.ReportQuery) (store.Report, error) {
	var r store.Report
	var span int64
	var hasDay bool
	dest := []any{&span, &r.App, &hasDay}
	for _, c := range reportColumns {
		dest = append(dest, c.of(&r))
	}
	if err := rows.Scan(dest...); err != nil {
		return r, err
	}
	for _, c := range reportColumns {
		*c.of(&r) *= c.unit
	}
	r.From, r.Length = q.From.UTC().Add(time.Duration(span)*q.Length), q.Length
	if hasDay {
		r.Length = max(r.Length, store.ReportDay)
	}
	return r, nil
}

// foldAfter is for how long after a quarter of an hour began its rows stay spread over slots:
// most of its runs have ended by then. Those that end later are added up in another go.
const foldAfter = 3 * store.Quarter

// foldBatch is how many rows one transaction adds up.
const foldBatch = 1000

// FoldReports adds up what is spread over slots, and quarters of an hour of long ago to days.
func (s *Store) FoldReports(ctx context.Context) error {
	now := s.estimate()
	for _, fold := range []struct {
		name   string
		query  query
		before time.Time
	}{
		{"fold_slots", s.sql.foldSlots, now.Add(-foldAfter)},
		{"fold_days", s.sql.foldDays, store.DayOf(now.Add(-store.QuartersKept))},
	} {
		for n := foldBatch; n == foldBatch; {
			err := s.one(ctx, bounds{name: fold.name, lock: quickPatience}, fold.query.by(named{
				{"before", fold.before.UnixMilli()}, {"limit", foldBatch},
			}).into(scanInto(&n)))
			if err != nil {
				return failed(err, "add up reports")
			}
		}
	}
	return nil
}

// reportQueries are the statements of this file.
type reportQueries struct {
	addReports                                                                        query
	reportEdge, reportCountOf, reportShareOf, reports, reportsOf, foldSlots, foldDays query
}

func (q *reportQueries) define(sql template) {
	counts := eachReportColumn(", ", func(_ string, place int) string {
		return fmt.Sprintf("({{arg.counts}}::bigint[])[(r.ord - 1) * %d + %d]", len(reportColumns), place)
	})
	// The condition is for the planner too: a plan for any number of rows looked dearer than one
	// for the row that there mostly is, so that each call was planned anew, for longer than it took.
	q.addReports = sql(`insert into {{schema}}.xxl_job_report as t (quarter, app_name, slot, ` + reportNames() + `)
	select r.quarter, r.app, ` + freeSlot + `, ` + counts + `
	from (select unnest({{arg.quarters}}::bigint[]) quarter, unnest({{arg.apps}}::text[]) app, unnest({{arg.places}}::int[]) ord) r where ` + few + ` order by r.quarter, r.app collate "C"
	on conflict (quarter, app_name, slot) do update set ` + reportAdded())

	const dayMilli = `(d.trigger_day - '1970-01-01'::pg_catalog.date)::bigint * 86400000::bigint`
	const quarters = `x.quarter >= {{arg.lo}}::bigint and x.quarter < {{arg.hi}}::bigint`
	const days = `d.trigger_day >= {{arg.from_day}}::pg_catalog.date and d.trigger_day < {{arg.to_day}}::pg_catalog.date`
	const ofApp, ofAppsDay = `x.app_name = a.app collate "C" and `, `d.app_name = a.app collate "C" and `
	// The rows in order of time, as far as one more than a number of them.
	rows := func(ofQuarter, ofDay, number string) string {
		return `((select x.quarter at from {{schema}}.xxl_job_report x where ` + ofQuarter + quarters + ` order by x.quarter limit ` + number + `::bigint + 1::bigint)
	union all (select ` + dayMilli + ` from {{schema}}.xxl_job_log_report d where ` + ofDay + days + ` order by d.trigger_day limit ` + number + `::bigint + 1::bigint)) e
	order by e.at offset ` + number + `::bigint limit 1`
	}
	q.reportEdge = sql(`select e.at from ` + rows("", "", "{{arg.limit}}"))
	q.reportShareOf = sql(`select coalesce(pg_catalog.min(f.at), {{arg.lo}}::bigint) from unnest({{arg.apps}}::text[]) a(app) cross join lateral
	(select e.at from ` + rows(ofApp, ofAppsDay, "{{arg.share}}") + `) f`)
	q.reportCountOf = sql(`select count(*)::int from (select 1 from unnest({{arg.apps}}::text[]) a(app) cross join lateral
	(select 1 from {{schema}}.xxl_job_report x where ` + ofApp + quarters + ` union all select 1 from {{schema}}.xxl_job_log_report d where ` + ofAppsDay + days + `) e
	limit {{arg.limit}}::bigint + 1::bigint) c`)
	// Sums of bigint are numbers of any size, of which each group would make fifty. These are
	// exact up to 2^53.
	quickSums := eachReportColumn(", ", func(name string, _ int) string {
		return "pg_catalog.sum(r." + name + "::double precision)::bigint"
	})
	sums := func(ofQuarter, ofDay string) query {
		return sql(`select r.span, r.app, pg_catalog.bool_or(r.is_day), ` + quickSums + ` from (
	select (x.quarter - {{arg.lo}}::bigint) / {{arg.length}}::bigint span, case when {{arg.together}}::boolean then '' else x.app_name end app, false is_day, ` + reportNames() + `
		from {{schema}}.xxl_job_report x where ` + ofQuarter + quarters + `
	union all
	select (` + dayMilli + ` - {{arg.lo}}::bigint) / {{arg.length}}::bigint, case when {{arg.together}}::boolean then '' else d.app_name end, true, ` + reportNames() + `
		from {{schema}}.xxl_job_log_report d where ` + ofDay + days + `) r
	group by r.span, r.app order by r.span, r.app collate "C"`)
	}
	q.reports = sums("", "")
	q.reportsOf = sums(`x.app_name = any({{arg.apps}}::text[]) and `, `d.app_name = any({{arg.apps}}::text[]) and `)
	// What somebody adds to at this moment is left for the next time.
	gone := func(chosen string) string {
		return `with gone as (delete from {{schema}}.xxl_job_report x where x.ctid = any(array(select y.ctid from {{schema}}.xxl_job_report y
		where ` + chosen + `y.quarter < {{arg.before}}::bigint order by y.quarter, y.app_name, y.slot limit {{arg.limit}} for update skip locked)) returning x.*),
	`
	}
	q.foldSlots = sql(gone("y.slot > 0 and ") + `folded as (insert into {{schema}}.xxl_job_report as t (quarter, app_name, slot, ` + reportNames() + `)
		select r.quarter, r.app_name, 0, ` + reportSums() + ` from gone r group by r.quarter, r.app_name order by r.quarter, r.app_name
		on conflict (quarter, app_name, slot) do update set ` + reportAdded() + `)
	select count(*) from gone`)
	const succeeded, failed = `r.succeeded + r.snoozed`, `r.failed + r.timed_out + r.killed + r.lost + r.refused + r.discarded`
	q.foldDays = sql(gone("") + `folded as (insert into {{schema}}.xxl_job_log_report as t (trigger_day, app_name, running_count, suc_count, fail_count, update_time, ` + reportNames() + `)
		select '1970-01-01'::pg_catalog.date + (r.quarter / 86400000::bigint)::int, r.app_name, 0, pg_catalog.sum(` + succeeded + `)::bigint, pg_catalog.sum(` + failed + `)::bigint, {{now}}, ` + reportSums() + `
		from gone r group by 1, 2 order by 1, 2
		on conflict (trigger_day, app_name) do update set suc_count = t.suc_count + excluded.suc_count, fail_count = t.fail_count + excluded.fail_count,
			update_time = excluded.update_time, ` + reportAdded() + `)
	select count(*) from gone`)
}
