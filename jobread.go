package xxljob

// The jobs of runs, as the store has them.

import (
	"context"
	"slices"
)

// readJobs reads the jobs of runs by id.
func (s *shared) readJobs(ctx context.Context, ids []int64) (map[int64]*Job, error) {
	jobs := make(map[int64]*Job, len(ids))
	for len(ids) > 0 {
		page := ids[:min(len(ids), storeBatch)]
		ids = ids[len(page):]
		found, err := call(ctx, func(ctx context.Context) ([]Job, error) {
			return s.store.Jobs(ctx, JobFilter{IDs: page, Limit: len(page)})
		})
		if err != nil {
			return jobs, err
		}
		for i := range found {
			jobs[found[i].ID] = &found[i]
		}
	}
	return jobs, nil
}

// jobIsStopped is why a run is cancelled whose job was stopped without it.
const jobIsStopped = "the job is stopped"

// jobsOf are the jobs of runs, each once.
func jobsOf(runs []Run) []int64 {
	ids := make([]int64, 0, len(runs))
	for _, r := range runs {
		ids = append(ids, r.JobID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func idsOf(runs []Run) map[int64]bool {
	ids := make(map[int64]bool, len(runs))
	for i := range runs {
		ids[runs[i].ID] = true
	}
	return ids
}
