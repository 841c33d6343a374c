package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/store"
)

// Declarative jobs: a program says at its start which jobs it wants, and so do
// its replicas. One job at a time; lists are in ensurelist.go.

// Outcome is what EnsureJob did.
type Outcome string

// The outcomes of EnsureJob and EnsureJobs.
const (
	Created   Outcome = "created"
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	// Superseded: another list applies, of a greater generation or a later one of the
	// same, and this one has not changed the job.
	Superseded Outcome = "superseded"
)

// Ensured is a job after EnsureJob, and what was done to it. Of a superseded job it is
// the one that is stored, and where there is none the one that was given.
type Ensured struct {
	Job     store.Job
	Outcome Outcome
}

// digestOf stands for a definition: what EnsureJob compares. A job's status is
// not part of it.
func digestOf(j store.Job) (string, error) {
	j.ID, j.Version, j.Ensured, j.Shard, j.WaitRun, j.Runs = 0, 0, "", 0, 0, 0
	j.Stopped, j.StopReason = false, ""
	var none store.Job
	j.Next, j.Last, j.Added, j.Updated, j.GlueUpdated = none.Next, none.Last, none.Added, none.Updated, none.GlueUpdated
	text, err := json.Marshal(j)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), err
}

func (d *Catalog) EnsureJob(ctx context.Context, job store.Job) (Ensured, error) {
	if ctx == nil {
		return Ensured{}, errs.ErrNoContext
	}
	job, err := d.complete(job)
	if err != nil {
		return Ensured{}, err
	}
	if d.Life.Stopped() {
		return Ensured{}, errs.In(fmt.Sprintf("ensure job %q", job.Key), errs.ErrStopped)
	}
	e, err := d.ensure(ctx, job)
	if err == nil {
		d.kept.keep(e.Job)
	}
	return e, store.InJob(job, err)
}

// ensure makes a complete job exist.
func (d *Catalog) ensure(ctx context.Context, job store.Job) (Ensured, error) {
	digest, err := digestOf(job)
	if err != nil {
		return Ensured{}, err
	}
	job.Ensured = digest
	for {
		has, err := d.Store.JobByKey(ctx, job.App, job.Key)
		if errs.IsNotFound(err) {
			added, err := d.create(ctx, job)
			if errors.Is(err, errs.ErrDuplicateKey) {
				continue // a replica was quicker
			}
			return Ensured{added, Created}, err
		}
		if err != nil {
			return Ensured{}, errs.In(fmt.Sprintf("%s: ensure: App %q, Key %q", store.Called(job), job.App, job.Key), err)
		}
		e, err := d.ensureStored(ctx, has, job)
		if err == nil {
			e.Job, err = d.unname(ctx, job)
		}
		switch {
		case errs.IsNotFound(err) || err == nil && isPruned(&e.Job):
			continue // removed, or pruned, meanwhile
		case err != nil:
			return Ensured{}, err
		}
		return e, nil
	}
}

// unname takes a job that is ensured by itself out of what lists have named. It comes last,
// so that a definition which is refused has changed nothing.
func (d *Catalog) unname(ctx context.Context, job store.Job) (store.Job, error) {
	if err := d.SetShards(ctx); err != nil {
		return store.Job{}, err
	}
	has, err := d.Store.UnnameJob(ctx, job.App, job.Key)
	return has, errs.In(fmt.Sprintf("%s: ensure: App %q, Key %q", store.Called(job), job.App, job.Key), err)
}

// ensureStored gives a job that is there its definition.
func (d *Catalog) ensureStored(ctx context.Context, has, job store.Job) (Ensured, error) {
	if has.Ensured == job.Ensured && !isPruned(&has) {
		return Ensured{has, Unchanged}, nil
	}
	if err := errors.Join(d.checkLinks(ctx, job, false), d.checkHandler(ctx, job, true)); err != nil {
		return Ensured{}, err
	}
	e, err := d.redefine(ctx, has, job, nil, nil)
	if err == nil && e.Outcome == Changed {
		d.warnOfSaved(e.Job)
	}
	return e, err
}

func (d *Catalog) create(ctx context.Context, job store.Job) (store.Job, error) {
	if err := d.fires(ctx, job); err != nil {
		return store.Job{}, err
	}
	if err := errors.Join(d.checkLinks(ctx, job, false), d.checkHandler(ctx, job, true)); err != nil {
		return store.Job{}, err
	}
	if err := d.SetShards(ctx); err != nil {
		return store.Job{}, err
	}
	if err := d.Store.EnsureGroup(ctx, job.App); err != nil {
		return store.Job{}, errs.In(fmt.Sprintf("ensure group %q", job.App), err)
	}
	return d.add(ctx, job)
}

// redefine writes the definition where it is not the one last ensured, and starts a job
// again that was stopped for being in no list. With a guard it is a list's, which may have
// something to say about the status too.
func (d *Catalog) redefine(ctx context.Context, has, job store.Job, restart func(*store.Job) bool, guard *store.ListGuard) (Ensured, error) {
	if has.Schedule != job.Schedule {
		if err := d.fires(ctx, job); err != nil {
			return Ensured{}, err
		}
	}
	if _, err := d.Now(ctx); err != nil { // Change goes by the clock, which has to be known
		return Ensured{}, err
	}
	outcome := Unchanged // until Change has seen it
	var next plan.NextInstants
	changed, err := d.edit(ctx, has.ID, store.Edit{Verb: "ensure", Guard: guard, Change: func(j *store.Job) (replan bool, err error) {
		outcome, next = Unchanged, plan.Replanned
		if j.Ensured != job.Ensured {
			outcome = Changed
			if defined, by := plan.Define(j, keepNotBefore(j, job), d.Clock.Now()); defined {
				replan, next = true, by
			}
			j.Ensured = job.Ensured
		}
		back := unprune(j)
		if restart != nil && restart(j) || back {
			replan, outcome = true, Changed
		}
		return replan, nil
	}, Next: func(job store.Job, started, now time.Time) (time.Time, error) { return next(job, started, now) }})
	return Ensured{changed, outcome}, err
}

// keepNotBefore is a definition with the NotBefore that somebody has given the job, where it says nothing
// of that: whoever has paused a job for a while does not want a deploy to start it. What the last
// definition itself has set goes with it.
func keepNotBefore(has *store.Job, job store.Job) store.Job {
	if !job.NotBefore.IsZero() || has.NotBefore.IsZero() || !job.NotAfter.IsZero() && job.NotAfter.Before(has.NotBefore) {
		return job
	}
	if as, err := digestOf(*has); err == nil && as == has.Ensured {
		return job
	}
	job.NotBefore = has.NotBefore
	return job
}

// restatus stops a job, or starts one that somebody has stopped, and reports whether it did.
func restatus(j *store.Job, stopped bool) bool {
	switch {
	case stopped == j.Stopped || j.Stopped && j.StopReason != "":
		return false
	case stopped:
		j.Stopped, j.StopReason = true, ""
	default:
		j.Stopped = false
	}
	return true
}

// changes reports whether the function would change the job.
func changes(f func(*store.Job) bool, job store.Job) bool { return f != nil && f(&job) }

// isPruned reports whether it is lists that keep the job from running.
func isPruned(j *store.Job) bool {
	return j.Stopped && j.StopReason == store.StopPruned && !j.Schedule.IsManual()
}

// unprune starts a job that was pruned, and reports whether it was.
func unprune(j *store.Job) bool {
	if !isPruned(j) {
		return false
	}
	j.Stopped, j.StopReason = false, ""
	return true
}

// eachStored calls f with each job of the app that is stored with one of the keys.
func (d *Catalog) eachStored(ctx context.Context, app string, keys []string, f func(*store.Job)) error {
	for some := range slices.Chunk(keys, ensureBatch) {
		jobs, err := d.Store.Jobs(ctx, store.JobFilter{App: app, Keys: some, Limit: len(some)})
		if err != nil {
			return err
		}
		for i := range jobs {
			f(&jobs[i])
		}
	}
	return nil
}

// ensuring is an error of a list.
func ensuring(app string, err error) error {
	return errs.In(fmt.Sprintf("ensure jobs of app %q", app), err)
}

// ensureBatch is how many jobs are sent to the store in one call, and ensureBytes how
// much text of theirs, but for a single job.
const (
	ensureBatch = 1000
	ensureBytes = 4 << 20
)
