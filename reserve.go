package xxljob

// The places that a due run needs before it is started, and what it waits for where it does
// not get them.

import (
	"time"

	"github.com/xxljob/xxljob/block"
)

// collector takes entries from the waiting room, and finds addresses and places for them. It
// belongs to the start loop.
type collector struct {
	*shared
	engine *engine
	router *router
	aside  *unrouted
	memory *addressMemory
	reads  *startReads
}

// waitsItsTurn parks a run of a serial job that has to let an earlier one pass, or of
// which it is not known yet whether it has. It is routed when it goes on: a strategy is
// asked once about each run.
func (c *collector) waitsItsTurn(a attempt) bool {
	if a.job.Block != block.SerialExecution {
		return false
	}
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.waitsBehind(&a)
}

// reserve takes the places that the attempt needs and fills in its Start, or
// parks the entry.
func (c *collector) reserve(a *attempt, now time.Time) bool {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &a.route
	if c.isNotRouted(a) || r.refused == "" && r.ordered && (c.waitsBehind(a) || c.waitsForPart(a)) {
		return false
	}
	a.choice = nil // it is used up: one that waits behind another keeps its own
	if r.refused == "" {
		if r.lane != laneNone {
			r.lane = laneFast
			if e.jobs.isSlow(a.job.ID, now) {
				r.lane = laneSlow
			}
		}
		if !e.room.takeSerial(r.serial, &a.run) {
			e.room.park(r.serial, a.entry)
			return false
		}
		if full, ok := e.room.lanes.fits(r.lane, r.key(a.run.App), r.places); !ok {
			e.room.park(full, a.entry)
			return false
		}
		e.room.lanes.enter(r.lane, r.key(a.run.App), r.places)
		if r.ordered && (r.exec == nil || len(r.targets) > 0) { // parts of a broadcast go to other nodes
			e.room.transit.add(&a.run)
		}
	}
	if r.refused != "" || !a.from.isRoomOf(r.lane, r.key(a.run.App), r.places) {
		e.room.letGoOn(a.entry)
	}
	a.waited, a.starting = false, true
	a.start = c.startOf(a)
	return true
}

// isNotRouted reports whether an entry has no address yet, and parks it. Caller holds
// engine.mu.
func (c *collector) isNotRouted(a *attempt) bool {
	e, r := c.engine, &a.route
	switch {
	case r.probing && !c.router.probes.pending(a.job.ID):
		e.room.keepAhead(a.entry)
		e.room.due.push(a.entry) // the answers have come in meanwhile
	case r.probing:
		e.room.park(lot{kind: lotProbe, jobID: a.job.ID}, a.entry)
	case r.behind.ID != 0:
		e.parkBehindRun(r.behind, a.entry)
		c.life.wakes.watch.poke()
	case r.asks != nil:
		c.router.asks.askRouter(a.entry, a.job, r.asks)
	default:
		return false
	}
	return true
}

// waitsBehind reports whether a run of a serial job has to wait for earlier ones, and
// parks it; that of another node's shard is forgotten. Caller holds engine.mu.
func (c *collector) waitsBehind(a *attempt) bool {
	e := c.engine
	open, owned := c.leases.isOpen(a.run.Shard)
	switch {
	case !owned: // it was lost while an address was looked for
		e.release(a.entry)
	case !open:
		e.room.parkBehind(lot{kind: lotSettle}, a.entry)
	case e.room.transit.isBehind(&a.run):
		e.room.parkBehind(lotOrderOf(a.run.JobID), a.entry)
		c.life.wakes.transit.poke()
	default:
		return false
	}
	return true
}

// waitsForPart reports whether a broadcast of a serial job has to wait for the start of an
// earlier run, which waits for room or for its turn at one of the addresses of the other
// parts, and parks it: those parts take no turn of their own. Caller holds engine.mu.
func (c *collector) waitsForPart(a *attempt) bool {
	e := c.engine
	for _, address := range a.route.targets {
		at := serialAt(a.job, address)
		for _, en := range []*entry{e.held.runs[e.room.serial[at]], e.room.lots.head(at, a.run.App)} {
			if address != a.route.address && en != nil && keyOfRun(&en.run).before(keyOfRun(&a.run)) {
				e.room.keepAhead(en)
				e.room.parkBehind(lotOrderOf(a.run.JobID), a.entry)
				return true
			}
		}
	}
	return false
}

// startOf is what the store is asked for.
func (c *collector) startOf(a *attempt) Start {
	epoch, _ := c.leases.epoch(a.run.Shard)
	st := Start{
		RunID: a.run.ID, JobID: a.job.ID, Shard: a.run.Shard, Epoch: epoch, JobVersion: a.job.Version,
		State: StateStarted, Owner: c.leases.incarnation, Token: c.leases.newToken(epoch),
		Address: a.route.address, Targets: a.route.targets,
		Serial:  a.route.ordered && !a.route.remote,
		Handler: a.job.Handler, Block: a.job.Block, Param: a.job.Param, Retries: a.job.Retries,
		Msg: shorten(plainText(a.route.msg), maxStartMsg-len("...")),
	}
	switch {
	case a.route.refused != "":
		st.State, st.HandleMsg = StateRefused, plainText(shorten(a.route.refused, maxAnswer))
	case a.route.remote:
		st.BootID = c.memory.boot(a.run.App, st.Address)
		st.TargetBoots = c.bootsOf(a.run.App, st.Targets)
	}
	if a.run.ParamSet {
		st.Param = a.run.Param
	}
	if a.run.Retries >= 0 {
		st.Retries = a.run.Retries
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
func (c *collector) turnBegins(a *attempt) {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.unkeep(a.entry)
	if c.isOutdated(a) {
		e.room.freeSerial(a.route.serial, a.run.ID)
		a.entry.route = routed{}
	}
	a.turned = true
}

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
