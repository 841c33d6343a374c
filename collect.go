package xxljob

// Due runs on their way to a batch: from the queue, or from a lot of those that go apart, to
// an address and to the places that they need there.

import (
	"context"
	"slices"
	"time"
)

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
	if decided && (a.goesApart() || a.run.sharding() == (Sharding{}) && !anyDoubted(c.leases, a.route)) {
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
