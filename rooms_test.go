package xxljob

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
)

// books is a scheduler of which only the start loop's books are there, with planned runs of
// jobs of their own, all in shard 1.
func books(t *testing.T, runs int64) (*scheduler, []*entry) {
	t.Helper()
	cfg := Config{}.withDefaults()
	e := newEngine(&cfg, newWake(), nil)
	s := &scheduler{cfg: cfg, engine: e, startWake: newWake(), leases: newLeases("n-1", &cfg, func() []Attachment { return nil })}
	var entries []*entry
	for id := int64(1); id <= runs; id++ {
		job := &Job{ID: id, App: "app", Block: block.SerialExecution}
		run := Run{ID: id, JobID: id, App: "app", Shard: 1, State: StatePlanned, Scheduled: time.UnixMilli(id)}
		e.hold([]Run{run}, map[int64]*Job{id: job})
		entries = append(entries, e.held[id])
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
			e.bounds.enter(laneNone, key, 1)
			for _, en := range entries {
				room, _ := e.bounds.fits(laneNone, key, 1)
				e.park(room, en)
			}
			e.admit(e.bounds.ended(key))
			let, _ := e.pop(lot{kind: lotDue}, 10)
			if len(let) != 1 {
				t.Fatalf("%d were let in, want 1", len(let))
			}
			let[0].route = c.to
			if !s.reserve(&let[0], time.Now()) {
				t.Fatal("it waits again")
			}
			if n := e.due.len(); n != c.next {
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
			e.bounds.limit[laneFast] = 1
			e.bounds.enter(laneFast, key, 1)
			e.park(at, entries[0])
			e.park(at, entries[1])
			e.bounds.ended(key)
			e.bounds.answered(laneFast, key)
			e.admit(at)
			let, _ := e.pop(lot{kind: lotDue}, 10)
			let[0].route = routed{address: "local://n-1", targets: []string{"local://n-1"}, places: 1, lane: laneFast}
			let[0].routedAt = time.Now()
			e.waitApart(let[0].entry)
			if _, fits := e.bounds.fits(laneFast, key, 1); fits {
				t.Errorf("%+v: another would have the room", at)
			}
			if forgotten {
				e.abandon(let[0].entry)
				if e.due.len() != 1 {
					t.Errorf("%+v: the next was not let in", at)
				}
			} else {
				s.turnBegins(&let[0])
			}
			if _, fits := e.bounds.fits(laneFast, key, 1); !fits {
				t.Errorf("%+v: the room is still taken, forgotten %t", at, forgotten)
			}
		}
	}
}

// TestSerialRunsOfALostShard: a shard is lost before it is known which serial runs its former
// owner has handed on, or while a run of it is routed. No run waits for that any more.
func TestSerialRunsOfALostShard(t *testing.T) {
	s, entries := books(t, 2)
	e, waits := s.engine, lot{kind: lotSettle}
	s.leases.mine[1] = hold{epoch: 7}
	behind := func(en *entry) bool { return s.waitsBehind(&attempt{entry: en, job: e.jobs[en.run.JobID].job}) }
	if !behind(entries[0]) || !e.waits(waits) {
		t.Fatal("a run of a shard that is new does not wait")
	}
	s.leases.lose(1, 7)
	if !behind(entries[1]) || e.held[2] != nil {
		t.Error("a run of a shard that was lost is still held")
	}
	if err := s.settleNew(t.Context(), nil); err != nil || e.waits(waits) || e.due.len() != 1 {
		t.Errorf("err %v, waits %v, %d due; want the run that waited to be due, and forgotten then", err, e.waits(waits), e.due.len())
	}
}
