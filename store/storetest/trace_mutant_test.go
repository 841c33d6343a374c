package storetest_test

import (
	"context"

	"github.com/xxljob/xxljob"
)

// traceMutants break rules about traces.
func traceMutants() []mutant {
	read := func(change func(r *xxljob.Run)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store { return bentRun{s, change} }
	}
	forget := func(which func(r *xxljob.Run) bool) func(xxljob.Store) xxljob.Store {
		return read(func(r *xxljob.Run) {
			if which(r) {
				r.Trace = ""
			}
		})
	}
	return []mutant{
		{"TracesAreForgotten", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, trigger: func(t xxljob.Trigger) xxljob.Trigger { t.Trace = ""; return t }}
		}, []string{"Trace/IsThatOfTheTrigger", "Trace/IsThatOfARetry", "Trace/IsThatOfEachPart", "Trace/IsThatOfAChild", "Trace/OfAWindowIsThatOfTheLastSuccess"}},
		{"TracesAreCut", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, trigger: func(t xxljob.Trigger) xxljob.Trigger { t.Trace = t.Trace[:min(len(t.Trace), 512)]; return t }}
		}, []string{"Trace/IsThatOfTheTrigger"}},
		{"TracesEndWithTheRun", forget(func(r *xxljob.Run) bool { return r.State.Ended() }), []string{"Trace/IsThatOfTheTrigger"}},
		{"FarRunsAreInNoTrace", forget(func(r *xxljob.Run) bool { return r.Scheduled.Year() > r.Created.Year() }), []string{"Trace/IsKeptApart"}},
		{"EverythingIsTraced", read(func(r *xxljob.Run) { r.Trace = "00-1" }), []string{"Trace/OfNobodyIsNone"}},
		{"RetriesAreInNoTrace", forget(func(r *xxljob.Run) bool { return r.Type == xxljob.TriggerRetry }), []string{"Trace/IsThatOfARetry"}},
		{"TheFirstPartHasTheTrace", forget(func(r *xxljob.Run) bool { return r.Sharding.Index > 0 }), []string{"Trace/IsThatOfEachPart"}},
		{"ChildrenAreInNoTrace", forget(func(r *xxljob.Run) bool { return r.ParentID != 0 }), []string{"Trace/IsThatOfAChild", "Trace/OfAWindowIsThatOfTheLastSuccess"}},
	}
}

// bentRun changes what is read of a run.
type bentRun struct {
	xxljob.Store
	change func(*xxljob.Run)
}

func (b bentRun) Run(ctx context.Context, id int64) (xxljob.Run, error) {
	run, err := b.Store.Run(ctx, id)
	if err == nil {
		b.change(&run)
	}
	return run, err
}
