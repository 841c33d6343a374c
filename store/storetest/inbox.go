package storetest

import (
	"slices"

	"github.com/xxljob/xxljob"
)

func inboxCases() []testCase {
	return []testCase{
		{"HoldsUntakenRunsInOrder", inboxRuns},
		{"LimitHoldsForRuns", inboxLimit},
		{"HoldsKillsOfUnendedRuns", inboxKills},
		{"TakeByTheAddresseeOnly", takeAddressee},
		{"TakeMarksOnceInOrder", takeOnce},
		{"TakeNeedsAStartedRun", takeState},
		{"TakeEndsAKilledRun", takeKilled},
		{"TakeConcurrentlyMarksOnce", takeConcurrent},
	}
}

func inboxRuns(e *env) {
	o := e.owner("a")
	e.join("b")
	want(e, "inbox of a node without runs", e.mustInbox("b"), xxljob.Inbox{})
	first, second, third := o.handedOver(), o.handedOver(), o.handedOver()
	o.running()
	o.running(to(remote))
	o.running(o.over("bb"))
	o.dispatched()
	got := e.mustInbox("b")
	want(e, "runs in the inbox", got.Runs, []xxljob.Run{first, second, third})
	want(e, "kills in the inbox", len(got.Kills), 0)
	e.mustTake("b", first.ID)
	e.mustSettle(o.verdict(second, xxljob.StateLost))
	want(e, "runs after one was taken and one ended", ids(e.mustInbox("b").Runs), []int64{third.ID})
	want(e, "inbox of the starter", e.mustInbox("a"), xxljob.Inbox{})
}

func inboxLimit(e *env) {
	o := e.owner("a")
	var all []int64
	for range 5 {
		all = append(all, o.handedOver().ID)
	}
	in, err := e.Inbox(e.ctx, "b", 2)
	e.must(err)
	want(e, "runs in an inbox of 2", ids(in.Runs), all[:2])
}

func inboxKills(e *env) {
	o := e.owner("a")
	untaken, taken, ended, own := o.handedOver(), o.handedOver(), o.handedOver(), o.running()
	o.handedOver()
	e.mustTake("b", taken.ID, ended.ID)
	e.mustFinish(success(ended))
	for _, run := range []xxljob.Run{untaken, taken, ended, own} {
		e.mustKill(run.ID, "unwanted")
	}
	got := e.mustInbox("b").Kills
	want(e, "kills in the addressee's inbox", ids(got), []int64{untaken.ID, taken.ID})
	for _, run := range got {
		want(e, "KillReason", run.KillReason, "unwanted")
	}
	want(e, "kills in the inbox of a starter at its own address", ids(e.mustInbox("a").Kills), []int64{own.ID})
	e.mustFinish(success(e.mustRun(taken.ID)))
	want(e, "kills after one has ended", ids(e.mustInbox("b").Kills), []int64{untaken.ID})
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
	e.mustSettle(o.verdict(ended, xxljob.StateLost))
	accepted := o.handedOver()
	_, err := o.Dispatched(e.ctx, accepted.ID, "a", accepted.Token, "")
	e.must(err)
	before := e.snapshot()
	want(e, "runs taken", len(e.mustTake("b", planned.ID, ended.ID, accepted.ID)), 0)
	want(e, "state after it", e.snapshot(), before)
}

func takeKilled(e *env) {
	o := e.owner("a")
	run, live := o.handedOver(), o.handedOver()
	e.mustKill(run.ID, "unwanted")
	want(e, "runs taken", ids(e.mustTake("b", run.ID, live.ID)), []int64{live.ID})
	got := e.mustRun(run.ID)
	want(e, "state of a killed run", got.State, xxljob.StateKilled)
	e.check(!got.Ended.IsZero(), "Ended is not set")
	want(e, "kills left", len(e.mustInbox("b").Kills), 0)
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
