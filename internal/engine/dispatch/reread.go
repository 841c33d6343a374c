package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"golang.org/x/sync/errgroup"
)

// Starts that the store did not make since something was not as this node knew it: the job had
// another version, or serial runs were under way where another one was to go. Input: such
// attempts, from startbatch.go. Output: jobs and runs as they are, in the queue; entries that
// wait behind the runs in their way.

// readAgain reads the jobs and runs of starts whose job was not as this node knew it.
func (s *starter) readAgain(ctx context.Context, stale []queue.Attempt) error {
	if len(stale) == 0 {
		return nil
	}
	jobs, ids := make([]int64, len(stale)), make([]int64, len(stale))
	for i, a := range stale {
		jobs[i], ids[i] = a.Run.JobID, a.Run.ID
	}
	if err := s.loadJobs(ctx, jobs); err != nil {
		return err
	}
	runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return s.Store.RunsByID(ctx, ids) })
	if err != nil {
		return err
	}
	s.queue.Held.RefreshRuns(runs)
	return s.cancelStopped(ctx, stale)
}

// cancelStopped cancels schedule-born runs of a job that was stopped without
// them: its schedule broke after they were planned.
func (s *starter) cancelStopped(ctx context.Context, stale []queue.Attempt) error {
	for _, a := range stale {
		job := s.queue.Jobs.Job(a.Run.JobID)
		var run store.Run
		if a.Run.Fill(&run); job == nil || !core.MustNotStart(&run, job) {
			continue
		}
		_, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) {
			return s.Store.Kill(ctx, a.Run.ID, core.JobIsStopped)
		})
		switch {
		case errors.Is(err, store.ErrRefused): // it stays planned, and the store refuses to start it
			s.queue.StartSingly(a)
			s.restRefused()
			s.Core.Troubles.Refused(s.Clock.Now(), a.Run.App, a.Run.JobID, store.SeenRefusesCancel, a.Run.ID, err)
		case err != nil && !errs.IsNotFound(err):
			return err
		}
	}
	return nil
}

// loadJobs reads jobs anew. Entries of jobs that are gone are dropped: their
// runs were cancelled with them.
func (s *starter) loadJobs(ctx context.Context, ids []int64) error {
	jobs, err := s.ReadJobs(ctx, ids)
	s.queue.Jobs.Remember(jobs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if jobs[id] == nil {
			s.queue.Jobs.JobGone(id)
		}
	}
	return nil
}

// awaitBlockers parks serial runs until the runs that the store found in their way have
// ended: such as this node did not know of, for instance of the shard's former owner, or
// other parts of a broadcast. It reports whether some are to be tried again.
func (s *starter) awaitBlockers(ctx context.Context, busy []queue.Attempt) (again bool) {
	under := s.startedOfJobs(ctx, busy)
	for _, a := range busy {
		i := slices.IndexFunc(under[a.Job.ID], func(o store.Run) bool {
			return o.ID != a.Run.ID && (o.Address == a.Route.Address || slices.Contains(a.Route.Targets, o.Address))
		})
		if i < 0 { // it has ended meanwhile, or the store did not tell
			s.queue.TryAgain(false, a)
			again = true
			continue
		}
		s.queue.AwaitRun(a, under[a.Job.ID][i])
	}
	return again
}

// blockerReads is how many jobs' started runs are read at the same time.
const blockerReads = 8

// startedOfJobs reads the started runs of the jobs of attempts, of each job once. Of those
// about which the store does not tell there are none.
func (s *starter) startedOfJobs(ctx context.Context, attempts []queue.Attempt) map[int64][]store.Run {
	under := make(map[int64][]store.Run)
	var mu sync.Mutex // guards under
	var g errgroup.Group
	g.SetLimit(blockerReads)
	asked := make(map[int64]bool)
	for _, a := range attempts {
		id := a.Job.ID
		if asked[id] {
			continue
		}
		asked[id] = true
		g.Go(func() error {
			runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
				return s.Store.Runs(ctx, store.RunFilter{JobID: id, States: []store.State{store.StateStarted}, Limit: loop.StoreBatch})
			})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				under[id] = runs
			}
			return nil
		})
	}
	_ = g.Wait()
	return under
}
