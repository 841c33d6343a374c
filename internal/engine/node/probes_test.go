package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// TestProbesEndBeforeParking: probes that end between the routing of a run and its parking do not leave it waiting
// for answers that are there.
func TestProbesEndBeforeParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		complete := core.Config{App: "app"}
		s, err := New(noStore{}, complete)
		if err != nil {
			t.Fatal(err)
		}
		s.Life.Loops.Plan = loop.NewGroup()
		job := &store.Job{ID: 1, App: "app", Route: "BUSYOVER"}
		s.Engine.Hold([]store.Run{{ID: 1, JobID: 1, App: "app"}}, map[int64]*store.Job{1: job})
		a := queue.Attempt{Item: s.Engine.Held.Runs.Of(1), Job: job}
		a.Due, a.Passage = true, &queue.Passage{Route: &queue.Routed{}}
		to := s.Router.Probes.Choose(t.Context(), job, []string{store.LocalAddress(s.Leases.Incarnation)})
		a.Route = &to
		synctest.Wait() // the loop is held up; the probes end
		s.Starter.Collector.Reserve([]queue.Attempt{a}, time.Now())
		synctest.Wait()
		if faults := s.Check(); len(faults) > 0 {
			t.Errorf("runs are parked for probes that nobody makes: %q", faults)
		}
		s.Life.Loops.Plan.End()
	})
}

type noStore struct{ store.Store }
