package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Handlers that jobs name and nobody has. Input: definitions for apps that this process serves. Output: an
// error that has the names there are. A job that is defined after Start is refused there and then
// (checkHandler, catalog.go; of a list findMisspelt, ensurelist.go). What is defined before is looked at by
// Start (CheckKept), since its handlers may be registered behind it.

// keptJobs are the jobs that were defined one by one before Start. Lists has the others.
type keptJobs struct {
	mu      sync.Mutex
	checked bool                // guarded by mu: Start has looked
	jobs    map[int64]store.Job // guarded by mu: what an error says of them
	begun   int                 // guarded by mu: how many there were when Start looked
}

// mostKept bounds what a process keeps that defines jobs and is never started.
const mostKept = 100_000

// keep notes a job that was defined before Start.
func (k *keptJobs) keep(job store.Job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.checked || len(k.jobs) >= mostKept {
		return
	}
	if k.jobs == nil {
		k.jobs = map[int64]store.Job{}
	}
	k.jobs[job.ID] = store.Job{App: job.App, Key: job.Key, Name: job.Name, Handler: job.Handler, GlueType: job.GlueType}
}

// drop forgets a job that was removed.
func (k *keptJobs) drop(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.jobs, id)
}

// begin says that definitions are looked at from here on as they come, and returns those that were
// kept until now.
func (k *keptJobs) begin() []store.Job {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checked, k.begun = true, len(k.jobs)
	return slices.Collect(maps.Values(k.jobs))
}

// end says how the look has come out: after an error Start may be called again.
func (k *keptJobs) end(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.checked = err == nil; k.checked {
		k.jobs = nil
	}
}

// Defined is how many jobs were defined before Start, one by one and in lists.
func (d *Catalog) Defined() int {
	d.kept.mu.Lock()
	defer d.kept.mu.Unlock()
	return d.kept.begun + d.lists.Jobs()
}

func (k *keptJobs) isChecked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.checked
}

// CheckKept looks at all that was defined before Start, and returns one error for all handlers
// that nobody has. A store that does not answer is no error.
func (d *Catalog) CheckKept(ctx context.Context) (err error) {
	byApp := map[string][]store.Job{}
	defer func() { d.kept.end(err) }()
	for _, job := range d.kept.begin() {
		byApp[job.App] = append(byApp[job.App], job)
	}
	for _, app := range d.lists.names() {
		byApp[app] = append(byApp[app], d.lists.of(app).jobs...)
	}
	var faults []error
	for _, app := range slices.Sorted(maps.Keys(byApp)) {
		jobs := byApp[app]
		names, err := d.misspeltHandlers(ctx, app, jobs, d.generationOf(app))
		if err != nil {
			d.Logger.Warn("xxljob: could not ask the store for the handlers of other nodes", "app", app, "error", err)
		}
		for _, handler := range slices.Sorted(maps.Keys(names)) {
			faults = append(faults, names[handler].of(jobs))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return errs.In("start", errors.Join(faults...))
}

// checksNow reports whether definitions are looked at as they come.
func (d *Catalog) checksNow() bool { return d.kept.isChecked() && !d.Life.Draining.Load() }

// generationOf is that of the app's list here; -1 where there is none.
func (d *Catalog) generationOf(app string) int64 {
	if w := d.lists.of(app); w != nil {
		return w.Generation
	}
	return -1
}

// misspeltHandler is a handler that nobody has in an app that this process serves, and those there are.
type misspeltHandler struct {
	app, handler string
	has          []string
}

func (m *misspeltHandler) err() error {
	const some = 20
	names := make([]string, min(len(m.has), some))
	for i := range names {
		names[i] = fmt.Sprintf("%q", m.has[i])
	}
	list := strings.Join(names, ", ")
	if more := len(m.has) - some; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%w: App %q, Handler %q: no handler of the app has this name; there are %s", errs.ErrUnknownHandler, m.app, errs.Shorten(m.handler, 255), list)
}

// of is the error with the jobs that name the handler.
func (m *misspeltHandler) of(jobs []store.Job) error {
	named := slices.DeleteFunc(slices.Clone(jobs), func(j store.Job) bool { return j.Handler != m.handler || !registry.BookKeyOf(&j).IsBean() })
	slices.SortFunc(named, func(a, b store.Job) int { return strings.Compare(a.Key, b.Key) })
	what := store.Called(named[0])
	if more := len(named) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return errs.In(what, m.err())
}

// misspeltHandlers are the handlers of jobs of an app, by name, that nobody has although this process serves
// the app. It is empty where that is not certain: executors elsewhere do not say which handlers
// they have, and beside another release of the app, which its lists show by their generations, a
// handler may be about to come or to go. What is unknown then is a warning as for any other app.
// The store is asked only where this process lacks one.
func (d *Catalog) misspeltHandlers(ctx context.Context, app string, jobs []store.Job, generation int64) (map[string]*misspeltHandler, error) {
	here := d.book.Attached.Get(app)
	if here == nil {
		return nil, nil
	}
	has := here.Handlers()
	if len(has) == 0 {
		return nil, nil // a process that only schedules
	}
	lacks := slices.DeleteFunc(slices.Clone(jobs), func(j store.Job) bool { return !registry.BookKeyOf(&j).IsBean() || slices.Contains(has, j.Handler) })
	if len(lacks) == 0 || len(d.Cfg.HTTP.Tokens[app]) > 0 { // with a token of its own the app may have executors elsewhere
		return nil, nil
	}
	if elsewhere, err := d.book.HasRemote(ctx, app); err != nil || elsewhere {
		return nil, err
	}
	others, beside, err := d.besides(ctx, app, generation)
	if err != nil || beside {
		return nil, err
	}
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(has, others))))
	names := map[string]*misspeltHandler{}
	for i := range lacks {
		j := &lacks[i]
		if !slices.Contains(all, j.Handler) {
			names[j.Handler] = &misspeltHandler{app, j.Handler, all}
		}
	}
	return names, nil
}

// besides are the handlers that the live nodes of the app have, and whether one of them may be of
// another release.
func (d *Catalog) besides(ctx context.Context, app string, generation int64) (handlers []string, release bool, err error) {
	nodes, known, err := d.nodes(ctx)
	if err != nil || !known {
		return nil, true, err
	}
	for i := range nodes {
		if n := &nodes[i]; !n.Left && !n.Resting {
			handlers = append(handlers, handlersOf(n, app)...)
		}
	}
	lists, err := loop.Call(ctx, func(ctx context.Context) (store.ListView, error) {
		return d.Store.Lists(ctx, app, d.Leases.Incarnation)
	})
	release = slices.ContainsFunc(lists.Nodes, func(n store.NodeList) bool {
		return n.Incarnation != d.Leases.Incarnation && n.Generation != generation
	})
	return handlers, release, err
}

// nodes are the other nodes: as the store says now, since one may have joined a moment ago, or, where it
// cannot be asked, as this node has seen them at its last beat. They are not known before its first one.
func (d *Catalog) nodes(ctx context.Context) (nodes []store.Node, known bool, err error) {
	if reader, ok := core.Given(d.Store).(store.ClusterReader); ok {
		view, err := loop.Call(ctx, reader.View)
		return view.Nodes, err == nil, err
	}
	if !d.Leases.HasLooked() {
		return nil, false, nil
	}
	for _, o := range d.Leases.Others() {
		nodes = append(nodes, o.Node)
	}
	return nodes, true, nil
}

func handlersOf(n *store.Node, app string) []string {
	for _, a := range n.Attached {
		if a.App == app {
			return a.Handlers
		}
	}
	return nil
}
