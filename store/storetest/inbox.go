package storetest

import (
	"slices"

	"github.com/xxljob/xxljob/store"
)

func inboxCases() []testCase {
	return []testCase{
		{"HoldsUntakenRunsInOrder", inboxRuns},
		{"LimitHoldsForRuns", inboxLimit},
		{"HoldsKillsOfTakenUnendedRuns", inboxKills},
		{"HoldsUntakenRunsThatAreToBeKilled", inboxKilledRuns},
		{"TakeByTheAddresseeOnly", takeAddressee},
		{"TakeMarksOnceInOrder", takeOnce},
		{"TakeNeedsAStartedRun", takeState},
		{"TakeEndsAKilledRun", takeKilled},
		{"TakeConcurrentlyMarksOnce", takeConcurrent},
	}
}

func inboxRuns(e *env) {
	o := e.owner("a")
	e.there("b")
	want(e, "inbox of a node without runs", e.mustInbox("b"), store.Inbox{})
	first, second, third := o.handedOver(), o.handedOver(), o.handedOver()
	o.running()
	o.running(to(remote))
	o.running(o.over("bb"))
	o.dispatched()
	got := e.mustInbox("b")
	want(e, "runs in the inbox", got.Runs, []store.Run{first, second, third})
	want(e, "kills in the inbox", len(got.Kills), 0)
	e.mustTake("b", first.ID)
	e.mustSettle(o.verdict(second, store.StateLost))
	want(e, "runs after one was taken and one ended", ids(e.mustInbox("b").Runs), []int64{third.ID})
	want(e, "inbox of the starter", e.mustInbox("a"), store.Inbox{})
}

func inboxLimit(e *env) {
	o := e.owner("a")
	var all []int64
	for range 5 {
		all = append(all, o.handedOver().ID)
	}
	in, err := e.Inbox(e.ctx, "b", 0, 2)
	e.must(err)
	want(e, "runs in an inbox of 2", ids(in.Runs), all[:2])
	in, err = e.Inbox(e.ctx, "b", all[1], 2)
	e.must(err)
	want(e, "the page behind them", ids(in.Runs), all[2:4])
	in, err = e.Inbox(e.ctx, "b", all[4], 2)
	e.must(err)
	want(e, "the page behind the last", len(in.Runs), 0)
}

func inboxKills(e *env) {
	o := e.owner("a")
	taken, late, ended, own, far := o.handedOver(), o.handedOver(), o.handedOver(), o.running(), o.running(to(remote))
	want(e, "runs taken", len(e.mustTake("b", taken.ID, late.ID, ended.ID)), 3)
	e.mustFinish(success(ended))
	for _, run := range []store.Run{late, taken, ended, own, far} {
		e.mustKill(run.ID, "unwanted")
	}
	got := e.mustInbox("b")
	want(e, "kills in the addressee's inbox", ids(got.Kills), []int64{taken.ID, late.ID})
	want(e, "runs beside them", len(got.Runs), 0)
	for _, run := range got.Kills {
		want(e, "KillReason", run.KillReason, "unwanted")
		e.wantRun("a kill in the inbox", run)
	}
	want(e, "kills in the inbox of a starter at its own address", ids(e.mustInbox("a").Kills), []int64{own.ID})
	e.mustFinish(success(e.mustRun(taken.ID)))
	want(e, "kills after one has ended", ids(e.mustInbox("b").Kills), []int64{late.ID})
	want(e, "moved", o.tryReaddress(o.readdress(own, store.LocalAddress("b"))), true)
	want(e, "kills of a run that was moved away", len(e.mustInbox("a").Kills), 0)
	want(e, "runs of the new addressee", ids(e.mustInbox("b").Runs), []int64{own.ID})
}

// inboxKilledRuns: a kill that comes before the taking is met by it.
func inboxKilledRuns(e *env) {
	o := e.owner("a")
	first, killed, third := o.handedOver(), o.handedOver(), o.handedOver()
	killed = e.mustKill(killed.ID, "unwanted")
	got := e.mustInbox("b")
	want(e, "runs in the inbox", got.Runs, []store.Run{first, killed, third})
	want(e, "kills in the inbox", len(got.Kills), 0)
	e.mustTake("b", first.ID)
	e.mustKill(first.ID, "unwanted")
	got = e.mustInbox("b")
	want(e, "runs and kills after one was taken and killed", [][]int64{ids(got.Runs), ids(got.Kills)}, [][]int64{{killed.ID, third.ID}, {first.ID}})
}

func takeAddressee(e *env) {
	o := e.owner("a")
	run := o.handedOver()
	far := o.running(to(remote))
	for _, inc := range []string{"a", "c", "", "B"} {
		want(e, "runs taken by "+inc, len(e.mustTake(inc, run.ID, far.ID)), 0)
	}
	e.wantRun("after it", run)
	got := o.one(e.mustTake("b", run.ID))
	e.check(!got.Taken.IsZero(), "Taken is not set")
	run.Taken = got.Taken
	want(e, "taken run", got, run)
	e.wantRun("taken run", run)
}

func takeOnce(e *env) {
	o := e.owner("a")
	first, second := o.handedOver(), o.handedOver()
	got := e.mustTake("b", second.ID, 1<<53-1, first.ID, second.ID)
	want(e, "runs taken", ids(got), []int64{first.ID, second.ID})
	want(e, "runs taken again", len(e.mustTake("b", first.ID, second.ID)), 0)
}

func takeState(e *env) {
	o := e.owner("a")
	planned, ended := o.planned(e.newJob()), o.handedOver()
	e.mustSettle(o.verdict(ended, store.StateLost))
	there := o.handedOver()
	e.mustDispatched(accepted(there))
	before := e.snapshot()
	want(e, "runs taken", len(e.mustTake("b", planned.ID, ended.ID, there.ID)), 0)
	want(e, "state after it", e.snapshot(), before)
}

func takeKilled(e *env) {
	o := e.owner("a")
	first, killed, last := o.handedOver(), o.handedOver(), o.handedOver()
	e.mustKill(killed.ID, "unwanted")
	got := e.mustTake("b", last.ID, killed.ID, first.ID)
	want(e, "runs that it changed", ids(got), []int64{first.ID, killed.ID, last.ID})
	for _, run := range got {
		e.wantRun("a run that it changed", run)
		if run.ID == killed.ID {
			e.check(run.State == store.StateKilled && !run.Ended.IsZero(), "a killed run is %v, Ended %v", run.State, run.Ended)
		} else {
			e.check(run.State == store.StateStarted && !run.Taken.IsZero(), "a run that is not killed is %v, Taken %v", run.State, run.Taken)
		}
	}
	want(e, "inbox after it", e.mustInbox("b"), store.Inbox{})
	want(e, "runs that a second call changed", len(e.mustTake("b", first.ID, killed.ID, last.ID)), 0)
}

func takeConcurrent(e *env) {
	o := e.owner("a")
	var all []int64
	for range 20 {
		all = append(all, o.handedOver().ID)
	}
	const callers = 8
	var taken [callers][]int64
	var errs [callers]error
	var calls []func()
	for i := range callers {
		calls = append(calls, func() {
			for _, id := range all {
				runs, err := e.Take(e.ctx, "b", []int64{id})
				if err != nil {
					errs[i] = err
				}
				taken[i] = append(taken[i], ids(runs)...)
			}
		})
	}
	e.race(calls...)
	for _, err := range errs {
		e.must(err)
	}
	got := slices.Concat(taken[:]...)
	slices.Sort(got)
	want(e, "runs that all takers took together", got, all)
}
