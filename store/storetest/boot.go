package storetest

import (
	"github.com/xxljob/xxljob/store"
)

// The boot id of the process that a run was started for. These are cases of
// several topics: the boot id is stored by a start, and follows the run's address.

// forBoot starts a run for the process with the boot id.
func forBoot(boot string) func(*store.Start) {
	return func(s *store.Start) { s.BootID = boot }
}

// startBoots starts runs with and without boot ids in one batch.
func startBoots(e *env) {
	o := e.owner("a")
	boots := []string{"one", "", "two", "one", ""}
	addresses := []string{remote, remote, remoteToo, remote, o.addr()}
	var starts []store.Start
	for i, boot := range boots {
		starts = append(starts, o.startOf(o.planned(e.newJob()), to(addresses[i]), forBoot(boot)))
	}
	answers, err := o.Start(e.ctx, nil, starts)
	e.must(err)
	if len(answers) != len(starts) {
		e.Fatalf("%d answers for %d starts", len(answers), len(starts))
	}
	for i, a := range answers {
		want(e, "status and boot id", []any{a.Status, a.Run.BootID}, []any{store.StartOK, boots[i]})
		e.wantRun("started run", a.Run)
	}
	end := o.tryStart(o.startOf(o.planned(e.newJob()), refused, forBoot("one")))
	want(e, "boot id of a run that was not started", end.Run.BootID, "")
	e.wantRun("refused run", end.Run)
}

func startBroadcastBoots(e *env) {
	o := e.owner("a")
	targets := []string{remote, remoteToo, o.addr(), "http://10.0.0.3:9999"}
	for name, c := range map[string]struct {
		first         string
		boots, stored []string
	}{
		"of all":            {"one", []string{"one", "two", "", "three"}, []string{"one", "two", "", "three"}},
		"not of the first":  {"", []string{"", "two", "", ""}, []string{"", "two", "", ""}},
		"of the first":      {"one", []string{"one", "", "", ""}, []string{"one", "", "", ""}},
		"not in the list":   {"one", nil, []string{"one", "", "", ""}},
		"of none":           {"", make([]string, 4), make([]string, 4)},
		"of none, no list":  {"", nil, make([]string, 4)},
		"the same of three": {"one", []string{"one", "one", "", "one"}, []string{"one", "one", "", "one"}},
	} {
		a := o.tryStart(o.startOf(o.planned(e.newJob()), to(remote), forBoot(c.first), func(s *store.Start) { s.Targets, s.TargetBoots = targets, c.boots }))
		want(e, name+": status", a.Status, store.StartOK)
		var got []string
		for _, part := range append([]store.Run{a.Run}, a.Siblings...) {
			got = append(got, part.BootID)
			e.wantRun(name+": a part", part)
		}
		want(e, name+": boot ids of the parts", got, c.stored)
	}
}

// bootsRead: whoever gets a run gets its boot id.
func bootsRead(e *env) {
	o := e.owner("a")
	wantBoot := func(from string, runs []store.Run) {
		e.Helper()
		want(e, "boot id from "+from, o.one(runs).BootID, "one")
	}
	run := o.running(to(remote), forBoot("one"))
	wantBoot("Run", []store.Run{e.mustRun(run.ID)})
	wantBoot("Runs", e.mustRuns(store.RunFilter{JobID: run.JobID}))
	byID, err := e.RunsByID(e.ctx, []int64{run.ID})
	e.must(err)
	wantBoot("RunsByID", byID)
	started, err := e.StartedBy(e.ctx, o.shards, []string{"a"}, 0, 10)
	e.must(err)
	wantBoot("StartedBy", started)
	wantBoot("AskLog", []store.Run{e.mustAsk("a", run, 1).Run})
	wantBoot("the Ask in the Inbox", []store.Run{e.mustInbox("a").Asks[0].Run})
	wantBoot("Start of a run that is gone", []store.Run{o.tryStart(o.startOf(run)).Run})
	wantBoot("Dispatched", e.mustDispatched(accepted(run)))
	wantBoot("DispatchedRuns", o.mustDispatchedRuns(0, 10))
	wantBoot("Kill", []store.Run{e.mustKill(run.ID, "x")})
	wantBoot("Finish", e.mustFinish(overWire(run.ID)))
	wantBoot("Runs, of one that has ended", e.mustRuns(store.RunFilter{JobID: run.JobID}))

	over := o.running(o.over("b"), forBoot("one"))
	wantBoot("the Inbox", e.mustInbox("b").Runs)
	wantBoot("Take", e.mustTake("b", over.ID))
	e.mustKill(over.ID, "x")
	wantBoot("the kills of the Inbox", e.mustInbox("b").Kills)
	killed := o.running(o.over("b"), forBoot("one"))
	e.mustKill(killed.ID, "x")
	wantBoot("Take of a run that is to be killed", e.mustTake("b", killed.ID))
}

// dispatchedBoots: a process that has accepted a run says which one it is.
func dispatchedBoots(e *env) {
	o := e.owner("a")
	boots := []string{"two", "", "one", "", "three"} // of those that were meant: one, one, one, none, none
	var list []store.Dispatch
	var stored []string
	for i, boot := range boots {
		meant := []string{"one", "one", "one", "", ""}[i]
		d := accepted(o.running(to(remote), forBoot(meant)))
		d.BootID = boot
		list = append(list, d)
		if boot == "" {
			boot = meant
		}
		stored = append(stored, boot)
	}
	for i, run := range e.mustDispatched(list...) {
		want(e, "boot id of a run that was accepted", run.BootID, stored[i])
		e.wantRun("a run that was accepted", run)
	}
	run := o.running(to(remote), forBoot("one"))
	d := accepted(run)
	d.BootID, d.Token = "four", d.Token+1
	want(e, "runs that another start has changed", len(e.mustDispatched(d)), 0)
	want(e, "boot id after an answer to another start", e.mustRun(run.ID).BootID, "one")
}

func readdressBoots(e *env) {
	o := e.owner("a")
	run := o.running(to(remote), forBoot("one"))
	for _, c := range []struct{ address, boot string }{{remoteToo, "two"}, {remote, "one"}, {remoteToo, ""}, {remote, "three"}, {o.addr(), ""}} {
		r := o.readdress(run, c.address)
		r.BootID = c.boot
		e.check(o.tryReaddress(r), "Readdress to %s: false, want true", c.address)
		got := e.mustRun(run.ID)
		want(e, "address and boot id", []string{got.Address, got.BootID}, []string{c.address, c.boot})
	}
	r := o.readdress(run, remote)
	r.BootID, r.Token = "four", r.Token+1
	e.check(!o.tryReaddress(r), "Readdress with another token: true, want false")
	want(e, "boot id after a Readdress that did nothing", e.mustRun(run.ID).BootID, "")
}

func settleClearsBoot(e *env) {
	o := e.owner("a")
	run := o.running(to(remote), forBoot("one"))
	got := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
	want(e, "boot id of a run that was put back", got.BootID, "")
	e.wantRun("run that was put back", got)
	want(e, "boot id in Planned", o.one(o.allPlanned()).BootID, "")
	want(e, "boot id after a start for no process", o.started(got, to(remote)).BootID, "")
}

func settleKeepsBoot(e *env) {
	o := e.owner("a")
	run, lost := o.running(to(remote), forBoot("one")), o.running(to(remote), forBoot("two"))
	b := o.overtakenBy("b")
	v := b.verdict(run, store.StateStarted)
	v.NewOwner, v.NewToken = "b", run.Token+100
	for what, c := range map[string]struct {
		verdict store.Verdict
		boot    string
	}{"adopted": {v, "one"}, "lost": {b.verdict(lost, store.StateLost), "two"}} {
		got := o.one(e.mustSettle(c.verdict))
		want(e, "boot id of a run that was "+what, got.BootID, c.boot)
		e.wantRun("run that was "+what, got)
	}
}
