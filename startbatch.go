package xxljob

// One call of the store that starts many runs, and what each of its answers means.

import (
	"context"
	"time"
)

// startBatch asks the store and acts on each answer. locked reports that some
// rows have to be tried again after a pause. prompt says that how long the store takes
// tells how long before their time such runs are to be started.
func (s *starter) startBatch(ctx context.Context, batch []attempt, prompt bool) (locked bool, err error) {
	starts := make([]Start, len(batch))
	for i, a := range batch {
		starts[i] = a.start
	}
	began := s.fitness.begin(&s.fitness.starts)
	answers, err := detached(ctx, func(ctx context.Context) ([]Started, error) { return s.store.Start(ctx, starts) })
	s.fitness.end(ctx, &s.fitness.starts, began, err)
	if s.starting.failed(ctx, err) {
		s.doubts.start(batch)
		s.doubts.lookNow()
		s.uncertain(ctx, batch)
		return false, nil
	}
	acked := time.Now()
	if prompt {
		s.engine.lead.sample(acked.Sub(began))
	}
	for i := range answers {
		s.doubts.received(answers[i].Siblings, 1) // a hook may take its time before they take off
	}
	var stale, busy []attempt
	for i, a := range batch {
		switch answers[i].Status {
		case StartOK:
			s.startedOK(a, answers[i], began)
		case StartGone:
			s.engine.giveUp(a)
			s.takeBack(answers[i].Run, a.job, began)
		case StartStale:
			stale = append(stale, a)
			s.engine.retry(a, true)
		case StartBusy:
			busy = append(busy, a)
		case StartFenced:
			s.engine.giveUp(a)
			s.leases.lose(a.run.Shard, a.start.Epoch)
			s.life.wakes.lease.poke()
		case StartNoNode:
			s.router.book.forget()
			s.life.wakes.lease.poke() // it brings the news of the other nodes
			s.engine.rerouted(a)
			locked = true
		case StartLocked:
			locked = true
			s.engine.retry(a, false)
		}
	}
	// What is started is under way by now: the reads below hold up no handler.
	locked = s.blockers.awaitBlockers(ctx, busy) || locked
	return locked, s.readAgain(ctx, stale)
}

// readAgain reads the jobs and runs of starts whose job was not as this node knew it.
func (s *starter) readAgain(ctx context.Context, stale []attempt) error {
	if len(stale) == 0 {
		return nil
	}
	jobs, ids := make([]int64, len(stale)), make([]int64, len(stale))
	for i, a := range stale {
		jobs[i], ids[i] = a.run.JobID, a.run.ID
	}
	if err := s.loadJobs(ctx, jobs); err != nil {
		return err
	}
	runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.RunsByID(ctx, ids) })
	if err != nil {
		return err
	}
	s.engine.held.refreshRuns(runs)
	return s.cancelStopped(ctx, stale)
}

// cancelStopped cancels schedule-born runs of a job that was stopped without
// them: its schedule broke after they were planned.
func (s *starter) cancelStopped(ctx context.Context, stale []attempt) error {
	for _, a := range stale {
		job := s.engine.jobs.job(a.run.JobID)
		if job == nil || !job.Stopped || !a.run.Type.ScheduleBorn() {
			continue
		}
		if _, err := call(ctx, func(ctx context.Context) (Run, error) {
			return s.store.Kill(ctx, a.run.ID, "the job is stopped")
		}); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

// loadJobs reads jobs anew. Entries of jobs that are gone are dropped: their
// runs were cancelled with them.
func (s *starter) loadJobs(ctx context.Context, ids []int64) error {
	jobs, err := s.readJobs(ctx, ids)
	s.engine.jobs.remember(jobs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if jobs[id] == nil {
			s.engine.jobs.jobGone(id)
		}
	}
	return nil
}
