package xxljob

// Declarative jobs: a program says at its start which jobs it wants, and so do
// its replicas.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Outcome is what EnsureJob did.
type Outcome string

// The outcomes of EnsureJob and EnsureJobs.
const (
	Created   Outcome = "created"
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	Pruned    Outcome = "pruned"
)

// Ensured is a job after EnsureJob, and what was done to it.
type Ensured struct {
	Job     Job
	Outcome Outcome
}

// EnsureOption changes what EnsureJobs does.
type EnsureOption uint8

// Prune stops the app's ensured jobs that are not in the list.
const Prune EnsureOption = 1

// digestOf stands for a definition: what EnsureJob compares. A job's status is
// not part of it.
func digestOf(j Job) (string, error) {
	j.ID, j.Version, j.Ensured, j.Shard, j.WaitRun = 0, 0, "", 0, 0
	j.Stopped, j.StopReason = false, ""
	var none Job
	j.Next, j.Last, j.Added, j.Updated, j.GlueUpdated = none.Next, none.Last, none.Added, none.Updated, none.GlueUpdated
	text, err := json.Marshal(j)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), err
}

func (s *scheduler) EnsureJob(ctx context.Context, job Job) (Ensured, error) {
	if ctx == nil {
		return Ensured{}, errNoContext
	}
	job, err := s.complete(job)
	if err != nil {
		return Ensured{}, err
	}
	if s.stopped() {
		return Ensured{}, fmt.Errorf("xxljob: ensure job %q: %w", job.Key, ErrStopped)
	}
	return s.ensure(ctx, job, false)
}

// ensure makes a complete job exist. unprune starts it again when it was stopped
// for being gone from a list.
func (s *scheduler) ensure(ctx context.Context, job Job, unprune bool) (e Ensured, err error) {
	defer func() { err = named(job, err) }()
	digest, err := digestOf(job)
	if err != nil {
		return Ensured{}, err
	}
	job.Ensured = digest
	for {
		has, err := s.store.JobByKey(ctx, job.App, job.Key)
		if isNotFound(err) {
			added, err := s.create(ctx, job)
			if errors.Is(err, ErrDuplicateKey) {
				continue // a replica was quicker
			}
			return Ensured{added, Created}, err
		}
		if err != nil {
			return Ensured{}, about(fmt.Sprintf("%s: ensure: App %q, Key %q", called(job), job.App, job.Key), err)
		}
		changed, err := s.redefine(ctx, has, job, unprune)
		if isNotFound(err) {
			continue // removed meanwhile
		}
		return changed, err
	}
}

func (s *scheduler) create(ctx context.Context, job Job) (Job, error) {
	if err := s.fires(ctx, job); err != nil {
		return Job{}, err
	}
	if err := s.checkHandler(ctx, job); err != nil {
		return Job{}, err
	}
	if err := s.setShards(ctx); err != nil {
		return Job{}, err
	}
	if err := s.store.EnsureGroup(ctx, job.App); err != nil {
		return Job{}, fmt.Errorf("xxljob: ensure group %q: %w", job.App, err)
	}
	return s.add(ctx, job)
}

// redefine writes the definition where it is not the one last ensured.
func (s *scheduler) redefine(ctx context.Context, has, job Job, unprune bool) (Ensured, error) {
	pruned := func(j *Job) bool { return unprune && j.Stopped && j.StopReason == StopPruned }
	if has.Ensured == job.Ensured && !pruned(&has) {
		return Ensured{has, Unchanged}, nil
	}
	if has.Schedule != job.Schedule {
		if err := s.fires(ctx, job); err != nil {
			return Ensured{}, err
		}
	}
	if err := s.checkHandler(ctx, job); err != nil {
		return Ensured{}, err
	}
	outcome := Unchanged // until Change has seen it
	next := replanned
	changed, err := s.edit(ctx, has.ID, Edit{Verb: "ensure", Change: func(j *Job) (replan bool, err error) {
		outcome, next = Unchanged, replanned
		if j.Ensured != job.Ensured {
			replan, outcome = define(j, job), Changed
			j.Ensured = job.Ensured
		}
		if replan {
			next = rescheduled
		}
		if pruned(j) && !j.Schedule.IsManual() {
			j.Stopped, j.StopReason = false, ""
			replan, outcome = true, Changed
		}
		return replan, nil
	}, Next: func(job Job, started, now time.Time) (time.Time, error) { return next(job, started, now) }})
	if err == nil && outcome == Changed {
		s.warnOfStored(changed)
	}
	return Ensured{changed, outcome}, err
}

func (s *scheduler) EnsureJobs(ctx context.Context, app string, jobs []Job, opts ...EnsureOption) ([]Ensured, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	setDefault(&app, s.cfg.App)
	complete, err := s.completeList(ctx, app, jobs)
	if err != nil {
		return nil, err
	}
	if s.stopped() {
		return nil, fmt.Errorf("xxljob: ensure %d jobs of app %q: %w", len(jobs), app, ErrStopped)
	}
	prune := false
	for _, o := range opts {
		prune = prune || o == Prune
	}
	var all []Ensured
	keys := make(map[string]bool, len(complete))
	for _, j := range complete {
		e, err := s.ensure(ctx, j, prune)
		if err != nil {
			return all, err
		}
		keys[j.Key] = true
		all = append(all, e)
	}
	if !prune {
		return all, nil
	}
	pruned, err := s.prune(ctx, app, keys)
	return append(all, pruned...), err
}

// completeList checks a whole list before anything of it is stored.
func (s *scheduler) completeList(ctx context.Context, app string, jobs []Job) ([]Job, error) {
	var errs []error
	complete := make([]Job, len(jobs))
	seen := map[string]int{}
	for i, j := range jobs {
		setDefault(&j.App, app)
		c, err := s.complete(j)
		if err == nil && c.App != app {
			err = fmt.Errorf("xxljob: %s: App %q: the list is for app %q", called(c), c.App, app)
		}
		if before, dup := seen[c.Key]; err == nil && dup {
			err = about(fmt.Sprintf("%s: Key %q", called(c), c.Key), fmt.Errorf("%w, by job %d of the list", ErrDuplicateKey, before+1))
		}
		err = errors.Join(err, named(c, s.firesOrFired(ctx, c)))
		if err == nil && s.cfg.StrictHandlers {
			err = s.checkHandler(ctx, c)
		}
		if err != nil {
			errs = append(errs, about(fmt.Sprintf("job %d of the list", i+1), err))
		}
		seen[c.Key] = i
		complete[i] = c
	}
	return complete, errors.Join(errs...)
}

// firesOrFired refuses a schedule without a future instant, unless the job has
// it already: a one-off job may have run since the program was last started.
func (s *scheduler) firesOrFired(ctx context.Context, job Job) error {
	never := s.fires(ctx, job)
	if never == nil {
		return nil
	}
	has, err := s.store.JobByKey(ctx, job.App, job.Key)
	if err == nil && has.Schedule == job.Schedule {
		return nil
	}
	return never
}

// prune stops the ensured jobs of an app whose keys are not wanted any more.
func (s *scheduler) prune(ctx context.Context, app string, keys map[string]bool) ([]Ensured, error) {
	var all []Ensured
	for after := int64(0); ; {
		page, err := s.store.Jobs(ctx, JobFilter{App: app, Enabled: true, After: after, Limit: startBatch})
		if err != nil {
			return all, fmt.Errorf("xxljob: prune app %q: %w", app, err)
		}
		for _, j := range page {
			if j.Ensured == "" || keys[j.Key] {
				continue
			}
			stopped, err := s.edit(ctx, j.ID, Edit{Verb: "prune", Change: stopFor(StopPruned)})
			if err != nil && !isNotFound(err) {
				return all, err
			}
			if err == nil {
				all = append(all, Ensured{stopped, Pruned})
			}
		}
		if len(page) < startBatch {
			return all, nil
		}
		after = page[len(page)-1].ID
	}
}
