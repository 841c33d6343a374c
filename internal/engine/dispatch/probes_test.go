package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// TestProbesEndBeforeParking: probes that end between the routing of a run and its parking do not leave it waiting
// for answers that are there.
func TestProbesEndBeforeParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startLoop(t)
		s.Life.Loops.Plan = loop.NewGroup()
		s.router = router.New(s.Core, s.queue, nil, nil, &registry.AttachedSet{}, registry.NewRemotes(&s.Cfg), nil, nil)
		job := &store.Job{ID: 1, App: "app", Route: "BUSYOVER"}
		a := s.due(t, job, 1)[0]
		to := s.router.Probes.Choose(t.Context(), job, []string{store.LocalAddress(s.Leases.Incarnation)})
		a.Route = &to
		synctest.Wait() // the loop is held up; the probes end
		s.reserve([]queue.Attempt{a}, time.Now())
		synctest.Wait()
		if faults := s.queue.Check(s.router.Probes.Pending, false); len(faults) > 0 {
			t.Errorf("runs are parked for probes that nobody makes: %q", faults)
		}
		s.Life.Loops.Plan.End()
	})
}
