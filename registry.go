package xxljob

import (
	"context"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// Router chooses among the addresses of an app. The strategies of package route
// are Routers; a Config may bring more, by name. An implementation must be safe
// for concurrent use. It is asked about every run of its jobs, about one run of a job at
// a time and in their order; the runs of other jobs do not wait for it. A run whose router
// has not answered within Config.Limits.RouteTimeout, or panics, ends as refused. While a call
// hangs there is no other about that job: its runs are refused once they have waited for
// RouteTimeout.
type Router interface {
	// Route returns the chosen addresses, the preferred one first; the scheduler
	// sends to the first. addrs is sorted, not empty, and the router's own. What is
	// chosen twice counts once; an address that is not in addrs ends the run as refused,
	// as does an error, with its text. ctx ends with RouteTimeout.
	Route(ctx context.Context, jobID int64, addrs []string) ([]string, error)
}

// Registry says which addresses serve an app. The default keeps them in the
// store, with attached executors known by their nodes' beats. With another one
// in Config.Registry the scheduler registers its attached executors there, under
// the address local://incarnation, every Config.Cluster.Beat, and asks it for every
// automatic group: then its answer alone counts. Executors elsewhere that register
// by Scheduler.Handler are registered there too; it has no place for their boot ids,
// so that none of them is sent a run a second time. It must be safe for concurrent
// use. Each call has Config.Limits.RouteTimeout, after which it counts as failed; it may go on,
// and there is no other of that method about the same app and address until it returns.
// Where Lookup fails or panics, its last answer serves for Config.Cluster.Dead at most; the app's
// runs wait where there is none.
type Registry interface {
	// Register adds the address or refreshes it.
	Register(ctx context.Context, app, address string) error
	// Deregister removes it. An absent one is no error.
	Deregister(ctx context.Context, app, address string) error
	// Lookup returns the app's addresses, in any order; none is no error.
	Lookup(ctx context.Context, app string) ([]string, error)
}

// Task is what a handler sees of its run.
type Task = executor.Task

// Handler runs a job.
type Handler = executor.Handler

// Executor runs the jobs of one app inside this process: a wire.Executor that
// says which handlers it has and where its results go. *executor.Executor is
// one. It must be safe for concurrent use; an error of Run means that the run
// was not accepted; and it must answer every run that it accepts by one callback
// to the admin it was bound to. If it has a method Places() int, the scheduler
// keeps at most so many runs under way at it, otherwise 1,000. A panic in a method, or
// runtime.Goexit, is logged once and taken for an error; Handlers and Places then stay
// as they were answered last. App, Handlers and Places must return at once.
type Executor interface {
	wire.Executor
	// App is the app it serves; it does not change.
	App() string
	// Handlers are the names of its handlers; they may become more.
	Handlers() []string
	// Bind says where results go. Attach calls it, once.
	Bind(admin wire.Admin)
}

var _ Executor = (*executor.Executor)(nil)
