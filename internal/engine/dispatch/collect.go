package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/store"
)

// Due runs on their way to a batch: from the queue, or from a lot of those that are started
// singly, to an address, to the places that they need there, and to what the store is asked for.

// collect takes entries from the due queue, or from a lot of those that go apart, routes
// them, and takes places for them. Those without room wait in lots, and so do those of the
// due queue that go apart.
func (s *starter) collect(ctx context.Context, from queue.WaitKey, most int) ([]queue.Attempt, error) {
	now := s.Clock.Now()
	for {
		batch, unknown := s.queue.Pop(from, most, s.buffers.begin(most))
		s.buffers.lent(len(batch))
		if len(unknown) > 0 {
			if err := s.loadJobs(ctx, unknown); err != nil {
				s.queue.Room.PutBack(from, batch)
				return nil, err
			}
			if len(batch) == 0 {
				continue
			}
		}
		if len(batch) == 0 {
			return nil, nil
		}
		if from.Kind != queue.LotDue {
			for i := range batch {
				s.turnBegins(&batch[i])
			}
		}
		ready := s.reserve(s.routeAll(ctx, from, s.queue.InTurn(batch)), now)
		if len(ready) > 0 || from.Kind != queue.LotDue {
			return ready, nil // those that wait for their turn are not to be routed long before it
		}
	}
}

// routeAll routes the attempts, in place, and returns those that may be started now.
func (s *starter) routeAll(ctx context.Context, from queue.WaitKey, batch []queue.Attempt) []queue.Attempt {
	routed, now := batch[:0], time.Now()
	for i := range batch {
		a := &batch[i]
		if err := s.routeEntry(ctx, a, now); err != nil {
			s.aside.SetAside(ctx, a.Item, err)
			continue
		}
		s.aside.RoutedWell(ctx, a.Run.App)
		if from.Kind == queue.LotDue && a.GoesApart() {
			s.queue.Room.WaitApart(a.Item)
			continue
		}
		routed = queue.Keep(routed, batch, i)
	}
	return routed
}

// routeEntry routes an entry, unless it has waited for room at an address, or for its turn:
// then it keeps what was decided.
func (s *starter) routeEntry(ctx context.Context, a *queue.Attempt, now time.Time) error {
	decided := (a.Route.Address != "" || a.Route.Refused != "") && a.RoutedFor == a.Job.Version && !a.Route.Probing
	if decided && (a.GoesApart() || a.Run.Sharding() == (store.Sharding{}) && !anyDoubted(s.Leases, a.Route)) {
		return nil
	}
	r, err := s.router.Route(ctx, a.Item, a.Job)
	if err != nil {
		return err
	}
	a.RoutedAt = now
	if r.Serial != a.Route.Serial {
		s.queue.Room.ChangeSerial(a.Item)
	}
	a.Route, a.RoutedFor = r, a.Job.Version
	return nil
}

// anyDoubted is IsDoubted for the addresses of a route.
func anyDoubted(l *lease.Leases, r *queue.Routed) bool {
	return l.IsDoubted(r.Address) || slices.ContainsFunc(r.Targets, l.IsDoubted)
}

// reserve takes the places that the attempts need and fills in their Starts, in place. It
// returns those that have them; the entries of the others wait.
func (s *starter) reserve(batch []queue.Attempt, now time.Time) []queue.Attempt {
	ready := batch[:0]
	for i, what := range s.queue.ReserveAll(batch, now, s.router.Probes.Pending) {
		a := &batch[i]
		switch what {
		case queue.ReservedAll:
			a.Start = s.startOf(a)
			ready = queue.Keep(ready, batch, i)
		case queue.ReservedAsk:
			s.router.Asks.AskRouter(a.Item, a.Job, a.Route.Asks)
		}
	}
	return ready
}

// startOf is what the store is asked for. A shard that this node has lost since the run was let
// in has epoch 0 here, which no shard has that ever had an owner: the store answers StartFenced,
// and the run is let go.
func (s *starter) startOf(a *queue.Attempt) store.Start {
	run := s.buffers.nextRun()
	a.Run.Fill(run)
	epoch, _ := s.Leases.Epoch(run.Shard)
	st := store.Start{
		RunID: run.ID, JobID: a.Job.ID, Shard: run.Shard, Epoch: epoch, JobVersion: a.Job.Version,
		State: store.StateStarted, Owner: s.Leases.Incarnation, Token: s.Leases.NewToken(epoch),
		Address: a.Route.Address, Targets: a.Route.Targets,
		Serial: a.Route.Ordered && !a.Route.Remote, AfterRetries: a.Job.Block == block.SerialExecution && !a.Job.RetryAside,
		Instant: run.Instant(), TriggerID: run.TriggerID,
		Handler: a.Job.Handler, Block: a.Job.Block, Param: a.Job.Param, Retries: max(a.Job.Retries-(run.Attempt-run.Reruns), 0),
		Msg: s.buffers.said(a.Route.Msg), Known: run,
	}
	switch {
	case a.Route.Refused != "":
		st.State, st.HandleMsg = store.StateRefused, errs.PlainText(errs.Shorten(a.Route.Refused, core.MaxAnswer))
	case a.Route.Remote:
		st.BootID = s.book.Memory.Boot(a.Run.App, st.Address)
		st.TargetBoots = s.bootsOf(a.Run.App, st.Targets)
	}
	if run.ParamSet {
		st.Param = run.Param
	}
	if run.RetriesSet {
		st.Retries = run.Retries
	}
	return st
}

// bootsOf are the boot ids of executors at addresses, as far as they are known.
func (s *starter) bootsOf(app string, addrs []string) []string {
	var boots []string
	for _, a := range addrs {
		boots = append(boots, s.book.Memory.Boot(app, a))
	}
	return boots
}

// turnBegins has an entry whose turn it is routed anew, where what was decided about it is
// old, or some of its nodes have come to be doubted. Where somebody of the user's has to be
// asked, or probes have to be sent, it waits for that, and keeps what comes of it, however
// long its next turn takes to come.
func (s *starter) turnBegins(a *queue.Attempt) { s.queue.TurnBegins(a, s.isOutdated(a)) }

// isOutdated reports whether what was decided about an entry whose turn it is does not hold
// any more. A router of the user's is not asked about a broadcast again for its age.
func (s *starter) isOutdated(a *queue.Attempt) bool {
	old, targets := time.Since(a.RoutedAt) >= registry.AddressTTL, a.Route.Targets
	if left := s.Leases.Undoubted(targets); len(left) < len(targets) { // it is chosen among these then
		return old || !a.Turned
	}
	switch {
	case len(targets) == 0:
		return old && !a.Turned
	case s.Cfg.Routers[a.Job.Route] != nil:
		return false
	}
	return old && (!a.Turned || s.Cfg.Registry == nil)
}
