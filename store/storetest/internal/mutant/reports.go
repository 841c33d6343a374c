package mutant

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// reportMutants break reports.
func reportMutants() []Mutant {
	query := func(change func(*store.ReportQuery)) func(whole) any {
		return func(s whole) any {
			return &bentReports{st: s, query: change}
		}
	}
	found := func(change func(*store.ReportsFound)) func(whole) any {
		return func(s whole) any {
			return &bentReports{st: s, found: change}
		}
	}
	each := func(change func(*store.Report)) func(whole) any {
		return found(func(f *store.ReportsFound) {
			for i := range f.Reports {
				change(&f.Reports[i])
			}
		})
	}
	order := "Reports/ByTheQuarterOfTheInstantAndTheApp"
	var list []Mutant
	for state := store.StateSucceeded; state <= store.StateSnoozed; state++ {
		list = append(list, Mutant{"ReportsForget" + state.String(), each(func(r *store.Report) { r.Ended[state] = 0 }), []string{"Reports/EachEndCountsInItsState"}})
	}
	return append(list, []Mutant{
		{"OpenRunsAreCounted", found(func(f *store.ReportsFound) { f.Reports = append(f.Reports, store.Report{}) }), []string{"Reports/WhatHasNotEndedCountsNowhere", "Reports/WhatIsRefusedChangesNothing"}},
		{"ReportsCountTwice", each(func(r *store.Report) { r.Add(new(*r)) }), []string{"Reports/WhatIsRefusedChangesNothing", "Reports/ARetryCountsForItsInstant", "Reports/AddedUp"}},
		{"ReportsForgetLateness", each(func(r *store.Report) { r.Lateness.Counts[0] = 0 }), []string{"Reports/LatenessAndDuration"}},
		{"ReportsForgetTheSum", each(func(r *store.Report) { r.Duration.Sum++ }), []string{"Reports/LatenessAndDuration"}},
		{"ReportsInOrderOfApps", found(func(f *store.ReportsFound) { slices.Reverse(f.Reports) }), []string{order}},
		{"ReportsOfAnotherLength", each(func(r *store.Report) { r.Length++ }), []string{order, "Reports/AddedUp"}},
		{"ReportsOfAllApps", query(func(q *store.ReportQuery) { q.Apps = nil }), []string{"Reports/OfSomeAppsAndTimes", "Reports/OfManyAppsAsFarAsTheBound"}},
		{"ToIsIncluded", query(func(q *store.ReportQuery) { q.To = q.To.Add(store.Quarter) }), []string{"Reports/OfSomeAppsAndTimes"}},
		{"FromIsLeftOut", query(func(q *store.ReportQuery) { q.From = q.From.Add(min(q.To.Sub(q.From), store.Quarter)) }), []string{"Reports/OfSomeAppsAndTimes"}},
		{"ReportsAreNotAddedUp", query(func(q *store.ReportQuery) { q.Together = false }), []string{"Reports/AddedUp"}},
		{"TheLengthIsForgotten", query(func(q *store.ReportQuery) { q.Length = 0 }), []string{"Reports/AddedUp", "Reports/ReadAsFarAsTheBound", "Reports/OfManyAppsAsFarAsTheBound"}},
		{"ReportsAreReadInFull", query(func(q *store.ReportQuery) { q.Examine = min(q.Examine, 1) * 1000 }), []string{"Reports/ReadAsFarAsTheBound", "Reports/OfManyAppsAsFarAsTheBound"}},
		{"UntilIsTheEnd", found(func(f *store.ReportsFound) { f.Until = f.Until.Add(store.Quarter) }), []string{"Reports/ReadAsFarAsTheBound", order, "Reports/OfManyAppsAsFarAsTheBound"}},
		{"AbsurdReportsAreAnswered", query(func(q *store.ReportQuery) {
			*q = store.ReportQuery{From: time.Unix(0, 0), To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
		}), []string{"Reports/QueriesThatAreAbsurd"}},
	}...)
}

// bentReports overrides answers of a store's reports.
type bentReports struct {
	st    whole
	query func(*store.ReportQuery)
	found func(*store.ReportsFound)
}

func (b *bentReports) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	if b.query != nil {
		b.query(&q)
	}
	found, err := b.st.Reports(ctx, q)
	if b.found != nil && err == nil {
		b.found(&found)
	}
	return found, err
}
