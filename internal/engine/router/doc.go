// Package router decides where a due run goes: by XXL-JOB's strategies, by routers of the
// user's, and by probes.
//
// It works for the start loop and must not hold that up. A run whose answer is not there is
// parked in a waitlist of room queue and comes again when it is.
//
// # Strategies
//
// The strategies of package route decide without I/O and are called inline. What they remember
// is kept per job in this node, bounded, and dropped when a job is removed. NEAREST is the
// default: there is no hand-over where none is needed, while FIRST would send everything to one
// node. routeMemo and RouteWords save work where runs that follow each other go the same way.
// Resolver knows what the executor at a chosen address needs: a place, a lane, a client.
//
// A part of a broadcast that was put back does not go where another part of the same trigger is
// under way, unless there is nowhere else; then it waits for that part's end, whatever the
// block strategy (choosePart).
//
// # Addresses
//
// Lookup gets the addresses of an app. A store is waited for. A registry of the user's is
// not: the runs of the app wait in a waitlist of the app's (appsAsked), for RouteTimeout or one call
// of the store. Where addresses cannot be read, the runs of that app wait and are tried again,
// and the other apps go on (ParkedLookups).
//
// # Routers of the user's
//
// They are called beside the start loop, with a deadline (Config.Limits.RouteTimeout). The runs
// of a job wait in a queue of the job's, in order, each for a call of its own (userRouters,
// routeQueue). One call is under way for a router and job; a router that does not return leaves
// one goroutine behind, and refuses the runs that have waited for long enough. Once Stop has
// begun nobody is asked, and the runs stay planned.
//
// # Strategies of other nodes
//
// Services that share a store need not have the same routers. A node says in its row which it has, and
// is asked by the store, as nodes ask each other for lines of logs, where a run is to go: the run stays
// this node's, and planned, until it has the answer. It is called as it would be for runs of its own.
// Services may mean different things by one name, so nodes that have the run's app attached are asked
// before others, and before this node's own strategy where it has not (lease.Nearness). Where one is
// silent for a second the next is asked as well (askInTurn).
// Nodes that do not answer in time have refused nothing: the run waits, as where there is no such
// node, and is tried again every few seconds, with each change among the nodes, and together with a new
// run of its job: that waits for no pause which others began, but for the half second (newRunPause) that
// bounds what a burst of new runs asks, and one question is asked for all of them.
// After an hour (RouterWait) it ends as refused.
//
// # Probes
//
// FAILOVER and BUSYOVER ask executors before the start, while the run still waits as planned in
// a waitlist of its own; then the start statement writes the address that answered. So no run is
// ever started without an address, and a node that dies while it probes leaves a planned run.
// Writing an address by a second compare-and-set remains for going on after a refusal alone
// (room dispatch).
//
// probes keeps answers for a moment. At most 32 calls are under way at once, and 4 for a job,
// or 5 while all of these hang. A call is about one question, and all who ask the same share it
// (probeCalls); one that ignores its context is left behind, and is not made again while it
// hangs. Of an executor at another node the lease says that it is there, and the store whether
// its job runs.
//
// # Locks and goroutines
//
// userRouters.mu comes before the lock of the Queue. probes.mu, probeCalls.mu and appsAsked.mu
// are leaves. Probes and questions run on goroutines of stage plan, so Stop waits for them
// first; calls of users' routers are waited for in their time.
package router
