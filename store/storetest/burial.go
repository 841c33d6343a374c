package storetest

import (
	"fmt"

	"github.com/xxljob/xxljob/store"
)

// Two more races. A run that is addressed to a node whose row is gone would be
// taken by nobody, and nobody would be judged for it: it would stay started for
// ever.

// burials is how often these are run: what they are about takes one statement.
const burials = 200

// raceBurial lets what addresses a run to a node race with the node's clean end.
// send reports whether it did.
func (o *owner) raceBurial(round int, run store.Run, send func(address string) bool) {
	o.Helper()
	inc := fmt.Sprintf("n%d", round)
	o.there(inc)
	sent := false
	o.race(
		func() { sent = send(store.LocalAddress(inc)) },
		func() {
			o.must(o.Leave(o.ctx, inc))
			o.must(o.Bury(o.ctx, inc, 1))
		},
	)
	got := o.mustRun(run.ID)
	there := o.node(o.mustBeat(observer), inc)
	switch {
	case sent:
		o.check(got.State == store.StateStarted, "a run that was sent to %s is %v", inc, got.State)
		o.check(there != nil, "run %d is started, and its addressee %s is deleted", run.ID, inc)
		for _, part := range o.runsOf(run.JobID) {
			o.mustSettle(o.verdict(part, store.StateLost))
		}
	default:
		o.check(got.Address != store.LocalAddress(inc), "run %d, which was not sent, is at %s", run.ID, got.Address)
	}
	o.must(o.Bury(o.ctx, inc, 1))
	o.check(o.node(o.mustBeat(observer), inc) == nil, "%s is kept without a run", inc)
}

func raceStartBurial(e *env) {
	o := e.owner("a")
	for i := range burials {
		run := o.planned(e.newJob())
		s := o.startOf(run)
		o.raceBurial(i, run, func(address string) bool {
			s.Address = address
			if i%2 == 1 {
				s.Address, s.Targets = remote, []string{remote, address}
			}
			a := o.tryStart(s)
			e.check(a.Status == store.StartOK || a.Status == store.StartNoNode || a.Status == store.StartLocked,
				"status %d of a start at a node that ends", a.Status)
			return a.Status == store.StartOK
		})
	}
}

func raceReaddressBurial(e *env) {
	o := e.owner("a")
	for i := range burials {
		run := o.running()
		if i%2 == 1 {
			run = o.running(to(remote))
		}
		o.raceBurial(i, run, func(address string) bool { return o.tryReaddress(o.readdress(run, address)) })
	}
}
