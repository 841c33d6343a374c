package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// shards is the number of parts that jobs are spread over, that of a scheduler by default.
const shards = 32

// addAtOnce is how many jobs one call adds.
const addAtOnce = 5000

// addJobs adds n jobs to a store, as the list of a release: a few thousand in one transaction.
// Each has the first instant that first returns, which its schedule goes on from; nil for jobs
// without a schedule.
func addJobs(ctx context.Context, st xxljob.Store, n int, like xxljob.Job, first func(i int) time.Time) ([]int64, error) {
	list := store.ListID{App: like.App, Digest: "bench"}
	if err := st.SetShards(ctx, shards); err != nil {
		return nil, err
	}
	if err := st.EnsureGroup(ctx, like.App); err != nil {
		return nil, err
	}
	put := store.ListPut{JobList: store.JobList{App: list.App, Digest: list.Digest}, Incarnation: "bench", Node: "bench", Apply: store.ApplyAlways}
	if _, err := st.PutList(ctx, put); err != nil {
		return nil, err
	}
	ids := make([]int64, 0, n)
	for from := 0; from < n; from += addAtOnce {
		jobs := make([]xxljob.Job, min(addAtOnce, n-from))
		for i := range jobs {
			jobs[i] = like
			jobs[i].Key = strconv.Itoa(from + i)
			jobs[i].Name = "job " + jobs[i].Key
		}
		added, err := st.AddJobs(ctx, list, jobs, instantsFrom(first))
		if err != nil {
			return nil, fmt.Errorf("add jobs: %w", err)
		}
		for _, j := range added {
			ids = append(ids, j.ID)
		}
	}
	if len(ids) != n {
		return nil, fmt.Errorf("%d of %d jobs were added", len(ids), n)
	}
	return ids, nil
}

// instantsFrom has each job begin with its own instant.
func instantsFrom(first func(i int) time.Time) store.FirstInstant {
	return func(j xxljob.Job, _ time.Time) (time.Time, error) {
		if first == nil {
			return time.Time{}, nil
		}
		i, err := strconv.Atoi(j.Key)
		return first(i), err
	}
}

// noop is a job that nothing is done for but to note that it was called.
func (c Config) noop(app string) xxljob.Job {
	j := xxljob.Job{App: app, Handler: handler, GlueType: xxljob.GlueBean, Misfire: xxljob.MisfireDoNothing, Block: xxljob.BlockSerial, Route: xxljob.RouteNearest}
	if c.Executor == HTTP {
		j.Route = xxljob.RouteRound
	}
	return j
}
