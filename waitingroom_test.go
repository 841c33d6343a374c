package xxljob

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// TestWaitingIsInOrder: what waits goes on in the order of instants and ids, whenever it
// came, and a queue that is never empty keeps nothing of what has left it.
func TestWaitingIsInOrder(t *testing.T) {
	var q waiting
	r := rand.New(rand.NewPCG(1, 2))
	at := func(n int) *entry {
		return &entry{run: plannedRun{ID: r.Int64N(1000), at: int64(r.IntN(n))}}
	}
	for range 100_000 {
		q.push(at(1000))
		q.push(at(10))
		q.pop()
		q.pop()
		if len(q) < 100 {
			q.push(at(500))
		}
	}
	for last := q.pop(); len(q) > 0; {
		next := q.pop()
		if next.run.key().before(last.run.key()) {
			t.Fatalf("%v after %v", next.run.key(), last.run.key())
		}
		last = next
	}
	if cap(q) > 10_000 {
		t.Errorf("room for %d entries", cap(q))
	}
}

// TestProbesEndBeforeParking: probes that end between the routing of a run and its parking do not leave it waiting
// for answers that are there.
func TestProbesEndBeforeParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		complete := Config{App: "app"}
		x, err := New(noStore{}, complete)
		if err != nil {
			t.Fatal(err)
		}
		s := x.(*scheduler)
		s.life.loops.plan = loop.NewGroup()
		job := &store.Job{ID: 1, App: "app", Route: "BUSYOVER"}
		s.engine.hold([]store.Run{{ID: 1, JobID: 1, App: "app"}}, map[int64]*store.Job{1: job})
		a := attempt{entry: s.engine.held.runs.Of(1), job: job}
		a.due, a.passage = true, &passage{route: &routed{}}
		to := s.router.probes.choose(t.Context(), job, []string{store.LocalAddress(s.leases.incarnation)})
		a.route = &to
		synctest.Wait() // the loop is held up; the probes end
		s.starter.collector.reserve([]attempt{a}, time.Now())
		synctest.Wait()
		if n := s.engine.room.lots.len(); n > 0 && len(s.router.probes.asking) == 0 {
			t.Errorf("%d runs are parked for probes that nobody makes", n)
		}
		s.life.loops.plan.End()
	})
}

type noStore struct{ store.Store }

// TestAppsTakeTurns: the next entry is of the app that has waited longest for its turn, be there
// one app or many, and what has had its turn is not kept.
func TestAppsTakeTurns(t *testing.T) {
	for _, apps := range []int{1, 2, 3, 50} {
		r, q := rand.New(rand.NewPCG(3, uint64(apps))), newTurns()
		var order []string // the model: apps that have something, in turn
		waits := map[string]int{}
		for range 20_000 {
			if app := string(rune('A' + r.IntN(apps))); r.IntN(2) == 0 {
				if waits[app]++; waits[app] == 1 {
					order = append(order, app)
				}
				q.push(&entry{run: plannedRun{App: app}})
				continue
			}
			e := q.pop()
			if len(order) == 0 {
				if e != nil {
					t.Fatalf("%d apps: %+v out of nothing", apps, e)
				}
				continue
			}
			app := order[0]
			order = order[1:]
			if waits[app]--; waits[app] > 0 {
				order = append(order, app)
			}
			if e == nil || e.run.App != app {
				t.Fatalf("%d apps: %+v, want one of %s", apps, e, app)
			}
		}
		if cap(q.order) > 4*apps+8 {
			t.Errorf("%d apps: room for the turns of %d", apps, cap(q.order))
		}
	}
}
