package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/grants"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// The verbs that change jobs and groups.

// Catalog changes definitions: of jobs, groups and lists, and plans what is triggered.
type Catalog struct {
	*core.Core
	jobs       jobMemory
	book       *registry.Addresses
	strategies *router.Strategies
	users      *registry.UserCalls // of Config.Routers, which forget jobs
	lists      *Lists
	bus        *events.Bus
	kept       keptJobs
}

// New makes it. jobs is what this node has in memory of jobs, lists what programs have said that there
// is; strategies and users tell which routes there are, and forget the jobs that are removed.
func New(s *core.Core, jobs jobMemory, book *registry.Addresses, strategies *router.Strategies, users *registry.UserCalls, lists *Lists, bus *events.Bus) *Catalog {
	return &Catalog{Core: s, jobs: jobs, book: book, strategies: strategies, users: users, lists: lists, bus: bus}
}

// complete fills in and checks a definition.
func (d *Catalog) complete(job store.Job) (store.Job, error) {
	routes := d.strategies.Names
	if d.Leases.KnownElsewhere(job.Route, job.App) {
		routes = append(slices.Clone(routes), job.Route) // another service's
	}
	return store.Complete(job, store.Rules{App: d.Cfg.App, Zone: d.Cfg.Location, Routes: routes, SubSecond: d.Cfg.Limits.AllowSubSecond, RunRetention: d.Cfg.RunRetention})
}

// fires refuses a schedule without a future instant. It is for definitions that
// are about to be saved: one that was saved before may have had its last. What
// is wrong with the schedule otherwise is for complete to say.
//
// It goes by the estimate of the store's clock, a lower bound: what it refuses will
// never fire, and what it lets pass is looked at again by the clock itself, in the
// transaction that saves it.
func (d *Catalog) fires(ctx context.Context, job store.Job) error {
	if job.Schedule.IsManual() {
		return nil
	}
	now, err := d.Now(ctx)
	if err != nil {
		return err
	}
	return plan.FiresAfter(job, now)
}

func (d *Catalog) AddJob(ctx context.Context, g grants.Grants, job store.Job) (store.Job, error) {
	if ctx == nil {
		return store.Job{}, errs.ErrNoContext
	}
	if err := job.ValidateNew(); err != nil {
		_, more := d.complete(job)
		return store.Job{}, errors.Join(err, more)
	}
	return d.addJob(ctx, g, job, true)
}

// AddUnkeyed adds a job that came over the wire: nothing there keeps its name from
// being another job's too.
func (d *Catalog) AddUnkeyed(ctx context.Context, g grants.Grants, job store.Job) (store.Job, error) {
	return d.addJob(ctx, g, job, false)
}

func (d *Catalog) addJob(ctx context.Context, g grants.Grants, given store.Job, keyed bool) (added store.Job, err error) {
	defer func() { err = store.InJob(given, err) }()
	job, err := d.complete(given)
	if !keyed {
		job.Key = ""
	}
	if err = errors.Join(err, d.fires(ctx, job)); err != nil {
		return store.Job{}, errors.Join(err, unscripted(g, &given))
	}
	if err := errors.Join(d.mayDefine(ctx, g, &store.Job{}, &job), d.checkLinks(ctx, job, false), d.checkHandler(ctx, job, true)); err != nil {
		return store.Job{}, err
	}
	if added, err = d.add(ctx, job); err != nil {
		return store.Job{}, err
	}
	err = d.lookAgain(ctx, g, &store.Job{}, &added, func(ctx context.Context) error { return d.RemoveJob(ctx, added.ID) })
	if err != nil {
		return store.Job{}, err
	}
	return added, nil
}

// add stores a complete and admissible job.
func (d *Catalog) add(ctx context.Context, job store.Job) (store.Job, error) {
	if err := d.SetShards(ctx); err != nil {
		return store.Job{}, err
	}
	job.StopReason = ""
	added, err := d.Store.AddJob(ctx, job, plan.FirstInstant)
	if err != nil {
		return store.Job{}, errs.In(fmt.Sprintf("%s: add: App %q, Key %q", store.Called(job), job.App, job.Key), err)
	}
	core.LogChange(ctx, d.Logger, "add", store.ObjectJob, added.ID, added.App, "name", added.Name)
	d.Life.Wakes.Scan.Poke()
	d.Life.Wakes.Late.PokeIf(added.LateAfter > 0)
	d.warnOfSaved(added)
	d.kept.keep(added)
	return added, nil
}

// warnOfSaved says of a job that was saved what its owner had better know.
func (d *Catalog) warnOfSaved(job store.Job) {
	d.warnOfStored(job)
	warnOfReadings(d.Logger, d.Clock.Now(), job)
}

// warnOfStored says of a job that was saved that nobody will send mails about it. Who relies
// on them would find out when one is needed.
func (d *Catalog) warnOfStored(job store.Job) {
	if d.untold(&job) {
		d.Logger.Warn("xxljob: the job has an AlarmEmail, and Config.Alarms has no rules: no mail will be sent", "job", job.Name, "app", job.App)
	}
}

// untold reports whether a job names addresses that nobody here writes to.
func (d *Catalog) untold(job *store.Job) bool { return job.AlarmEmail != "" && len(d.Cfg.Alarms) == 0 }

// checkHandler looks whether some executor offers the app and handler. It may come later, so by
// default that is a warning, unless the handler is named anew and misspelt (misspelt.go).
func (d *Catalog) checkHandler(ctx context.Context, job store.Job, named bool) error {
	if err := d.checkConcurrent(ctx, &job); err != nil {
		return err
	}
	_, why, err := d.book.Lookup(ctx, &job, nil)
	if err == nil && why != "" && !d.Cfg.StrictHandlers && named && d.checksNow() {
		names, err := d.misspeltHandlers(ctx, job.App, []store.Job{job}, d.generationOf(job.App))
		if m := names[job.Handler]; err == nil && m != nil {
			return errs.In(store.Called(job), m.err())
		}
	}
	switch {
	case err != nil && d.Cfg.StrictHandlers:
		return err
	case err != nil || why == "":
		return nil
	case d.Cfg.StrictHandlers:
		return errs.In(store.Called(job), fmt.Errorf("%w: App %q, Handler %q: %s", errs.ErrUnknownHandler, job.App, job.Handler, why))
	}
	d.Logger.Warn("xxljob: no executor is registered yet for the job", "job", job.Name, "app", job.App, "handler", job.Handler)
	return nil
}

// edit is EditJob with the rules of this module for what is overdue and, where the
// edit has none of its own, for the next instant.
func (d *Catalog) edit(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	if err := d.SetShards(ctx); err != nil {
		return store.Job{}, err
	}
	e.Missed = plan.Overdue
	if e.Next == nil {
		e.Next = plan.Replanned
	}
	was, version := true, int64(0)
	change := e.Change
	e.Change = func(j *store.Job) (bool, error) {
		was, version = j.Stopped, j.Version
		return change(j)
	}
	var record store.Run
	e.Recorded = &record
	job, err := d.Store.EditJob(ctx, id, e)
	if err == nil && record.ID != 0 {
		d.bus.Line(&record, &job)
	}
	if err == nil && job.Stopped && !was {
		d.bus.Stopped(job)
	}
	if err != nil {
		return store.Job{}, errs.Missing(e.Verb, fmt.Sprintf("job %d", id), err)
	}
	if job.Version != version {
		core.LogChange(ctx, d.Logger, e.Verb, store.ObjectJob, id, job.App, "name", job.Name, "version", job.Version)
	}
	d.jobs.Remember(map[int64]*store.Job{id: &job})
	d.Life.Wakes.Scan.Poke()
	d.Life.Wakes.Late.PokeIf(job.LateAfter > 0)
	return job, nil
}

func (d *Catalog) UpdateJob(ctx context.Context, g grants.Grants, job store.Job) (store.Job, error) {
	if ctx == nil {
		return store.Job{}, errs.ErrNoContext
	}
	version := job.Version
	old, err := d.Store.Job(ctx, job.ID)
	if err != nil {
		return store.Job{}, errs.Missing("update", fmt.Sprintf("job %d", job.ID), err)
	}
	errs.SetDefault(&job.App, old.App)
	errs.SetDefault(&job.Key, old.Key)
	if g.Keeps() {
		job.Param = old.Param
	}
	complete, err := d.complete(job)
	if old.Schedule != complete.Schedule {
		err = errors.Join(err, store.InJob(complete, d.fires(ctx, complete)))
	}
	if err != nil {
		return store.Job{}, err
	}
	complete.Key = job.Key // a job that came by import may have none
	if job.App != old.App {
		return store.Job{}, fmt.Errorf("xxljob: update job %d: App %q: the job belongs to app %q", job.ID, job.App, old.App)
	}
	named := complete.Handler != old.Handler || complete.GlueType != old.GlueType
	if !g.All() && version == 0 {
		version = old.Version // the one that was looked at
	}
	if err := errors.Join(d.mayDefine(ctx, g, &old, &complete), d.checkLinks(ctx, complete, complete.Key != old.Key), d.checkHandler(ctx, complete, named)); err != nil {
		return store.Job{}, err
	}
	if _, err := d.Now(ctx); err != nil { // Change goes by the clock, which has to be known
		return store.Job{}, err
	}
	var next plan.NextInstants // as Change has found
	updated, err := d.edit(ctx, job.ID, store.Edit{Version: version, Verb: "update", Change: func(j *store.Job) (replan bool, err error) {
		replan, next = plan.Define(j, complete, d.Clock.Now())
		return replan, nil
	}, Next: func(job store.Job, started, now time.Time) (time.Time, error) { return next(job, started, now) }})
	if err == nil {
		err = d.lookAgain(ctx, g, &old, &updated, func(ctx context.Context) error { return d.unlink(ctx, old) })
	}
	if err != nil {
		return store.Job{}, err
	}
	d.warnOfSaved(updated)
	if named {
		d.kept.keep(updated)
	}
	return updated, nil
}

func (d *Catalog) RemoveJob(ctx context.Context, id int64) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	if err := d.SetShards(ctx); err != nil {
		return err
	}
	if err := d.Store.RemoveJob(ctx, id); err != nil {
		return errs.Missing("remove", fmt.Sprintf("job %d", id), err)
	}
	core.LogChange(ctx, d.Logger, "remove", store.ObjectJob, id, "")
	d.forgetRoutes(ctx, id)
	d.jobs.JobGone(id)
	d.kept.drop(id)
	d.Life.Wakes.Scan.Poke()
	return nil
}

// forgetRoutes tells the routers that a job is no more. One of the user's that does not
// take it in remembers too much, and that is all.
func (d *Catalog) forgetRoutes(ctx context.Context, jobID int64) {
	for name, r := range d.strategies.ByName {
		f, remembers := r.(route.Forgetter)
		switch {
		case !remembers:
		case d.Cfg.Routers[name] == nil:
			f.Forget(jobID)
		default:
			if err := d.users.Forget(ctx, name, f, jobID); err != nil {
				d.Logger.Warn("xxljob: a router failed to forget a removed job", "router", name, "job", jobID, "error", err)
			}
		}
	}
}

func (d *Catalog) StartJob(ctx context.Context, id int64) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	_, err := d.edit(ctx, id, store.Edit{Verb: "start", Next: plan.Restarted, Change: func(j *store.Job) (bool, error) {
		switch {
		case !j.Stopped && j.Schedule.IsManual():
			return false, errs.ErrManual
		case !j.Stopped:
			return false, nil
		}
		j.Stopped, j.StopReason = false, ""
		return true, nil
	}})
	return err
}

func (d *Catalog) StopJob(ctx context.Context, id int64) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	_, err := d.edit(ctx, id, store.Edit{Verb: "stop", Change: stopFor("")})
	return err
}

// stopFor stops a job that is not stopped. A user's stop also takes the place of
// a stop that the job came to by itself, which another schedule would end.
func stopFor(reason string) func(*store.Job) (bool, error) {
	return func(j *store.Job) (bool, error) {
		if j.Stopped && (reason != "" || j.StopReason == "") {
			return false, nil
		}
		j.Stopped, j.StopReason = true, reason
		return true, nil
	}
}

// jobMemory is told of jobs that have changed: a node may have runs of them in memory.
type jobMemory interface {
	Remember(jobs map[int64]*store.Job)
	JobGone(id int64)
}

// The verbs that change groups.

func (d *Catalog) SaveGroup(ctx context.Context, g store.Group) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	errs.SetDefault(&g.Title, g.App)
	if err := g.Validate(); err != nil {
		return err
	}
	g.Addresses = slices.Clone(g.Addresses)
	if err := d.SetShards(ctx); err != nil {
		return err
	}
	if err := d.checkGroup(ctx, &g); err != nil {
		return err
	}
	defer d.book.Memory.ForgetApp(g.App)
	if err := d.Store.SaveGroup(ctx, g); err != nil {
		return err
	}
	core.LogChange(ctx, d.Logger, "save", store.ObjectApp, g.App, "")
	return nil
}

func (d *Catalog) RemoveGroup(ctx context.Context, app string) error {
	if ctx == nil {
		return errs.ErrNoContext
	}
	defer d.book.Memory.ForgetApp(app)
	if err := d.SetShards(ctx); err != nil {
		return err
	}
	if err := d.Store.RemoveGroup(ctx, app); err != nil {
		return errs.Missing("remove", fmt.Sprintf("group %q", app), err)
	}
	core.LogChange(ctx, d.Logger, "remove", store.ObjectApp, app, "")
	return nil
}
