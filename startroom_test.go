package xxljob

import (
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// books is a start loop of which only the start loop's books are there, with planned runs of
// jobs of their own, all in shard 1.
func books(t *testing.T, runs int64) (*starter, []*entry) {
	t.Helper()
	all := &shared{cfg: Config{}.withDefaults(), life: newLife()}
	all.leases = newLeases("n-1", timesOf(&all.cfg.Cluster), func() []store.Attachment { return nil })
	e := newEngine(all, nil)
	s := &starter{shared: all, engine: e, collector: &collector{shared: all, engine: e, router: &router{}, buffers: &startBuffers{}}}
	var entries []*entry
	for id := int64(1); id <= runs; id++ {
		job := &Job{ID: id, App: "app", Block: block.SerialExecution}
		run := Run{ID: id, JobID: id, App: "app", Shard: 1, State: StatePlanned, Scheduled: time.UnixMilli(id)}
		e.hold([]Run{run}, map[int64]*Job{id: job})
		e.held.runs.Of(id).passage = &passage{route: &routed{}}
		entries = append(entries, e.held.runs.Of(id))
	}
	return s, entries
}

// TestRoomThatIsNotTaken: a run that was let in for room that had become free goes elsewhere,
// or is refused. The next that waits for the room is let in.
func TestRoomThatIsNotTaken(t *testing.T) {
	here := routed{address: "local://n-1", places: 1}
	for name, c := range map[string]struct {
		to   routed
		next int
	}{
		"taken":     {here, 0},
		"elsewhere": {routed{address: "local://m-1", places: 1}, 1},
		"refused":   {routed{refused: "why not"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, entries := books(t, 2)
			e, key := s.engine, here.key("app")
			e.room.lanes.enter(laneNone, key, 1)
			for _, en := range entries {
				room, _ := e.room.lanes.fits(laneNone, key, 1)
				e.room.park(room, en)
			}
			e.room.admit(e.room.lanes.ended(key))
			let, _ := e.pop(lot{kind: lotDue}, 10, nil)
			if len(let) != 1 {
				t.Fatalf("%d were let in, want 1", len(let))
			}
			let[0].route = &c.to
			if len(s.collector.reserve(let[:1], time.Now())) == 0 {
				t.Fatal("it waits again")
			}
			if n := e.room.due.len(); n != c.next {
				t.Errorf("%d others were let in, want %d", n, c.next)
			}
		})
	}
}

// TestRoomThatIsKept: a broadcast that was let in for room waits for its turn. Nobody else
// takes the room meanwhile; when its turn comes it has it, and when it is forgotten the next
// is let in.
func TestRoomThatIsKept(t *testing.T) {
	key := addressKey{"app", "local://n-1"}
	for _, at := range []lot{
		{kind: lotRunning, app: "app", address: "local://n-1"}, {kind: lotAddress, app: "app", address: "local://n-1", lane: laneFast},
		{kind: lotApp, app: "app", lane: laneFast}, {kind: lotLane, lane: laneFast},
	} {
		for _, forgotten := range []bool{false, true} {
			s, entries := books(t, 2)
			e := s.engine
			e.room.lanes.limit[laneFast] = 1
			e.room.lanes.enter(laneFast, key, 1)
			e.room.park(at, entries[0])
			e.room.park(at, entries[1])
			e.room.lanes.ended(key)
			e.room.lanes.answered(nil, laneFast, key)
			e.room.admit(at)
			let, _ := e.pop(lot{kind: lotDue}, 10, nil)
			let[0].route = &routed{address: "local://n-1", targets: []string{"local://n-1"}, places: 1, lane: laneFast}
			let[0].routedAt = time.Now()
			e.room.waitApart(let[0].entry)
			if e.room.due.len() > 0 {
				t.Errorf("%+v: another was let in", at)
			}
			if _, fits := e.room.lanes.fits(laneFast, key, 1); fits {
				t.Errorf("%+v: another would have the room", at)
			}
			if forgotten {
				e.abandon(let[0].entry)
				if e.room.due.len() != 1 {
					t.Errorf("%+v: the next was not let in", at)
				}
			} else {
				s.collector.turnBegins(&let[0])
			}
			if _, fits := e.room.lanes.fits(laneFast, key, 1); !fits {
				t.Errorf("%+v: the room is still taken, forgotten %t", at, forgotten)
			}
		}
	}
}

// TestRoomOfARefusal: a run that was let in for room, and is refused then, needs none while it
// waits for its turn.
func TestRoomOfARefusal(t *testing.T) {
	s, entries := books(t, 2)
	e, at := s.engine, lot{kind: lotLane, lane: laneFast}
	e.room.park(at, entries[0])
	e.room.park(at, entries[1])
	e.room.admit(at)
	let, _ := e.pop(lot{kind: lotDue}, 10, nil)
	let[0].route = &routed{refused: "why not"}
	e.room.waitApart(let[0].entry)
	if e.room.due.len() != 1 || e.room.lanes.used[laneFast] != 0 {
		t.Errorf("%d others were let in, %d places are taken", e.room.due.len(), e.room.lanes.used[laneFast])
	}
}

// TestTurns: when what was decided about a run is old, it is decided anew at its turn; not a
// second time where somebody of the user's is asked, but where it has waited for another run.
func TestTurns(t *testing.T) {
	parts := routed{address: "local://n-1", targets: []string{"local://n-1", "local://n-2"}}
	ended := lot{kind: lotRun, runID: 7}
	for name, c := range map[string]struct {
		route    routed
		registry Registry
		turned   bool
		then     *lot
		keeps    bool
	}{
		"a broadcast":                               {route: parts},
		"its second turn":                           {route: parts, turned: true},
		"by a registry":                             {route: parts, registry: noRegistry{}},
		"by a registry, its second turn":            {route: parts, registry: noRegistry{}, turned: true, keeps: true},
		"by a registry, when another run has ended": {route: parts, registry: noRegistry{}, turned: true, then: &ended},
		"by a registry, let in for room":            {route: parts, registry: noRegistry{}, turned: true, then: &lot{}, keeps: true},
		"a refusal":                                 {route: routed{refused: "why not"}},
		"a refusal, its second turn":                {route: routed{refused: "why not"}, turned: true, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, entries := books(t, 1)
			s.cfg.Registry = c.registry
			a := attempt{entry: entries[0], job: s.engine.jobs.refs[1].job}
			a.entry.route, a.turned = &c.route, c.turned
			if c.then != nil {
				s.engine.room.park(*c.then, a.entry)
			}
			if s.collector.turnBegins(&a); (a.route.address+a.route.refused != "") != c.keeps || !a.turned {
				t.Errorf("route %+v, turned %t", a.route, a.turned)
			}
		})
	}
}

type noRegistry struct{ Registry }

// TestTriedRunsStayApart from those not tried yet, also where they had to be routed anew at
// their turn, and a stuck one has its turn when all others of its round have had theirs.
func TestTriedRunsStayApart(t *testing.T) {
	s, entries := books(t, 3)
	e := s.engine
	try := func(en *entry) {
		en.route = &routed{refused: "why not"}
		e.retry(attempt{entry: en, job: e.jobs.refs[en.run.JobID].job}, false)
	}
	for _, en := range entries {
		try(en)
	}
	var order []int64
	for range 4 {
		en := e.room.leave(e.room.nextRound())
		order = append(order, en.run.ID)
		if en.run.ID == 1 { // is stuck, and its route is old
			en.route = &routed{refused: "why not"}
			e.room.waitApart(en)
		}
	}
	if want := []int64{1, 2, 3, 1}; !slices.Equal(order, want) || e.room.waits(lot{kind: lotApart}) {
		t.Errorf("turns were %v, want %v; those not tried yet wait %t", order, want, e.room.waits(lot{kind: lotApart}))
	}
}

// TestABroadcastWaitsForOthers that are earlier and wait at one of its addresses.
func TestABroadcastWaitsForOthers(t *testing.T) {
	for _, holds := range []bool{false, true} {
		for _, address := range []string{"http://one", "http://two"} {
			s, entries := books(t, 2)
			e := s.engine
			part, broadcast := entries[0], attempt{entry: entries[1], job: &Job{ID: 1, App: "app", Block: block.SerialExecution}}
			broadcast.run.JobID = 1
			broadcast.route = &routed{address: "http://one", targets: []string{"http://one", "http://two"}}
			at := serialAt(broadcast.job, address)
			if holds {
				e.room.serial.take(at, part.run.ID)
			} else {
				e.room.park(at, part)
			}
			want := address == "http://two" // at the first it takes its turn
			if waits := s.engine.waitsForPart(&broadcast); waits != want || e.room.waits(lotOrderOf(1)) != want {
				t.Errorf("at %s, which it holds %t: waits %t", address, holds, waits)
			}
			if freed := e.room.arrived(1, part.run.ID); freed != want {
				t.Errorf("at %s, which it holds %t: let go %t", address, holds, freed)
			}
		}
	}
}

type noExecutor struct{ wire.Executor }

// TestFreedPlacesAreOffered: places that a start had taken, or that were kept for one, are
// free again. Runs that other nodes have handed over wait for them.
func TestFreedPlacesAreOffered(t *testing.T) {
	key := addressKey{"app", "local://n-1"}
	for name, free := range map[string]func(*starter, *attempt){
		"had no effect": func(s *starter, a *attempt) { s.engine.retry(*a, false) },
		"were kept": func(s *starter, a *attempt) {
			s.engine.room.giveBackPlaces(*a)
			s.engine.room.takeFreed()
			s.engine.room.letOut(a.entry, lot{kind: lotRunning, app: key.app, address: key.address})
			s.engine.room.waitApart(a.entry)
			s.collector.turnBegins(a)
		},
	} {
		s, entries := books(t, 1)
		a := attempt{entry: entries[0], job: s.engine.jobs.refs[1].job}
		a.entry.route = &routed{address: key.address, places: 1, exec: noExecutor{}}
		s.engine.inboxFull.Store(true)
		ready := s.collector.reserve([]attempt{a}, time.Now())
		if len(ready) == 0 || s.engine.room.takeFreed() {
			t.Fatalf("%s: it has no place, or one was given back", name)
		}
		free(s, &ready[0])
		s.offerFreed()
		if len(s.life.wakes.inbox) != 1 || len(s.engine.room.lanes.running) > 0 {
			t.Errorf("%s: the inbox is woken %d times, and %v are under way", name, len(s.life.wakes.inbox), s.engine.room.lanes.running)
		}
	}
}

// TestASerialPlaceOfARunThatIsHeldAnew: a run that has a place, and was put back and is held
// again, gives way to an earlier one before it has come up.
func TestASerialPlaceOfARunThatIsHeldAnew(t *testing.T) {
	s, entries := books(t, 2)
	at := lot{kind: lotSerial, jobID: 1, address: "local://n-1"}
	e := s.engine
	e.room.serial.take(at, entries[1].run.ID)
	entries[1].passage = nil
	if !e.room.takeSerial(at, entries[0].run.key()) || e.room.serial.at(at) != entries[0].run.ID {
		t.Error("the earlier run does not get the place")
	}
}

// TestSerialRunsOfALostShard: a shard is lost before it is known which serial runs its former
// owner has handed on, or while a run of it is routed. No run waits for that any more.
func TestSerialRunsOfALostShard(t *testing.T) {
	s, entries := books(t, 2)
	e, waits := s.engine, lot{kind: lotSettle}
	s.leases.mine[1] = hold{epoch: 7}
	behind := func(en *entry) bool {
		return s.engine.waitsBehind(&attempt{entry: en, job: e.jobs.refs[en.run.JobID].job})
	}
	if !behind(entries[0]) || !e.room.waits(waits) {
		t.Fatal("a run of a shard that is new does not wait")
	}
	s.leases.lose(1, 7)
	if !behind(entries[1]) || e.held.runs.Of(2) != nil {
		t.Error("a run of a shard that was lost is still held")
	}
	if err := (&settler{shared: s.shared, engine: e}).settleNew(t.Context(), nil); err != nil || e.room.waits(waits) || e.room.due.len() != 1 {
		t.Errorf("err %v, waits %v, %d due; want the run that waited to be due, and forgotten then", err, e.room.waits(waits), e.room.due.len())
	}
}

// TestLaterRunWhileAShardOpens: a run of a serial job waits until it is known what is ahead of it. When
// that is known, a later run of the job that was taken up before is behind it.
func TestLaterRunWhileAShardOpens(t *testing.T) {
	s, entries := books(t, 1)
	e := s.engine
	s.leases.mine[1] = hold{epoch: 7}
	later := Run{ID: 2, JobID: 1, App: "app", Shard: 1, State: StatePlanned, Scheduled: time.UnixMilli(1000)}
	e.hold([]Run{later}, nil)
	taken := e.held.runs.Of(2)
	taken.due, taken.passage = true, &passage{route: e.held.nowhere}
	job := e.jobs.refs[1].job
	if turn := e.inTurn([]attempt{{entry: entries[0], job: job}}); len(turn) > 0 {
		t.Fatal("a run of a shard that is new does not wait")
	}
	e.clock = &clock{}
	e.openSerial(func() { s.leases.mine[1] = hold{epoch: 7, settled: true, loaded: true} })
	if turn := e.inTurn([]attempt{{entry: taken, job: job}}); len(turn) > 0 {
		t.Error("the later run does not wait for the earlier one")
	}
	if turn := e.inTurn([]attempt{{entry: entries[0], job: job}}); len(turn) != 1 {
		t.Error("the earlier run does not go on")
	}
}
