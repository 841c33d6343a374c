package xxljob

// Serial runs that could not be started, as the store knows of another one under way
// where they go. Input: attempts that the store has refused, from start.go. Output:
// entries parked behind the runs in their way.

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// awaitBlockers parks serial runs until the runs that the store found in their way have
// ended: such as this node did not know of, for instance of the shard's former owner, or
// other parts of a broadcast. It reports whether some are to be tried again.
func (r *startReads) awaitBlockers(ctx context.Context, busy []attempt) (again bool) {
	under := r.startedOfJobs(ctx, busy)
	for _, a := range busy {
		i := slices.IndexFunc(under[a.job.ID], func(o Run) bool {
			return o.ID != a.run.ID && (o.Address == a.route.address || slices.Contains(a.route.targets, o.Address))
		})
		if i < 0 { // it has ended meanwhile, or the store did not tell
			r.engine.retry(a, false)
			again = true
			continue
		}
		r.engine.awaitRun(a, under[a.job.ID][i])
		r.life.wakes.watch.poke()
	}
	return again
}

// blockerReads is how many jobs' started runs are read at the same time.
const blockerReads = 8

// startedOfJobs reads the started runs of the jobs of attempts, of each job once. Of those
// about which the store does not tell there are none.
func (r *startReads) startedOfJobs(ctx context.Context, attempts []attempt) map[int64][]Run {
	under := make(map[int64][]Run)
	var mu sync.Mutex // guards under
	var g errgroup.Group
	g.SetLimit(blockerReads)
	asked := make(map[int64]bool)
	for _, a := range attempts {
		id := a.job.ID
		if asked[id] {
			continue
		}
		asked[id] = true
		g.Go(func() error {
			runs, err := call(ctx, func(ctx context.Context) ([]Run, error) {
				return r.store.Runs(ctx, RunFilter{JobID: id, States: []State{StateStarted}, Limit: storeBatch})
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
