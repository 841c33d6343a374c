package wire

import "context"

// Admin is what an executor calls. All methods are safe for concurrent use. See
// the package comment for the meaning of an error and of a code that is not 200.
//
// Called by the handler of [NewAdminHandler], an implementation learns from
// [CallerFrom] for which app the caller may speak, and answers as if runs of
// other apps did not exist.
type Admin interface {
	// Callback delivers results. The caller sends the whole list again until the
	// answer is 200, so an admin answers 200 once every result is stored or known
	// not to matter (unknown id, result already stored). The list may be kept by
	// the callee, and neither side changes it after the call.
	Callback(ctx context.Context, results []CallbackRequest) (Return, error)
	// Registry says that an executor is there. It is repeated as a heartbeat.
	Registry(ctx context.Context, req RegistryRequest) (Return, error)
	// RegistryRemove says that an executor is gone.
	RegistryRemove(ctx context.Context, req RegistryRequest) (Return, error)
}

// JobAdmin is an Admin that has its jobs managed over the wire, as G4 does. It
// is found by a type assertion; without it those calls are unknown paths, as
// they are to earlier generations. All methods are safe for concurrent use. The
// caller's app is in [CallerFrom], and jobs of other apps are not there for it:
// real admins of G4 let any caller manage every job (docs/xxl-job.md, who may do what).
type JobAdmin interface {
	Admin
	// AddJob adds a job, stopped. Return.Data is its id in decimal digits.
	AddJob(ctx context.Context, req AddJobRequest) (Return, error)
	// UpdateJob replaces the definition of a job, but for type, source and remark of
	// its script: real admins change these by a form of their own.
	UpdateJob(ctx context.Context, req UpdateJobRequest) (Return, error)
	// RemoveJob removes a job. One that is not there is answered 200, for a retry.
	RemoveJob(ctx context.Context, req JobRequest) (Return, error)
	// StartJob starts the schedule of a job.
	StartJob(ctx context.Context, req JobRequest) (Return, error)
	// StopJob stops the schedule of a job.
	StopJob(ctx context.Context, req JobRequest) (Return, error)
	// TriggerJob runs a job once.
	TriggerJob(ctx context.Context, req TriggerJobRequest) (Return, error)
}
