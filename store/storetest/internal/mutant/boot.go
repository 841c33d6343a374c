package mutant

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// bootMutants break rules about the boot id of the process that a run was started
// for.
func bootMutants() []Mutant {
	start := func(change func(x *store.Start)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, start: func(_ context.Context, x store.Start) store.Start { change(&x); return x }}
		}
	}
	settled := func(state store.State, boot string) func(whole) any {
		return func(s whole) any { return otherBoot{s, state, boot} }
	}
	return []Mutant{
		{"StartForgetsTheBootID", start(func(x *store.Start) { x.BootID = "" }),
			[]string{"Start/StoresTheBootID", "Start/BroadcastStoresTheBootIDOfEachTarget", "Start/EveryReaderHasTheBootID", "Settle/ToStartedAndToLostKeepTheBootID"}},
		{"StartStoresOneBootIDForABatch", func(s whole) any { return oneBoot{s} }, []string{"Start/StoresTheBootID"}},
		{"BroadcastForgetsTheBootIDs", start(func(x *store.Start) { x.TargetBoots = nil }), []string{"Start/BroadcastStoresTheBootIDOfEachTarget"}},
		{"BroadcastIsForOneProcess", start(func(x *store.Start) {
			x.TargetBoots = slices.Repeat([]string{x.BootID}, len(x.Targets))
		}), []string{"Start/BroadcastStoresTheBootIDOfEachTarget"}},
		{"BroadcastIsForTheProcessBefore", start(func(x *store.Start) {
			if n := len(x.TargetBoots); n > 1 {
				x.TargetBoots = append([]string{x.BootID}, x.TargetBoots[:n-1]...)
			}
		}), []string{"Start/BroadcastStoresTheBootIDOfEachTarget"}},
		{"ReaddressKeepsTheBootID", func(s whole) any {
			return otherReaddress{s, func(_ context.Context, _ store.Store, r *store.Readdress, run store.Run) (ok, decided bool) {
				r.BootID = run.BootID
				return false, false
			}}
		}, []string{"HandOver/ReaddressReplacesTheBootID"}},
		{"ReaddressForgetsTheBootID", func(s whole) any {
			return otherReaddress{s, func(_ context.Context, _ store.Store, r *store.Readdress, _ store.Run) (ok, decided bool) {
				r.BootID = ""
				return false, false
			}}
		}, []string{"HandOver/ReaddressReplacesTheBootID"}},
		{"GivingBackKeepsTheBootID", settled(store.StatePlanned, "one"), []string{"Settle/ToPlannedClearsTheBootID"}},
		{"AdoptionForgetsTheBootID", settled(store.StateStarted, ""), []string{"Settle/ToStartedAndToLostKeepTheBootID"}},
		{"LossForgetsTheBootID", settled(store.StateLost, ""), []string{"Settle/ToStartedAndToLostKeepTheBootID"}},
		{"ReadersForgetTheBootID", func(s whole) any {
			return &broken{st: s, runs: func(runs []store.Run) {
				for i := range runs {
					runs[i].BootID = ""
				}
			}}
		}, []string{"Start/EveryReaderHasTheBootID"}},
	}
}

// oneBoot starts all runs of a batch for the process of the first.
type oneBoot struct{ st whole }

func (o oneBoot) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	starts = slices.Clone(starts)
	for i := range starts {
		starts[i].BootID = starts[0].BootID
	}
	return o.st.Start(ctx, dst, starts)
}

// otherBoot shows a boot id of its own in runs that a verdict has given the state.
type otherBoot struct {
	st    whole
	state store.State
	boot  string
}

func (o otherBoot) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	runs, err := o.st.Settle(ctx, verdicts)
	for i := range runs {
		if runs[i].State == o.state {
			runs[i].BootID = o.boot
		}
	}
	return runs, err
}

// conclusionMutants break rules about what an owner concludes about its own start.
func conclusionMutants() []Mutant {
	const fence, of = "Finish/OwnersResultsAreFenced", "Finish/OwnersResultsAreForTheStartThatTheyAreOf"
	result := func(change func(r *store.Result, run store.Run)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, result: func(ctx context.Context, r store.Result) store.Result {
				if run, err := s.Run(ctx, r.RunID); err == nil && r.Owner != "" {
					change(&r, run)
				}
				return r
			}}
		}
	}
	return []Mutant{
		{"OwnersNeedNoFence", result(func(r *store.Result, _ store.Run) { r.Owner, r.Token = "", 0 }), []string{fence, of}},
		{"OwnersNeedNoToken", result(func(r *store.Result, run store.Run) { r.Token = run.Token }), []string{fence, of}},
		{"OwnersAreAnybody", result(func(r *store.Result, run store.Run) { r.Owner = run.Owner }), []string{fence, of}},
		{"OwnersAreAddressees", result(func(r *store.Result, _ store.Run) { r.Incarnation, r.Owner = r.Owner, "" }), []string{fence, of}},
		{"AddresseesAreOwners", result(func(r *store.Result, run store.Run) {
			if inc, attached := store.LocalIncarnation(run.Address); attached && inc == r.Owner {
				r.Owner = run.Owner
			}
		}), []string{fence}},
		{"OwnersKnowNothingOfDispatchedRuns", result(func(r *store.Result, run store.Run) {
			if run.State == store.StateDispatched {
				r.Token++
			}
		}), []string{fence}},
		{"OwnersKnowNothingOfTheirOwnExecutors", result(func(r *store.Result, run store.Run) {
			if run.Address == store.LocalAddress(run.Owner) {
				r.Token++
			}
		}), []string{fence}},
		{"OwnersAreNotedAfterALoss", result(func(r *store.Result, run store.Run) {
			if run.State == store.StateLost {
				r.Owner, r.Token = "", 0
			}
		}), []string{"Finish/OfTheOwnerAfterLostIsNotNoted"}},
	}
}
