// Package events tells hooks and subscribers what has happened, beside the loops to which it
// has happened.
//
// All loops hand their events to the Bus: runs planned, started and ended, jobs stopped, shards,
// the store. Hooks and subscriptions each have a queue (eventQueue) and a goroutine while there
// is something in it, and are told of one event after the other, in the order in which they
// happened here. Two queues, so that a hook which hangs keeps nothing from subscribers.
//
// A queue has room for 20,000 (hooksWaiting). Where it is full the loops wait while it is
// quick, so that nothing is missed in a herd. Once its oldest event has waited for a second
// (hooksLag), events are dropped, counted and logged. So a hook that hangs costs the loops a
// second at most, and costs subscriptions nothing.
//
// That a job has stopped is said by the run whose end has stopped it (Run.StoppedJob), wherever
// that run ends. Where the store has not told of it, the job is looked at again (lookAgain).
//
// Of runs whose apps are attached here it is told, too, what other nodes do (follower): the rows are
// read once a second, while somebody here wants to hear of runs and others are there. A thing is told
// when it is seen for the second time, and not where this node has told of it itself.
//
// The log has a line of each end that went wrong (endLines), and of those of the apps that are attached
// here which other nodes have stored (otherLines): for these the store is asked every ten
// seconds, while others are there, what has gone wrong in the last minute. What has no line, since its job
// had one a moment ago, is counted in the next, or in one of its own where none follows (leftOut).
//
// Events carry the names of their jobs (jobNames): those that this node has in memory, or else
// names read from the store, by the goroutine that tells and by no loop. Events whose names the
// store does not answer for are dropped in the same way as those of a slow hook.
//
// At Stop what waits is told of, for StopGrace at most and until shortly after the end of its
// context (Bus.End); then the goroutine is left behind.
//
// The locks eventQueue.mu, subscriptions.mu and jobNames.mu are leaves; no hook is called under
// one. A panic in a hook costs that call.
package events
