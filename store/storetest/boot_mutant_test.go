package storetest_test

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// bootMutants break rules about the boot id of the process that a run was started
// for.
func bootMutants() []mutant {
	start := func(change func(x *xxljob.Start)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, start: func(_ context.Context, x xxljob.Start) xxljob.Start { change(&x); return x }}
		}
	}
	settled := func(state xxljob.State, boot string) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store { return otherBoot{s, state, boot} }
	}
	return []mutant{
		{"StartForgetsTheBootID", start(func(x *xxljob.Start) { x.BootID = "" }),
			[]string{"Start/StoresTheBootID", "Start/BroadcastStoresTheBootIDOfEachTarget", "Start/EveryReaderHasTheBootID", "Settle/ToStartedAndToLostKeepTheBootID"}},
		{"StartStoresOneBootIDForABatch", func(s xxljob.Store) xxljob.Store { return oneBoot{s} }, []string{"Start/StoresTheBootID"}},
		{"BroadcastForgetsTheBootIDs", start(func(x *xxljob.Start) { x.TargetBoots = nil }), []string{"Start/BroadcastStoresTheBootIDOfEachTarget"}},
		{"BroadcastIsForOneProcess", start(func(x *xxljob.Start) {
			x.TargetBoots = slices.Repeat([]string{x.BootID}, len(x.Targets))
		}), []string{"Start/BroadcastStoresTheBootIDOfEachTarget"}},
		{"BroadcastIsForTheProcessBefore", start(func(x *xxljob.Start) {
			if n := len(x.TargetBoots); n > 1 {
				x.TargetBoots = append([]string{x.BootID}, x.TargetBoots[:n-1]...)
			}
		}), []string{"Start/BroadcastStoresTheBootIDOfEachTarget"}},
		{"ReaddressKeepsTheBootID", func(s xxljob.Store) xxljob.Store {
			return otherReaddress{s, func(_ context.Context, _ xxljob.Store, r *store.Readdress, run xxljob.Run) (ok, decided bool) {
				r.BootID = run.BootID
				return false, false
			}}
		}, []string{"HandOver/ReaddressReplacesTheBootID"}},
		{"ReaddressForgetsTheBootID", func(s xxljob.Store) xxljob.Store {
			return otherReaddress{s, func(_ context.Context, _ xxljob.Store, r *store.Readdress, _ xxljob.Run) (ok, decided bool) {
				r.BootID = ""
				return false, false
			}}
		}, []string{"HandOver/ReaddressReplacesTheBootID"}},
		{"GivingBackKeepsTheBootID", settled(xxljob.StatePlanned, "one"), []string{"Settle/ToPlannedClearsTheBootID"}},
		{"AdoptionForgetsTheBootID", settled(xxljob.StateStarted, ""), []string{"Settle/ToStartedAndToLostKeepTheBootID"}},
		{"LossForgetsTheBootID", settled(xxljob.StateLost, ""), []string{"Settle/ToStartedAndToLostKeepTheBootID"}},
		{"ReadersForgetTheBootID", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, runs: func(runs []xxljob.Run) {
				for i := range runs {
					runs[i].BootID = ""
				}
			}}
		}, []string{"Start/EveryReaderHasTheBootID"}},
	}
}

// oneBoot starts all runs of a batch for the process of the first.
type oneBoot struct{ xxljob.Store }

func (o oneBoot) Start(ctx context.Context, dst []xxljob.Started, starts []xxljob.Start) ([]xxljob.Started, error) {
	starts = slices.Clone(starts)
	for i := range starts {
		starts[i].BootID = starts[0].BootID
	}
	return o.Store.Start(ctx, dst, starts)
}

// otherBoot shows a boot id of its own in runs that a verdict has given the state.
type otherBoot struct {
	xxljob.Store
	state xxljob.State
	boot  string
}

func (o otherBoot) Settle(ctx context.Context, verdicts []xxljob.Verdict) ([]xxljob.Run, error) {
	runs, err := o.Store.Settle(ctx, verdicts)
	for i := range runs {
		if runs[i].State == o.state {
			runs[i].BootID = o.boot
		}
	}
	return runs, err
}

// conclusionMutants break rules about what an owner concludes about its own start.
func conclusionMutants() []mutant {
	const fence, of = "Finish/OwnersResultsAreFenced", "Finish/OwnersResultsAreForTheStartThatTheyAreOf"
	result := func(change func(r *xxljob.Result, run xxljob.Run)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, result: func(ctx context.Context, r xxljob.Result) xxljob.Result {
				if run, err := s.Run(ctx, r.RunID); err == nil && r.Owner != "" {
					change(&r, run)
				}
				return r
			}}
		}
	}
	return []mutant{
		{"OwnersNeedNoFence", result(func(r *xxljob.Result, _ xxljob.Run) { r.Owner, r.Token = "", 0 }), []string{fence, of}},
		{"OwnersNeedNoToken", result(func(r *xxljob.Result, run xxljob.Run) { r.Token = run.Token }), []string{fence, of}},
		{"OwnersAreAnybody", result(func(r *xxljob.Result, run xxljob.Run) { r.Owner = run.Owner }), []string{fence, of}},
		{"OwnersAreAddressees", result(func(r *xxljob.Result, _ xxljob.Run) { r.Incarnation, r.Owner = r.Owner, "" }), []string{fence, of}},
		{"AddresseesAreOwners", result(func(r *xxljob.Result, run xxljob.Run) {
			if inc, attached := store.LocalIncarnation(run.Address); attached && inc == r.Owner {
				r.Owner = run.Owner
			}
		}), []string{fence}},
		{"OwnersKnowNothingOfDispatchedRuns", result(func(r *xxljob.Result, run xxljob.Run) {
			if run.State == xxljob.StateDispatched {
				r.Token++
			}
		}), []string{fence}},
		{"OwnersKnowNothingOfTheirOwnExecutors", result(func(r *xxljob.Result, run xxljob.Run) {
			if run.Address == store.LocalAddress(run.Owner) {
				r.Token++
			}
		}), []string{fence}},
		{"OwnersAreNotedAfterALoss", result(func(r *xxljob.Result, run xxljob.Run) {
			if run.State == xxljob.StateLost {
				r.Owner, r.Token = "", 0
			}
		}), []string{"Finish/OfTheOwnerAfterLostIsNotNoted"}},
	}
}
