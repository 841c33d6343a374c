package scan

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// Planned runs that no scan returns. Input: shards that are new to this node, and apps of
// which it holds too little. Output: planned runs, on the ring.

// reloader reads planned runs. It belongs to the scan loop.
type reloader struct {
	*core.Core
	queue *queue.Queue
	bus   *events.Bus
	set   *lease.ReloadSet
}

// reloadPlanned reads planned runs that the scan does not return: all of the
// shards in the reload set, and those of apps that have run dry here. Of a shard it
// reads as far ahead as any node plans: what a former owner has planned beyond this
// node's own window, no scan would find.
func (r *reloader) reloadPlanned(ctx context.Context, before time.Time) error {
	r.set.Add(r.Leases.Unloaded())
	if shards := r.set.Take(r.Leases.Owned); len(shards) > 0 {
		if err := r.readPlanned(ctx, store.PlannedQuery{Shards: shards, Before: before.Add(core.MaxPreRead)}); err != nil {
			r.set.Add(shards)
			return err
		}
		r.queue.OpenSerial(nil, func() {
			r.Leases.Note(shards, func(h *lease.Hold) { h.Loaded, h.LoadedTo = true, timering.Key{} })
		})
	}
	for app, after := range r.queue.Held.Thirsty() {
		// As far ahead as a reload: what was shed then is found only here.
		if err := r.readOn(ctx, r.Leases.Owned(), app, after, before.Add(core.MaxPreRead)); err != nil {
			return err
		}
	}
	return nil
}

// readPlanned pages through planned runs and holds those there is room for. Those of a page may
// start while the next one is read: all that come before them are held. At the beginning a page is
// only as many runs as start together, so that these need not wait for more.
func (r *reloader) readPlanned(ctx context.Context, q store.PlannedQuery) error {
	q.Limit = loop.StoreBatch
	var page []store.Run
	for {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return r.Store.Planned(ctx, page[:0], q) })
		if err != nil {
			return err
		}
		r.bus.Found(runs)
		if len(runs) < q.Limit {
			r.queue.Hold(runs, nil)
			return nil
		}
		last := runs[len(runs)-1]
		q.After, q.AfterID = last.Scheduled, last.ID
		r.queue.OpenSerial(runs, func() { // at once: those who start them are not to look at them in vain
			r.Leases.Note(q.Shards, func(h *lease.Hold) { h.LoadedTo = compact.KeyOf(&last) })
		})
		r.readAhead(ctx, runs)
		page, q.Limit = runs, core.ScanRuns
	}
}

// readAhead reads the jobs of a page of runs, as far as they are not known: those who start the runs
// would have to wait for them, batch by batch. The first batch is being started meanwhile. What is
// not read is read when it is needed.
func (r *reloader) readAhead(ctx context.Context, page []store.Run) {
	unknown := r.queue.Jobs.Unread(page)
	if len(unknown) <= loop.StoreBatch {
		return
	}
	if jobs, err := r.ReadJobs(ctx, unknown[loop.StoreBatch:]); err == nil {
		r.queue.Jobs.Remember(jobs)
	}
}

// readOn reads an app's planned runs from behind its horizon, as far as there is
// room for them.
func (r *reloader) readOn(ctx context.Context, owned []store.Shard, app string, from timering.Key, before time.Time) error {
	q := store.PlannedQuery{Shards: owned, App: app, Before: before, After: time.UnixMilli(from.At).UTC(), AfterID: from.RunID, Limit: core.ScanRuns}
	if from == (timering.Key{}) {
		q.After = time.Time{}
	}
	var page []store.Run
	for {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return r.Store.Planned(ctx, page[:0], q) })
		if err != nil {
			return err
		}
		more := r.queue.Held.HoldNext(app, from, runs, len(runs) < q.Limit)
		if !more {
			return nil
		}
		page = runs
		last := runs[len(runs)-1]
		q.After, q.AfterID, from = last.Scheduled, last.ID, compact.KeyOf(&last)
	}
}

// Planned runs that nobody holds. Input: planned runs of this node's shards that are
// overdue. Output: those that the node has forgotten, back on the ring. There should be
// none: each one that is found is a fault of this module, and is said aloud.

const (
	// reconcileEvery is how often an owner compares what it holds with the store.
	reconcileEvery = time.Minute
	// overdueBy is how late a run is before it is looked for: most that are in time
	// need not be read.
	overdueBy = loop.CallTimeout
	// reconcilePages bounds what one comparison reads, in pages of ScanRuns; the next
	// one goes on from there.
	reconcilePages = 4
)

// reconciler compares what this node holds with the store. It belongs to the scan loop.
type reconciler struct {
	*core.Core
	queue   *queue.Queue
	last    time.Time    // monotonic: the last comparison
	after   timering.Key // where the next one begins
	missing map[int64]missed
}

// missed is a planned run that was not held when it was first looked for.
type missed struct {
	since time.Time // monotonic
	epoch int64
}

// ripeAfter is how far apart the two looks are that a run is missing in: longer than
// any call may take whose answer would say where the run is.
func (c *reconciler) ripeAfter() time.Duration { return loop.CallTimeout + c.Leases.Times.TTL }

// untilReconciled is when the scan loop has to look, at the latest. A node alone on a
// store in its own process looks when it scans anyway: nothing ticks there.
func (c *reconciler) untilReconciled(now time.Time) time.Duration {
	switch {
	case len(c.missing) > 0:
		return c.ripeAfter()
	case c.Leases.IsAlone():
		return loop.Forever
	}
	return max(reconcileEvery-now.Sub(c.last), time.Second)
}

// reconcile compares what this node holds with the planned runs of the store, once a
// minute, and takes up what was missing in two looks.
func (c *reconciler) reconcile(ctx context.Context, owned []store.Shard) error {
	now := time.Now()
	if err := c.takeUpMissing(ctx, now); err != nil {
		return err
	}
	if first := c.last.IsZero(); first || now.Sub(c.last) < reconcileEvery {
		if first {
			c.last = now // what this node has just taken over is read anyway
		}
		return nil
	}
	c.last = now
	for range reconcilePages {
		q := store.PlannedQuery{Shards: owned, Before: c.Clock.Now().Add(-overdueBy), AfterID: c.after.RunID, Limit: core.ScanRuns}
		if c.after != (timering.Key{}) {
			q.After = time.UnixMilli(c.after.At).UTC()
		}
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return c.Store.Planned(ctx, nil, q) })
		if err != nil {
			return err
		}
		for _, r := range c.queue.Held.Unheld(runs) {
			c.miss(r, now)
		}
		if len(runs) < q.Limit {
			c.after = timering.Key{}
			return nil
		}
		c.after = compact.KeyOf(&runs[len(runs)-1])
	}
	return nil
}

// miss notes a run that this node does not hold.
func (c *reconciler) miss(r store.Run, now time.Time) {
	epoch, owned := c.Leases.Epoch(r.Shard)
	if !owned || len(c.missing) >= core.ScanRuns {
		return
	}
	if c.missing == nil {
		c.missing = map[int64]missed{}
	}
	if was, known := c.missing[r.ID]; !known || was.epoch != epoch {
		c.missing[r.ID] = missed{since: now, epoch: epoch}
	}
}

// takeUpMissing looks a second time at the runs that were missing for long enough.
func (c *reconciler) takeUpMissing(ctx context.Context, now time.Time) error {
	var ids []int64
	for id, m := range c.missing {
		if now.Sub(m.since) >= c.ripeAfter() && len(ids) < loop.StoreBatch {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return c.Store.RunsByID(ctx, ids) })
	if err != nil {
		return err
	}
	for _, r := range c.queue.Held.Unheld(runs) {
		epoch, owned := c.Leases.Epoch(r.Shard)
		if r.State != store.StatePlanned || !owned || epoch != c.missing[r.ID].epoch {
			continue
		}
		c.Logger.Warn("xxljob: picked up a planned run that no node was holding", "run", r.ID, "job", r.JobID, "scheduled", r.Scheduled, "takenUp", c.Life.FaultCounts.PickedUp.Add(1))
		c.queue.PlannedAgain(r, false)
	}
	for _, id := range ids {
		delete(c.missing, id)
	}
	return nil
}

// Unheld are those of the planned runs, all due within the window, that are this node's to start
// and that it neither holds nor is about to read.
func (s *Scanner) Unheld(runs []store.Run) (missing []store.Run) {
	set := s.reloader.set
	set.Mu.Lock()
	defer set.Mu.Unlock()
	for _, r := range s.queue.Held.Unheld(runs) {
		if _, owned := s.Leases.Epoch(r.Shard); owned && r.State == store.StatePlanned && r.PlanEpoch != 0 && !set.Shards[r.Shard] {
			missing = append(missing, r)
		}
	}
	return missing
}
