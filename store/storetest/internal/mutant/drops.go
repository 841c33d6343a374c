package mutant

import (
	"context"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// dropMutants break deletions of ended runs.
func dropMutants() []Mutant {
	ask := func(change func(*store.RunDrop)) func(whole) any {
		return func(s whole) any {
			return &bentDrops{st: s, ask: change}
		}
	}
	keep := func(change func(*store.KeepQuery)) func(whole) any {
		return func(s whole) any {
			return &bentDrops{st: s, keep: change}
		}
	}
	answer := func(change func(*store.Dropped)) func(whole) any {
		return func(s whole) any {
			return &bentDrops{st: s, answer: change}
		}
	}
	greedy := func(s whole) any {
		return &greedyDrops{bentDrops: bentDrops{st: s}, gone: map[int64]bool{}}
	}
	needed := []string{"Drop/PartsStayWhileOneHasNotEnded", "Drop/AttemptsStayWhileOneIsToCome", "Drop/WhatIsSnoozedStays", "Drop/WhatIsOwedIsNeeded",
		"Drop/WhatAnOpenWindowHasCountedIsNeeded", "Drop/TheRunOfAWindowIsNeeded", "Drop/WhatAnAlarmIsAboutIsNeeded", "Drop/WhatWasToldIsNeeded",
		"Drop/ARecoveryIsNeeded", "Drop/AnInstantThatIsToComeIsNeeded", "Drop/RunsThatAreKeptApartStay", "Drop/RunsThatHaveNotEndedStay"}
	none := append([]string{"Drop/EndedRunsGo", "Drop/RunsOfRemovedJobs"}, needed[:9]...)
	return []Mutant{
		{"DropsWhatIsNeeded", greedy, needed},
		{"DropsNothing", ask(func(q *store.RunDrop) { q.DryRun = true }), none},
		{"DropsOfAllApps", ask(func(q *store.RunDrop) { q.Apps = nil }), []string{"Drop/RunsOfTheAppsAndJobs", "Drop/NothingThatIsNotThere"}},
		{"DropsOfAllJobs", ask(func(q *store.RunDrop) {
			if q.KeepNewest == 0 {
				q.JobIDs = nil
			}
		}), []string{"Drop/RunsOfTheAppsAndJobs", "Drop/RunsOfRemovedJobs", "Drop/NothingThatIsNotThere"}},
		{"DropsOfAnyTime", ask(func(q *store.RunDrop) {
			if !q.Before.IsZero() {
				q.Before = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
			}
		}), []string{"Drop/RunsFromBeforeATime", "Drop/TheNewestStay"}},
		{"DropsWhatHasJustEnded", ask(func(q *store.RunDrop) { q.EndedBefore = time.Time{} }), []string{"Drop/RunsThatEndedBeforeATime"}},
		{"KeepsOneMore", ask(func(q *store.RunDrop) {
			if q.KeepNewest > 0 {
				q.KeepNewest++
			}
		}), []string{"Drop/TheNewestStay", "Drop/TheNewestOfEachJobStay", "Drop/ADryRunDeletesNothing"}},
		{"KeepsOneLess", ask(func(q *store.RunDrop) { q.KeepNewest = max(q.KeepNewest-1, min(q.KeepNewest, 1)) }), []string{"Drop/TheNewestStay", "Drop/TheNewestOfEachJobStay"}},
		{"DryRunsDelete", ask(func(q *store.RunDrop) { q.DryRun = false }), []string{"Drop/ADryRunDeletesNothing"}},
		{"LooksAtAll", ask(func(q *store.RunDrop) { q.Limit = 0 }), []string{"Drop/SoManyRunsAreLookedAt"}},
		{"BeginsAnew", ask(func(q *store.RunDrop) { q.After = store.DropMark{} }), []string{"Drop/ADryRunDeletesNothing"}},
		{"NeverMore", answer(func(d *store.Dropped) { d.More, d.Next = false, store.DropMark{} }), []string{"Drop/SoManyRunsAreLookedAt", "Drop/JobsThatKeepTheirRunsAreWalkedThrough"}},
		{"CountsNothing", answer(func(d *store.Dropped) { d.Runs, d.Examined = 0, 0 }), []string{"Drop/EndedRunsGo", "Drop/SoManyRunsAreLookedAt", "Drop/JobsKeepTheirRunsForSoLong", "Drop/ExpiredRunsThatAreNeededStay"}},
		{"ForgetsWhatWasKept", answer(func(d *store.Dropped) { d.Kept = 0 }), []string{"Drop/WhatIsOwedIsNeeded"}},
		{"TakesWhatIsAbsurd", ask(func(q *store.RunDrop) {
			if q.Validate() != nil {
				*q = store.RunDrop{All: true}
			}
		}), []string{"Drop/WhatIsAbsurdIsRefused"}},
		{"ExpiresNothing", keep(func(q *store.KeepQuery) { q.Now = q.Now.AddDate(-9, 0, 0) }), []string{"Drop/JobsKeepTheirRunsForSoLong", "Drop/ExpiredRunsThatAreNeededStay"}},
		{"ExpiresAll", keep(func(q *store.KeepQuery) { q.Now = q.Now.AddDate(9, 0, 0) }), []string{"Drop/JobsKeepTheirRunsForSoLong"}},
		{"ExpiresWhatHasJustEnded", keep(func(q *store.KeepQuery) { q.EndedBefore = time.Time{} }), []string{"Drop/JobsKeepTheirRunsForSoLong"}},
		{"ExpiresWithoutABound", keep(func(q *store.KeepQuery) { q.Limit = 0 }), []string{"Drop/JobsThatKeepTheirRunsAreWalkedThrough"}},
		{"DeletionsEndRuns", func(s whole) any { return &endingDrops{st: s} }, []string{"Race/EndsAgainstDeletions", "Drop/RunsThatHaveNotEndedStay"}},
		{"KeysStay", func(s whole) any { return &lastingKeys{st: s} }, []string{"Drop/TheKeyOfARunGoesWithIt"}},
	}
}

// bentDrops changes questions and answers.
type bentDrops struct {
	st     whole
	ask    func(*store.RunDrop)
	keep   func(*store.KeepQuery)
	answer func(*store.Dropped)
}

func (b *bentDrops) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	if b.ask != nil {
		b.ask(&q)
	}
	d, err := b.st.DropEnded(ctx, q)
	if b.answer != nil {
		b.answer(&d)
	}
	return d, err
}

func (b *bentDrops) DropExpired(ctx context.Context, q store.KeepQuery) (store.Dropped, error) {
	if b.keep != nil {
		b.keep(&q)
	}
	d, err := b.st.DropExpired(ctx, q)
	if b.answer != nil {
		b.answer(&d)
	}
	return d, err
}

// greedyDrops is one that has deleted all there was.
type greedyDrops struct {
	bentDrops
	mu   sync.Mutex
	gone map[int64]bool // guarded by mu
}

func (g *greedyDrops) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	d, err := g.bentDrops.DropEnded(ctx, q)
	runs, listed := g.st.Runs(ctx, store.RunFilter{Limit: 1000})
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range runs {
		g.gone[r.ID] = true
	}
	if err == nil {
		err = listed
	}
	return d, err
}

func (g *greedyDrops) RunsByID(ctx context.Context, ids []int64) ([]store.Run, error) {
	var left []int64
	g.mu.Lock()
	for _, id := range ids {
		if !g.gone[id] {
			left = append(left, id)
		}
	}
	g.mu.Unlock()
	return g.st.RunsByID(ctx, left)
}

// lastingKeys remembers the runs of keys for ever.
type lastingKeys struct {
	st   whole
	mu   sync.Mutex
	runs map[string]store.Run // guarded by mu
}

func (l *lastingKeys) AddRun(ctx context.Context, job int64, t store.Trigger) (store.Run, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if run, known := l.runs[t.Key]; known && t.Key != "" {
		return run, nil
	}
	run, err := l.st.AddRun(ctx, job, t)
	if l.runs == nil {
		l.runs = map[string]store.Run{}
	}
	l.runs[t.Key] = run
	return run, err
}

// endingDrops ends what has not ended before it deletes.
type endingDrops struct {
	st whole
}

func (d *endingDrops) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	open, err := d.st.Runs(ctx, store.RunFilter{States: []store.State{store.StateStarted, store.StateDispatched}, Limit: 1000})
	if err != nil {
		return store.Dropped{}, err
	}
	var results []store.Result
	for _, r := range open {
		results = append(results, store.Result{RunID: r.ID, State: store.StateFailed})
	}
	if _, err := d.st.Finish(ctx, nil, results); err != nil {
		return store.Dropped{}, err
	}
	return d.st.DropEnded(ctx, q)
}
