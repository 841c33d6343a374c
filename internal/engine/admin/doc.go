// Package admin is what executors elsewhere call: the admin side of XXL-JOB's protocol.
//
// Admin takes registrations, results and verbs on jobs. Registrations go to room registry,
// verbs to room catalog.
//
// # Who speaks for an app
//
// That is decided at each request, from memory (authorizer). What could be a token that the store
// keeps, and is none of the config, is looked for among those that were read in the last five
// seconds (appTokens): so one that is revoked ends on each node within that. A shared token does not speak for an
// app that is attached to this node or, as far as this node has seen, to another live node. An
// app whose only nodes are down is not known to be attached.
//
// An executor knows which admin a request comes from by the path under which it has registered
// there; each cluster has a path of its own. Otherwise results would go to all admins, and ids
// would collide.
//
// # Results
//
// They come to any node (Results). A callback is answered with 200 once each result in it
// is stored or known not to matter; otherwise its executor sends all of it again. Results are
// fenced by the state of the run, and not by the epoch of its shard, which may have moved
// meanwhile. Only the run's app, and only a run at a remote address, is reported in this way;
// which of the two was wrong, nobody is told.
//
// They wait in an intake (package fairqueue) in which each app has turns of 250 results. Some
// executors never send a result twice, so what fails as a whole is tried again, and what waits
// is stored for ten minutes after its caller was told to try again.
//
// A success of a run that this node itself has sent is stored without a read of the run, while
// the node is trusted and has not begun to mark the run (AsSent): nobody else can have decided
// about it. Where several results come to a store over a network, their executors hear of it
// 5 ms later, so that more of them go into the next transaction.
//
// # Large bodies
//
// A body of more than 64 KiB takes a slot until it is served, and one token may have a quarter
// of the slots; a slot that becomes free goes to the waiting caller that has the fewest. Every
// body has a deadline that moves on as data arrives, and memory only for what has arrived.
// Package wire has both.
//
// # Jobs over the wire
//
// A caller manages the jobs of its own app, if that is one of Config.HTTP.JobsAPI, and so many
// times in a while (loop.RateLimit). In a real admin any caller manages all. Scripts may
// be defined only where the callers of the app may do so. What is wrong with a request is said
// to its caller; of the store it learns nothing.
//
// # Goroutines and locks
//
// The result loop belongs to stage work. Requests run on the goroutines of the server that the
// program has. The locks are those of the intake, of rarely and of appTokens, all leaves.
package admin
