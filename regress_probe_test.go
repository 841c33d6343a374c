package xxljob

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFifoIsBounded: A queue that is never empty keeps nothing of what has left it.
func TestFifoIsBounded(t *testing.T) {
	var q fifo
	q.push(&entry{})
	for range 1_000_000 {
		q.push(&entry{})
		q.pop()
	}
	if cap(q.items) > 10_000 {
		t.Errorf("room for %d entries in a queue of %d", cap(q.items), q.len())
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
		s.life.plan = newLoops()
		job := &Job{ID: 1, App: "app", Route: "BUSYOVER"}
		a := attempt{entry: &entry{run: Run{ID: 1, JobID: 1, App: "app"}, due: true}, job: job}
		s.engine.hold([]Run{a.run}, map[int64]*Job{1: job})
		a.entry = s.engine.held[1]
		a.route = s.probes.choose(t.Context(), job, []string{LocalAddress(s.incarnation)})
		synctest.Wait() // the loop is held up; the probes end
		s.reserve(&a, time.Now())
		synctest.Wait()
		if n := len(s.engine.lots); n > 0 && len(s.probes.asking) == 0 {
			t.Errorf("%d runs are parked for probes that nobody makes", n)
		}
		s.life.plan.end()
	})
}

type noStore struct{ Store }
