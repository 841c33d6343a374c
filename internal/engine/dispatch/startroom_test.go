package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// books is a start loop of which only the start loop's books are there, with planned runs of
// jobs of their own, all in shard 1.
func books(t *testing.T, runs int64) (*starter, []*queue.Item) {
	t.Helper()
	all := &core.Core{Cfg: core.Config{}.WithDefaults(), Life: core.NewLife()}
	all.Leases = lease.New("n-1", core.TimesOf(&all.Cfg.Cluster), func() []store.Attachment { return nil })
	e := queue.New(all, nil)
	s := &starter{Core: all, queue: e, router: &router.Router{}}
	var entries []*queue.Item
	for id := int64(1); id <= runs; id++ {
		job := &store.Job{ID: id, App: "app", Block: block.SerialExecution}
		run := store.Run{ID: id, JobID: id, App: "app", Shard: 1, State: store.StatePlanned, Scheduled: time.UnixMilli(id)}
		e.Hold([]store.Run{run}, map[int64]*store.Job{id: job})
		e.Held.Runs.Of(id).Passage = &queue.Passage{Route: &queue.Routed{}}
		entries = append(entries, e.Held.Runs.Of(id))
	}
	return s, entries
}

// TestRoomThatIsNotTaken: a run that was let in for room that had become free goes elsewhere,
// or is refused. The next that waits for the room is let in.
func TestRoomThatIsNotTaken(t *testing.T) {
	here := queue.Routed{Address: "local://n-1", Places: 1}
	for name, c := range map[string]struct {
		to   queue.Routed
		next int
	}{
		"taken":     {here, 0},
		"elsewhere": {queue.Routed{Address: "local://m-1", Places: 1}, 1},
		"refused":   {queue.Routed{Refused: "why not"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, entries := books(t, 2)
			e, key := s.queue, here.Key("app")
			e.Room.Lanes.Enter(queue.LaneNone, key, 1)
			for _, en := range entries {
				room, _ := e.Room.Lanes.Fits(queue.LaneNone, key, 1)
				e.Room.Park(room, en)
			}
			e.Room.Admit(e.Room.Lanes.Ended(key))
			let, _ := e.Pop(queue.WaitKey{Kind: queue.LotDue}, 10, nil)
			if len(let) != 1 {
				t.Fatalf("%d were let in, want 1", len(let))
			}
			let[0].Route = &c.to
			if len(s.reserve(let[:1], time.Now())) == 0 {
				t.Fatal("it waits again")
			}
			if n := e.Room.Due.Len(); n != c.next {
				t.Errorf("%d others were let in, want %d", n, c.next)
			}
		})
	}
}

// TestRoomThatIsKept: a broadcast that was let in for room waits for its turn. Nobody else
// takes the room meanwhile; when its turn comes it has it, and when it is forgotten the next
// is let in.
func TestRoomThatIsKept(t *testing.T) {
	key := queue.AddressKey{App: "app", Address: "local://n-1"}
	for _, at := range []queue.WaitKey{
		{Kind: queue.LotRunning, App: "app", Address: "local://n-1"}, {Kind: queue.LotAddress, App: "app", Address: "local://n-1", Lane: queue.LaneFast},
		{Kind: queue.LotApp, App: "app", Lane: queue.LaneFast}, {Kind: queue.LotLane, Lane: queue.LaneFast},
	} {
		for _, forgotten := range []bool{false, true} {
			s, entries := books(t, 2)
			e := s.queue
			e.Room.Lanes.Limit[queue.LaneFast] = 1
			e.Room.Lanes.Enter(queue.LaneFast, key, 1)
			e.Room.Park(at, entries[0])
			e.Room.Park(at, entries[1])
			e.Room.Lanes.Ended(key)
			e.Room.Lanes.Answered(nil, queue.LaneFast, key)
			e.Room.Admit(at)
			let, _ := e.Pop(queue.WaitKey{Kind: queue.LotDue}, 10, nil)
			let[0].Route = &queue.Routed{Address: "local://n-1", Targets: []string{"local://n-1"}, Places: 1, Lane: queue.LaneFast}
			let[0].RoutedAt = time.Now()
			e.Room.WaitApart(let[0].Item)
			if e.Room.Due.Len() > 0 {
				t.Errorf("%+v: another was let in", at)
			}
			if _, fits := e.Room.Lanes.Fits(queue.LaneFast, key, 1); fits {
				t.Errorf("%+v: another would have the room", at)
			}
			if forgotten {
				e.Abandon(let[0].Item)
				if e.Room.Due.Len() != 1 {
					t.Errorf("%+v: the next was not let in", at)
				}
			} else {
				s.turnBegins(&let[0])
			}
			if _, fits := e.Room.Lanes.Fits(queue.LaneFast, key, 1); !fits {
				t.Errorf("%+v: the room is still taken, forgotten %t", at, forgotten)
			}
		}
	}
}

// TestRoomOfARefusal: a run that was let in for room, and is refused then, needs none while it
// waits for its turn.
func TestRoomOfARefusal(t *testing.T) {
	s, entries := books(t, 2)
	e, at := s.queue, queue.WaitKey{Kind: queue.LotLane, Lane: queue.LaneFast}
	e.Room.Park(at, entries[0])
	e.Room.Park(at, entries[1])
	e.Room.Admit(at)
	let, _ := e.Pop(queue.WaitKey{Kind: queue.LotDue}, 10, nil)
	let[0].Route = &queue.Routed{Refused: "why not"}
	e.Room.WaitApart(let[0].Item)
	if e.Room.Due.Len() != 1 || e.Room.Lanes.Used[queue.LaneFast] != 0 {
		t.Errorf("%d others were let in, %d places are taken", e.Room.Due.Len(), e.Room.Lanes.Used[queue.LaneFast])
	}
}

// TestTurns: when what was decided about a run is old, it is decided anew at its turn; not a
// second time where somebody of the user's is asked, but where it has waited for another run.
func TestTurns(t *testing.T) {
	parts := queue.Routed{Address: "local://n-1", Targets: []string{"local://n-1", "local://n-2"}}
	ended := queue.WaitKey{Kind: queue.LotRun, RunID: 7}
	for name, c := range map[string]struct {
		route    queue.Routed
		registry core.Registry
		turned   bool
		then     *queue.WaitKey
		keeps    bool
	}{
		"a broadcast":                               {route: parts},
		"its second turn":                           {route: parts, turned: true},
		"by a registry":                             {route: parts, registry: noRegistry{}},
		"by a registry, its second turn":            {route: parts, registry: noRegistry{}, turned: true, keeps: true},
		"by a registry, when another run has ended": {route: parts, registry: noRegistry{}, turned: true, then: &ended},
		"by a registry, let in for room":            {route: parts, registry: noRegistry{}, turned: true, then: &queue.WaitKey{}, keeps: true},
		"a refusal":                                 {route: queue.Routed{Refused: "why not"}},
		"a refusal, its second turn":                {route: queue.Routed{Refused: "why not"}, turned: true, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, entries := books(t, 1)
			s.Cfg.Registry = c.registry
			a := queue.Attempt{Item: entries[0], Job: s.queue.Jobs.Refs[1].Job}
			a.Item.Route, a.Turned = &c.route, c.turned
			if c.then != nil {
				s.queue.Room.Park(*c.then, a.Item)
			}
			if s.turnBegins(&a); (a.Route.Address+a.Route.Refused != "") != c.keeps || !a.Turned {
				t.Errorf("route %+v, turned %t", a.Route, a.Turned)
			}
		})
	}
}

type noRegistry struct{ core.Registry }

// TestTriedRunsStayApart from those not tried yet, also where they had to be routed anew at
// their turn, and a stuck one has its turn when all others of its round have had theirs.
func TestTriedRunsStayApart(t *testing.T) {
	s, entries := books(t, 3)
	e := s.queue
	try := func(en *queue.Item) {
		en.Route = &queue.Routed{Refused: "why not"}
		e.TryAgain(queue.Attempt{Item: en, Job: e.Jobs.Refs[en.Run.JobID].Job}, false)
	}
	for _, en := range entries {
		try(en)
	}
	var order []int64
	for range 4 {
		en := e.Room.Leave(e.Room.NextRound())
		order = append(order, en.Run.ID)
		if en.Run.ID == 1 { // is stuck, and its route is old
			en.Route = &queue.Routed{Refused: "why not"}
			e.Room.WaitApart(en)
		}
	}
	if want := []int64{1, 2, 3, 1}; !slices.Equal(order, want) || e.Room.Waits(queue.WaitKey{Kind: queue.LotApart}) {
		t.Errorf("turns were %v, want %v; those not tried yet wait %t", order, want, e.Room.Waits(queue.WaitKey{Kind: queue.LotApart}))
	}
}

// TestABroadcastWaitsForOthers that are earlier and wait at one of its addresses.
func TestABroadcastWaitsForOthers(t *testing.T) {
	for _, holds := range []bool{false, true} {
		for _, address := range []string{"http://one", "http://two"} {
			s, entries := books(t, 2)
			e := s.queue
			part, broadcast := entries[0], queue.Attempt{Item: entries[1], Job: &store.Job{ID: 1, App: "app", Block: block.SerialExecution}}
			broadcast.Run.JobID = 1
			broadcast.Route = &queue.Routed{Address: "http://one", Targets: []string{"http://one", "http://two"}}
			at := queue.SerialAt(broadcast.Job, address)
			if holds {
				e.Room.Serial.Take(at, part.Run.ID)
			} else {
				e.Room.Park(at, part)
			}
			want := address == "http://two" // at the first it takes its turn
			if waits := s.queue.WaitsForPart(&broadcast); waits != want || e.Room.Waits(queue.LotOrderOf(1)) != want {
				t.Errorf("at %s, which it holds %t: waits %t", address, holds, waits)
			}
			if freed := e.Room.Arrived(1, part.Run.ID); freed != want {
				t.Errorf("at %s, which it holds %t: let go %t", address, holds, freed)
			}
		}
	}
}

type noExecutor struct{ wire.Executor }

// TestFreedPlacesAreOffered: places that a start had taken, or that were kept for one, are
// free again. Runs that other nodes have handed over wait for them.
func TestFreedPlacesAreOffered(t *testing.T) {
	key := queue.AddressKey{App: "app", Address: "local://n-1"}
	for name, free := range map[string]func(*starter, *queue.Attempt){
		"had no effect": func(s *starter, a *queue.Attempt) { s.queue.TryAgain(*a, false) },
		"were kept": func(s *starter, a *queue.Attempt) {
			s.queue.Room.GiveBackPlaces(*a)
			s.queue.Room.TakeFreed()
			s.queue.Room.LetOut(a.Item, queue.WaitKey{Kind: queue.LotRunning, App: key.App, Address: key.Address})
			s.queue.Room.WaitApart(a.Item)
			s.turnBegins(a)
		},
	} {
		s, entries := books(t, 1)
		a := queue.Attempt{Item: entries[0], Job: s.queue.Jobs.Refs[1].Job}
		a.Item.Route = &queue.Routed{Address: key.Address, Places: 1, Exec: noExecutor{}}
		s.queue.InboxFull.Store(true)
		ready := s.reserve([]queue.Attempt{a}, time.Now())
		if len(ready) == 0 || s.queue.Room.TakeFreed() {
			t.Fatalf("%s: it has no place, or one was given back", name)
		}
		free(s, &ready[0])
		s.offerFreed()
		if len(s.Life.Wakes.Inbox) != 1 || len(s.queue.Room.Lanes.Running) > 0 {
			t.Errorf("%s: the inbox is woken %d times, and %v are under way", name, len(s.Life.Wakes.Inbox), s.queue.Room.Lanes.Running)
		}
	}
}

// TestASerialPlaceOfARunThatIsHeldAnew: a run that has a place, and was put back and is held
// again, gives way to an earlier one before it has come up.
func TestASerialPlaceOfARunThatIsHeldAnew(t *testing.T) {
	s, entries := books(t, 2)
	at := queue.WaitKey{Kind: queue.LotSerial, JobID: 1, Address: "local://n-1"}
	e := s.queue
	e.Room.Serial.Take(at, entries[1].Run.ID)
	entries[1].Passage = nil
	if !e.Room.TakeSerial(at, entries[0].Run.Key()) || e.Room.Serial.At(at) != entries[0].Run.ID {
		t.Error("the earlier run does not get the place")
	}
}

// TestSerialRunsOfALostShard: a shard is lost before it is known which serial runs its former
// owner has handed on, or while a run of it is routed. No run waits for that any more.
func TestSerialRunsOfALostShard(t *testing.T) {
	s, entries := books(t, 2)
	e, waits := s.queue, queue.WaitKey{Kind: queue.LotSettle}
	s.Leases.Mine[1] = lease.Hold{Epoch: 7}
	behind := func(en *queue.Item) bool {
		return s.queue.WaitsBehind(&queue.Attempt{Item: en, Job: e.Jobs.Refs[en.Run.JobID].Job})
	}
	if !behind(entries[0]) || !e.Room.Waits(waits) {
		t.Fatal("a run of a shard that is new does not wait")
	}
	s.Leases.Lose(1, 7)
	if !behind(entries[1]) || e.Held.Runs.Of(2) != nil {
		t.Error("a run of a shard that was lost is still held")
	}
	if err := (&recovery{Core: s.Core, queue: e}).settleNew(t.Context(), nil); err != nil || e.Room.Waits(waits) || e.Room.Due.Len() != 1 {
		t.Errorf("err %v, waits %v, %d due; want the run that waited to be due, and forgotten then", err, e.Room.Waits(waits), e.Room.Due.Len())
	}
}

// TestLaterRunWhileAShardOpens: a run of a serial job waits until it is known what is ahead of it. When
// that is known, a later run of the job that was taken up before is behind it.
func TestLaterRunWhileAShardOpens(t *testing.T) {
	s, entries := books(t, 1)
	e := s.queue
	s.Leases.Mine[1] = lease.Hold{Epoch: 7}
	later := store.Run{ID: 2, JobID: 1, App: "app", Shard: 1, State: store.StatePlanned, Scheduled: time.UnixMilli(1000)}
	e.Hold([]store.Run{later}, nil)
	taken := e.Held.Runs.Of(2)
	taken.Due, taken.Passage = true, &queue.Passage{Route: e.Held.Nowhere}
	job := e.Jobs.Refs[1].Job
	if turn := e.InTurn([]queue.Attempt{{Item: entries[0], Job: job}}); len(turn) > 0 {
		t.Fatal("a run of a shard that is new does not wait")
	}
	e.Clock = &core.Clock{}
	e.OpenSerial(func() { s.Leases.Mine[1] = lease.Hold{Epoch: 7, Settled: true, Loaded: true} })
	if turn := e.InTurn([]queue.Attempt{{Item: taken, Job: job}}); len(turn) > 0 {
		t.Error("the later run does not wait for the earlier one")
	}
	if turn := e.InTurn([]queue.Attempt{{Item: entries[0], Job: job}}); len(turn) != 1 {
		t.Error("the earlier run does not go on")
	}
}
