package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Concurrent jobs whose runs would not be side by side: third-party executors queue what comes while a job is
// busy. Input: definitions, of jobs and of apps. Output: an error where the app is a manual group, a warning
// where some of its executors queue.

// errManualGroup refuses a concurrent job of a manual group, of whose executors nothing is
// known.
var errManualGroup = errors.New("the app is a manual group: nothing says that its executors run the runs of a job side by side, and those of third parties do not")

// checkConcurrent refuses a concurrent job of a manual group, and warns where executors of
// its app would run it one after the other.
func (d *Catalog) checkConcurrent(ctx context.Context, job *store.Job) error {
	if !isConcurrent(*job) {
		return nil
	}
	manual, err := d.isManual(ctx, job.App)
	if err != nil {
		return err
	}
	if manual {
		return manualFault(job)
	}
	d.warnOfQueues(ctx, job.App, job.Name)
	return nil
}

func manualFault(job *store.Job) error {
	return errs.In(fmt.Sprintf("%s: Block %q", store.Called(*job), job.Block), errManualGroup)
}

func (d *Catalog) isManual(ctx context.Context, app string) (bool, error) {
	g, err := d.Store.Group(ctx, app)
	if err != nil && !errs.IsNotFound(err) {
		return false, errs.In(fmt.Sprintf("group %q", app), err)
	}
	return g.Manual, nil
}

// findManual adds to the faults of a list that its app is a manual group.
func (d *Catalog) findManual(ctx context.Context, app string, jobs []store.Job, faulty []error) error {
	if !slices.ContainsFunc(jobs, isConcurrent) {
		return nil
	}
	manual, err := d.isManual(ctx, app)
	if err != nil || !manual {
		return err
	}
	for i := range jobs {
		if isConcurrent(jobs[i]) {
			faulty[i] = errors.Join(faulty[i], manualFault(&jobs[i]))
		}
	}
	return nil
}

func isConcurrent(job store.Job) bool { return blockrule.Of(job.Block).SideBySide }

// warnOfQueues warns of registered executors that do not run the runs of a job side by side.
// What a registry of the user's knows of its addresses is not asked for.
func (d *Catalog) warnOfQueues(ctx context.Context, app, job string) {
	if d.Cfg.AsksRegistry(app) {
		return
	}
	regs, err := d.Store.Addresses(ctx, app, d.Cfg.Cluster.Dead)
	if err != nil {
		return // the job is saved all the same
	}
	n, example := 0, ""
	for _, r := range regs {
		if !slices.Contains(r.Capabilities, wire.CapConcurrent) {
			n++
			example = r.Address
		}
	}
	if n > 0 {
		d.Logger.Warn("xxljob: some executors of the app run the runs of a CONCURRENT job one after the other", "job", job, "app", app, "executors", n, "one", example)
	}
}

// checkGroup refuses to make an app a manual group that has concurrent jobs.
func (d *Catalog) checkGroup(ctx context.Context, g *store.Group) error {
	const page = 1000
	ctx = store.WithShortTexts(ctx, 0)
	for after := int64(0); g.Manual; {
		jobs, err := d.Store.Jobs(ctx, store.JobFilter{App: g.App, After: after, Limit: page})
		if err != nil {
			return errs.In(fmt.Sprintf("group %q", g.App), err)
		}
		if i := slices.IndexFunc(jobs, isConcurrent); i >= 0 {
			return errs.In(fmt.Sprintf("group %q: Manual", g.App), fmt.Errorf("%s has Block %s, which a manual group cannot have", store.Called(jobs[i]), block.Concurrent))
		}
		if len(jobs) < page {
			return nil
		}
		after = jobs[len(jobs)-1].ID
	}
	return nil
}
