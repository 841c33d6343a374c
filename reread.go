package xxljob

// Jobs and runs that were not as this node knew them, read again for the start loop.

import "context"

// startReads are what the start loop reads of the store.
type startReads struct {
	*shared
	engine *engine
}

// readAgain reads the jobs and runs of starts whose job was not as this node knew it.
func (r *startReads) readAgain(ctx context.Context, stale []attempt) error {
	if len(stale) == 0 {
		return nil
	}
	jobs, ids := make([]int64, len(stale)), make([]int64, len(stale))
	for i, a := range stale {
		jobs[i], ids[i] = a.run.JobID, a.run.ID
	}
	if err := r.loadJobs(ctx, jobs); err != nil {
		return err
	}
	runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return r.store.RunsByID(ctx, ids) })
	if err != nil {
		return err
	}
	r.engine.held.refreshRuns(runs)
	return r.cancelStopped(ctx, stale)
}

// cancelStopped cancels schedule-born runs of a job that was stopped without
// them: its schedule broke after they were planned.
func (r *startReads) cancelStopped(ctx context.Context, stale []attempt) error {
	for _, a := range stale {
		job := r.engine.jobs.job(a.run.JobID)
		if run := a.run.full(); job == nil || !mustNotStart(&run, job) {
			continue
		}
		if _, err := call(ctx, func(ctx context.Context) (Run, error) {
			return r.store.Kill(ctx, a.run.ID, jobIsStopped)
		}); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

// loadJobs reads jobs anew. Entries of jobs that are gone are dropped: their
// runs were cancelled with them.
func (r *startReads) loadJobs(ctx context.Context, ids []int64) error {
	jobs, err := r.readJobs(ctx, ids)
	r.engine.jobs.remember(jobs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if jobs[id] == nil {
			r.engine.jobs.jobGone(id)
		}
	}
	return nil
}

// mustNotStart reports whether the job is stopped for a run that its schedule has made, or for
// a retry of one.
func mustNotStart(r *Run, job *Job) bool {
	return r.Type.ScheduleBorn() && job.unscheduled() || r.Born && job.Stopped
}
