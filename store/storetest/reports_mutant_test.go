package storetest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// reportMutants break reports.
func reportMutants() []mutant {
	query := func(change func(*store.ReportQuery)) func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			return &bentReports{Store: s, ReportReader: s.(store.ReportReader), query: change}
		}
	}
	found := func(change func(*store.ReportsFound)) func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			return &bentReports{Store: s, ReportReader: s.(store.ReportReader), found: change}
		}
	}
	each := func(change func(*store.Report)) func(store.Store) store.Store {
		return found(func(f *store.ReportsFound) {
			for i := range f.Reports {
				change(&f.Reports[i])
			}
		})
	}
	order := "Reports/ByTheQuarterOfTheInstantAndTheApp"
	var list []mutant
	for state := store.StateSucceeded; state <= store.StateSnoozed; state++ {
		list = append(list, mutant{"ReportsForget" + state.String(), each(func(r *store.Report) { r.Ended[state] = 0 }), []string{"Reports/EachEndCountsInItsState"}})
	}
	return append(list, []mutant{
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
	store.Store
	store.ReportReader
	query func(*store.ReportQuery)
	found func(*store.ReportsFound)
}

func (b *bentReports) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	if b.query != nil {
		b.query(&q)
	}
	found, err := b.ReportReader.Reports(ctx, q)
	if b.found != nil && err == nil {
		b.found(&found)
	}
	return found, err
}

// uncounted is a store in memory whose reports miss what others count.
type uncounted struct {
	*memory.Store
	miss func(*store.Report)
}

func (u uncounted) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	found, err := u.Store.Reports(ctx, q)
	for i := range found.Reports {
		u.miss(&found.Reports[i])
	}
	return found, err
}

// TestRecount: reports that are not equal to a count of the runs are found.
func TestRecount(t *testing.T) {
	s := memory.New()
	if err := s.SetShards(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	job, err := s.AddJob(t.Context(), store.Job{App: "app", Name: "n", Schedule: schedule.Manual(), GlueType: store.GlueBean}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		run, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
		if err == nil {
			_, err = s.Kill(t.Context(), run.ID, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		miss  func(*store.Report)
		wrong int
	}{
		"nothing":   {func(*store.Report) {}, 0},
		"an end":    {func(r *store.Report) { r.Ended[store.StateCancelled]-- }, 1},
		"a time":    {func(r *store.Report) { r.Lateness.Observe(0) }, 1},
		"a quarter": {func(r *store.Report) { r.From = r.From.Add(store.Quarter) }, 1},
	} {
		if found := storetest.Recount(t, uncounted{s, c.miss}); len(found) != c.wrong {
			t.Errorf("reports that miss %s: %d faults %q, want %d", what, len(found), found, c.wrong)
		}
	}
}
