package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The lists of EnsureJobs over time. A started node keeps its lists with its row in the
// store. For each of them it looks now and then at what the lists of all nodes say of the
// app, and after Config.Cluster.PruneAfter of looks that agree it prunes what no list names any
// more, or applies its list again where nobody lives who has the one that applies.

// pruner is what the list loop remembers.
type pruner struct {
	s    *Catalog
	apps map[string]*appDuty
}

// appDuty is what was seen of one app.
type appDuty struct {
	put    *appList            // the list that is with the node's row
	row    int64               // of that row
	looked time.Time           // monotonic: the last look
	extra  map[int64]time.Time // jobs that the list may prune, since when
	alone  time.Time           // since when nobody lives who has the list that applies; zero: somebody does
	differ map[string]bool     // nodes with another list of the same generation
}

// ListDuty looks after the lists. Without a list it sleeps.
func (d *Catalog) ListDuty() loop.Duty {
	p := &pruner{s: d, apps: map[string]*appDuty{}}
	return loop.Duty{What: "looking after lists of jobs", Wakes: []<-chan struct{}{d.Life.Wakes.List}, Aside: true, Once: p.look}
}

// every is how often the lists are looked at.
func (d *pruner) every() time.Duration {
	return min(max(d.s.Cfg.Cluster.PruneAfter/10, 100*time.Millisecond), time.Minute)
}

// look looks after the lists of all apps, and returns how long to wait for the next time.
func (d *pruner) look(ctx context.Context) (time.Duration, error) {
	apps := d.s.lists.names()
	if len(apps) == 0 || d.s.lists.rows.Load() == 0 || d.s.Life.Draining.Load() {
		return loop.Forever, nil
	}
	var errs []error
	for _, app := range apps {
		if d.apps[app] == nil {
			d.apps[app] = &appDuty{}
		}
		if err := d.lookAt(ctx, app, d.apps[app]); err != nil {
			errs = append(errs, err)
		}
	}
	return d.every(), errors.Join(errs...)
}

// lookAt has its turn among the calls of EnsureJobs, so that it puts no former list.
func (d *pruner) lookAt(ctx context.Context, app string, a *appDuty) error {
	s := d.s
	release, err := s.lists.take(ctx)
	if err != nil {
		return err
	}
	var changed []store.Job
	defer func() { warnOfReadings(s.Logger, s.Clock.Now(), changed...) }() // when the turn is over
	defer release()
	w := s.lists.of(app)
	if row := s.lists.rows.Load(); a.put != w || a.row != row {
		if _, err := loop.Call(ctx, func(ctx context.Context) (store.ListHead, error) {
			return s.putList(ctx, w, store.ApplyNever, store.ListHead{})
		}); err != nil {
			return err
		}
		a.forget()
		a.put, a.row = w, row
	}
	view, err := loop.Call(ctx, func(ctx context.Context) (store.ListView, error) {
		return s.Store.Lists(ctx, app, s.Leases.Incarnation)
	})
	if err != nil {
		return err
	}
	now := time.Now()
	// What was seen before a gap says nothing about what was in it.
	if now.Sub(a.looked) > 2*d.every()+loop.CallTimeout {
		a.forget()
	}
	a.looked = now
	if !slices.ContainsFunc(view.Nodes, func(n store.NodeList) bool { return n.Incarnation == s.Leases.Incarnation }) {
		a.put = nil // the node has been buried, or has left: put it with the next look
	}
	d.warnOfOthers(w, a, &view)
	if !s.Leases.Trusted(now) || s.Leases.IsSuperseded() {
		a.forget()
		return nil
	}
	err = errors.Join(d.bringBack(ctx, w, &view), d.prune(ctx, w, a, &view, now))
	changed, again := d.applyAgain(ctx, w, a, &view, now)
	return errors.Join(err, again)
}

// forget begins the count of PruneAfter anew.
func (a *appDuty) forget() { a.extra, a.alone = nil, time.Time{} }

// warnOfOthers says once of each node that its list differs though it should not.
func (d *pruner) warnOfOthers(w *appList, a *appDuty, view *store.ListView) {
	differ := map[string]bool{}
	for _, n := range view.Nodes {
		if n.Incarnation == d.s.Leases.Incarnation || n.Generation != w.Generation || n.Digest == w.Digest {
			continue
		}
		differ[n.Incarnation+n.Digest+w.Digest] = true
		if !a.differ[n.Incarnation+n.Digest+w.Digest] {
			d.s.Logger.Warn("xxljob: two nodes have different job lists of the same generation; the later list's definitions apply, and jobs named by either list stay; give each release its own Generation",
				"app", w.App, "generation", w.Generation, "other", n.Node, "definitions", view.Head.Node)
		}
	}
	a.differ = differ
}

// bringBack starts jobs again that were pruned while the list was on its way. Another
// list of its generation may be the head: what either names stays.
func (d *pruner) bringBack(ctx context.Context, w *appList, view *store.ListView) error {
	if view.Head.Generation != w.Generation {
		return nil
	}
	guard := &store.ListGuard{ListID: store.ListID{App: w.App, Generation: view.Head.Generation, Digest: view.Head.Digest}}
	for _, id := range view.Pruned {
		_, err := d.edit(ctx, id, store.Edit{Verb: "ensure", Guard: guard, Change: func(j *store.Job) (bool, error) { return unprune(j), nil }})
		if err != nil && !errs.IsNotFound(err) && !errors.Is(err, errs.ErrSuperseded) {
			return err
		}
	}
	return nil
}

func (d *pruner) edit(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	return loop.Call(ctx, func(ctx context.Context) (store.Job, error) { return d.s.edit(ctx, id, e) })
}

// prune stops the jobs that no list has named in all looks of PruneAfter. The store
// looks once more, in the transaction. While another list of the generation applies, it
// is for that one to prune: a process that has just ensured it may not be a node yet.
func (d *pruner) prune(ctx context.Context, w *appList, a *appDuty, view *store.ListView, now time.Time) error {
	extra := make(map[int64]time.Time, len(view.Surplus))
	var ripe []int64
	for _, id := range view.Surplus {
		since, seen := a.extra[id]
		if !seen {
			since = now
		}
		extra[id] = since
		if now.Sub(since) >= d.s.Cfg.Cluster.PruneAfter && (view.Head.Generation != w.Generation || w.applies(view.Head)) {
			ripe = append(ripe, id)
		}
	}
	a.extra = extra
	guard := &store.ListGuard{ListID: w.ID(), SurplusOf: d.s.Leases.Incarnation}
	for _, id := range ripe {
		job, err := d.edit(store.WithActor(ctx, store.Scheduler), id, store.Edit{Verb: "prune", Guard: guard, Change: stopFor(store.StopPruned)})
		switch {
		case err == nil:
			d.s.Logger.Info("xxljob: stopped a job that no list names any more", "app", w.App, "job", job.ID, "key", job.Key)
		case !errs.IsNotFound(err) && !errors.Is(err, errs.ErrSuperseded):
			return err
		}
		delete(a.extra, id)
	}
	return nil
}

// applyAgain applies the list when it is another one that applies, and nobody has lived
// throughout PruneAfter who has that, or one of a greater generation; or when it does
// apply, or would if the store had had it, and an error came before all of its jobs were
// done. It returns the jobs that it has changed.
func (d *pruner) applyAgain(ctx context.Context, w *appList, a *appDuty, view *store.ListView, now time.Time) ([]store.Job, error) {
	head := view.Head
	lives := slices.ContainsFunc(view.Nodes, func(n store.NodeList) bool {
		return n.Incarnation != d.s.Leases.Incarnation && (n.Generation > w.Generation || n.Generation == head.Generation && n.Digest == head.Digest)
	})
	how, finish := store.ApplyInstead, false
	if d.s.lists.unfinished[w.App] {
		finish = w.applies(head)
		if !d.s.lists.put[w.App] && (head == store.ListHead{} || w.Generation > head.Generation) {
			how, finish = store.ApplyNewer, true
		}
	}
	switch {
	case finish:
	case lives || w.applies(head):
		a.alone = time.Time{}
		return nil, nil
	case a.alone.IsZero():
		a.alone = now
		return nil, nil
	case now.Sub(a.alone) < d.s.Cfg.Cluster.PruneAfter:
		return nil, nil
	}
	all, applies, err := d.s.applyList(ctx, w, how, head, true)
	if err != nil {
		return saved(all), err
	}
	a.alone = time.Time{}
	switch {
	case applies && finish:
		d.s.Logger.Info("xxljob: finished applying the job list; an error had interrupted it", "app", w.App, "generation", w.Generation)
	case applies:
		d.s.Logger.Info("xxljob: the job list of this node applies now; no live node has the previous one", "app", w.App,
			"generation", w.Generation, "was", head.Generation, "by", head.Node)
	}
	return saved(all), nil
}
