package dispatch

import (
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

// What the start loop does with what room queue says of places and turns; the rules of these are
// tested there.

// startLoop is a start loop with nothing around it but what a node holds.
func startLoop(t *testing.T) *starter {
	t.Helper()
	all := &core.Core{Cfg: core.Config{}.WithDefaults(), Life: core.NewLife(), Clock: &core.Clock{}}
	all.Leases = lease.New("n-1", core.TimesOf(&all.Cfg.Cluster), func() []store.Attachment { return nil })
	return &starter{Core: all, queue: queue.New(all, nil), router: &router.Router{}}
}

// due has planned runs of the job held, in shard 1, and takes them up as they come due.
func (s *starter) due(t *testing.T, job *store.Job, ids ...int64) []queue.Attempt {
	t.Helper()
	for _, id := range ids {
		run := store.Run{ID: id, JobID: job.ID, App: job.App, Shard: 1, State: store.StatePlanned, Scheduled: time.UnixMilli(id)}
		s.queue.Hold([]store.Run{run}, map[int64]*store.Job{job.ID: job})
		s.queue.TakeNext(time.UnixMilli(id))
	}
	batch, unknown := s.queue.Pop(queue.DueNow(), len(ids), nil)
	if len(batch) != len(ids) || len(unknown) > 0 {
		t.Fatalf("%d of %d runs are due; jobs to be read %v", len(batch), len(ids), unknown)
	}
	return batch
}

func serialJob() *store.Job { return &store.Job{ID: 1, App: "app", Block: block.SerialExecution} }

// TestTurns: when what was decided about a run is old, it is decided anew at its turn; not a
// second time where somebody of the user's is asked, but where it has waited for another run.
func TestTurns(t *testing.T) {
	parts := queue.Routed{Destination: queue.Destination{Address: "local://n-1", Targets: []string{"local://n-1", "local://n-2"}}}
	endOfAnother := func(s *starter, a queue.Attempt) { s.queue.AwaitRun(a, store.Run{ID: 7}) }
	room := func(s *starter, a queue.Attempt) { s.queue.Due.ParkFirst(queue.WaitKey{}, a.Entry) }
	for name, c := range map[string]struct {
		route    queue.Routed
		registry core.Registry
		turned   bool
		then     func(*starter, queue.Attempt)
		keeps    bool
	}{
		"a broadcast":                               {route: parts},
		"its second turn":                           {route: parts, turned: true},
		"by a registry":                             {route: parts, registry: noRegistry{}},
		"by a registry, its second turn":            {route: parts, registry: noRegistry{}, turned: true, keeps: true},
		"by a registry, when another run has ended": {route: parts, registry: noRegistry{}, turned: true, then: endOfAnother},
		"by a registry, let in for room":            {route: parts, registry: noRegistry{}, turned: true, then: room, keeps: true},
		"a refusal":                                 {route: queue.Routed{Refused: "why not"}},
		"a refusal, its second turn":                {route: queue.Routed{Refused: "why not"}, turned: true, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := startLoop(t)
			s.Cfg.Registry = c.registry
			a := s.due(t, serialJob(), 1)[0]
			a.Entry.Route, a.HadTurn = &c.route, c.turned
			if c.then != nil {
				c.then(s, a)
			}
			if s.turnBegins(&a); (a.Route.Address+a.Route.Refused != "") != c.keeps || !a.HadTurn {
				t.Errorf("route %+v, turned %t", a.Route, a.HadTurn)
			}
		})
	}
}

type noRegistry struct{ core.Registry }

type noExecutor struct{ wire.Executor }

// TestFreedPlacesAreOffered: places that a start had taken are free again. Runs that other nodes have
// handed over wait for them.
func TestFreedPlacesAreOffered(t *testing.T) {
	s := startLoop(t)
	batch := s.due(t, serialJob(), 1)
	batch[0].Entry.Route = &queue.Routed{Destination: queue.Destination{Address: "local://n-1", Places: 1, Exec: noExecutor{}}}
	s.queue.InboxFull.Store(true)
	ready := s.reserve(batch, time.Now())
	if s.queue.OfferFreed(time.Now()); len(ready) == 0 || len(s.Life.Wakes.Inbox) > 0 {
		t.Fatal("it has no place, or one was given back")
	}
	s.queue.TryAgain(false, ready[0])
	if s.queue.OfferFreed(time.Now()); len(s.Life.Wakes.Inbox) != 1 {
		t.Errorf("the inbox is woken %d times", len(s.Life.Wakes.Inbox))
	}
}

// TestSerialRunsOfALostShard: a shard is lost before it is known which serial runs its former
// owner has handed on, or while a run of it is routed. No run waits for that any more.
func TestSerialRunsOfALostShard(t *testing.T) {
	s := startLoop(t)
	batch := s.due(t, serialJob(), 1, 2)
	s.Leases.Mine[1] = lease.Hold{Epoch: 7}
	if turn, _ := s.queue.InTurn(batch[:1:1]); len(turn) > 0 || !s.queue.Knows(1) {
		t.Fatal("a run of a shard that is new does not wait")
	}
	s.Leases.Lose(1, 7)
	if turn, _ := s.queue.InTurn(batch[1:]); len(turn) > 0 || s.queue.Knows(2) {
		t.Error("a run of a shard that was lost is still held")
	}
	if err := (&recovery{Core: s.Core, queue: s.queue}).settleNew(t.Context(), nil); err != nil {
		t.Error(err)
	}
	again, _ := s.queue.Pop(queue.DueNow(), 2, nil)
	if turn, _ := s.queue.InTurn(again); len(again) != 1 || len(turn) > 0 || s.queue.Knows(1) {
		t.Errorf("%d come up, %d go on; want the run that waited to come up, and to be forgotten then", len(again), len(turn))
	}
}
