package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// reusing is a store whose callers have it append to memory that was used before, as nodes do.
type reusing struct{ store.Store }

func (r reusing) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	return onUsed(dst, store.Started{Status: store.StartLocked, Run: usedRun(), Siblings: []store.Run{usedRun()}}, len(starts),
		func(dst []store.Started) ([]store.Started, error) { return r.Store.Start(ctx, dst, starts) })
}

func (r reusing) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	return onUsed(dst, usedRun(), len(results), func(dst []store.Run) ([]store.Run, error) { return r.Store.Finish(ctx, dst, results) })
}

func (r reusing) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	lent := slices.Clone(plans)
	for i := range lent {
		lent[i].Runs = slices.Clone(lent[i].Runs)
		defer clear(lent[i].Runs)
	}
	defer clear(lent)
	return onUsed(dst, usedRun(), 2*len(plans), func(dst []store.Run) ([]store.Run, error) { return r.Store.Claim(ctx, dst, lent) })
}

func (r reusing) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (res store.ScanResult, err error) {
	res.Jobs, err = onUsed(dst.Jobs, usedJob(), q.Jobs, func(jobs []store.DueJob) ([]store.DueJob, error) {
		res.Runs, err = onUsed(dst.Runs, usedRun(), q.Runs, func(runs []store.Run) ([]store.Run, error) {
			all, err := r.Store.Scan(ctx, store.ScanResult{Jobs: jobs, Runs: runs}, q)
			jobs, res.Next = all.Jobs, all.Next
			return all.Runs, err
		})
		return jobs, err
	})
	return res, err
}

func (r reusing) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) ([]store.Run, error) {
	return onUsed(dst, usedRun(), q.Limit, func(dst []store.Run) ([]store.Run, error) { return r.Store.Planned(ctx, dst, q) })
}

// usedRun is what memory may hold of a run before: each field that a store may leave as it is.
func usedRun() store.Run {
	long := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	return store.Run{
		Business: long, Scheduled: long, Created: long, Started: long, Taken: long, Ended: long, First: long, Last: long,
		ID: 1 << 50, JobName: "used", JobKey: "used", TriggerID: 1 << 50, ParentID: 1, Attempt: 7, Depth: 7, State: store.StateLost,
		ParamSet: true, LateNoted: true, NoRetry: true, StoppedJob: true, Sharding: store.Sharding{Index: 1, Total: 2}, Param: "used",
		Addresses: []string{"used"}, Reruns: 7, Snoozes: 7, PlanEpoch: 7, JobVersion: 7, Handler: "used", Block: "used", Address: "used",
		Trace: "used", Owner: "used", Token: 7, BootID: "used", KillReason: "used", TriggerMsg: "used", HandleMsg: "used",
		Progress: 7, ProgressText: "used", AlarmStatus: 2, Count: 7, Reason: "used",
	}
}

// usedJob is the same of a job.
func usedJob() store.DueJob {
	return store.DueJob{Waiting: 7, Job: store.Job{
		ID: 1 << 30, App: "used", Key: "used", Name: "used", Author: "used", AlarmEmail: "used", Tags: []string{"used"},
		Route: "used", Handler: "used", Param: "used", StopReason: "used", Stopped: true, Version: 7, WaitRun: 7, Runs: 7, MaxRuns: 7,
	}}
}

// onUsed has a call append to memory that is used as far as dst and one more, and was used for
// up to 100 of n more. It returns what the call has appended, behind dst.
func onUsed[T any](dst []T, used T, n int, call func([]T) ([]T, error)) ([]T, error) {
	memory := slices.Repeat([]T{used}, min(n, 100)+1)
	all, err := call(memory[:1])
	if all == nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.Join(err, errors.New("what was there before is not there any more"))
	}
	return append(dst, all[1:]...), err
}
