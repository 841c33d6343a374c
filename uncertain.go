package xxljob

// Starts of which it is not known whether they took effect. Input: batches whose Start
// returned an error, and runs that could not be started since they are planned no more,
// from start.go. Output: what the store has made of them.

import (
	"context"
	"time"
)

// startCalls calls the store for starts, and finds out what has become of those whose call
// has failed. It belongs to the start loop.
type startCalls struct {
	*shared
	engine   *engine
	fitness  *fitness
	doubts   *doubts
	finisher *finisher
	launcher *launcher
	starting backoff // of Store.Start
}

// uncertain finds out what became of a batch whose Start returned an error: it
// may have taken effect. It keeps the batch until the store has told.
func (c *startCalls) uncertain(ctx context.Context, batch []attempt) {
	ids := make([]int64, len(batch))
	for i, a := range batch {
		ids[i] = a.run.ID
	}
	for {
		if !sleep(ctx, c.starting.delay()) {
			c.engine.undo(batch)
			c.doubts.cutShort.Store(true)
			return
		}
		began := c.fitness.begin(&c.fitness.starts)
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return c.runsWithSiblings(ctx, ids, batch) })
		if err == nil {
			c.fitness.over(&c.fitness.starts, began)
			c.settleUncertain(batch, runs, began)
			return
		}
		c.fitness.end(ctx, &c.fitness.starts, began, err)
		c.starting.failed(ctx, err)
	}
}

// runsWithSiblings reads the runs, and of broadcasts the parts.
func (c *startCalls) runsWithSiblings(ctx context.Context, ids []int64, batch []attempt) ([]Run, error) {
	runs, err := c.store.RunsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, a := range batch {
		if len(a.route.targets) < 2 {
			continue
		}
		parts, err := c.store.Runs(ctx, RunFilter{TriggerID: a.run.triggerID(), Limit: len(a.route.targets) + 1})
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p.ID != a.run.ID {
				runs = append(runs, p)
			}
		}
	}
	return runs, nil
}

// settleUncertain acts on what was read.
func (c *startCalls) settleUncertain(batch []attempt, runs []Run, began time.Time) {
	c.engine.held.refreshRuns(runs)
	byID := make(map[int64]Run, len(runs))
	siblings := map[int64][]Run{}
	for _, r := range runs {
		byID[r.ID] = r
		if r.TriggerID != r.ID {
			siblings[r.TriggerID] = append(siblings[r.TriggerID], r)
		}
	}
	for _, a := range batch {
		r, ok := byID[a.run.ID]
		mine := r.Owner == c.leases.incarnation && r.Token == a.start.Token
		switch {
		case ok && r.State == StatePlanned:
			c.engine.retry(a, true)
		case ok && mine && r.State == StateStarted:
			c.launcher.launch(a, r, began)
		default:
			c.engine.letGo(a)
			if r.State == StateCancelled {
				c.engine.waiters.notify(&r)
			} else if r.State.Ended() {
				c.finisher.ended([]Run{r})
			}
		}
		// The other parts of a broadcast are under way whatever became of the first.
		for _, sibling := range siblings[a.run.triggerID()] {
			if sibling.ID != a.run.ID && sibling.State == StateStarted && sibling.Owner == c.leases.incarnation && sibling.Token == a.start.Token {
				c.launcher.launchSibling(a, sibling, began)
			}
		}
	}
}
