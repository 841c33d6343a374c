// Package inside tells what is called from a handler which run it is called in.
//
// Comes in: the context of a handler, marked by the executor that runs it. Goes out:
// the run, to a Scheduler or an executor that one of its own handlers asks to wait.
package inside

import "context"

// Run is a run whose handler is running.
type Run struct {
	// Executor is the one that runs it, to be compared only.
	Executor any
	// RunID and JobID are the ids of the scheduler in the executor's own process: those
	// of other admins are of other stores, and are zero here.
	RunID, JobID int64
}

type key struct{}

// Mark returns a context that carries the run.
func Mark(ctx context.Context, r Run) context.Context { return context.WithValue(ctx, key{}, r) }

// From returns the run in ctx; ok is false outside of handlers.
func From(ctx context.Context) (r Run, ok bool) {
	r, ok = ctx.Value(key{}).(Run)
	return r, ok
}
