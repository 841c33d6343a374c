package mutant

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// traceMutants break rules about traces.
func traceMutants() []Mutant {
	read := func(change func(r *store.Run)) func(whole) any {
		return func(s whole) any { return bentRun{s, change} }
	}
	forget := func(which func(r *store.Run) bool) func(whole) any {
		return read(func(r *store.Run) {
			if which(r) {
				r.Trace = ""
			}
		})
	}
	return []Mutant{
		{"TracesAreForgotten", func(s whole) any {
			return &broken{st: s, trigger: func(t store.Trigger) store.Trigger { t.Trace = ""; return t }}
		}, []string{"Trace/IsThatOfTheTrigger", "Trace/IsThatOfARetry", "Trace/IsThatOfEachPart", "Trace/IsThatOfAChild", "Trace/OfAWindowIsThatOfTheLastSuccess"}},
		{"TracesAreCut", func(s whole) any {
			return &broken{st: s, trigger: func(t store.Trigger) store.Trigger { t.Trace = t.Trace[:min(len(t.Trace), 512)]; return t }}
		}, []string{"Trace/IsThatOfTheTrigger"}},
		{"TracesEndWithTheRun", forget(func(r *store.Run) bool { return r.State.Ended() }), []string{"Trace/IsThatOfTheTrigger"}},
		{"FarRunsAreInNoTrace", forget(func(r *store.Run) bool { return r.Scheduled.Year() > r.Created.Year() }), []string{"Trace/IsKeptApart"}},
		{"EverythingIsTraced", read(func(r *store.Run) { r.Trace = "00-1" }), []string{"Trace/OfNobodyIsNone"}},
		{"RetriesAreInNoTrace", forget(func(r *store.Run) bool { return r.Type == store.TriggerRetry }), []string{"Trace/IsThatOfARetry"}},
		{"TheFirstPartHasTheTrace", forget(func(r *store.Run) bool { return r.Sharding.Index > 0 }), []string{"Trace/IsThatOfEachPart"}},
		{"ChildrenAreInNoTrace", forget(func(r *store.Run) bool { return r.ParentID != 0 }), []string{"Trace/IsThatOfAChild", "Trace/OfAWindowIsThatOfTheLastSuccess"}},
	}
}

// standsMutants break what is stored of the instants that runs stand for.
func standsMutants() []Mutant {
	read := func(which func(*store.Run) bool) func(whole) any {
		return func(s whole) any {
			return bentRun{s, func(r *store.Run) {
				if which(r) {
					r.StandsFor = time.Time{}
				}
			}}
		}
	}
	return []Mutant{
		{"APastTimeIsForgotten", func(s whole) any {
			return &broken{st: s, trigger: func(t store.Trigger) store.Trigger { t.At = time.Time{}; return t }}
		}, []string{"Stands/ARunForAPastTimeStandsForIt", "Stands/WhatARunStandsForStays"}},
		{"WhatIsRepeatedIsForgotten", func(s whole) any {
			return &broken{st: s, trigger: func(t store.Trigger) store.Trigger { return store.Trigger{At: t.At} }}
		}, []string{"Stands/ARunStandsForWhatItRepeats"}},
		{"WhatIsRepeatedHasNoParent", func(s whole) any {
			return bentRun{s, func(r *store.Run) {
				if r.Type == store.TriggerManual {
					r.ParentID = 0
				}
			}}
		}, []string{"Stands/ARunStandsForWhatItRepeats"}},
		{"WhatIsGivenBackStandsForNothing", read(func(r *store.Run) bool { return r.State == store.StatePlanned }), []string{"Stands/WhatARunStandsForStays"}},
		{"PartsStandForNothing", read(func(r *store.Run) bool { return r.Sharding.Index > 0 }), []string{"Stands/WhatARunStandsForStays"}},
		{"WhatARunStandsForDecidesTheOrder", func(s whole) any {
			return &broken{st: s, start: func(ctx context.Context, st store.Start) store.Start {
				if r, err := s.Run(ctx, st.RunID); err == nil && st.AfterRetries {
					st.Instant = r.Instant()
				}
				return st
			}}
		}, []string{"Stands/WhatIsDueDecidesTheOrder"}},
	}
}

// bentRun changes what is read of a run.
type bentRun struct {
	st     whole
	change func(*store.Run)
}

func (b bentRun) Run(ctx context.Context, id int64) (store.Run, error) {
	run, err := b.st.Run(ctx, id)
	if err == nil {
		b.change(&run)
	}
	return run, err
}
