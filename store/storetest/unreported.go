package storetest

import (
	"slices"

	"github.com/xxljob/xxljob/store"
)

// unreportedCases are about the runs that remote executors have accepted, and whoever looks
// after them.
func unreportedCases() []testCase {
	return []testCase{
		{"DispatchedRunsAreThoseAndNoOthers", dispatchedRuns},
		{"DispatchedRunsAreOfWhoeverOwnsThem", dispatchedRunsOwners},
		{"DispatchedRunsAreInOrderOfID", dispatchedRunsOrder},
		{"DispatchedRunsPagesCoverAllOnce", dispatchedRunsPages},
		{"DispatchedRunsAreGoneOnceTheyHaveEnded", dispatchedRunsEnd},
	}
}

func (o *owner) mustDispatchedRuns(after int64, limit int, shards ...store.Shard) []store.Run {
	o.Helper()
	if shards == nil {
		shards = o.shards
	}
	runs, err := o.DispatchedRuns(o.ctx, shards, after, limit)
	o.must(err)
	return runs
}

// dispatchedRuns: no run of another state, or shard, is among them.
func dispatchedRuns(e *env) {
	o := e.owner("a")
	in := e.jobIn(1)
	runs := o.claim(o.plan(in, e.at(0), e.at(1), e.at(2), e.at(3), e.at(4)))
	o.started(runs[0], to(remote))
	o.started(runs[1])
	ended := o.started(runs[2], to(remote))
	e.mustFinish(overWire(ended.ID))
	mine := o.one(e.mustDispatched(accepted(o.started(runs[3], to(remote)))))
	other := o.one(e.mustDispatched(accepted(o.started(o.planned(e.jobIn(2)), to(remote)))))
	for _, c := range []struct {
		name   string
		shards []store.Shard
		want   []store.Run
	}{
		{"one shard", o.shards[1:2], []store.Run{mine}},
		{"the other shard", o.shards[2:3], []store.Run{other}},
		{"a shard without any", o.shards[3:4], nil},
		{"both shards, one of them twice", []store.Shard{o.shards[2], o.shards[1], o.shards[2]}, []store.Run{mine, other}},
		{"all shards", o.shards, []store.Run{mine, other}},
		{"a shard that is not there", []store.Shard{{ID: 99}}, nil},
		{"no shard", []store.Shard{}, nil},
	} {
		want(e, "dispatched runs of "+c.name, o.mustDispatchedRuns(0, 100, c.shards...), c.want)
	}
	for _, run := range o.mustDispatchedRuns(0, 100) {
		e.wantRun("a dispatched run", run)
	}
}

// dispatchedRunsOwners: neither the epoch with which a shard is named nor the owner of a
// run matters.
func dispatchedRunsOwners(e *env) {
	o := e.owner("a")
	run := o.dispatched()
	b := o.overtakenBy("b")
	want(e, "dispatched runs, for the new owner of the shards", ids(b.mustDispatchedRuns(0, 10)), []int64{run.ID})
	want(e, "dispatched runs, for the former one", ids(o.mustDispatchedRuns(0, 10)), []int64{run.ID})
	e.must(e.Leave(e.ctx, "a"))
	want(e, "dispatched runs of a node that has left", ids(b.mustDispatchedRuns(0, 10)), []int64{run.ID})
}

// dispatchedRunsOrder: the order is that of their ids, not that of their being accepted, and
// goes across shards.
func dispatchedRunsOrder(e *env) {
	o := e.owner("a")
	var all []store.Run
	for i := range 8 {
		all = append(all, o.started(o.planned(e.jobIn(i%numShards)), to(remote)))
	}
	for _, run := range slices.Backward(all) {
		e.mustDispatched(accepted(run))
	}
	slices.SortFunc(all, func(a, b store.Run) int { return int(a.ID - b.ID) })
	got := ids(o.mustDispatchedRuns(0, 100))
	want(e, "dispatched runs", got, ids(all))
	want(e, "those behind the third", ids(o.mustDispatchedRuns(got[2], 100)), got[3:])
	want(e, "two of those", ids(o.mustDispatchedRuns(got[2], 2)), got[3:5])
	want(e, "none of those", len(o.mustDispatchedRuns(got[2], 0)), 0)
	want(e, "those behind the last", len(o.mustDispatchedRuns(got[7], 100)), 0)
}

func dispatchedRunsPages(e *env) {
	o := e.owner("a")
	var all []int64
	for range 11 {
		all = append(all, o.dispatched().ID)
	}
	var got []int64
	for after := int64(0); len(got) <= len(all); after = got[len(got)-1] {
		page := o.mustDispatchedRuns(after, 3)
		e.check(len(page) <= 3, "a page of %d, want at most 3", len(page))
		if len(page) == 0 {
			break
		}
		got = append(got, ids(page)...)
	}
	want(e, "runs of all pages", got, all)
}

// dispatchedRunsEnd: however they have ended.
func dispatchedRunsEnd(e *env) {
	o := e.owner("a")
	reported, concluded, open := o.dispatched(), o.dispatched(), o.dispatched()
	e.mustFinish(overWire(reported.ID))
	e.mustFinish(store.Result{RunID: concluded.ID, Owner: concluded.Owner, Token: concluded.Token, State: store.StateLost})
	e.wantState("a run that its owner has given up", concluded.ID, store.StateLost)
	want(e, "dispatched runs", ids(o.mustDispatchedRuns(0, 10)), []int64{open.ID})
	e.mustKill(open.ID, "x")
	want(e, "dispatched runs, of which one is to be killed", ids(o.mustDispatchedRuns(0, 10)), []int64{open.ID})
}
