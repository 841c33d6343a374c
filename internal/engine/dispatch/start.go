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
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The start loop: from runs that are due to calls of Store.Start.

// Starter starts what is due. It belongs to the start loop.
type Starter struct {
	*core.Core
	Engine    *queue.Queue
	Collector *Collector
	Batches   *StartBatcher
	Deliverer *Deliverer

	herds     struct{ first, again herd } // starts that go apart
	offeredAt time.Time                   // see offerFreed
}

func (h *herd) size() int { return max(1, h.most) }

// took notes that n of them went together, and how long they took: the next ones are to
// take apartTime, and are no more than twice as many.
func (h *herd) took(n int, d time.Duration) {
	few := max(1, int(apartTime/max(d/time.Duration(n), time.Microsecond)))
	most := h.size()
	if n >= most {
		most *= 2
	}
	h.most = min(most, few, apartMost)
}

const (
	// apartMost is how many go together at most.
	apartMost = 64
	// apartTime is how long one call for them is to take, as far as it can be foreseen.
	apartTime = 500 * time.Millisecond
)

// Input: planned runs that are due, from the ring. Output: runs that are marked
// started in the store, to send.go; or refused ones, to finish.go. Nothing
// is sent before the store has acknowledged the start.

// StartDuty starts runs at their time.
func (s *Starter) StartDuty() loop.Duty {
	return loop.Duty{What: "routing runs", Wakes: []<-chan struct{}{s.Life.Wakes.Start}, Once: s.startOnce}
}

// startOnce starts what is due and returns how long nothing more will be.
func (s *Starter) startOnce(ctx context.Context) (time.Duration, error) {
	rushing := false
	defer func() { s.Engine.Rush.EndIf(rushing) }()
	for ctx.Err() == nil {
		now := s.Clock.Now()
		if s.Engine.TakeNext(now) && !rushing {
			s.Engine.Rush.Begin()
			rushing = true
		}
		some, locked, err := s.startPass(ctx)
		s.offerFreed()
		switch {
		case err != nil:
			return 0, err
		case locked:
			return min(core.LockedRetry, s.untilNext()), nil
		case some:
			continue
		case !s.Leases.Trusted(time.Now()):
			return s.untilNext(), nil // the lease loop pokes when the trust is back
		case !s.Engine.Room.IsLeft():
			s.herds.first, s.herds.again = herd{}, herd{}
			return s.untilNext(), nil
		}
	}
	return s.untilNext(), nil
}

// startPass starts what is due, and behind it some of what goes apart. It reports whether
// there was something, and whether some rows have to be tried again after a pause.
func (s *Starter) startPass(ctx context.Context) (some, locked bool, err error) {
	n, _, locked, err := s.startFrom(ctx, queue.WaitKey{Kind: queue.LotDue}, loop.StoreBatch)
	if err != nil {
		return n > 0, locked, err
	}
	some, stuck, err := s.startApart(ctx)
	return n > 0 || some, locked || stuck, err
}

// offerPause is how often the inbox is looked at for places that starts have given back: a
// start whose row is locked takes its place again and again.
const offerPause = 100 * time.Millisecond

// offerFreed has the inbox looked at again where starts that came to nothing have given
// places back for which runs wait there.
func (s *Starter) offerFreed() {
	if now := time.Now(); now.Sub(s.offeredAt) >= offerPause && s.Engine.Room.TakeFreed() {
		s.offeredAt = now
		s.Life.Wakes.Inbox.PokeIf(s.Engine.InboxFull.Load())
	}
}

// untilNext is the time until the ring has something due.
func (s *Starter) untilNext() time.Duration {
	now := s.Clock.Now()
	wait := time.Duration(loop.Forever)
	if at, n, ok := s.Engine.Held.NextDue(); ok {
		wait = max(at.Sub(now)-s.Engine.Lead.ForMany(n), time.Microsecond)
	}
	if s.Engine.Room.HasFreed() {
		wait = min(wait, offerPause)
	}
	return wait
}

// Starts that a store makes one by one, each in a transaction of its own: those of
// broadcasts, with their parts, and refusals. Input: such entries, as the loop finds them when
// they are due. Output: few of them at a time, to be started behind the other runs of a
// pass. Until then they wait in a lot, and take no places but what they were let in for. When
// a store has been away for a while hundreds are due at once, and together they would take
// longer than a call may, with all other runs behind them. Those whose start had no effect,
// for a row is locked, perhaps, come again in calls of their own, and do not hold up those
// that were not tried yet.

// startApart starts some of those that wait for their first turn, and then some of those
// that were tried before.
func (s *Starter) startApart(ctx context.Context) (some, locked bool, err error) {
	first := queue.WaitKey{Kind: queue.LotApart}
	n, took, locked, err := s.startFrom(ctx, first, s.herds.first.size())
	if n > 0 {
		s.herds.first.took(n, took)
	}
	if err != nil {
		return n > 0, locked, err
	}
	again := s.Engine.Room.NextRound()
	left := s.Engine.Room.CountLot(again.Next())
	m, took, stuck, err := s.startFrom(ctx, again, s.herds.again.size())
	switch {
	case m == 0:
	case s.Engine.Room.CountLot(again.Next()) > left: // one is stuck, and the others were with it
		s.herds.again = herd{}
	default:
		s.herds.again.took(m, took)
	}
	return n+m > 0, locked || stuck, err
}

// startFrom starts up to most entries from a lot, and returns how many the store was asked
// about, and how long that took.
func (s *Starter) startFrom(ctx context.Context, from queue.WaitKey, most int) (n int, took time.Duration, locked bool, err error) {
	if from.Kind != queue.LotDue && !s.Engine.Room.Waits(from) {
		return 0, 0, false, nil
	}
	if ctx.Err() != nil || !s.Leases.Trusted(time.Now()) {
		return 0, 0, false, nil
	}
	collecting := time.Now()
	batch, err := s.Collector.collect(ctx, from, most)
	if err != nil || len(batch) == 0 {
		return 0, 0, false, err
	}
	began := time.Now()
	if locked, err = s.Batches.startBatch(ctx, batch, from.Kind == queue.LotDue); from.Kind == queue.LotDue {
		s.Engine.Lead.Started(len(batch), time.Since(collecting))
	}
	return len(batch), time.Since(began), locked, err
}

// herd is how many of those that wait go together. It begins with one when nobody waits any
// more. It belongs to the start loop.
type herd struct{ most int }

// Due runs on their way to a batch: from the queue, or from a lot of those that go apart, to
// an address and to the places that they need there.

// collect takes entries from the due queue, or from a lot of those that go apart, routes
// them, and takes places for them. Those without room wait in lots, and so do those of the
// due queue that go apart.
func (c *Collector) collect(ctx context.Context, from queue.WaitKey, most int) ([]queue.Attempt, error) {
	now := c.Clock.Now()
	for {
		batch, unknown := c.Engine.Pop(from, most, c.Buffers.begin(most))
		c.Buffers.lent(len(batch))
		if len(unknown) > 0 {
			if err := c.Reads.loadJobs(ctx, unknown); err != nil {
				c.Engine.Room.PutBack(from, batch)
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
				c.turnBegins(&batch[i])
			}
		}
		ready := c.Reserve(c.routeAll(ctx, from, c.Engine.InTurn(batch)), now)
		if len(ready) > 0 || from.Kind != queue.LotDue {
			return ready, nil // those that wait for their turn are not to be routed long before it
		}
	}
}

// routeAll routes the attempts, in place, and returns those that may be started now.
func (c *Collector) routeAll(ctx context.Context, from queue.WaitKey, batch []queue.Attempt) []queue.Attempt {
	routed, now := batch[:0], time.Now()
	for i := range batch {
		a := &batch[i]
		if err := c.routeEntry(ctx, a, now); err != nil {
			c.Aside.SetAside(ctx, a.Item, err)
			continue
		}
		c.Aside.RoutedWell(ctx, a.Run.App)
		if from.Kind == queue.LotDue && a.GoesApart() {
			c.Engine.Room.WaitApart(a.Item)
			continue
		}
		routed = queue.Keep(routed, batch, i)
	}
	return routed
}

// routeEntry routes an entry, unless it has waited for room at an address, or for its turn:
// then it keeps what was decided.
func (c *Collector) routeEntry(ctx context.Context, a *queue.Attempt, now time.Time) error {
	decided := (a.Route.Address != "" || a.Route.Refused != "") && a.RoutedFor == a.Job.Version && !a.Route.Probing
	if decided && (a.GoesApart() || a.Run.Sharding() == (store.Sharding{}) && !anyDoubted(c.Leases, a.Route)) {
		return nil
	}
	r, err := c.Router.Route(ctx, a.Item, a.Job)
	if err != nil {
		return err
	}
	a.RoutedAt = now
	if r.Serial != a.Route.Serial {
		c.Engine.Room.ChangeSerial(a.Item)
	}
	a.Route, a.RoutedFor = r, a.Job.Version
	return nil
}

// anyDoubted is IsDoubted for the addresses of a route.
func anyDoubted(l *lease.Leases, r *queue.Routed) bool {
	return l.IsDoubted(r.Address) || slices.ContainsFunc(r.Targets, l.IsDoubted)
}

// What the store is asked for when a due run is started.

// Collector takes entries from the waiting room, and finds addresses and places for them. It
// belongs to the start loop.
type Collector struct {
	*core.Core
	Engine  *queue.Queue
	Router  *router.Router
	Aside   *router.ParkedLookups
	Memory  *registry.Memory
	Reads   *StartReads
	Buffers *StartBuffers
}

// Reserve takes the places that the attempts need and fills in their Starts, in place. It
// returns those that have them; the entries of the others wait.
func (c *Collector) Reserve(batch []queue.Attempt, now time.Time) []queue.Attempt {
	ready := batch[:0]
	for i, what := range c.Engine.ReserveAll(batch, now, c.Router.Probes.Pending) {
		a := &batch[i]
		switch what {
		case queue.ReservedAll:
			a.Start = c.startOf(a)
			ready = queue.Keep(ready, batch, i)
		case queue.ReservedAsk:
			c.Router.Asks.AskRouter(a.Item, a.Job, a.Route.Asks)
		}
	}
	return ready
}

// startOf is what the store is asked for.
func (c *Collector) startOf(a *queue.Attempt) store.Start {
	run := c.Buffers.nextRun()
	a.Run.Fill(run)
	epoch, _ := c.Leases.Epoch(run.Shard)
	st := store.Start{
		RunID: run.ID, JobID: a.Job.ID, Shard: run.Shard, Epoch: epoch, JobVersion: a.Job.Version,
		State: store.StateStarted, Owner: c.Leases.Incarnation, Token: c.Leases.NewToken(epoch),
		Address: a.Route.Address, Targets: a.Route.Targets,
		Serial: a.Route.Ordered && !a.Route.Remote, AfterRetries: a.Job.Block == block.SerialExecution && !a.Job.RetryAside,
		Instant: run.Instant(), TriggerID: run.TriggerID,
		Handler: a.Job.Handler, Block: a.Job.Block, Param: a.Job.Param, Retries: max(a.Job.Retries-(run.Attempt-run.Reruns), 0),
		Msg: c.Buffers.said(a.Route.Msg), Known: run,
	}
	switch {
	case a.Route.Refused != "":
		st.State, st.HandleMsg = store.StateRefused, errs.PlainText(errs.Shorten(a.Route.Refused, core.MaxAnswer))
	case a.Route.Remote:
		st.BootID = c.Memory.Boot(a.Run.App, st.Address)
		st.TargetBoots = c.bootsOf(a.Run.App, st.Targets)
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
func (c *Collector) bootsOf(app string, addrs []string) []string {
	var boots []string
	for _, a := range addrs {
		boots = append(boots, c.Memory.Boot(app, a))
	}
	return boots
}

// turnBegins has an entry whose turn it is routed anew, where what was decided about it is
// old, or some of its nodes have come to be doubted. Where somebody of the user's has to be
// asked, or probes have to be sent, it waits for that, and keeps what comes of it, however
// long its next turn takes to come.
func (c *Collector) turnBegins(a *queue.Attempt) { c.Engine.TurnBegins(a, c.isOutdated(a)) }

// isOutdated reports whether what was decided about an entry whose turn it is does not hold
// any more. A router of the user's is not asked about a broadcast again for its age.
func (c *Collector) isOutdated(a *queue.Attempt) bool {
	old, targets := time.Since(a.RoutedAt) >= registry.AddressTTL, a.Route.Targets
	if left := c.Leases.Undoubted(targets); len(left) < len(targets) { // it is chosen among these then
		return old || !a.Turned
	}
	switch {
	case len(targets) == 0:
		return old && !a.Turned
	case c.Cfg.Routers[a.Job.Route] != nil:
		return false
	}
	return old && (!a.Turned || c.Cfg.Registry == nil)
}
