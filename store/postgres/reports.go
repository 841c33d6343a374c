package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Reports: how runs have ended. A transaction that ends runs counts them in its tally, which is
// written together with the commit: so no transaction waits for anything else while it holds
// rows of reports.

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

// reportQueries are the statements of this file.
type reportQueries struct {
	addReports query
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
}
