package xxljob

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestWaitingIsInOrder: what waits goes on in the order of instants and ids, whenever it
// came, and a queue that is never empty keeps nothing of what has left it.
func TestWaitingIsInOrder(t *testing.T) {
	var q waiting
	r := rand.New(rand.NewPCG(1, 2))
	at := func(n int) *entry {
		return &entry{run: Run{ID: r.Int64N(1000), Scheduled: time.UnixMilli(int64(r.IntN(n)))}}
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
		if keyOfRun(&next.run).before(keyOfRun(&last.run)) {
			t.Fatalf("%v after %v", keyOfRun(&next.run), keyOfRun(&last.run))
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
		s.life.loops.plan = newLoops()
		job := &Job{ID: 1, App: "app", Route: "BUSYOVER"}
		a := attempt{entry: &entry{run: Run{ID: 1, JobID: 1, App: "app"}, due: true}, job: job}
		s.engine.hold([]Run{a.run}, map[int64]*Job{1: job})
		a.entry = s.engine.held.runs[1]
		a.route = s.router.probes.choose(t.Context(), job, []string{store.LocalAddress(s.leases.incarnation)})
		synctest.Wait() // the loop is held up; the probes end
		s.starter.collector.reserve(&a, time.Now())
		synctest.Wait()
		if n := len(s.engine.room.lots); n > 0 && len(s.router.probes.asking) == 0 {
			t.Errorf("%d runs are parked for probes that nobody makes", n)
		}
		s.life.loops.plan.end()
	})
}

type noStore struct{ Store }
