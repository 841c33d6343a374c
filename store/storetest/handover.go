package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/store"
)

func handOverCases() []testCase {
	return []testCase{
		{"ReaddressMovesAnUntakenRun", readdressMoves},
		{"ReaddressToTheOwnersOwnIsTheTaking", readdressOwn},
		{"ReaddressMovesARunOfTheOwnersOwn", readdressTaken},
		{"ReaddressFromRemoteToRemoteAndHome", readdressRemote},
		{"ReaddressNeedsTheAddressee", readdressNoNode},
		{"ReaddressMismatchChangesNothing", readdressMismatch},
		{"ReaddressReplacesTheBootID", readdressBoots},
		{"DispatchedStoresTheBootIDOfWhoHasAccepted", dispatchedBoots},
		{"DispatchedMarksAStartedRun", dispatchedMarks},
		{"DispatchedAnswersInOrderGiven", dispatchedOrder},
		{"DispatchedMarksOnce", dispatchedOnce},
		{"DispatchedConcurrentlyMarksOnce", dispatchedConcurrent},
		{"DispatchedMismatchChangesNothing", dispatchedMismatch},
		{"StartedByOwnerOrAddressee", startedBy},
		{"StartedByPagesCoverAllOnce", startedByPages},
	}
}

func (o *owner) readdress(run store.Run, addr string) store.Readdress {
	return store.Readdress{RunID: run.ID, Shard: run.Shard, Epoch: o.epoch(run.Shard), Owner: run.Owner,
		Token: run.Token, Address: addr, Msg: "moved"}
}

func (o *owner) tryReaddress(r store.Readdress) bool {
	o.Helper()
	ok, err := o.Readdress(o.ctx, r)
	o.must(err)
	return ok
}

func readdressMoves(e *env) {
	o := e.owner("a")
	run := o.running(o.over("b"), func(s *store.Start) { s.Msg = "first" })
	e.there("c")
	for _, addr := range []string{store.LocalAddress("c"), remote} {
		e.check(o.tryReaddress(o.readdress(run, addr)), "Readdress to %s: false, want true", addr)
		got := e.mustRun(run.ID)
		e.check(hasLine(got.TriggerMsg, "first") && hasLine(got.TriggerMsg, "moved"), "TriggerMsg %q: want both lines", got.TriggerMsg)
		run.Address, run.TriggerMsg = addr, got.TriggerMsg
		want(e, "run after it", got, run)
	}
	want(e, "inbox of the first addressee", len(e.mustInbox("b").Runs), 0)
	want(e, "taken by the first addressee", len(e.mustTake("b", run.ID)), 0)
}

func readdressOwn(e *env) {
	o := e.owner("a")
	run := o.running(to(remote))
	e.check(o.tryReaddress(o.readdress(run, o.addr())), "Readdress: false, want true")
	got := e.mustRun(run.ID)
	e.check(!got.Taken.IsZero() && got.Address == o.addr(), "Taken %v at %s: want taken", got.Taken, got.Address)
	want(e, "inbox", len(e.mustInbox("a").Runs), 0)
}

// readdressTaken: a run that the start took may go elsewhere, for instance where
// the executor would not have it, and is then nobody's before its new addressee
// takes it.
func readdressTaken(e *env) {
	o := e.owner("a")
	e.there("b")
	for _, addr := range []string{remote, store.LocalAddress("b")} {
		run := o.running()
		e.check(o.tryReaddress(o.readdress(run, addr)), "Readdress of a run at its owner's own to %s: false, want true", addr)
		got := e.mustRun(run.ID)
		run.Address, run.Taken, run.TriggerMsg = addr, got.Taken, got.TriggerMsg
		want(e, "run after it", got, run)
		e.check(got.Taken.IsZero(), "a run that was moved to %s is taken at %v", addr, got.Taken)
	}
	over := o.one(e.mustInbox("b").Runs)
	want(e, "accepted results of the former addressee", len(e.mustFinish(store.Result{RunID: over.ID, Incarnation: "a", Token: over.Token, State: store.StateFailed})), 0)
	want(e, "runs taken by the new addressee", ids(e.mustTake("b", over.ID)), []int64{over.ID})
	want(e, "accepted results of the new addressee", len(e.mustFinish(success(over))), 1)

	back := o.running()
	e.check(o.tryReaddress(o.readdress(back, o.addr())), "Readdress of a run at its owner's own to the same: false, want true")
	e.check(!e.mustRun(back.ID).Taken.IsZero(), "a run that stayed at its owner's own is not taken")
}

// readdressRemote: an executor elsewhere that refuses is left for another one
// elsewhere, and at last for the owner's own.
func readdressRemote(e *env) {
	o := e.owner("a")
	run := o.running(to(remote))
	first := run
	e.check(o.tryReaddress(o.readdress(run, remoteToo)), "Readdress to another remote address: false, want true")
	got := e.mustRun(run.ID)
	run.Address, run.TriggerMsg = remoteToo, got.TriggerMsg
	want(e, "run at another remote address", got, run)
	e.check(got.Taken.IsZero(), "a run at a remote address is taken at %v", got.Taken)
	e.check(o.tryReaddress(o.readdress(run, o.addr())), "Readdress to the owner's own: false, want true")
	got = e.mustRun(run.ID)
	e.check(!got.Taken.IsZero(), "a run that came home is not taken")
	run.Address, run.Taken, run.TriggerMsg = o.addr(), got.Taken, got.TriggerMsg
	want(e, "run at its owner's own", got, run)
	want(e, "accepted results by the token of no address", len(e.mustFinish(success(first))), 0)
	want(e, "accepted results of the owner", len(e.mustFinish(success(got))), 1)
}

func readdressNoNode(e *env) {
	o := e.owner("a")
	e.there("b", "left", "buried")
	e.must(e.Leave(e.ctx, "left"))
	e.must(e.Bury(e.ctx, "buried", 1))
	for name, run := range map[string]store.Run{"handed over": o.handedOver(), "at its owner's own": o.running(), "remote": o.running(to(remote))} {
		before := e.snapshot()
		for _, inc := range []string{"never", "left", "buried", "B"} {
			e.check(!o.tryReaddress(o.readdress(run, store.LocalAddress(inc))), "Readdress of a run that is %s to node %s: true, want false", name, inc)
			want(e, "state after it", e.snapshot(), before)
		}
	}
	run := o.handedOver()
	e.must(e.Bury(e.ctx, "a", 1))
	want(e, "Left of the owner", e.mustNode(e.mustBeat(observer), "a").Left, true)
	e.check(o.tryReaddress(o.readdress(run, o.addr())), "Readdress to the owner's own, whose node was given up: false, want true")
	e.mustBeat("left")
	run = o.handedOver()
	e.check(o.tryReaddress(o.readdress(run, store.LocalAddress("left"))), "Readdress to a node that is back: false, want true")
}

func readdressMismatch(e *env) {
	o := e.owner("a")
	run := o.running(o.over("b"))
	mine, taken := o.running(), o.handedOver()
	e.mustTake("b", taken.ID)
	strange := o.readdress(mine, remote)
	strange.Owner = "b"
	gone := o.readdress(run, remote)
	gone.RunID += 1_000_000
	cases := map[string]store.Readdress{
		"another owner":                        func() store.Readdress { r := o.readdress(run, remote); r.Owner = "b"; return r }(),
		"another token":                        func() store.Readdress { r := o.readdress(run, remote); r.Token++; return r }(),
		"an old epoch":                         func() store.Readdress { r := o.readdress(run, remote); r.Epoch--; return r }(),
		"a taken run":                          o.readdress(taken, remote),
		"a taken run, back to its owner's own": o.readdress(taken, o.addr()),
		"another owner, of a taken run":        strange,
		"a dispatched run":                     o.readdress(o.dispatched(), store.LocalAddress("b")),
		"a planned run":                        o.readdress(o.planned(e.newJob()), remote),
		"no run":                               gone,
	}
	ended := o.running(to(remote))
	e.mustFinish(overWire(ended.ID))
	cases["an ended run"] = o.readdress(ended, store.LocalAddress("b"))
	before := e.snapshot()
	for name, r := range cases {
		e.check(!o.tryReaddress(r), "Readdress with %s: true, want false", name)
		want(e, "state after Readdress with "+name, e.snapshot(), before)
	}
	b := o.overtakenBy("b")
	e.check(!o.tryReaddress(o.readdress(run, remote)), "Readdress by the former owner of the shard: true, want false")
	e.check(b.tryReaddress(b.readdress(run, remote)), "Readdress by the new owner of the shard: false, want true")
}

func dispatchedMarks(e *env) {
	o := e.owner("a")
	run := o.running(to(remote), func(s *store.Start) { s.Msg = "first" })
	got := o.one(e.mustDispatched(accepted(run)))
	want(e, "lines of TriggerMsg", strings.Split(got.TriggerMsg, "\n"), []string{"first", "accepted"})
	run.State, run.TriggerMsg = store.StateDispatched, got.TriggerMsg
	want(e, "dispatched run", got, run)
	e.wantRun("dispatched run", got)
	quiet := o.running(to(remote))
	silent := accepted(quiet)
	silent.Msg = ""
	quiet.State = store.StateDispatched
	want(e, "run dispatched without a word", e.mustDispatched(silent), []store.Run{quiet})
}

// dispatchedOrder: the runs are of several shards, and given in no order of theirs.
func dispatchedOrder(e *env) {
	o := e.owner("a")
	var list []store.Dispatch
	var order []int64
	for i := range 9 {
		d := accepted(o.running(to(remote)))
		d.Msg = fmt.Sprintf("message %d", i)
		if i%4 == 1 {
			d.Token++
		} else {
			order = append(order, d.RunID)
		}
		list = append(list, d)
	}
	slices.Reverse(list)
	slices.Reverse(order)
	list[0], list[4], order[0], order[3] = list[4], list[0], order[3], order[0]
	got := e.mustDispatched(list...)
	want(e, "runs that it changed", ids(got), order)
	for _, run := range got {
		i := slices.IndexFunc(list, func(d store.Dispatch) bool { return d.RunID == run.ID })
		want(e, "message", run.TriggerMsg, list[i].Msg)
		want(e, "state", run.State, store.StateDispatched)
		e.wantRun("a dispatched run", run)
	}
}

func dispatchedOnce(e *env) {
	o := e.owner("a")
	run, fresh := o.running(to(remote)), o.running(to(remote))
	again, wrong := accepted(run), accepted(run)
	again.Msg, wrong.Token = "again", wrong.Token+1
	got := o.one(e.mustDispatched(wrong, accepted(run), again))
	want(e, "message", got.TriggerMsg, "accepted")
	want(e, "runs that a second call changed", ids(e.mustDispatched(again, accepted(fresh))), []int64{fresh.ID})
	e.wantRun("a run that was dispatched before", got)
}

// dispatchedConcurrent: callers whose batches have other orders do not keep each
// other from an end.
func dispatchedConcurrent(e *env) {
	o := e.owner("a")
	const callers = 6
	var list []store.Dispatch
	for range 20 {
		list = append(list, accepted(o.running(to(remote))))
	}
	var marked [callers][]int64
	var calls []func()
	for i := range callers {
		mine := slices.Clone(list)
		if i%2 == 1 {
			slices.Reverse(mine)
		}
		calls = append(calls, func() { marked[i] = ids(e.mustDispatched(mine...)) })
	}
	e.race(calls...)
	var want2 []int64
	for _, d := range list {
		want2 = append(want2, d.RunID)
		e.wantState("after all", d.RunID, store.StateDispatched)
	}
	got := slices.Concat(marked[:]...)
	slices.Sort(got)
	want(e, "runs that all callers marked together", got, want2)
}

func dispatchedMismatch(e *env) {
	o := e.owner("a")
	run := o.running(to(remote))
	ended := o.running(to(remote))
	e.mustFinish(overWire(ended.ID))
	lost := o.running(to(remote))
	e.mustSettle(o.verdict(lost, store.StateLost))
	done, planned := o.dispatched(), o.planned(e.newJob())
	bend := func(change func(d *store.Dispatch)) store.Dispatch { d := accepted(run); change(&d); return d }
	cases := []struct {
		name string
		d    store.Dispatch
	}{
		{"another owner", bend(func(d *store.Dispatch) { d.Owner = "b" })},
		{"no owner", bend(func(d *store.Dispatch) { d.Owner = "" })},
		{"another token", bend(func(d *store.Dispatch) { d.Token++ })},
		{"no run", bend(func(d *store.Dispatch) { d.RunID = 1<<53 - 1 })},
		{"an ended run", accepted(ended)},
		{"a lost run", accepted(lost)},
		{"a dispatched run", accepted(done)},
		{"a planned run", accepted(planned)},
	}
	before := e.snapshot()
	var all []store.Dispatch
	for _, c := range cases {
		all = append(all, c.d)
		want(e, "runs that Dispatched changed with "+c.name, len(e.mustDispatched(c.d)), 0)
		want(e, "state after Dispatched with "+c.name, e.snapshot(), before)
	}
	want(e, "runs that Dispatched changed with all of them", len(e.mustDispatched(all...)), 0)
	want(e, "state after Dispatched with all of them", e.snapshot(), before)
	want(e, "runs that Dispatched changed beside them", ids(e.mustDispatched(append(all, accepted(run))...)), []int64{run.ID})
}

func startedBy(e *env) {
	o := e.owner("a")
	in := e.jobIn(1)
	runs := o.claim(o.plan(in, e.at(0), e.at(1), e.at(2), e.at(3), e.at(4), e.at(5)))
	own := o.started(runs[0])
	over := o.started(runs[1], o.over("b"))
	wire := o.started(runs[2], to(remote))
	ended := o.started(runs[3])
	e.mustFinish(success(ended))
	out := o.started(o.planned(e.jobIn(2)))
	e.mustDispatched(accepted(o.started(runs[4], to(remote))))
	one, two := o.shards[1:2], o.shards[2:3]
	cases := []struct {
		name   string
		shards []store.Shard
		by     []string
		want   []int64
	}{
		{"its owner", one, []string{"a"}, []int64{own.ID, over.ID, wire.ID}},
		{"its addressee", one, []string{"b"}, []int64{over.ID}},
		{"both", o.shards, []string{"b", "a"}, []int64{own.ID, over.ID, wire.ID, out.ID}},
		{"the other shard", two, []string{"a"}, []int64{out.ID}},
		{"a stranger", o.shards, []string{"c"}, nil},
		{"nobody", o.shards, nil, nil},
	}
	for _, c := range cases {
		got, err := e.StartedBy(e.ctx, c.shards, c.by, 0, 100)
		e.must(err)
		want(e, "StartedBy "+c.name, ids(got), c.want)
		for _, run := range got {
			e.wantRun("StartedBy "+c.name, run)
		}
	}
}

func startedByPages(e *env) {
	o := e.owner("a")
	var all []int64
	for range 11 {
		all = append(all, o.running().ID)
	}
	var got []int64
	for after := int64(0); len(got) <= len(all); after = got[len(got)-1] {
		page, err := e.StartedBy(e.ctx, o.shards, []string{"a"}, after, 3)
		e.must(err)
		e.check(len(page) <= 3, "a page of %d, want at most 3", len(page))
		if len(page) == 0 {
			break
		}
		got = append(got, ids(page)...)
	}
	want(e, "runs of all pages", got, all)
}
