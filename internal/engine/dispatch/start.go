package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The start loop. Input: planned runs that are due, from the queue. Output: runs that the
// store has marked started, to launch.go; or refused ones, to finish.go. Nothing is sent
// before the store has acknowledged the start. What the store's answers mean is in startbatch.go
// and reread.go.

// starter starts what is due: it is the start loop.
type starter struct {
	*core.Core
	queue       *queue.Queue
	router      *router.Router
	lookups     *router.ParkedLookups
	book        *registry.Addresses
	fitness     *lease.Fitness
	unconfirmed *unconfirmed
	launcher    *launcher
	inDoubt     *inDoubt
	finisher    *finisher

	buffers  startBuffers
	starting loop.Backoff // of Store.Start
	singly   singly
	refusals loop.Refusals // runs whose starts the store has refused
}

// duty starts runs at their time.
func (s *starter) duty() loop.Duty {
	return loop.Duty{What: "routing runs", Wakes: []<-chan struct{}{s.Life.Wakes.Start}, Once: s.startOnce}
}

// startOnce starts what is due and returns how long nothing more will be.
func (s *starter) startOnce(ctx context.Context) (time.Duration, error) {
	bursting := false
	defer func() {
		if bursting {
			s.queue.Burst.End()
		}
	}()
	offerAgain := time.Duration(loop.Forever)
	idle := func() time.Duration { return min(s.queue.UntilNext(s.Clock.Now()), offerAgain) }
	for ctx.Err() == nil {
		now := s.Clock.Now()
		if s.queue.TakeNext(now) && !bursting {
			s.queue.Burst.Begin()
			bursting = true
		}
		some, locked, err := s.startPass(ctx)
		offerAgain = s.queue.OfferFreed(time.Now())
		switch {
		case err != nil:
			return 0, err
		case locked:
			return min(core.LockedPause, idle()), nil
		case some:
			continue
		case !s.Leases.Trusted(time.Now()):
			return idle(), nil // the lease loop pokes when the trust is back
		case time.Until(s.singly.rests) > 0:
			return min(idle(), time.Until(s.singly.rests)), nil
		case !s.queue.Due.IsLeft():
			s.singly.first, s.singly.again = batchSizer{}, batchSizer{}
			return idle(), nil
		}
	}
	return idle(), nil
}

// startPass starts what is due, and behind it some of what is started singly. It reports whether
// there was something, and whether some rows have to be tried again after a pause.
func (s *starter) startPass(ctx context.Context) (some, locked bool, err error) {
	n, _, locked, err := s.startFrom(ctx, queue.DueNow(), loop.StoreBatch)
	if err != nil {
		return n > 0, locked, err
	}
	some, stuck, err := s.startSingly(ctx)
	return n > 0 || some, locked || stuck, err
}

// startFrom starts up to most entries from a waitlist, and returns how many the store was asked
// about, and how long that took.
func (s *starter) startFrom(ctx context.Context, from queue.WaitKey, most int) (n int, took time.Duration, locked bool, err error) {
	if !from.IsDue() && !s.queue.Due.Waits(from) {
		return 0, 0, false, nil
	}
	if ctx.Err() != nil || !s.Leases.Trusted(time.Now()) {
		return 0, 0, false, nil
	}
	collecting := time.Now()
	batch, err := s.collect(ctx, from, most)
	if err != nil || len(batch) == 0 {
		return 0, 0, false, err
	}
	began := time.Now()
	if locked, err = s.startBatch(ctx, batch, from.IsDue()); from.IsDue() {
		s.queue.LeadTime.Started(len(batch), time.Since(collecting))
	}
	return len(batch), time.Since(began), locked, err
}

// Due runs on their way to a batch: from the queue, or from a waitlist of those that are started
// singly, to an address, to the places that they need there, and to what the store is asked for.

// collect takes entries from the due queue, or from a waitlist of those that are started singly, routes
// them, and takes places for them. Those without room wait in waitlists, and so do those of the
// due queue that are started singly.
func (s *starter) collect(ctx context.Context, from queue.WaitKey, most int) ([]queue.Attempt, error) {
	now := s.Clock.Now()
	for {
		batch, unknown := s.queue.Pop(from, most, s.buffers.begin(most))
		s.buffers.lent(len(batch))
		if len(unknown) > 0 {
			if err := s.loadJobs(ctx, unknown); err != nil {
				s.queue.Due.PutBack(from, batch)
				return nil, err
			}
			if len(batch) == 0 {
				continue
			}
		}
		if len(batch) == 0 {
			return nil, nil
		}
		if !from.IsDue() {
			for i := range batch {
				s.turnBegins(&batch[i])
			}
		}
		turn, behind := s.queue.InTurn(batch)
		ready := s.reserve(s.routeAll(ctx, from, turn, behind), now)
		if len(ready) > 0 || !from.IsDue() {
			return ready, nil // those that wait for their turn are not to be routed long before it
		}
	}
}

// routeAll routes the attempts, in place, and returns those that may be started now. Jobs whose new runs
// are behind others that wait for a router are named.
func (s *starter) routeAll(ctx context.Context, from queue.WaitKey, batch []queue.Attempt, behind []int64) []queue.Attempt {
	routed, now := batch[:0], time.Now()
	for i := range batch {
		a := &batch[i]
		if err := s.routeEntry(ctx, a, now); err != nil {
			s.lookups.SetAside(ctx, a.Entry, err)
			continue
		}
		s.lookups.RoutedWell(ctx, a.Run.App)
		if from.IsDue() && a.StartsSingly() {
			s.queue.Due.ParkSingly(a.Entry)
			continue
		}
		routed = queue.Keep(routed, batch, i)
	}
	s.lookups.AllRouted(behind)
	return routed
}

// routeEntry routes an entry, unless it has waited for room at an address, or for its turn:
// then it keeps what was decided.
func (s *starter) routeEntry(ctx context.Context, a *queue.Attempt, now time.Time) error {
	decided := (a.Route.Address != "" || a.Route.Refused != "") && a.RoutedFor == a.Job.Version && !a.Route.Probing
	if decided && (a.StartsSingly() || a.Run.Sharding() == (store.Sharding{}) && !anyDoubted(s.Leases, a.Route)) {
		return nil
	}
	r, err := s.router.Route(ctx, a.Entry, a.Job)
	if err != nil {
		return err
	}
	a.RoutedAt = now
	if r.JobPlace != a.Route.JobPlace {
		s.queue.Due.FreeJobPlace(a.Entry)
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
	have, ask := s.queue.ReserveAll(batch, now, s.router.Probes.Pending)
	for _, i := range ask { // first: what has its places is moved to the front
		a := &batch[i]
		s.router.Asks.AskRouter(a.Entry, a.Job, a.Route.Asks)
	}
	for _, i := range have {
		a := &batch[i]
		a.Start = s.startOf(a)
		ready = queue.Keep(ready, batch, i)
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
		Serial: a.Route.Ordered && !a.Route.Remote, AfterRetries: blockrule.Of(a.Job.Block).KeepsOrder && !a.Job.RetryAside,
		Instant: run.Due(), TriggerID: run.TriggerID,
		Handler: a.Job.Handler, Block: a.Job.Block, Param: a.Job.Param, Retries: max(a.Job.Retries-(run.Attempt-run.Reruns), 0),
		Msg: s.buffers.said(a.Route.Msg), Known: run,
	}
	switch {
	case a.Route.Refused != "":
		st.State, st.HandleMsg = store.StateRefused, errs.PlainText(errs.Shorten(a.Route.Refused, core.MaxAnswer))
		return st
	case a.Route.Remote:
		st.BootID = s.book.Memory.Boot(a.Run.App, st.Address)
		st.TargetBoots = s.bootsOf(a.Run.App, st.Targets)
	}
	if st.Covers = a.Covers(); st.Covers != nil {
		st.HandleMsg = block.MsgCover
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
		return old || !a.HadTurn
	}
	switch {
	case len(targets) == 0:
		return old && !a.HadTurn
	case s.Cfg.Routers[a.Job.Route] != nil:
		return false
	}
	return old && (!a.HadTurn || !s.Cfg.AsksRegistry(a.Job.App))
}
