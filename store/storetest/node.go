package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

func nodeCases() []testCase {
	notes := func(e *env, n store.ZoneNoter) *zoneNotes { return &zoneNotes{e, n} }
	says := func(e *env, n store.ProcessNoter) *processNotes { return &processNotes{e, n} }
	return append(append(optionalCases(notes, []optional[*zoneNotes]{
		{"UnknownZonesAreThoseThatWereNotedLast", zonesNoted},
		{"UnknownZonesComeBackWithTheNode", zonesRevived},
		{"ANodeThatJoinsKnowsOfNoUnknownZones", zonesJoined},
	}), optionalCases(says, []optional[*processNotes]{
		{"AProcessIsAsItWasNotedLast", processNoted},
		{"AProcessComesBackWithTheNode", processRevived},
		{"ANodeThatJoinsHasSaidNothingOfItsProcess", processJoined},
	})...), []testCase{
		{"ABeatWithoutAListIsOfANodeThatRests", nodeRests},
		{"FailingIsAsItWasSaidLast", nodeFails},
		{"AnAttemptThatChangesNothing", attempts},
		{"AnAddedNodeDoesNotFail", addedDoesNotFail},
		{"JoinAddsANode", joinAdds},
		{"NodesInOrderOfIncarnation", nodesInOrder},
		{"BeatRaisesTheCounterAndStoresExecutors", beatRaises},
		{"BeatClearsLeft", beatClearsLeft},
		{"BeatRevivesABuriedNode", beatRevives},
		{"ABuriedNodeSupersedesNobody", beatOld},
		{"LeaveMarksAndReleases", leaveReleases},
		{"BuryNeedsAnUnmovedCounter", buryCounter},
		{"BuryKeepsANodeWithRuns", buryKeeps},
		{"UnknownNodesAreNoError", unknownNode},
		{"AloneOnlyWithoutOthers", alone},
		{"NowIsUTCOrZero", viewNow},
	}...)
}

// zoneNotes is a store that keeps of which zones nodes have no data.
type zoneNotes struct {
	*env
	notes store.ZoneNoter
}

func (e *zoneNotes) note(incarnation string, zones ...string) {
	e.Helper()
	e.must(e.notes.NoteUnknownZones(e.ctx, incarnation, zones))
}

// wantZones checks what the store says of a node, to itself and to others.
func (e *zoneNotes) wantZones(what, incarnation string, zones ...string) {
	e.Helper()
	for _, who := range []string{incarnation, "observer"} {
		want(e.env, what+", as "+who+" sees them", e.mustNode(e.mustBeat(who), incarnation).UnknownZones, zones)
	}
}

func zonesNoted(e *zoneNotes) {
	e.join("observer")
	e.join("a")
	e.join("b")
	e.wantZones("at first", "a")
	e.note("a", "Mars/Olympus", "Asia/Nowhere")
	e.wantZones("zones that were noted", "a", "Mars/Olympus", "Asia/Nowhere")
	e.wantZones("zones of another node", "b")
	e.note("b", "Mars/Olympus")
	e.note("a", "Asia/Nowhere")
	e.wantZones("zones that were noted in place of them", "a", "Asia/Nowhere")
	e.note("a")
	e.wantZones("none", "a")
	e.wantZones("zones of the other node", "b", "Mars/Olympus")
	e.note("nobody", "Mars/Olympus")
	e.check(e.node(e.mustBeat("a"), "nobody") == nil, "a note has added a node")
}

func zonesRevived(e *zoneNotes) {
	e.join("observer")
	e.join("a")
	e.note("a", "Mars/Olympus")
	beats := e.mustNode(e.mustBeat("a"), "a").Beats
	e.must(e.Bury(e.ctx, "a", beats))
	e.check(e.node(e.mustBeat("observer"), "a") == nil, "a buried node without runs is still there")
	e.wantZones("zones of a node that was added again", "a", "Mars/Olympus")
}

func zonesJoined(e *zoneNotes) {
	e.join("observer")
	v, err := e.Join(e.ctx, store.Node{ID: "a", Incarnation: "a-1", UnknownZones: []string{"Mars/Olympus"}})
	e.must(err)
	want(e.env, "zones of a node that joins", e.mustNode(v, "a-1").UnknownZones, []string(nil))
	e.wantZones("zones of a node that has joined", "a-1")
}

// processNotes is a store that keeps what nodes say of their processes.
type processNotes struct {
	*env
	notes store.ProcessNoter
}

func (e *processNotes) note(incarnation, version string, offset time.Duration) {
	e.Helper()
	e.must(e.notes.NoteProcess(e.ctx, incarnation, store.Process{Version: version, ClockOffset: offset}))
}

// wantProcess checks what the store says of a node, to itself and to others.
func (e *processNotes) wantProcess(what, incarnation, version string, offset time.Duration) {
	e.Helper()
	for _, who := range []string{incarnation, "observer", incarnation} {
		n := e.mustNode(e.mustBeat(who), incarnation)
		want(e.env, what+", as "+who+" sees it", store.Process{Version: n.Version, ClockOffset: n.ClockOffset}, store.Process{Version: version, ClockOffset: offset})
	}
}

func processNoted(e *processNotes) {
	e.join("observer")
	e.join("a")
	e.join("b")
	e.wantProcess("at first", "a", "", 0)
	e.note("a", "v1.2.3", -1500*time.Millisecond)
	e.wantProcess("what was noted", "a", "v1.2.3", -1500*time.Millisecond)
	e.wantProcess("another node", "b", "", 0)
	e.note("b", "v2.0.0", 40*24*time.Hour)
	e.note("a", "v1.2.4", 0)
	e.wantProcess("what was noted in its place", "a", "v1.2.4", 0)
	e.wantProcess("the other node", "b", "v2.0.0", 40*24*time.Hour)
	e.note("a", strings.Repeat("v", store.MostVersion+1), 0)
	n := e.mustNode(e.mustBeat("a"), "a")
	e.check(len(n.Version) <= store.MostVersion && strings.HasPrefix(n.Version, "vvv"), "a version that is too long is kept as %q", n.Version)
	e.note("nobody", "v1.2.3", 0)
	e.check(e.node(e.mustBeat("a"), "nobody") == nil, "a note has added a node")
}

func processRevived(e *processNotes) {
	e.join("observer")
	e.join("a")
	e.note("a", "v1.2.3", time.Second)
	beats := e.mustNode(e.mustBeat("a"), "a").Beats
	e.must(e.Bury(e.ctx, "a", beats))
	e.check(e.node(e.mustBeat("observer"), "a") == nil, "a buried node without runs is still there")
	e.wantProcess("a node that was added again", "a", "v1.2.3", time.Second)
}

func processJoined(e *processNotes) {
	e.join("observer")
	v, err := e.Join(e.ctx, store.Node{ID: "a", Incarnation: "a-1", Version: "v1.2.3", ClockOffset: time.Second})
	e.must(err)
	n := e.mustNode(v, "a-1")
	want(e.env, "a node that joins", store.Process{Version: n.Version, ClockOffset: n.ClockOffset}, store.Process{})
	e.wantProcess("a node that has joined", "a-1", "", 0)
}

// node returns the node in the view, or nil.
func (e *env) node(v store.View, incarnation string) *store.Node {
	for _, n := range v.Nodes {
		if n.Incarnation == incarnation {
			return &n
		}
	}
	return nil
}

func (e *env) mustNode(v store.View, incarnation string) store.Node {
	e.Helper()
	n := e.node(v, incarnation)
	if n == nil {
		e.Fatalf("node %s is not among %+v", incarnation, v.Nodes)
		return store.Node{}
	}
	return *n
}

func joinAdds(e *env) {
	attached := []store.Attachment{{App: "app", Handlers: []string{"b", "a"}}, {App: "b"}}
	v, err := e.Join(e.ctx, store.Node{ID: "n", Incarnation: "n-1", Beats: 77, Left: true, Failing: true, Zones: true, Knows: 3, Routers: []string{"CANARY", "PARITY"}, Attached: attached})
	e.must(err)
	got := e.mustNode(v, "n-1")
	e.check(!got.Joined.IsZero(), "Joined is not set")
	want(e, "node", got, store.Node{ID: "n", Incarnation: "n-1", Beats: 1, Joined: got.Joined, Zones: true, Knows: 3, Routers: []string{"CANARY", "PARITY"}, Attached: attached})
	beaten := e.mustNode(e.mustBeat("n-1"), "n-1")
	e.check(beaten.Zones && beaten.Knows == 3 && len(beaten.Routers) == 2, "after a beat Zones is %v, Knows %d, Routers %q", beaten.Zones, beaten.Knows, beaten.Routers)
	want(e, "number of shards", len(v.Shards), numShards)
	later := e.mustNode(e.join("n-2"), "n-2")
	e.check(!later.Joined.Before(got.Joined), "a later node joined at %v, before %v", later.Joined, got.Joined)
}

func nodesInOrder(e *env) {
	for _, inc := range []string{"b", "a-2", "C", "a"} {
		e.join(inc)
	}
	var got []string
	for _, n := range e.mustBeat("b").Nodes {
		got = append(got, n.Incarnation)
	}
	want(e, "nodes", got, []string{"C", "a", "a-2", "b"})
}

func beatRaises(e *env) {
	e.join("a")
	joined := e.mustNode(e.join("b"), "b")
	attached := []store.Attachment{{App: "app", Handlers: []string{"h"}}}
	v, err := e.Beat(e.ctx, "b", attached)
	e.must(err)
	joined.Beats, joined.Attached = 2, attached
	want(e, "node after a beat", e.mustNode(v, "b"), joined)
	want(e, "beats of the other", e.mustNode(v, "a").Beats, int64(1))
	want(e, "the node as another sees it", e.mustNode(e.mustBeat("a"), "b"), joined)
	joined.Beats, joined.Attached = 3, nil
	want(e, "node after a beat without executors", e.mustNode(e.mustBeat("b"), "b"), joined)
}

func beatClearsLeft(e *env) {
	e.join("a")
	e.must(e.Leave(e.ctx, "a"))
	got := e.mustNode(e.mustBeat("a"), "a")
	want(e, "Left and beats", []any{got.Left, got.Beats}, []any{false, int64(2)})
}

func beatRevives(e *env) {
	e.join("a")
	_, err := e.Join(e.ctx, store.Node{ID: "b", Incarnation: "b", Zones: true, Knows: 3, Routers: []string{"CANARY"}})
	e.must(err)
	e.must(e.Bury(e.ctx, "b", 1))
	e.check(e.node(e.mustBeat("a"), "b") == nil, "a buried node without runs is still there")
	v, err := e.Beat(e.ctx, "b", []store.Attachment{{App: "app"}})
	e.must(err)
	got := e.mustNode(v, "b")
	e.check(!got.Left && len(got.Attached) == 1 && got.Zones && got.Knows == 3 && len(got.Routers) == 1, "revived node %+v", got)
	e.mustNode(e.mustBeat("a"), "b")
}

// beatOld: a node that comes back is not the latest of its ID.
func beatOld(e *env) {
	e.join("observed")
	former := e.mustNode(e.join("a-1"), "a-1")
	e.must(e.Bury(e.ctx, "a-1", 1))
	e.check(e.node(e.mustBeat("observed"), "a-1") == nil, "a buried node without runs is still there")
	i := 1
	e.eventually("the store's clock moves on", func() bool {
		i++
		inc := fmt.Sprintf("a-%d", i)
		v, err := e.Join(e.ctx, store.Node{ID: former.ID, Incarnation: inc})
		e.must(err)
		return e.mustNode(v, inc).Joined.After(former.Joined)
	})
	v := e.mustBeat("a-1")
	joined := e.mustNode(v, "a-1").Joined
	e.check(joined.IsZero() || joined.Equal(former.Joined), "a node that was added again joined at %v: want %v or never", joined, former.Joined)
	e.checkTimes("View", reflect.ValueOf(v))
	want(e, "a node after its second beat", e.mustNode(e.mustBeat("a-1"), "a-1").Joined, joined)
	want(e, "Joined of a node that nobody knows", e.mustNode(e.mustBeat("stranger"), "stranger").Joined, time.Time{})
}

func leaveReleases(e *env) {
	o := e.owner("a")
	e.must(e.Leave(e.ctx, "a"))
	v := e.join("b")
	want(e, "Left", e.mustNode(v, "a").Left, true)
	for _, s := range v.Shards {
		want(e, "owner of a shard", s.Owner, "")
		e.check(s.Free, "shard %d has no owner but is not free", s.ID)
		e.check(s.Epoch >= o.epoch(s.ID), "the epoch of shard %d went back from %d to %d", s.ID, o.epoch(s.ID), s.Epoch)
	}
	e.take("b", v.Shards)
}

func buryCounter(e *env) {
	e.join("a")
	e.join("b")
	e.mustBeat("b")
	for _, beats := range []int64{1, 3, 0} {
		e.must(e.Bury(e.ctx, "b", beats))
		want(e, "Left after a burial with another counter", e.mustNode(e.mustBeat("a"), "b").Left, false)
	}
	e.must(e.Bury(e.ctx, "b", 2))
	e.check(e.node(e.mustBeat("a"), "b") == nil, "a node with an unmoved counter and without runs is still there")
}

func buryKeeps(e *env) {
	o := e.owner("a")
	e.join("b")
	ends := map[string]func() func(){
		"a run it started": func() func() { r := o.running(to(remote)); return func() { e.mustFinish(overWire(r.ID)) } },
		"a dispatched run": func() func() { r := o.dispatched(); return func() { e.mustFinish(overWire(r.ID)) } },
		"its own run":      func() func() { r := o.running(); return func() { e.mustFinish(success(r)) } },
	}
	for name, begin := range ends {
		end := begin()
		beats := e.mustNode(e.mustBeat("a"), "a").Beats
		e.must(e.Bury(e.ctx, "a", beats))
		want(e, "Left with "+name, e.mustNode(e.mustBeat("b"), "a").Left, true)
		end()
		e.must(e.Bury(e.ctx, "a", beats))
		e.check(e.node(e.mustBeat("b"), "a") == nil, "the node is kept after the end of %s", name)
	}
	run := o.running(o.over("c"))
	e.must(e.Bury(e.ctx, "c", 1))
	want(e, "Left with a run addressed to it", e.mustNode(e.mustBeat("b"), "c").Left, true)
	e.mustFinish(success(run))
	e.must(e.Bury(e.ctx, "c", 1))
	e.check(e.node(e.mustBeat("b"), "c") == nil, "the node is kept after the end of a run addressed to it")
}

func unknownNode(e *env) {
	e.must(e.SetFailing(e.ctx, "nobody", true))
	e.must(e.Leave(e.ctx, "nobody"))
	e.must(e.Bury(e.ctx, "nobody", 1))
	e.check(e.node(e.join("a"), "nobody") == nil, "SetFailing, Leave or Bury added a node")
	want(e, "inbox of nobody", e.mustInbox("nobody"), store.Inbox{})
}

func alone(e *env) {
	sig := e.Watch(e.ctx, "a")
	v := e.join("a")
	if v.Alone && sig.Nodes == nil {
		e.Errorf("Alone, but the store will not signal a node that joins")
	}
	e.check(!e.join("b").Alone, "Alone with two nodes, as the second sees it")
	e.check(!e.mustBeat("a").Alone, "Alone with two nodes, as the first sees it")
	if v.Alone {
		e.awaitSignal("Nodes", sig.Nodes)
	}
}

func viewNow(e *env) {
	first := e.join("a")
	for _, v := range []store.View{first, e.mustBeat("a")} {
		want(e, "the server that answers", v.Server, first.Server)
		e.check(v.Now.IsZero() || v.Now.Location() == time.UTC, "Now %v is not in UTC", v.Now)
		e.check(slices.IsSortedFunc(v.Shards, func(a, b store.Shard) int { return a.ID - b.ID }), "Shards are not in order: %+v", v.Shards)
	}
}

func nodeRests(e *env) {
	e.join("a")
	resting := func(attached []store.Attachment) bool {
		_, err := e.Beat(e.ctx, "a", attached)
		e.must(err)
		return e.mustNode(e.mustBeat("observer"), "a").Resting
	}
	want(e, "Resting of a node that has joined", e.mustNode(e.mustBeat("observer"), "a").Resting, false)
	for _, c := range []struct {
		name     string
		attached []store.Attachment
		want     bool
	}{
		{"no list", nil, true},
		{"an empty list", []store.Attachment{}, false},
		{"no list again", nil, true},
		{"a list", []store.Attachment{{App: "app"}}, false},
	} {
		want(e, "Resting after a beat with "+c.name, resting(c.attached), c.want)
	}
}

func nodeFails(e *env) {
	e.join("a")
	e.join("b")
	for _, failing := range []bool{true, true, false, true} {
		e.must(e.SetFailing(e.ctx, "a", failing))
		for range 2 { // the second time after a beat of its own
			v := e.mustBeat(observer)
			want(e, "Failing", e.mustNode(v, "a").Failing, failing)
			want(e, "Failing of another node", e.mustNode(v, "b").Failing, false)
			want(e, "Failing as the node itself sees it", e.mustNode(e.mustBeat("a"), "a").Failing, failing)
		}
	}
}

func addedDoesNotFail(e *env) {
	e.join("a")
	e.must(e.SetFailing(e.ctx, "a", true))
	beats := e.mustNode(e.mustBeat(observer), "a").Beats
	e.must(e.Bury(e.ctx, "a", beats))
	e.check(e.node(e.mustBeat(observer), "a") == nil, "a buried node without runs is still there")
	want(e, "Failing of a node that was added again", e.mustNode(e.mustBeat("a"), "a").Failing, false)
}

// attempts are the claim of no job and the start of no run, by which a node that fails
// finds out whether it still does.
func attempts(e *env) {
	o := e.owner("a")
	o.planned(e.newJob())
	e.newJob()
	before := e.snapshot()
	runs, err := e.Claim(e.ctx, nil, []store.Plan{{}})
	e.must(err)
	want(e, "runs of a plan for no job", len(runs), 0)
	started, err := e.Start(e.ctx, nil, []store.Start{{State: store.StateStarted, Owner: "a", Address: store.LocalAddress("a")}})
	e.must(err)
	want(e, "answers to a start of no run", len(started), 1)
	s := started[0].Status
	e.check(s == store.StartFenced || s == store.StartGone, "status %d of a start of no run, want StartFenced or StartGone", s)
	want(e, "state after them", e.snapshot(), before)
}
