package xxljob

import (
	"context"
)

// Router chooses among the addresses of an app. The strategies of package route are
// Routers; Config.Routers adds custom ones by name. An implementation must be safe for
// concurrent use. It is asked about every run of its jobs: for each job about one run at a
// time, in their order. Runs of other jobs do not wait for it. If it panics, or does not
// answer within Config.Limits.RouteTimeout, the run ends as refused. While a call hangs, no
// further call is made for that job, and its runs are refused after RouteTimeout.
type Router interface {
	// Route returns the chosen addresses, the preferred one first; the scheduler sends to
	// the first. addrs is sorted and not empty, and the router may keep it. Duplicates
	// count once. An error, or an address that is not in addrs, ends the run as refused;
	// the error's text is recorded. ctx ends after RouteTimeout.
	Route(ctx context.Context, jobID int64, addrs []string) ([]string, error)
}

// Registry says which addresses serve an app. The default keeps them in the store, and
// knows attached executors by the beats of their nodes. With a custom one in
// Config.Registry, the scheduler registers its attached executors there every
// Config.Cluster.Beat, under the address local://incarnation, and asks it about every
// automatic group, or about those of Config.RegistryApps alone; only its answer counts for these. Executors that register through
// Scheduler.AdminHandler are registered there too. It cannot store their boot ids, so a run in
// doubt is never sent to them a second time.
//
// A Registry must be safe for concurrent use. A call that takes longer than
// Config.Limits.RouteTimeout counts as failed; until it returns, the same method is not
// called again for the same app and address. When Lookup fails or panics, its last answer is
// used for up to Config.Cluster.Dead; without one the app's runs wait.
type Registry interface {
	// Register adds the address or refreshes it.
	Register(ctx context.Context, app, address string) error
	// Deregister removes the address. It is no error if it is not there.
	Deregister(ctx context.Context, app, address string) error
	// Lookup returns the app's addresses, in any order. Having none is not an error.
	Lookup(ctx context.Context, app string) ([]string, error)
}
