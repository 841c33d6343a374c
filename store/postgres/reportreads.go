package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

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

// reportReadQueries are the statements of this file.
type reportReadQueries struct {
	reportEdge, reportCountOf, reportShareOf, reports, reportsOf, foldSlots, foldDays query
}

func (q *reportReadQueries) define(sql template) {
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
