// Package node is one started scheduler: how its parts are put together, its heartbeat, the way
// up and the way down.
//
// # Parts
//
// Node is the list of the parts. assemble makes each with those that it needs, from the
// lower rooms upwards; no part knows the Node. duties is the table of the loops, in three
// stages: plan, work and lease.
//
// # The path of a run
//
// From an instant to the end of its run where all goes well, at an executor of this process. Each
// file is followed by what it hands on to the next:
//
//	scan/scan.go            finds the jobs that are due within the window
//	scan/claim.go           has plan.go say what becomes of them, and the store insert that at once
//	plan/plan.go            says which of their instants become runs
//	queue/queue.go          holds them until shortly before their time
//	queue/held.go           puts them on the ring, and of a full app the earliest runs only
//	dispatch/start.go       the start loop: takes what is due, apps in turn, batch after batch
//	queue/reserve.go        says whose turn it is (InTurn) and, behind router.go, gives places (ReserveAll)
//	router/router.go        says where each run goes
//	dispatch/startbatch.go  has the store mark a batch started, and acts on each answer
//	dispatch/launch.go      has each go on that was started
//	queue/underway.go       makes of each a run that is under way (flight.go), until it has ended
//	dispatch/send.go        waits for the instant and calls the executor, which runs the handler
//	dispatch/finish.go      has the store take the result, then answers the executor
//	store/follow.go         says what follows, in the transaction that ends the run
//
// # What branches off
//
// What the store does on that path; in store/memory it is in plans.go, start.go and finish.go:
//
//	store/postgres/plans_claim.go     Claim: jobs go on, their runs are inserted
//	store/postgres/start.go           Start: planned runs are marked started
//	store/postgres/finish.go          Finish: runs end
//	store/postgres/finish_follow.go   inserts what follow.go has said: a retry, rows that are owed
//
// What the executor does on it:
//
//	executor/accept.go     takes a run, or refuses it: the block strategy
//	executor/job.go        runs the handlers of a job in their turn
//	executor/outbox.go     keeps results until they are taken
//	dispatch/attached.go   takes them, in this process
//
// Where a run waits, and what it waits for, as reserve.go has found:
//
//	queue/ring.go       the ring, ours or the user's: until shortly before the run's time
//	queue/due.go        how a due run comes to wait, and goes on
//	queue/waitlist.go   what it can wait for, and who waits, apps in turn (fairqueue.go)
//	queue/lanes.go      room in lanes, at addresses and executors
//	queue/jobplaces.go  the job's own place at an address, which an earlier run there still has
//	queue/sendorder.go  an earlier run of the job that is being sent there, by another node perhaps
//	queue/order.go      an earlier run of a serial job that is in transit
//	queue/retries.go    a retry of an earlier run of a serial job
//
// To an executor in another process:
//
//	dispatch/mark.go        the executor has accepted the run: dispatched
//	dispatch/reroute.go     it has refused: the next address, or the end
//	dispatch/indoubt.go     nobody knows: the executor is asked
//	dispatch/unreported.go  it was accepted, and no result comes
//	admin/results.go        its result comes over HTTP, from wire/adminhandler.go by way of admin/admin.go
//
// By way of another node:
//
//	dispatch/inbox.go    takes what other nodes have addressed here
//	dispatch/watch.go    learns of the end of what went to another node
//	dispatch/recover.go  settles what a node that is gone has left
//	dispatch/orphans.go  finds what is under way here by the store alone
//
// A call of the store that does not do what was asked; startbatch.go has each answer to a start, such as that the
// node has left (StartNoNode):
//
//	dispatch/reread.go         the job was another one, or another run was in the way
//	dispatch/startrefused.go   the store refuses a start
//	dispatch/uncertain.go      a start had no answer: reads what has become of it
//	dispatch/unconfirmed.go    remembers what may take effect even later
//	dispatch/finishrefused.go  the store refuses a result
//	dispatch/unstored.go       results that it has not taken, which Ready tells of
//
// Into it, and out of it, beside instants:
//
//	catalog/trigger.go  a run by hand
//	scan/reload.go      planned runs that others have inserted, or another node has left
//	scan/owed.go        pays what successes owe: children and joins
//	scan/ahead.go       moves runs that are planned far ahead
//	dispatch/kill.go    ends a run from outside
//	alarms/alarms.go    has alarms of runs that ended badly told
//	alarms/late.go      has runs found that have not ended in time
//
// # Heartbeat
//
// heartbeat beats every LeaseTTL/5 and brings the news of each beat to those whom it concerns:
// about other nodes (noteLook), about another server behind the store (noteServer), about this
// node (sayFailing), and to hooks (leaseNews). Beside the beats it gives up and takes shards
// (rebalance; the comment of room lease says why it gives one up), and has room dispatch settle runs of nodes that are gone, and look for runs that
// this node does not know. The loop is here, and not in room lease,
// because it brings news to so many rooms, and so needs no callbacks.
//
// What else the loop does never stops it from giving up a shard: a duty that fails does not
// stop the next one, and while claims or starts fail, or take longer than a beat, all that is
// done beside the beats is bounded by LeaseTTL/5 (besideBeats). A shard that is new to this
// node is swept first (sweep), which mends jobs that wait for a run that is over.
//
// # Ready
//
// Node.Ready asks for each reason in turn, and says all of them. A node is not ready
//   - while it is not started, or has stopped, or its store has another number of shards
//     (core/life.go);
//   - where a later node has the same Config.Node; where the store has acknowledged no beat within the
//     trust window, or Ready.StoreAway; where its claims or starts fail, and others have the shards
//     (lease/fitness.go); where results could not be stored for a LeaseTTL (judgeFit, lifecycle.go);
//   - where abandoned handlers hold the places of an app for which due runs wait (places.go);
//   - beyond what Config.Ready bounds: due runs that wait, how late the oldest is, the clock, and
//     troubles (core/ready.go).
//
// # Retention
//
// The owner of the first shard drops what is old, where the store keeps it until it is told
// (retainDuties): runs, changes, what jobs keep for less; and it adds up reports. None of
// this is done while the store's clock is doubted (clockDuty).
//
// # The way down
//
// Stop takes these steps (Node.stop), and their order matters:
//  1. No alarm is sent any more, and the loops of stage plan are told to end. That comes before
//     this node stops offering its executors: where no other node offers any, runs would be
//     refused.
//  2. The inbox takes nothing more, nor does the node take shards, and the next beat tells the
//     others so. Shards whose taking is answered after that are given back at once.
//  3. The loops of stage plan have ended.
//  4. Started and unsent runs are put back (GiveBack); what was taken is sent (SendRest).
//  5. Alarms that are on their way have a tenth of a second to arrive, since the next owner of
//     the shards would tell the same again. Shards are released.
//  6. Running handlers end, or are killed when the context ends, with two more seconds for
//     their results (Drain); so they have where the store is closed and has taken no result for as
//     long as one call may take, since nothing mends that. From then on no handler is called: what the store says late that
//     this node has taken ends as lost.
//  7. The beats end, when the one under way is done: done later, it would bring the node back.
//     The node leaves.
//  8. The loops of stage work end, waiting for executors of users that hang in a call.
//  9. The scheduler's own executor stops, waiting for handlers that ignore their cancellation.
//     The last lines of logs are written.
//
// What is planned is in the store and needs no draining. Executors that were attached by hand
// are the caller's to stop, and the store is never closed here. The steps go on past the
// context of Stop where the store hangs; Stop itself does not. What is left to write is written
// even when the context ends meanwhile.
//
// # Goroutines
//
//	stage   loops                                                        ended
//	plan    scan, ahead, owed, start, send                               first
//	work    results, locked results, watch, transit, inbox, dispatch,    second; the inbox
//	        in doubt, unreported, results over HTTP, registrations,      passes on kills and
//	        forgetting registrations, progress; log where Config.Logs    questions for logs
//	        names something; alarms and late where there are rules       until the drain is over
//	lease   beats, lists, jobs stopped in error, troubles, places,       last
//	        waits, retention; a registry of the user's
//
// The steps of Stop run on a goroutine that the first Stop starts and every Stop waits for.
// Calls of users' code that hang are waited for within their time and then left behind: each
// room says for how long. A scheduler that is idle and alone on a store in memory has no timer
// but those of retention, of lists, and of the next run that is kept apart.
//
// leaseNews.mu is a leaf; the other state here belongs to the lease loop.
package node
