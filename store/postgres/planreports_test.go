package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What reports may cost: of ten apps, for 35 days by quarters of an hour, the last of them spread
// over slots, and two years by days; and of sixty apps for four days of a time to come.

func (d *planData) fillReports(t testing.TB) {
	t.Helper()
	last := store.QuarterOf(d.now)
	d.exec(t, `insert into {{schema}}.xxl_job_report (quarter, app_name, slot, succeeded, late_sum, late_1, took_sum, took_5)
	select $1::bigint - n::bigint * 900000, 'app-' || a, s, 7, 7, 7, 35, 7 from generate_series(0, 35 * 96) n, generate_series(0, 9) a, generate_series(0, 16) s
	where s = 0 or n < 4`, last.UnixMilli())
	d.exec(t, `insert into {{schema}}.xxl_job_log_report (trigger_day, app_name, running_count, suc_count, fail_count, update_time, succeeded)
	select $1::date - n, 'app-' || a, 0, 700, 0, now(), 700 from generate_series(36, 730) n, generate_series(0, 9) a`, store.DayOf(last))
	d.exec(t, `insert into {{schema}}.xxl_job_report (quarter, app_name, slot, cancelled)
	select $1::bigint + n::bigint * 900000, 'many-' || a, 0, 1 from generate_series(0, 4 * 96 - 1) n, generate_series(0, 59) a`, last.Add(1000*day).UnixMilli())
}

func (d *planData) reportCases() []planCase {
	q := d.sql
	day1, month := d.reportQuery(store.ReportDay), d.reportQuery(store.QuartersKept)
	years := store.ReportQuery{From: d.now.Add(-800 * day).Truncate(day), To: d.now.Truncate(day)}
	of := func(query store.ReportQuery, apps ...string) store.ReportQuery {
		query.Apps = apps
		return query
	}
	edge := func(query store.ReportQuery, name string, n int) named {
		return append(reportArgs(&query, query.To), named{{name, n}}...)
	}
	later := store.ReportQuery{From: store.QuarterOf(d.now).Add(1000 * day), To: store.QuarterOf(d.now).Add(1004 * day)}
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprint("many-", i)
	}
	sums := func(query store.ReportQuery, length time.Duration) named {
		return append(reportArgs(&query, query.To), named{{"length", length.Milliseconds()}, {"together", false}}...)
	}
	fold := func(before time.Time) named { return named{{"before", before.UnixMilli()}, {"limit", 1000}} }
	counts := make([]*store.Report, 10)
	for i := range counts {
		counts[i] = &store.Report{App: "app-" + string(rune('0'+i)), From: store.QuarterOf(d.now), Length: store.Quarter}
	}
	add := d.addReports(counts)
	return []planCase{
		{name: "addReports", st: add, rows: 0, batch: 20, wasted: 200, kept: true},
		{name: "addReports of one", st: d.addReports(counts[:1]), rows: 0, batch: 20, wasted: 200, kept: true},
		{name: "reportEdge of a day", st: q.reportEdge.by(edge(day1, "limit", 20_000)), rows: 0, batch: 3000},
		{name: "reportEdge of 35 days", st: q.reportEdge.by(edge(month, "limit", 20_000)), rows: 1, batch: 30_000, wasted: 20_000},
		{name: "reportEdge of years", st: q.reportEdge.by(edge(years, "limit", 20_000)), rows: 1, batch: 30_000, wasted: 20_000},
		{name: "reportCountOf two apps", st: q.reportCountOf.by(edge(of(month, "app-1", "app-2"), "limit", 20_000)), rows: 1, batch: 2000},
		{name: "reportCountOf too many", st: q.reportCountOf.by(edge(of(later, many...), "limit", 1000)), rows: 1, batch: 250},
		{name: "reportShareOf two apps", st: q.reportShareOf.by(edge(of(years, "app-1", "app-2"), "share", 1000)), rows: 1, batch: 1000, wasted: 100},
		{name: "reportShareOf many apps", st: q.reportShareOf.by(edge(of(later, many...), "share", 16)), rows: 1, batch: 250},
		{name: "reports of a day by hours", st: q.reports.by(sums(day1, time.Hour)), rows: 240, batch: 3000},
		{name: "reports of a month of days", st: q.reports.by(sums(store.ReportQuery{From: years.From, To: years.From.Add(90 * day)}, day)), rows: 200, batch: 1000},
		{name: "reportsOf an app by hours", st: q.reportsOf.by(sums(of(month, "app-3"), time.Hour)), rows: 800, batch: 4000},
		{name: "reportsOf three apps by quarters", st: q.reportsOf.by(sums(of(day1, "app-3", "app-4", "x"), store.Quarter)), rows: 180, batch: 500},
		{name: "foldSlots", st: q.foldSlots.by(fold(d.now.Add(-store.Quarter))), rows: 1, batch: 2000, wasted: 2000},
		{name: "foldDays", st: q.foldDays.by(fold(store.DayOf(d.now.Add(-34 * day)))), rows: 1, batch: 2000, wasted: 2000},
	}
}

// reportQuery is for so much up to now.
func (d *planData) reportQuery(length time.Duration) store.ReportQuery {
	to := store.QuarterOf(d.now).Add(store.Quarter)
	return store.ReportQuery{From: to.Add(-length), To: to}
}
