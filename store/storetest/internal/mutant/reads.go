package mutant

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// readMutants break answers to questions about many runs.
func readMutants() []Mutant {
	search := func(change func(*store.RunSearch)) func(whole) any {
		return func(s whole) any {
			return &bentReads{st: s, search: change}
		}
	}
	found := func(change func(*store.RunSearch, *store.RunsFound)) func(whole) any {
		return func(s whole) any {
			return &bentReads{st: s, found: change}
		}
	}
	runs := func(change func([]store.Run) []store.Run) func(whole) any {
		return func(s whole) any {
			return &bentReads{st: s, runs: change}
		}
	}
	after := func(change func(int64) int64) func(whole) any {
		return func(s whole) any {
			return &bentReads{st: s, after: change}
		}
	}
	branches := func(change func([]store.Run, int) ([]store.Run, int)) func(whole) any {
		return func(s whole) any {
			return &bentReads{st: s, branches: change}
		}
	}
	open := func(change func(*store.OpenRuns)) func(whole) any {
		return func(s whole) any {
			return &bentReads{st: s, open: change}
		}
	}
	return []Mutant{
		{"SearchOldestFirst", found(func(_ *store.RunSearch, f *store.RunsFound) { slices.Reverse(f.Runs) }), []string{"Read/SearchFindsTheNewestFirst"}},
		{"SearchWithoutNames", found(func(_ *store.RunSearch, f *store.RunsFound) {
			for i := range f.Runs {
				f.Runs[i].JobName = ""
			}
		}), []string{"Read/SearchFindsTheNewestFirst"}},
		{"SearchForgetsApps", search(func(q *store.RunSearch) { q.Apps = nil }), []string{"Read/SearchByEachField", "Read/SearchThatCanFindNothing"}},
		{"SearchForgetsJobs", search(func(q *store.RunSearch) { q.JobIDs = nil }), []string{"Read/SearchByEachField", "Read/SearchOfOneJob", "Read/SearchThatCanFindNothing"}},
		{"SearchForgetsStates", search(func(q *store.RunSearch) { q.States = nil }), []string{"Read/SearchByEachField", "Read/SearchOfOneJob"}},
		{"SearchForgetsTypes", search(func(q *store.RunSearch) { q.Types = nil }), []string{"Read/SearchByEachField", "Read/SearchRefusesWhatIsAbsurd"}},
		{"SearchForgetsTheHandler", search(func(q *store.RunSearch) { q.Handler = "" }), []string{"Read/SearchByEachField"}},
		{"SearchForgetsTheAddress", search(func(q *store.RunSearch) { q.Address = "" }), []string{"Read/SearchByEachField"}},
		{"SearchForgetsTheReason", search(func(q *store.RunSearch) { q.Reason = "" }), []string{"Read/SearchByEachField"}},
		{"SearchForgetsInstants", search(func(q *store.RunSearch) { q.From, q.To = time.Time{}, time.Time{} }), []string{"Read/SearchByEachField", "Read/SearchRefusesWhatIsAbsurd"}},
		{"SearchForgetsTheText", search(func(q *store.RunSearch) { q.Text = "" }), []string{"Read/SearchForAText"}},
		{"SearchFindsSecrets", search(func(q *store.RunSearch) { q.NoSecrets = false }), []string{"Read/SearchWithoutSecrets"}},
		{"SearchForgetsSince", search(func(q *store.RunSearch) { q.Since = time.Time{} }), []string{"Read/SearchByTheTimeOfPlanning", "Read/SearchThatCanFindNothing", "Read/SearchOfOneJob", "Read/SearchRefusesWhatIsAbsurd"}},
		{"SearchForgetsUntil", search(func(q *store.RunSearch) { q.Until = time.Time{} }), []string{"Read/SearchByTheTimeOfPlanning", "Read/SearchThatCanFindNothing", "Read/SearchRefusesWhatIsAbsurd"}},
		{"UntilIsIncluded", search(func(q *store.RunSearch) {
			if !q.Until.IsZero() {
				q.Until = q.Until.Add(time.Millisecond)
			}
		}), []string{"Read/SearchByTheTimeOfPlanning"}},
		{"SearchForgetsHowSlow", search(func(q *store.RunSearch) { q.Slower = 0 }), []string{"Read/SearchByHowLongRunsTook"}},
		{"SearchForgetsHowLate", search(func(q *store.RunSearch) { q.LateBy = 0 }), []string{"Read/SearchByHowLateRunsAre", "Read/SearchRefusesWhatIsAbsurd"}},
		{"HowLateIsCut", search(func(q *store.RunSearch) { q.LateBy = q.LateBy.Truncate(time.Millisecond) }), []string{"Read/SearchByHowLateRunsAre"}},
		{"WhatWaitsIsNotLate", found(func(q *store.RunSearch, f *store.RunsFound) {
			f.Runs = slices.DeleteFunc(f.Runs, func(r store.Run) bool { return q.LateBy > 0 && r.Started.IsZero() })
		}), []string{"Read/SearchByHowLateRunsAre"}},
		{"WhatNeverStartsIsLate", func(s whole) any { return &lateOfAllKinds{s} }, []string{"Read/SearchByHowLateRunsAre"}},
		{"SearchForgetsWhereItWas", search(func(q *store.RunSearch) { q.Before = 0 }), []string{"Read/SearchGoesOnWhereItStopped", "Read/SearchOfOneJob", "Read/SearchThatCanFindNothing"}},
		{"SearchLooksAtAll", search(func(q *store.RunSearch) { q.Examine = 0 }), []string{"Read/SearchLooksAtSoManyRuns"}},
		{"SearchReturnsAll", search(func(q *store.RunSearch) { q.Limit = 0 }), []string{"Read/SearchGoesOnWhereItStopped"}},
		{"SearchIsAlwaysThrough", found(func(_ *store.RunSearch, f *store.RunsFound) { f.SearchedTo = 1 }), []string{"Read/SearchGoesOnWhereItStopped", "Read/SearchLooksAtSoManyRuns"}},
		{"SearchGoesOnTooFar", found(func(_ *store.RunSearch, f *store.RunsFound) { f.SearchedTo = max(f.SearchedTo-1, 1) }), []string{"Read/SearchGoesOnWhereItStopped"}},
		{"LastRunsOldestFirst", runs(func(l []store.Run) []store.Run { slices.Reverse(l); return l }), []string{"Read/LastRunsOfEachJob", "Read/ChildrenInOrder", "Read/WaitingInOrderOfTime"}},
		{"RunsAreShort", runs(func(l []store.Run) []store.Run { return l[:max(len(l)-1, 0)] }), []string{"Read/LastRunsOfEachJob", "Read/ChildrenInOrder", "Read/WaitingInOrderOfTime"}},
		{"RunsWithoutNames", runs(func(l []store.Run) []store.Run {
			for i := range l {
				l[i].JobKey = ""
			}
			return l
		}), []string{"Read/LastRunsOfEachJob", "Read/ChildrenInOrder", "Read/WaitingInOrderOfTime"}},
		{"LastRunsOfAllKinds", func(s whole) any { return &endedOfAllKinds{s} }, []string{"Read/LastRunsHaveNoneThatAreKeptApart"}},
		{"BranchesCountAll", branches(func(runs []store.Run, more int) ([]store.Run, int) { return runs, more + len(runs) }), []string{"Read/BranchesOfATree"}},
		{"BranchesFromTheLastOn", branches(func(runs []store.Run, more int) ([]store.Run, int) { slices.Reverse(runs); return runs, more }), []string{"Read/BranchesOfATree"}},
		{"LastRunsHaveWholeTexts", func(s whole) any { return &longTexts{s} }, []string{"Read/ListsOfRunsWithShortTexts"}},
		{"ChildrenFromTheFirstOn", after(func(int64) int64 { return 0 }), []string{"Read/ChildrenInOrder", "Read/WaitingInOrderOfTime"}},
		{"WaitingChecksNothing", func(s whole) any {
			return &bentReads{st: s, behind: func(r *store.Run) { r.Scheduled = time.Time{} }}
		}, []string{"Read/WaitingRefusesWhatIsAbsurd", "Read/WaitingInOrderOfTime"}},
		{"OpenRunsOfOneApp", open(func(o *store.OpenRuns) {
			for app, n := range o.Planned {
				delete(o.Planned, app)
				o.Planned["other"] += n
			}
		}), []string{"Read/OpenRunsByApp"}},
		{"OpenRunsAreAlwaysMore", open(func(o *store.OpenRuns) { o.MorePlanned, o.MoreRunning = true, true }), []string{"Read/OpenRunsStop", "Read/OpenRunsByApp"}},
		{"OpenRunsNeverStop", open(func(o *store.OpenRuns) { o.MorePlanned, o.MoreRunning = false, false }), []string{"Read/OpenRunsStop"}},
	}
}

// bentReads changes questions and answers.
type bentReads struct {
	st     whole
	search func(*store.RunSearch)
	found  func(*store.RunSearch, *store.RunsFound)
	runs   func([]store.Run) []store.Run
	after  func(int64) int64
	behind func(*store.Run)
	open   func(*store.OpenRuns)

	branches func([]store.Run, int) ([]store.Run, int)
}

func (b *bentReads) Branches(ctx context.Context, run int64, limit int) ([]store.Run, int, error) {
	runs, more, err := b.st.Branches(ctx, run, limit)
	if b.branches != nil {
		runs, more = b.branches(runs, more)
	}
	return runs, more, err
}

func (b *bentReads) SearchRuns(ctx context.Context, q store.RunSearch) (store.RunsFound, error) {
	if b.search != nil {
		b.search(&q)
	}
	f, err := b.st.SearchRuns(ctx, q)
	if b.found != nil {
		b.found(&q, &f)
	}
	return f, err
}

func (b *bentReads) changed(list []store.Run, err error) ([]store.Run, error) {
	if b.runs != nil {
		list = b.runs(list)
	}
	return list, err
}

func (b *bentReads) LastRuns(ctx context.Context, jobs []int64, n int) ([]store.Run, error) {
	return b.changed(b.st.LastRuns(ctx, jobs, n))
}

func (b *bentReads) Children(ctx context.Context, run, after int64, limit int) ([]store.Run, error) {
	if b.after != nil {
		after = b.after(after)
	}
	return b.changed(b.st.Children(ctx, run, after, limit))
}

func (b *bentReads) Waiting(ctx context.Context, after store.Run, limit int) ([]store.Run, error) {
	if b.after != nil {
		after.ID = b.after(after.ID)
	}
	if b.behind != nil {
		b.behind(&after)
	}
	return b.changed(b.st.Waiting(ctx, after, limit))
}

func (b *bentReads) OpenRuns(ctx context.Context, most int) (store.OpenRuns, error) {
	o, err := b.st.OpenRuns(ctx, most)
	if b.open != nil {
		b.open(&o)
	}
	return o, err
}

// lateOfAllKinds takes each run that has not started for one that waits.
type lateOfAllKinds struct {
	st whole
}

func (s *lateOfAllKinds) SearchRuns(ctx context.Context, q store.RunSearch) (store.RunsFound, error) {
	by := q.LateBy
	q.LateBy = 0
	f, err := s.st.SearchRuns(ctx, q)
	f.Runs = slices.DeleteFunc(f.Runs, func(r store.Run) bool {
		if r.Started.IsZero() {
			r.Started = time.Now()
		}
		return r.Lateness() < by
	})
	return f, err
}

// longTexts reads the last runs as without WithShortTexts.
type longTexts struct {
	st whole
}

func (s *longTexts) LastRuns(ctx context.Context, jobs []int64, n int) ([]store.Run, error) {
	runs, err := s.st.LastRuns(context.Background(), jobs, n)
	return runs, cmp.Or(ctx.Err(), err)
}

// endedOfAllKinds has the runs that are kept apart among the last ones.
type endedOfAllKinds struct {
	st whole
}

func (s *endedOfAllKinds) LastRuns(ctx context.Context, jobs []int64, n int) (list []store.Run, err error) {
	for _, job := range jobs {
		runs, err := s.st.Runs(ctx, store.RunFilter{JobID: job, States: []store.State{store.StateSucceeded, store.StateCancelled}, Limit: n})
		if err != nil {
			return nil, err
		}
		list = append(list, runs...)
	}
	return list, nil
}
