package storetest

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// knownCases are cases of claims, starts and ends with callers that know their runs, and use memory
// again, as nodes do: whatever a store answers from what it is told, the answers and what is
// stored are as without it.
func knownCases() []testCase {
	cases := slices.Concat(scanCases(), claimCases(), startCases(), finishCases(), followCases(), armCases(), boundedCases(), handOverCases(), settleCases())
	for i, c := range cases {
		cases[i].run = func(e *env) {
			e.Store = knowing{reusing{e.Store}}
			c.run(e)
		}
	}
	return cases
}

// knowing is a store whose callers know their runs.
type knowing struct{ store.Store }

func (k knowing) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	starts = slices.Clone(starts)
	for i := range starts {
		run := k.known(ctx, starts[i].RunID)
		if run != nil && run.State == store.StatePlanned {
			starts[i].Known = run
		}
	}
	return k.Store.Start(ctx, dst, starts)
}

func (k knowing) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	results = slices.Clone(results)
	for i := range results {
		r := &results[i]
		run := k.known(ctx, r.RunID)
		if run != nil && (r.Incarnation != "" || r.Owner != "") {
			run.State, run.Token = store.StateStarted, r.Token // as it was, where it has been started again since
			r.Known = run
		}
	}
	return k.Store.Finish(ctx, dst, results)
}

// known is the run as it is stored, without the names of its job, which neither call fills in;
// nil where it is not there.
func (k knowing) known(ctx context.Context, id int64) *store.Run {
	run, err := k.Run(ctx, id)
	if err != nil {
		return nil
	}
	run.JobName, run.JobKey, run.Secret = "", "", false
	return &run
}
