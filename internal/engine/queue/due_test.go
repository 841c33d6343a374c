package queue

import (
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// books is what a node holds, with planned runs of jobs of their own, all in shard 1.
func books(t *testing.T, runs int64) (*Queue, []*Entry) {
	t.Helper()
	all := &core.Core{Cfg: core.Config{}.WithDefaults(), Life: core.NewLife()}
	all.Leases = lease.New("n-1", core.TimesOf(&all.Cfg.Cluster), func() []store.Attachment { return nil })
	e := New(all, nil)
	var entries []*Entry
	for id := int64(1); id <= runs; id++ {
		job := &store.Job{ID: id, App: "app", Block: block.SerialExecution}
		run := store.Run{ID: id, JobID: id, App: "app", Shard: 1, State: store.StatePlanned, Scheduled: time.UnixMilli(id)}
		e.Hold([]store.Run{run}, map[int64]*store.Job{id: job})
		e.Held.runs.Of(id).routing = &routing{Route: &Routed{}}
		entries = append(entries, e.Held.runs.Of(id))
	}
	return e, entries
}

// TestRoomThatIsNotTaken: a run that was let in for room that had become free goes elsewhere,
// or is refused. The next that waits for the room is let in.
func TestRoomThatIsNotTaken(t *testing.T) {
	here := Routed{Destination: Destination{Address: "local://n-1", Places: 1}}
	for name, c := range map[string]struct {
		to   Routed
		next int
	}{
		"taken":     {here, 0},
		"elsewhere": {Routed{Destination: Destination{Address: "local://m-1", Places: 1}}, 1},
		"refused":   {Routed{Refused: "why not"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, entries := books(t, 2)
			key := here.key("app")
			e.Due.lanes.enter(LaneNone, key, 1)
			for _, en := range entries {
				room, _ := e.Due.lanes.fits(LaneNone, key, 1)
				e.Due.park(room, en)
			}
			e.Due.admit(e.Due.lanes.ended(key))
			let, _ := e.Pop(WaitKey{kind: kindDue}, 10, nil)
			if len(let) != 1 {
				t.Fatalf("%d were let in, want 1", len(let))
			}
			let[0].Route = &c.to
			if ready, _ := e.ReserveAll(let[:1], time.Now(), noProbes); len(ready) != 1 {
				t.Fatal("it waits again")
			}
			if n := e.Due.ready.len(); n != c.next {
				t.Errorf("%d others were let in, want %d", n, c.next)
			}
		})
	}
}

// TestRoomThatIsKept: a broadcast that was let in for room waits for its turn. Nobody else
// takes the room meanwhile; when its turn comes it has it, and when it is forgotten the next
// is let in.
func TestRoomThatIsKept(t *testing.T) {
	key := addressKey{app: "app", address: "local://n-1"}
	for _, at := range []WaitKey{
		{kind: kindPlace, app: "app", address: "local://n-1"}, {kind: kindAddress, app: "app", address: "local://n-1", lane: LaneFast},
		{kind: kindApp, app: "app", lane: LaneFast}, {kind: kindLane, lane: LaneFast},
	} {
		for _, forgotten := range []bool{false, true} {
			e, entries := books(t, 2)
			e.Due.lanes.limit[LaneFast] = 1
			e.Due.lanes.enter(LaneFast, key, 1)
			e.Due.park(at, entries[0])
			e.Due.park(at, entries[1])
			e.Due.lanes.ended(key)
			e.Due.lanes.answered(nil, LaneFast, key)
			e.Due.admit(at)
			let, _ := e.Pop(WaitKey{kind: kindDue}, 10, nil)
			let[0].Route = &Routed{Destination: Destination{Address: "local://n-1", Targets: []string{"local://n-1"}, Places: 1, Lane: LaneFast}}
			let[0].RoutedAt = time.Now()
			e.Due.ParkSingly(let[0].Entry)
			if e.Due.ready.len() > 0 {
				t.Errorf("%+v: another was let in", at)
			}
			if _, fits := e.Due.lanes.fits(LaneFast, key, 1); fits {
				t.Errorf("%+v: another would have the room", at)
			}
			if forgotten {
				e.ForgetEnded(let[0])
				if e.Due.ready.len() != 1 {
					t.Errorf("%+v: the next was not let in", at)
				}
			} else {
				e.TurnBegins(&let[0], false)
			}
			if _, fits := e.Due.lanes.fits(LaneFast, key, 1); !fits {
				t.Errorf("%+v: the room is still taken, forgotten %t", at, forgotten)
			}
		}
	}
}

// TestRoomOfARefusal: a run that was let in for room, and is refused then, needs none while it
// waits for its turn.
func TestRoomOfARefusal(t *testing.T) {
	e, entries := books(t, 2)
	at := WaitKey{kind: kindLane, lane: LaneFast}
	e.Due.park(at, entries[0])
	e.Due.park(at, entries[1])
	e.Due.admit(at)
	let, _ := e.Pop(WaitKey{kind: kindDue}, 10, nil)
	let[0].Route = &Routed{Refused: "why not"}
	e.Due.ParkSingly(let[0].Entry)
	if e.Due.ready.len() != 1 || e.Due.lanes.used[LaneFast] != 0 {
		t.Errorf("%d others were let in, %d places are taken", e.Due.ready.len(), e.Due.lanes.used[LaneFast])
	}
}

// TestTriedRunsStayApart from those not tried yet, also where they had to be routed anew at
// their turn, and a stuck one has its turn when all others of its round have had theirs.
func TestTriedRunsStayApart(t *testing.T) {
	e, entries := books(t, 3)
	try := func(en *Entry) {
		en.Route = &Routed{Refused: "why not"}
		e.TryAgain(false, Attempt{Entry: en, Job: e.Jobs.refs[en.Run.JobID].job})
	}
	for _, en := range entries {
		try(en)
	}
	var order []int64
	for range 4 {
		en := e.Due.leave(e.Due.NextRound())
		order = append(order, en.Run.ID)
		if en.Run.ID == 1 { // is stuck, and its route is old
			en.Route = &Routed{Refused: "why not"}
			e.Due.ParkSingly(en)
		}
	}
	if want := []int64{1, 2, 3, 1}; !slices.Equal(order, want) || e.Due.Waits(WaitKey{kind: kindTurn}) {
		t.Errorf("turns were %v, want %v; those not tried yet wait %t", order, want, e.Due.Waits(WaitKey{kind: kindTurn}))
	}
}

// TestABroadcastWaitsForOthers that are earlier and wait at one of its addresses.
func TestABroadcastWaitsForOthers(t *testing.T) {
	for _, holds := range []bool{false, true} {
		for _, address := range []string{"http://one", "http://two"} {
			e, entries := books(t, 2)
			part, broadcast := entries[0], Attempt{Entry: entries[1], Job: &store.Job{ID: 1, App: "app", Block: block.SerialExecution}}
			broadcast.Run.JobID = 1
			broadcast.Route = &Routed{Destination: Destination{Address: "http://one", Targets: []string{"http://one", "http://two"}}}
			at := JobPlaceAt(broadcast.Job, address)
			if holds {
				e.Due.serial.take(at, part.Run.ID)
			} else {
				e.Due.park(at, part)
			}
			want := address == "http://two" // at the first it takes its turn
			if waits := e.waitsForPart(&broadcast); waits != want || e.Due.Waits(forEarlier(1)) != want {
				t.Errorf("at %s, which it holds %t: waits %t", address, holds, waits)
			}
			if freed := e.Due.leaveTransit(1, part.Run.ID); freed != want {
				t.Errorf("at %s, which it holds %t: let go %t", address, holds, freed)
			}
		}
	}
}

type noExecutor struct{ wire.Executor }

// TestFreedPlacesAreOffered: places that a start had taken, or that were kept for one, are
// free again. Runs that other nodes have handed over wait for them.
func TestFreedPlacesAreOffered(t *testing.T) {
	key := addressKey{app: "app", address: "local://n-1"}
	for name, free := range map[string]func(*Queue, *Attempt){
		"had no effect": func(e *Queue, a *Attempt) { e.TryAgain(false, *a) },
		"were kept": func(e *Queue, a *Attempt) {
			e.Due.giveBackPlaces(*a)
			e.Due.freed = false
			e.Due.noteAdmitted(a.Entry, WaitKey{kind: kindPlace, app: key.app, address: key.address})
			e.Due.ParkSingly(a.Entry)
			e.TurnBegins(a, false)
		},
	} {
		e, entries := books(t, 1)
		a := Attempt{Entry: entries[0], Job: e.Jobs.refs[1].job, Start: store.Start{RunID: 1}}
		a.Entry.Route = &Routed{Destination: Destination{Address: key.address, Places: 1, Exec: noExecutor{}}}
		if ready, _ := e.ReserveAll([]Attempt{a}, time.Now(), noProbes); len(ready) != 1 || e.Due.freed {
			t.Fatalf("%s: it has no place, or one was given back", name)
		}
		free(e, &a)
		if !e.Due.freed || len(e.Due.lanes.running) > 0 {
			t.Errorf("%s: nothing is said to be free, or %v are under way", name, e.Due.lanes.running)
		}
	}
}

// noProbes is for jobs whose executors are not asked.
func noProbes(int64) bool { return false }

// TestASerialPlaceOfARunThatIsHeldAnew: a run that has a place, and was put back and is held
// again, gives way to an earlier one before it has come up.
func TestASerialPlaceOfARunThatIsHeldAnew(t *testing.T) {
	e, entries := books(t, 2)
	at := WaitKey{kind: kindJobPlace, jobID: 1, address: "local://n-1"}
	e.Due.serial.take(at, entries[1].Run.ID)
	entries[1].routing = nil
	if !e.Due.takeJobPlace(at, entries[0].Run.Key()) || e.Due.serial.at(at) != entries[0].Run.ID {
		t.Error("the earlier run does not get the place")
	}
}

// TestSerialRunsOfALostShard: a shard is lost before it is known which serial runs its former
// owner has handed on, or while a run of it is routed. No run waits for that any more.
func TestSerialRunsOfALostShard(t *testing.T) {
	e, entries := books(t, 2)
	waits := forSettling()
	e.leases.Mine[1] = lease.Hold{Epoch: 7}
	behind := func(en *Entry) bool {
		return e.waitsBehind(&Attempt{Entry: en, Job: e.Jobs.refs[en.Run.JobID].job})
	}
	if !behind(entries[0]) || !e.Due.Waits(waits) {
		t.Fatal("a run of a shard that is new does not wait")
	}
	e.leases.Lose(1, 7)
	if !behind(entries[1]) || e.Held.runs.Of(2) != nil {
		t.Error("a run of a shard that was lost is still held")
	}
	if e.OpenLost(); e.Due.Waits(waits) || e.Due.ready.len() != 1 {
		t.Errorf("waits %v, %d due; want the run that waited to be due, and forgotten then", e.Due.Waits(waits), e.Due.ready.len())
	}
}

// TestLaterRunWhileAShardOpens: a run of a serial job waits until it is known what is ahead of it. When
// that is known, a later run of the job that was taken up before is behind it.
func TestLaterRunWhileAShardOpens(t *testing.T) {
	e, entries := books(t, 1)
	e.leases.Mine[1] = lease.Hold{Epoch: 7}
	later := store.Run{ID: 2, JobID: 1, App: "app", Shard: 1, State: store.StatePlanned, Scheduled: time.UnixMilli(1000)}
	e.Hold([]store.Run{later}, nil)
	taken := e.Held.runs.Of(2)
	taken.due, taken.routing = true, &routing{Route: e.Held.nowhere}
	job := e.Jobs.refs[1].job
	if turn, _ := e.InTurn([]Attempt{{Entry: entries[0], Job: job}}); len(turn) > 0 {
		t.Fatal("a run of a shard that is new does not wait")
	}
	e.clock = &core.Clock{}
	e.OpenSerial(nil, func() { e.leases.Mine[1] = lease.Hold{Epoch: 7, Settled: true, Loaded: true} })
	if turn, _ := e.InTurn([]Attempt{{Entry: taken, Job: job}}); len(turn) > 0 {
		t.Error("the later run does not wait for the earlier one")
	}
	if turn, _ := e.InTurn([]Attempt{{Entry: entries[0], Job: job}}); len(turn) != 1 {
		t.Error("the earlier run does not go on")
	}
}

// TestARunElsewhereIsLookedAfter: once a run of a serial job is known to be at another node the store is
// asked about it, and later ones go on when it says that the run was taken, has ended, or is no more.
func TestARunElsewhereIsLookedAfter(t *testing.T) {
	for name, saw := range map[string]func(*Queue, store.Run){
		"was taken": func(e *Queue, r store.Run) { r.Taken = time.UnixMilli(5); e.Saw(&r) },
		"has ended": func(e *Queue, r store.Run) { r.State = store.StateLost; e.Saw(&r) },
		"is gone":   func(e *Queue, r store.Run) { e.SawGone(r.ID) },
	} {
		e, entries := books(t, 1)
		e.Due.park(forEarlier(1), entries[0])
		away := store.Run{ID: 7, JobID: 1, App: "app", Address: "local://m-1", State: store.StateStarted, Block: block.SerialExecution}
		e.Adopt(away)
		if ids := e.RemoteIDs(); !slices.Equal(ids, []int64{7}) || len(e.wakes.Watch) != 1 || len(e.wakes.Transit) != 1 {
			t.Errorf("%s: runs %v are looked after; woken %d and %d", name, ids, len(e.wakes.Watch), len(e.wakes.Transit))
		}
		if saw(e, away); e.Due.ready.len() != 1 || e.Due.Waits(forEarlier(1)) {
			t.Errorf("%s: %d of the later runs go on", name, e.Due.ready.len())
		}
	}
}

// TestARunThatWasKilledWaitsForNobody: neither for an executor nor for a node with its strategy, nor behind
// one that does, and it is not late. The next of its job goes on in its place.
func TestARunThatWasKilledWaitsForNobody(t *testing.T) {
	late := map[string]func(*Queue) int{
		"executor": func(e *Queue) int { return e.LateByExecutor("app") },
		"router":   func(e *Queue) int { return e.LateByRouter(1) },
	}
	for name, at := range map[string]WaitKey{"executor": ForExecutor("app"), "router": ForRouter(1)} {
		e, entries := books(t, 1)
		for id := int64(11); id <= 13; id++ {
			e.Hold([]store.Run{{ID: id, JobID: 1, App: "app", Shard: 1, State: store.StatePlanned, Scheduled: time.UnixMilli(id)}}, nil)
			behind := e.Held.runs.Of(id)
			behind.routing = &routing{Route: &Routed{}}
			entries = append(entries, behind)
		}
		for _, en := range entries {
			en.due = true
		}
		e.Due.park(at, entries[0])
		for _, behind := range entries[1:] {
			e.Due.park(forEarlier(1), behind)
		}
		ends := func(id int64, want, ready int) {
			t.Helper()
			e.Saw(&store.Run{ID: id, JobID: 1, App: "app", State: store.StateCancelled})
			if n := late[name](e); n != want || e.Due.ready.len() != ready || e.Held.runs.Of(id) != nil {
				t.Errorf("%s: after the end of run %d %d are late and %d go on, want %d and %d", name, id, n, e.Due.ready.len(), want, ready)
			}
		}
		ends(12, 2, 1) // the next tries, and has to wait again
		en := e.Due.ready.pop()
		e.Due.park(forEarlier(1), en)
		if n := late[name](e); n != 3 {
			t.Errorf("%s: %d are late of three", name, n)
		}
		if name == "executor" { // those behind are known by who waits
			ends(1, 0, 1)
		} else {
			ends(1, 1, 1)
		}
		if faults := e.Check(func(int64) bool { return false }, false); len(faults) > 0 {
			t.Errorf("%s: %q", name, faults)
		}
	}
}

// TestWhatIsOverIsNotLate: runs that the schedule of a job has made, once that is stopped.
func TestWhatIsOverIsNotLate(t *testing.T) {
	e, entries := books(t, 1)
	e.Hold([]store.Run{{ID: 11, JobID: 1, App: "app", Shard: 1, State: store.StatePlanned, Scheduled: time.UnixMilli(1), Type: store.TriggerCron, Born: true}}, nil)
	born := e.Held.runs.Of(11)
	born.routing = &routing{Route: &Routed{}}
	for _, at := range []WaitKey{ForExecutor("app"), ForRouter(1)} {
		for _, en := range []*Entry{entries[0], born} {
			e.Due.park(at, en)
		}
		job := &store.Job{ID: 1, App: "app"}
		job.Schedule.Type, job.Schedule.Conf = "FIX_RATE", "1"
		e.Jobs.refs[1].job = job
		if a, b := e.LateByExecutor("app"), e.LateByRouter(1); a+b != 2 {
			t.Errorf("%+v: %d and %d are late, want two", at, a, b)
		}
		job.Stopped = true
		if a, b := e.LateByExecutor("app"), e.LateByRouter(1); a+b != 1 {
			t.Errorf("%+v: when the job is stopped %d and %d are late, want one", at, a, b)
		}
		e.Due.lists.take(at, entries[0])
		e.Due.lists.take(at, born)
	}
}
