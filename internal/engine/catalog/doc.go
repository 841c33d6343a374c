// Package catalog has the verbs that change definitions: jobs, apps, lists of jobs, triggers by
// hand, and runs that somebody deletes.
//
// A Catalog has them all. A definition is completed and checked as a whole, and all its faults
// are returned at once (complete). Which instant comes next is decided in the transaction of
// the edit, by room plan.
//
// # Checks
//
// A schedule that is broken or has no instant ahead is refused when it is saved. A job must not
// follow from itself by its children and the jobs that run behind it (links, cycles). Where a
// job is concurrent, and executors of others would run it one after the other, that is a
// warning, or a fault for a manual group (concurrent.go). Where gronx reads a crontab expression
// differently from this module, both readings are logged (secondopinion.go).
//
// A handler that nobody has, in an app that this process serves, is misspelt (misspeltHandlers). What is
// defined before Start is stored as it comes and looked at by Start, since its handlers may be
// registered behind it; what comes later is refused. Wherever somebody unknown may have the
// handler it is a warning.
//
// Removed jobs keep their runs: they say what happened, and retention takes them. XXL-JOB
// deletes them with the job. The record of changes keeps what a job was: each entry has the
// whole definition beside what differs (docs/record.md), so that restoring one reads one row.
// Working it out backwards would have read all entries since, and failed behind one that was
// dropped or that an older node has written.
//
// # Who calls
//
// Each verb that stores a parameter (AddJob, UpdateJob, the triggers, Again) takes the grants of its
// caller and checks them (grants.go); nothing of that is checked at the entrances, the console and the
// jobs API, which make the grants of a user or a token. Zero grants may nothing; the host has all.
// EnsureJob and EnsureJobs are the host's. A parameter goes to a script only from who may write
// scripts, also where other jobs hand it on (ChildParam) or once hand it on: links are looked at when
// an edit completes one, from the parent (children, ChildParam) or from the child (key, glue type),
// each with all that lies behind it. To run behind a job needs the right to see it, and to lead to one
// of another app the right to run that; whoever operates the parent may use it then. Of links from
// before, those are named in the log whose last editor might not make them (linksbefore.go); they are
// not cut. What of a job is hidden the job says (Job.Secret), and the store keeps to it when it pays
// children, whoever has made the link.
//
// What is looked at again behind a write (lookagain.go) cannot be looked at within it by comparing
// versions of the two ends. Each caller has read the other end, but what matters may be none that it
// could name: a job that others do not lead to yet, a key that no job has yet, any job between the two
// that hands on. Nor does an edit that makes a link change the row of the child, so two edits with
// unchanged versions would both be stored. It would take one row for all links of a schema, which each
// edit of one locks and raises, and which nodes of versions before do not know. Behind the write each
// sees all that was stored before it; a process that dies between the two leaves a link, which is named
// in the log after the next start.
//
// # EnsureJob and EnsureJobs
//
// EnsureJob makes one job exist as given, EnsureJobs a list. Neither starts or stops a job that
// is there, with one exception: a job that was pruned and comes back into a list, or is ensured
// by itself, is started again, because it was stopped only since no list wanted it. EnsureJob
// also removes the job from what lists have named (unname): its caller may have no list that
// keeps it, and it would be pruned again and again. Whoever named a job last decides whether it
// may be pruned.
//
// # The head of an app
//
// EnsureJobs puts a list into the store: app, generation, keys, and a digest of the
// definitions. For each app the store has the head, which says what list was applied last, and
// the list of each node, beside the node's row. Nothing of them is written again while it stays
// the same: a list counts as long as its node does, until that has left or is buried. Beside
// each job is the generation of the list that named it last; EnsureJob clears that.
//
// Definitions are written under the head: its generation and digest are compared in the same
// transaction (applier). Of two releases that ensure at once the greater generation has the
// last word, however slow either is. Within one generation it is the list that became the head
// last: that call is what somebody has wanted most recently, be it a release without a
// generation or a replica that has just restarted, and the same calls one after the other have
// the same result. Whoever finds another list at the head stops, and does not put its own
// again, so two lists of one generation do not overwrite each other in turns.
//
// # Lists over time
//
// Each node with a list for an app looks after that app (pruner), not the owner of a job's
// shard: a node has seen its own list all the time, whereas shards move, and an app without
// nodes is left alone. A node looks ten times in PruneAfter, once a minute at most; a gap in
// its looks, a lost lease or a new row make it count anew.
//
// Prune stops, of the jobs that lists have named, those that no list names, if its own list
// prunes and its generation is at least that of the list which named the job last (or that of
// the head, if that is lower after a rollback). While another list of its own generation is the
// head it prunes nothing, since a process that has just ensured its jobs may not be a node yet.
// The prune is an edit with a guard (Edit.Guard), which compares all that again in its
// transaction, with lists locked out. It is not done by the call of EnsureJobs itself: a
// replica of the former release that restarts must not stop what the new one has brought.
//
// Apply again: if the head is another list, and no live node has that list or a greater
// generation, the node applies its own, provided that the head is still what it saw. So a
// former release gets its definitions back after the later one is gone, and a process that
// ensured its jobs and never came up blocks nobody for long. At its next look a node also
// finishes what an error has left of its own list, even if EnsureJobs has returned that error:
// where its list is the head, since nobody else would, and where the store never had the list
// and nothing as new is there. Jobs whose instants have all passed by then stay as they are.
//
// Bring back: jobs of its own list that were pruned while the list was on its way are started
// again, since EnsureJobs comes before Start and only a node has a list. Another list of its
// generation may be the head by then; jobs that either names stay.
//
// # Deleting runs
//
// DropRuns deletes ended runs that somebody names. A run has to have ended for ten minutes
// (dropSettled), so that whoever waits for it finds it. KeepDuty deletes what jobs keep for
// less than all runs are kept.
//
// # Locks and goroutines
//
// Lists has this node's lists; its lock is a leaf, and so is that of keptJobs. Its turn guards nothing but the order:
// lists of one scheduler are applied one after the other, and it is held across calls of the
// store, which no loop but that of the lists waits for. The list loop belongs to stage lease,
// and ends last; without a list it sleeps.
package catalog
