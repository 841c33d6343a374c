package mutant

import (
	"context"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// clockMutants break what is done about a clock that was ahead.
func clockMutants() []Mutant {
	marks := func(bend func(was, mark time.Time) time.Time) func(whole) any {
		return func(s whole) any { return &bentMark{whole: s, bend: bend} }
	}
	redates := func(ask func(*store.RedateQuery)) func(whole) any {
		return func(s whole) any {
			return &bentRedates{st: s, ask: ask}
		}
	}
	due := func(bend func(*store.Run)) func(whole) any {
		return func(s whole) any { return bentRun{s, bend} }
	}
	return []Mutant{
		{"AMarkFromTheBeginning", marks(nil), []string{"Clock/AtFirstThereIsNoMark"}},
		{"TheMarkInMicroseconds", marks(func(_, mark time.Time) time.Time { return mark }), []string{"Clock/TheMarkIsKeptToTheMillisecond"}},
		{"TheMarkOnlyGoesAhead", marks(func(was, mark time.Time) time.Time {
			if mark.Before(was) {
				return was
			}
			return mark
		}), []string{"Clock/TheMarkGoesBackToo"}},
		{"CorrectsWhatIsRight", redates(func(q *store.RedateQuery) { q.Now = q.Now.Add(-10 * time.Second) }), []string{"Clock/RunsFromBeforeStay", "Clock/WhatWasDueAtOnceIsDueAtOnce"}},
		{"CorrectsWithoutABound", redates(func(q *store.RedateQuery) { q.Limit = 1000 }), []string{"Clock/SoManyRunsAreCorrected"}},
		{"CorrectsInAllShards", func(s whole) any {
			b := &bentRedates{st: s}
			b.ask = func(q *store.RedateQuery) { q.Shards = b.taken }
			return b
		}, []string{"Clock/OnlyTheOwnerCorrects"}},
		{"CorrectsNothing", redates(func(q *store.RedateQuery) { q.Shards = nil }), []string{"Clock/WhatWasDueAtOnceIsDueAtOnce", "Clock/RetriesKeepWhatIsLeftOfTheirPause", "Clock/NamedTimesStay"}},
		{"RetriesBeginTheirPauseAnew", due(func(r *store.Run) {
			if r.Type == store.TriggerRetry {
				r.Scheduled = r.Scheduled.Add(2 * time.Hour)
			}
		}), []string{"Clock/RetriesKeepWhatIsLeftOfTheirPause"}},
		{"NamedTimesMove", due(func(r *store.Run) { r.Scheduled = r.Created }), []string{"Clock/NamedTimesStay"}},
		{"CorrectsAllRuns", func(s whole) any { return correctsAll{s} }, []string{"Clock/RunsOfSchedulesStay", "Clock/OnlyPlannedRunsAreCorrected"}},
	}
}

// bentMark is a store that remembers a mark, and bends it. Without bend it has one from the beginning.
// The store of which the others are mutants remembers none, so it is more than what bends a store.
type bentMark struct {
	whole
	bend func(was, mark time.Time) time.Time
	mu   sync.Mutex
	mark time.Time // guarded by mu
}

func (b *bentMark) ClockMark(context.Context) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bend == nil && b.mark.IsZero() {
		return time.Unix(0, 0).UTC(), nil
	}
	return b.mark, nil
}

func (b *bentMark) SetClockMark(_ context.Context, mark time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mark = b.bend(b.mark, mark.UTC())
	return nil
}

// bentRedates changes what is to be corrected.
type bentRedates struct {
	st    whole
	ask   func(*store.RedateQuery)
	taken []store.Shard
}

func (b *bentRedates) TakeShards(ctx context.Context, inc string, shards []store.Shard) ([]store.Shard, error) {
	taken, err := b.st.TakeShards(ctx, inc, shards)
	b.taken = taken
	return taken, err
}

func (b *bentRedates) RedateRuns(ctx context.Context, q store.RedateQuery) (int, error) {
	b.ask(&q)
	return b.st.RedateRuns(ctx, q)
}

// correctsAll says that it has corrected whatever there is.
type correctsAll struct{ st whole }

func (c correctsAll) RedateRuns(ctx context.Context, _ store.RedateQuery) (int, error) {
	runs, err := c.st.Runs(ctx, store.RunFilter{Limit: 1000})
	return len(runs), err
}
