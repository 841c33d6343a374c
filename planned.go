package xxljob

// Planned runs that no scan returns. Input: shards that are new to this node, and apps of
// which it holds too little. Output: planned runs, on the ring.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// reloader reads planned runs. It belongs to the scan loop.
type reloader struct {
	*shared
	engine *engine
	teller *teller
	set    *reloadSet
}

// reloadPlanned reads planned runs that the scan does not return: all of the
// shards in the reload set, and those of apps that have run dry here. Of a shard it
// reads as far ahead as any node plans: what a former owner has planned beyond this
// node's own window, no scan would find.
func (r *reloader) reloadPlanned(ctx context.Context, before time.Time) error {
	owned := r.leases.owned()
	r.set.add(r.leases.unloaded())
	if shards := r.set.take(owned); len(shards) > 0 {
		if err := r.readPlanned(ctx, store.PlannedQuery{Shards: shards, Before: before.Add(maxPreRead)}); err != nil {
			r.set.add(shards)
			return err
		}
		r.engine.openSerial(func() {
			r.leases.note(shards, func(h *hold) { h.loaded, h.loadedTo = true, ringEntry{} })
		})
	}
	for app, after := range r.engine.held.thirsty() {
		// As far ahead as a reload: what was shed then is found only here.
		if err := r.readOn(ctx, owned, app, after, before.Add(maxPreRead)); err != nil {
			return err
		}
	}
	return nil
}

// readPlanned pages through planned runs and holds those there is room for. Those of a page may
// start while the next one is read: all that come before them are held. At the beginning a page is
// only as many runs as start together, so that these need not wait for more.
func (r *reloader) readPlanned(ctx context.Context, q store.PlannedQuery) error {
	q.Limit = storeBatch
	var page []Run
	for {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return r.store.Planned(ctx, page[:0], q) })
		if err != nil {
			return err
		}
		r.teller.found(runs)
		if len(runs) < q.Limit {
			r.engine.hold(runs, nil)
			return nil
		}
		last := runs[len(runs)-1]
		q.After, q.AfterID = last.Scheduled, last.ID
		r.engine.openSerial(func() { // at once: those who start them are not to look at them in vain
			r.engine.holdSome(runs, nil)
			r.leases.note(q.Shards, func(h *hold) { h.loadedTo = keyOfRun(&last) })
		})
		r.readAhead(ctx, runs)
		page, q.Limit = runs, scanRuns
	}
}

// readAhead reads the jobs of a page of runs, as far as they are not known: those who start the runs
// would have to wait for them, batch by batch. The first batch is being started meanwhile. What is
// not read is read when it is needed.
func (r *reloader) readAhead(ctx context.Context, page []Run) {
	unknown := r.engine.jobs.unread(page)
	if len(unknown) <= storeBatch {
		return
	}
	if jobs, err := r.readJobs(ctx, unknown[storeBatch:]); err == nil {
		r.engine.jobs.remember(jobs)
	}
}

// readOn reads an app's planned runs from behind its horizon, as far as there is
// room for them.
func (r *reloader) readOn(ctx context.Context, owned []store.Shard, app string, from ringEntry, before time.Time) error {
	q := store.PlannedQuery{Shards: owned, App: app, Before: before, After: time.UnixMilli(from.at).UTC(), AfterID: from.runID, Limit: scanRuns}
	if from == (ringEntry{}) {
		q.After = time.Time{}
	}
	var page []Run
	for {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return r.store.Planned(ctx, page[:0], q) })
		if err != nil {
			return err
		}
		more := r.engine.held.holdNext(app, from, runs, len(runs) < q.Limit)
		if !more {
			return nil
		}
		page = runs
		last := runs[len(runs)-1]
		q.After, q.AfterID, from = last.Scheduled, last.ID, keyOfRun(&last)
	}
}
