//go:build unix

package siege

import (
	"context"
	"fmt"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// loseRuns makes runs of the hostile app that have ended as lost, before the scheduler
// starts: a node that never was has sent them, and has judged them. It returns their ids.
func loseRuns(ctx context.Context, st xxljob.Store, s xxljob.Scheduler, n int) ([]int64, error) {
	job, err := s.AddJob(ctx, xxljob.Job{App: hostileApp, Name: "lost", Handler: "work"})
	if err != nil {
		return nil, err
	}
	const inc = "prelude-0"
	view, err := st.Join(ctx, xxljob.Node{ID: "prelude", Incarnation: inc})
	if err != nil {
		return nil, err
	}
	shards, err := st.TakeShards(ctx, inc, view.Shards)
	if err != nil {
		return nil, err
	}
	epochs := map[int]int64{}
	for _, sh := range shards {
		epochs[sh.ID] = sh.Epoch
	}
	starts := make([]store.Start, n)
	for i := range starts {
		run, err := st.AddRun(ctx, job.ID, xxljob.Trigger{})
		if err != nil {
			return nil, err
		}
		starts[i] = store.Start{
			RunID: run.ID, JobID: job.ID, Shard: run.Shard, Epoch: epochs[run.Shard], JobVersion: job.Version,
			State: xxljob.StateStarted, Owner: inc, Token: int64(i) + 1, Address: "http://127.0.0.1:1/", Handler: job.Handler, Block: job.Block,
		}
	}
	ids, err := settleLost(ctx, st, starts)
	if err != nil {
		return nil, err
	}
	return ids, st.Leave(ctx, inc)
}

// settleLost starts runs and ends them as lost.
func settleLost(ctx context.Context, st xxljob.Store, starts []store.Start) (ids []int64, err error) {
	started, err := st.Start(ctx, nil, starts)
	if err != nil {
		return nil, err
	}
	verdicts := make([]store.Verdict, len(starts))
	for i, s := range starts {
		r := started[i].Run
		verdicts[i] = store.Verdict{RunID: s.RunID, Shard: s.Shard, Epoch: s.Epoch, Owner: s.Owner, Token: s.Token, Taken: !r.Taken.IsZero(), To: xxljob.StateLost, Msg: "the siege has lost it"}
	}
	runs, err := st.Settle(ctx, verdicts)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.State == xxljob.StateLost {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) != len(starts) {
		return nil, fmt.Errorf("siege: %d of %d runs are lost", len(ids), len(starts))
	}
	return ids, nil
}
