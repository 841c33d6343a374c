package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Reports of how runs have ended. A store need not have any: then these cases say nothing.
// Beside them, each case of the suite ends with a recount.

func reportCases() []testCase {
	with := func(e *env, r store.ReportReader) *reporter { return &reporter{e, r, e.owner("a")} }
	return optionalCases(with, []optional[*reporter]{
		{"EachEndCountsInItsState", reportStates},
		{"WhatHasNotEndedCountsNowhere", reportOpen},
		{"WhatIsRefusedChangesNothing", reportRefused},
		{"LatenessAndDuration", reportTimes},
		{"ARetryCountsForItsInstant", reportRetry},
		{"ByTheQuarterOfTheInstantAndTheApp", reportOrder},
		{"OfSomeAppsAndTimes", reportBounds},
		{"AddedUp", reportSpans},
		{"ReadAsFarAsTheBound", reportPages},
		{"OfManyAppsAsFarAsTheBound", reportManyApps},
		{"QueriesThatAreAbsurd", reportAbsurd},
		{"FoldingChangesNothing", reportFold},
	})
}

// reporter is a store that has reports, and the owner of all its shards.
type reporter struct {
	*env
	reports store.ReportReader
	o       *owner
}

func (e *reporter) read(q store.ReportQuery) store.ReportsFound {
	e.Helper()
	found, err := e.reports.Reports(e.ctx, q)
	e.must(err)
	return found
}

// all is a query for the instants about the case's now, added up to one report.
func (e *reporter) all() store.ReportQuery {
	from := store.QuarterOf(e.now).Add(-8 * store.Quarter)
	return store.ReportQuery{From: from, To: from.Add(16 * store.Quarter), Length: 16 * store.Quarter, Together: true}
}

// sum is what all counts.
func (e *reporter) sum() store.Report {
	e.Helper()
	found := e.read(e.all())
	if len(found.Reports) == 0 {
		return store.Report{}
	}
	want(e.env, "reports that are added up to one", len(found.Reports), 1)
	return found.Reports[0]
}

func (e *reporter) wantEnded(what string, ended map[store.State]int64) {
	e.Helper()
	var all [store.States]int64
	for state, n := range ended {
		all[state] = n
	}
	want(e.env, what, e.sum().Ended, all)
}

// ends ends a new run.
func (e *reporter) ends(state store.State) store.Run {
	e.Helper()
	r := success(e.o.running())
	r.State = state
	return e.o.one(e.mustFinish(r))
}

func reportStates(e *reporter) {
	for _, state := range []store.State{store.StateSucceeded, store.StateFailed, store.StateTimedOut, store.StateKilled,
		store.StateLost, store.StateRefused, store.StateDiscarded, store.StateCancelled, store.StateSnoozed} {
		e.ends(state)
	}
	ended := map[store.State]int64{3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1, 11: 1, 12: 1}
	e.wantEnded("results", ended)
	e.o.tryStart(e.o.startOf(e.o.planned(e.newJob()), refused))
	ended[store.StateRefused]++
	e.wantEnded("a start that was refused", ended)
	lost := e.o.running()
	e.mustSettle(e.o.verdict(lost, store.StateLost))
	ended[store.StateLost]++
	e.wantEnded("a verdict", ended)
	e.o.claim(e.o.skip(e.newJob()))
	ended[store.StateSkipped]++
	e.wantEnded("a record of skipped instants", ended)
	e.mustKill(e.mustAddRun(e.newJob().ID, store.Trigger{At: e.now}).ID, "no")
	job := e.newJob()
	e.o.planned(job)
	e.stop(job.ID)
	gone := e.newJob()
	e.mustAddRun(gone.ID, store.Trigger{At: e.now})
	_, err := e.AddAhead(e.ctx, gone.ID, store.Trigger{At: e.now}, e.at(86400))
	e.must(err)
	e.must(e.RemoveJob(e.ctx, gone.ID))
	ended[store.StateCancelled] += 4
	e.wantEnded("runs that a kill, a stop and a removal cancel", ended)
	killed := e.o.running(e.over("b"))
	e.mustKill(killed.ID, "no")
	e.mustTake("b", killed.ID)
	ended[store.StateKilled]++
	e.wantEnded("a run that was killed before it was taken", ended)
}

func reportOpen(e *reporter) {
	e.o.planned(e.newJob())
	e.o.running()
	e.o.dispatched()
	want(e.env, "reports", e.read(e.all()).Reports, nil)
}

func reportRefused(e *reporter) {
	run := e.o.running()
	other := success(run)
	other.Token++
	e.mustFinish(other)
	want(e.env, "reports of a result that was refused", e.read(e.all()).Reports, nil)
	e.mustFinish(success(run))
	e.mustFinish(success(run))
	e.mustKill(run.ID, "no")
	lost := e.o.running()
	e.mustSettle(e.o.verdict(lost, store.StateLost))
	e.mustFinish(overWire(lost.ID))
	e.wantEnded("one end each", map[store.State]int64{store.StateSucceeded: 1, store.StateLost: 1})
}

func reportTimes(e *reporter) {
	var want1 store.Report
	for i, state := range []store.State{store.StateSucceeded, store.StateFailed, store.StateKilled, store.StateTimedOut, store.StateSnoozed, store.StateLost} {
		r := success(e.o.started(e.o.one(e.o.claim(e.o.plan(e.newJob(), e.at(-60*i))))))
		r.State = state
		run := e.o.one(e.mustFinish(r))
		want1.Lateness.Observe(run.Started.Sub(run.Scheduled))
		want1.Duration.Observe(run.Ended.Sub(run.Started))
	}
	early := e.o.one(e.mustFinish(success(e.o.started(e.mustAddRun(e.newJob().ID, store.Trigger{At: e.at(60)})))))
	want1.Lateness.Observe(0)
	want1.Duration.Observe(early.Ended.Sub(early.Started))
	e.ends(store.StateDiscarded)
	e.o.tryStart(e.o.startOf(e.o.planned(e.newJob()), refused))
	e.o.claim(e.o.skip(e.newJob()))
	e.mustKill(e.o.planned(e.newJob()).ID, "no")
	sum := e.sum()
	want(e.env, "lateness", sum.Lateness, want1.Lateness)
	want(e.env, "duration", sum.Duration, want1.Duration)
	want(e.env, "how many", sum.Lateness.Count(), 7)
}

func reportRetry(e *reporter) {
	first := e.o.started(e.o.one(e.o.claim(e.o.plan(e.newJob(retried(1)), e.at(-3600)))), func(s *store.Start) { s.Retries = 1 })
	r := failure(first)
	r.After = 2 * time.Hour
	next := e.mustNext(e.o.one(e.mustFinish(r)))
	e.check(next.Scheduled.After(e.at(1800)), "the retry is due at %v", next.Scheduled)
	e.mustKill(next.ID, "no")
	from := store.QuarterOf(first.Scheduled)
	found := e.read(store.ReportQuery{From: from, To: from.Add(store.Quarter)})
	want(e.env, "reports", len(found.Reports), 1)
	want(e.env, "cancelled", found.Reports[0].Ended[store.StateCancelled], 1)
}

// endAt ends a run of an app for an instant, in quarters of an hour behind a certain one.
func (e *reporter) endAt(app string, quarters int, more time.Duration) {
	e.Helper()
	job := e.newJob(func(j *store.Job) { j.App = app })
	e.mustKill(e.o.one(e.o.claim(e.o.plan(job, e.quarter(quarters).Add(more)))).ID, "no")
}

func (e *reporter) quarter(n int) time.Time {
	return store.QuarterOf(e.now).Add(time.Duration(n) * store.Quarter)
}

// wantReports checks reports by their beginnings, in quarters, their apps and how many were
// cancelled.
func (e *reporter) wantReports(what string, found store.ReportsFound, reports ...counted) {
	e.Helper()
	var got []counted
	for _, r := range found.Reports {
		got = append(got, counted{int(r.From.Sub(e.quarter(0)) / store.Quarter), r.App, r.Ended[store.StateCancelled]})
	}
	want(e.env, what, got, reports)
}

type counted struct {
	quarter int
	app     string
	n       int64
}

func reportOrder(e *reporter) {
	e.endAt("b", 1, 0)
	e.endAt("a", 1, store.Quarter-time.Millisecond)
	e.endAt("a", 1, time.Minute)
	e.endAt("Z", 1, 0)
	e.endAt("b", 0, store.Quarter-time.Millisecond)
	e.endAt("a", 2, 0)
	found := e.read(store.ReportQuery{From: e.quarter(-4), To: e.quarter(4)})
	e.wantReports("in order of time and app", found, counted{0, "b", 1}, counted{1, "Z", 1}, counted{1, "a", 2}, counted{1, "b", 1}, counted{2, "a", 1})
	want(e.env, "until", found.Until, e.quarter(4))
	for _, r := range found.Reports {
		want(e.env, "length", r.Length, store.Quarter)
	}
}

func reportBounds(e *reporter) {
	for i := range 4 {
		e.endAt("a", i, 0)
		e.endAt("b", i, 0)
	}
	e.wantReports("of an app", e.read(store.ReportQuery{From: e.quarter(-9), To: e.quarter(9), Apps: []string{"b", "b", "c"}}),
		counted{0, "b", 1}, counted{1, "b", 1}, counted{2, "b", 1}, counted{3, "b", 1})
	e.wantReports("from a time up to another", e.read(store.ReportQuery{From: e.quarter(1), To: e.quarter(3), Apps: []string{"a"}}), counted{1, "a", 1}, counted{2, "a", 1})
	e.wantReports("of nothing", e.read(store.ReportQuery{From: e.quarter(1), To: e.quarter(1)}))
	e.wantReports("of nobody", e.read(store.ReportQuery{From: e.quarter(1), To: e.quarter(3), Apps: []string{"nobody"}}))
}

func reportSpans(e *reporter) {
	for i := range 4 {
		e.endAt("a", i, 0)
		e.endAt("b", i, 0)
	}
	q := store.ReportQuery{From: e.quarter(-1), To: e.quarter(9), Length: 2 * store.Quarter}
	found := e.read(q)
	e.wantReports("of two quarters each", found, counted{-1, "a", 1}, counted{-1, "b", 1}, counted{1, "a", 2}, counted{1, "b", 2}, counted{3, "a", 1}, counted{3, "b", 1})
	want(e.env, "length", found.Reports[0].Length, 2*store.Quarter)
	q.Together = true
	e.wantReports("of all apps", e.read(q), counted{-1, "", 2}, counted{1, "", 4}, counted{3, "", 2})
}

func reportPages(e *reporter) {
	for i := range 3 {
		e.endAt("a", i, 0)
		e.endAt("b", i, 0)
	}
	q := store.ReportQuery{From: e.quarter(-2), To: e.quarter(9), Examine: 5}
	found := e.read(q)
	e.wantReports("as far as five counts lead", found, counted{0, "a", 1}, counted{0, "b", 1}, counted{1, "a", 1}, counted{1, "b", 1})
	want(e.env, "until", found.Until, e.quarter(2))
	q.From = found.Until
	found = e.read(q)
	e.wantReports("the rest", found, counted{2, "a", 1}, counted{2, "b", 1})
	want(e.env, "until", found.Until, q.To)
	q.From, q.Length = e.quarter(-2), 3*store.Quarter
	want(e.env, "until, by the length", e.read(q).Until, e.quarter(1))
	q.Length = 20 * store.Quarter
	_, err := e.reports.Reports(e.ctx, q)
	list := store.FieldErrors(err)
	e.check(len(list) == 1 && list[0].Field == "Length", "a length that adds up too much: error %v, want one about it", err)
}

// reportManyApps asks for apps of which one has far more counts than others.
func reportManyApps(e *reporter) {
	apps := []string{"busy", "nobody"}
	var all []counted
	for i := range 7 {
		e.endAt("busy", i, 0)
		all = append(all, counted{i, "busy", 1})
	}
	e.endAt("other", 0, 0)
	for i := range 10 {
		app := fmt.Sprint("z", i)
		e.endAt(app, 7, 0)
		apps, all = append(apps, app), append(all, counted{7, app, 1})
	}
	q := store.ReportQuery{Apps: apps, From: e.quarter(0), To: e.quarter(9), Examine: 16}
	var found store.ReportsFound
	for pages := 0; q.From.Before(q.To); pages++ {
		page := e.read(q)
		e.check(len(page.Reports) <= q.Examine && page.Until.After(q.From), "%d counts are read, of %d, until %v", len(page.Reports), q.Examine, page.Until)
		if found.Reports, q.From = append(found.Reports, page.Reports...), page.Until; pages > 9 {
			e.Fatalf("%d pages", pages)
		}
	}
	e.wantReports("page by page", found, all...)
	q.From, q.Length = e.quarter(0), 7*store.Quarter
	found = e.read(q)
	e.wantReports("as far as one report leads", found, counted{0, "busy", 7})
	want(e.env, "until", found.Until, e.quarter(7))
	for _, most := range []int{16, 5} {
		q.Examine, q.Length = most, 8*store.Quarter
		_, err := e.reports.Reports(e.ctx, q)
		list := store.FieldErrors(err)
		e.check(len(list) == 1 && list[0].Field == "Length", "a report of more than %d counts: error %v, want one about its length", most, err)
	}
	q.Examine = 17
	want(e.env, "until, where all may be read", e.read(q).Until, q.To)
}

func reportAbsurd(e *reporter) {
	e.endAt("a", 0, 0)
	from, to := e.quarter(0), e.quarter(1)
	for field, q := range map[string]store.ReportQuery{
		"From":    {To: to},
		"To":      {From: to, To: from},
		"Length":  {From: from, To: to, Length: time.Minute},
		"Examine": {From: from, To: to, Examine: 1 << 40},
		"Apps":    {From: from, To: to, Apps: []string{strings.Repeat("x", 1<<20)}},
	} {
		_, err := e.reports.Reports(e.ctx, q)
		list := store.FieldErrors(err)
		e.check(len(list) == 1 && list[0].Field == field && len(list[0].Error()) < 1000, "%s: error %v, want one about that field", field, err)
	}
	for _, at := range absurdTimes() {
		if at.Before(from) {
			_, err := e.reports.Reports(e.ctx, store.ReportQuery{From: at, To: to})
			e.wantFault("From", err)
		} else {
			_, err := e.reports.Reports(e.ctx, store.ReportQuery{From: from, To: at})
			e.wantFault("To", err)
		}
	}
	e.wantReports("all times", e.read(store.ReportQuery{From: time.Unix(0, 0), To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}), counted{0, "a", 1})
}

func reportFold(e *reporter) {
	f, folds := e.Store.(store.ReportFolder)
	if !folds {
		return
	}
	day := store.DayOf(e.now.Add(-50 * store.ReportDay))
	long := int(day.Sub(e.quarter(0)) / store.Quarter)
	for range 5 {
		e.endAt("a", -8, 0)
		e.endAt("b", long, 0)
		e.endAt("b", long+95, 0)
		e.endAt("a", long+96, 0)
	}
	for range 2 {
		e.must(f.FoldReports(e.ctx))
		recent := store.ReportQuery{From: e.quarter(-9), To: e.quarter(9)}
		e.wantReports("quarters", e.read(recent), counted{-8, "a", 5})
		found := e.read(store.ReportQuery{From: day, To: day.Add(2 * store.ReportDay)})
		e.wantReports("days", found, counted{long, "b", 10}, counted{long + 96, "a", 5})
		want(e.env, "length", found.Reports[0].Length, store.ReportDay)
		e.wantReports("a day that does not begin within", e.read(store.ReportQuery{From: day.Add(store.Quarter), To: day.Add(store.ReportDay)}))
		e.wantReports("all of it", e.read(store.ReportQuery{From: day, To: e.quarter(0), Length: 100 * store.ReportDay, Together: true}), counted{long, "", 20})
	}
	e.endAt("b", long+7, 0)
	e.must(f.FoldReports(e.ctx))
	e.wantReports("a late end", e.read(store.ReportQuery{From: day, To: day.Add(2 * store.ReportDay)}), counted{long, "b", 11}, counted{long + 96, "a", 5})
}
