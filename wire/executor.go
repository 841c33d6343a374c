package wire

import "context"

// Executor is what an admin calls. All methods are safe for concurrent use and
// answer at once: none waits for a handler. See the package comment for the
// meaning of an error and of a code that is not 200.
type Executor interface {
	// Beat asks whether the executor takes runs.
	Beat(ctx context.Context) (Return, error)
	// IdleBeat asks whether a job is idle. The answer is MsgBusy when it runs or
	// has runs queued.
	IdleBeat(ctx context.Context, req IdleBeatRequest) (Return, error)
	// Run hands over one run. Code 200 means accepted, not executed: the result
	// comes by Admin.Callback.
	Run(ctx context.Context, req TriggerRequest) (Return, error)
	// Kill stops what runs and what waits of a job, or one run of it. It is
	// answered 200 also when there was nothing to stop.
	Kill(ctx context.Context, req KillRequest) (Return, error)
	// Log reads the lines a run has logged so far.
	Log(ctx context.Context, req LogRequest) (LogReturn, error)
}
