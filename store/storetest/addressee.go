package storetest

import (
	"fmt"

	"github.com/xxljob/xxljob/store"
)

// A run is started only where there is a node to take it, or to be judged. These
// are cases of Start; those of Readdress are in handover.go.

// local sends a start to another node, be it there or not.
func local(incarnation string) func(*store.Start) { return to(store.LocalAddress(incarnation)) }

func startNoNode(e *env) {
	o := e.owner("a")
	e.there("b", "left", "buried", "judged")
	e.must(e.Leave(e.ctx, "left"))
	e.must(e.Bury(e.ctx, "buried", 1))
	o.running(local("judged"))
	e.must(e.Bury(e.ctx, "judged", 1))
	run := o.planned(e.newJob())
	for _, inc := range []string{"never", "left", "buried", "judged", "B", "bb"} {
		o.wantNoStart("a start at node "+inc, o.startOf(run, local(inc)), store.StartNoNode)
	}
	for _, inc := range []string{"b", "left", "buried", "judged"} {
		e.mustBeat(inc)
		o.running(local(inc))
	}
}

func startNoNodeTarget(e *env) {
	o := e.owner("a")
	e.there("b", "left")
	e.must(e.Leave(e.ctx, "left"))
	run := o.planned(e.newJob())
	for i := range 4 {
		targets := []string{o.addr(), store.LocalAddress("b"), remote, store.LocalAddress("b")}
		targets[i] = store.LocalAddress("left")
		o.wantNoStart(fmt.Sprintf("a broadcast whose part %d has no node", i),
			o.startOf(run, to(targets[0]), func(s *store.Start) { s.Targets = targets }), store.StartNoNode)
	}
	o.started(run)
}

// startOwnNode: others have given the owner up, but nobody has its shards yet.
func startOwnNode(e *env) {
	o := e.owner("a")
	e.there("b")
	o.running()
	e.must(e.Bury(e.ctx, "a", 1))
	want(e, "Left", e.mustNode(e.mustBeat(observer), "a").Left, true)
	o.running()
	o.running(func(s *store.Start) { s.Targets = []string{s.Address, remote} })
	o.running(local("b"), func(s *store.Start) { s.Targets = []string{s.Address, o.addr()} })
}

// startStatusOrder makes starts that fail for one reason, and for every reason
// that comes after it.
func startStatusOrder(e *env) {
	o := e.owner("a")
	e.there("b")
	runs := o.claim(o.plan(e.newJob(), e.at(0), e.at(1), e.at(2)))
	o.started(runs[0], local("b"))
	gone := e.mustKill(runs[1].ID, "x")
	e.must(e.Leave(e.ctx, "b"))
	stale := func(s *store.Start) { s.JobVersion += 7 }
	fenced := func(s *store.Start) { s.Epoch-- }
	never := func(s *store.Start) { s.RunID += 1_000_000 }
	o.wantNoStart("fenced, of a run that never was", o.startOf(gone, local("b"), serial, stale, never, fenced), store.StartFenced)
	o.wantNoStart("fenced, of an ended run", o.startOf(gone, local("b"), serial, stale, fenced), store.StartFenced)
	o.wantNoStart("fenced, of a planned run", o.startOf(runs[2], local("b"), serial, stale, fenced), store.StartFenced)
	o.wantNoStart("gone", o.startOf(gone, local("b"), serial, stale), store.StartGone)
	o.wantNoStart("stale", o.startOf(runs[2], local("b"), serial, stale), store.StartStale)
	o.wantNoStart("no node", o.startOf(runs[2], local("b"), serial), store.StartNoNode)
	e.mustBeat("b")
	o.wantNoStart("stale, where the node is there", o.startOf(runs[2], local("b"), serial, stale), store.StartStale)
	o.wantNoStart("busy", o.startOf(runs[2], local("b"), serial), store.StartBusy)
	o.started(runs[2], local("b"))
}

func startBusyTarget(e *env) {
	o := e.owner("a")
	e.there("b", "c")
	runs := o.claim(o.plan(e.newJob(), e.at(0), e.at(1), e.at(2)))
	wide := func(s *store.Start) {
		s.Serial, s.Targets = true, []string{s.Address, remote, store.LocalAddress("b")}
	}
	first := o.started(runs[0], local("b"))
	o.wantNoStart("a broadcast with a busy target", o.startOf(runs[1], wide), store.StartBusy)
	e.mustFinish(success(first))
	o.started(runs[1], wide)
	for _, inc := range []string{"a", "b"} {
		o.wantNoStart("a run where a part of a broadcast is, at "+inc, o.startOf(runs[2], serial, local(inc)), store.StartBusy)
	}
	o.started(runs[2], serial, to(remote), func(s *store.Start) { s.Targets = []string{remote, store.LocalAddress("c")} })
}
