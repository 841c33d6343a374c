package xxljob

// What the store is asked for when a due run is started.

import (
	"time"

	"github.com/xxljob/xxljob/block"
)

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
func (c *collector) startOf(a *attempt) Start {
	run := c.buffers.nextRun()
	a.run.fill(run)
	epoch, _ := c.leases.epoch(run.Shard)
	st := Start{
		RunID: run.ID, JobID: a.job.ID, Shard: run.Shard, Epoch: epoch, JobVersion: a.job.Version,
		State: StateStarted, Owner: c.leases.incarnation, Token: c.leases.newToken(epoch),
		Address: a.route.address, Targets: a.route.targets,
		Serial: a.route.ordered && !a.route.remote, AfterRetries: a.job.Block == block.SerialExecution && !a.job.RetryAside,
		Instant: run.Instant(), TriggerID: run.TriggerID,
		Handler: a.job.Handler, Block: a.job.Block, Param: a.job.Param, Retries: max(a.job.Retries-(run.Attempt-run.Reruns), 0),
		Msg: c.buffers.said(a.route.msg), Known: run,
	}
	switch {
	case a.route.refused != "":
		st.State, st.HandleMsg = StateRefused, plainText(shorten(a.route.refused, maxAnswer))
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
