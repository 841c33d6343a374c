package xxljob

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The start loop: from runs that are due to calls of Store.Start.

// starter starts what is due. It belongs to the start loop.
type starter struct {
	*shared
	engine    *engine
	collector *collector
	batches   *startBatcher
	deliverer *deliverer

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
// started in the store, to dispatch_send.go; or refused ones, to dispatch_finish.go. Nothing
// is sent before the store has acknowledged the start.

// startDuty starts runs at their time.
func (s *starter) startDuty() loop.Duty {
	return loop.Duty{What: "routing runs", Wakes: []<-chan struct{}{s.life.wakes.start}, Once: s.startOnce}
}

// startOnce starts what is due and returns how long nothing more will be.
func (s *starter) startOnce(ctx context.Context) (time.Duration, error) {
	rushing := false
	defer func() { s.engine.rush.endIf(rushing) }()
	for ctx.Err() == nil {
		now := s.clock.now()
		if s.engine.takeNext(now) && !rushing {
			s.engine.rush.begin()
			rushing = true
		}
		some, locked, err := s.startPass(ctx)
		s.offerFreed()
		switch {
		case err != nil:
			return 0, err
		case locked:
			return min(lockedRetry, s.untilNext()), nil
		case some:
			continue
		case !s.leases.trusted(time.Now()):
			return s.untilNext(), nil // the lease loop pokes when the trust is back
		case !s.engine.room.isLeft():
			s.herds.first, s.herds.again = herd{}, herd{}
			return s.untilNext(), nil
		}
	}
	return s.untilNext(), nil
}

// startPass starts what is due, and behind it some of what goes apart. It reports whether
// there was something, and whether some rows have to be tried again after a pause.
func (s *starter) startPass(ctx context.Context) (some, locked bool, err error) {
	n, _, locked, err := s.startFrom(ctx, lot{kind: lotDue}, loop.StoreBatch)
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
func (s *starter) offerFreed() {
	if now := time.Now(); now.Sub(s.offeredAt) >= offerPause && s.engine.room.takeFreed() {
		s.offeredAt = now
		s.life.wakes.inbox.PokeIf(s.engine.inboxFull.Load())
	}
}

// untilNext is the time until the ring has something due.
func (s *starter) untilNext() time.Duration {
	now := s.clock.now()
	wait := time.Duration(loop.Forever)
	if at, n, ok := s.engine.held.nextDue(); ok {
		wait = max(at.Sub(now)-s.engine.lead.forMany(n), time.Microsecond)
	}
	if s.engine.room.hasFreed() {
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
func (s *starter) startApart(ctx context.Context) (some, locked bool, err error) {
	first := lot{kind: lotApart}
	n, took, locked, err := s.startFrom(ctx, first, s.herds.first.size())
	if n > 0 {
		s.herds.first.took(n, took)
	}
	if err != nil {
		return n > 0, locked, err
	}
	again := s.engine.room.nextRound()
	left := s.engine.room.countLot(again.next())
	m, took, stuck, err := s.startFrom(ctx, again, s.herds.again.size())
	switch {
	case m == 0:
	case s.engine.room.countLot(again.next()) > left: // one is stuck, and the others were with it
		s.herds.again = herd{}
	default:
		s.herds.again.took(m, took)
	}
	return n+m > 0, locked || stuck, err
}

// startFrom starts up to most entries from a lot, and returns how many the store was asked
// about, and how long that took.
func (s *starter) startFrom(ctx context.Context, from lot, most int) (n int, took time.Duration, locked bool, err error) {
	if from.kind != lotDue && !s.engine.room.waits(from) {
		return 0, 0, false, nil
	}
	if ctx.Err() != nil || !s.leases.trusted(time.Now()) {
		return 0, 0, false, nil
	}
	collecting := time.Now()
	batch, err := s.collector.collect(ctx, from, most)
	if err != nil || len(batch) == 0 {
		return 0, 0, false, err
	}
	began := time.Now()
	if locked, err = s.batches.startBatch(ctx, batch, from.kind == lotDue); from.kind == lotDue {
		s.engine.lead.started(len(batch), time.Since(collecting))
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
func (c *collector) collect(ctx context.Context, from lot, most int) ([]attempt, error) {
	now := c.clock.now()
	for {
		batch, unknown := c.engine.pop(from, most, c.buffers.begin(most))
		c.buffers.lent(len(batch))
		if len(unknown) > 0 {
			if err := c.reads.loadJobs(ctx, unknown); err != nil {
				c.engine.room.putBack(from, batch)
				return nil, err
			}
			if len(batch) == 0 {
				continue
			}
		}
		if len(batch) == 0 {
			return nil, nil
		}
		if from.kind != lotDue {
			for i := range batch {
				c.turnBegins(&batch[i])
			}
		}
		ready := c.reserve(c.routeAll(ctx, from, c.engine.inTurn(batch)), now)
		if len(ready) > 0 || from.kind != lotDue {
			return ready, nil // those that wait for their turn are not to be routed long before it
		}
	}
}

// routeAll routes the attempts, in place, and returns those that may be started now.
func (c *collector) routeAll(ctx context.Context, from lot, batch []attempt) []attempt {
	routed, now := batch[:0], time.Now()
	for i := range batch {
		a := &batch[i]
		if err := c.routeEntry(ctx, a, now); err != nil {
			c.aside.setAside(ctx, a.entry, err)
			continue
		}
		c.aside.routedWell(ctx, a.run.App)
		if from.kind == lotDue && a.goesApart() {
			c.engine.room.waitApart(a.entry)
			continue
		}
		routed = keep(routed, batch, i)
	}
	return routed
}

// routeEntry routes an entry, unless it has waited for room at an address, or for its turn:
// then it keeps what was decided.
func (c *collector) routeEntry(ctx context.Context, a *attempt, now time.Time) error {
	decided := (a.route.address != "" || a.route.refused != "") && a.routedFor == a.job.Version && !a.route.probing
	if decided && (a.goesApart() || a.run.sharding() == (store.Sharding{}) && !anyDoubted(c.leases, a.route)) {
		return nil
	}
	r, err := c.router.route(ctx, a.entry, a.job)
	if err != nil {
		return err
	}
	a.routedAt = now
	if r.serial != a.route.serial {
		c.engine.room.changeSerial(a.entry)
	}
	a.route, a.routedFor = r, a.job.Version
	return nil
}

// anyDoubted is isDoubted for the addresses of a route.
func anyDoubted(l *leases, r *routed) bool {
	return l.isDoubted(r.address) || slices.ContainsFunc(r.targets, l.isDoubted)
}

// What the store is asked for when a due run is started.

// collector takes entries from the waiting room, and finds addresses and places for them. It
// belongs to the start loop.
type collector struct {
	*shared
	engine  *engine
	router  *router
	aside   *unrouted
	memory  *addressMemory
	reads   *startReads
	buffers *startBuffers
}

// reserve takes the places that the attempts need and fills in their Starts, in place. It
// returns those that have them; the entries of the others wait.
func (c *collector) reserve(batch []attempt, now time.Time) []attempt {
	ready := batch[:0]
	for i, what := range c.engine.reserveAll(batch, now, c.router.probes.pending) {
		a := &batch[i]
		switch what {
		case reservedAll:
			a.start = c.startOf(a)
			ready = keep(ready, batch, i)
		case reservedAsk:
			c.router.asks.askRouter(a.entry, a.job, a.route.asks)
		}
	}
	return ready
}

// startOf is what the store is asked for.
func (c *collector) startOf(a *attempt) store.Start {
	run := c.buffers.nextRun()
	a.run.fill(run)
	epoch, _ := c.leases.epoch(run.Shard)
	st := store.Start{
		RunID: run.ID, JobID: a.job.ID, Shard: run.Shard, Epoch: epoch, JobVersion: a.job.Version,
		State: store.StateStarted, Owner: c.leases.incarnation, Token: c.leases.newToken(epoch),
		Address: a.route.address, Targets: a.route.targets,
		Serial: a.route.ordered && !a.route.remote, AfterRetries: a.job.Block == block.SerialExecution && !a.job.RetryAside,
		Instant: run.Instant(), TriggerID: run.TriggerID,
		Handler: a.job.Handler, Block: a.job.Block, Param: a.job.Param, Retries: max(a.job.Retries-(run.Attempt-run.Reruns), 0),
		Msg: c.buffers.said(a.route.msg), Known: run,
	}
	switch {
	case a.route.refused != "":
		st.State, st.HandleMsg = store.StateRefused, errs.PlainText(errs.Shorten(a.route.refused, maxAnswer))
	case a.route.remote:
		st.BootID = c.memory.boot(a.run.App, st.Address)
		st.TargetBoots = c.bootsOf(a.run.App, st.Targets)
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
func (c *collector) bootsOf(app string, addrs []string) []string {
	var boots []string
	for _, a := range addrs {
		boots = append(boots, c.memory.boot(app, a))
	}
	return boots
}

// turnBegins has an entry whose turn it is routed anew, where what was decided about it is
// old, or some of its nodes have come to be doubted. Where somebody of the user's has to be
// asked, or probes have to be sent, it waits for that, and keeps what comes of it, however
// long its next turn takes to come.
func (c *collector) turnBegins(a *attempt) { c.engine.turnBegins(a, c.isOutdated(a)) }

// isOutdated reports whether what was decided about an entry whose turn it is does not hold
// any more. A router of the user's is not asked about a broadcast again for its age.
func (c *collector) isOutdated(a *attempt) bool {
	old, targets := time.Since(a.routedAt) >= addressTTL, a.route.targets
	if left := c.leases.undoubted(targets); len(left) < len(targets) { // it is chosen among these then
		return old || !a.turned
	}
	switch {
	case len(targets) == 0:
		return old && !a.turned
	case c.cfg.Routers[a.job.Route] != nil:
		return false
	}
	return old && (!a.turned || c.cfg.Registry == nil)
}
