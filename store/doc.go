// Package store is the record: jobs, runs, apps and nodes, what may become of a run, and the
// contract of what keeps them.
//
// Programs that use a store import store/memory or store/postgres. Authors of stores implement
// [Store], and check it with store/storetest, which has a case for each sentence of the
// contract. The types are plain values, copied in and out. None does I/O or starts a goroutine.
//
// # The contract
//
// A method is one transaction. An error, but for the named ones, means that the outcome is
// unknown: the caller reads again and never assumes. Claims, starts, new addresses and verdicts
// are compared with the epoch of the shard in the write itself, so that nobody waits for a lock
// of all jobs, and a paused former owner writes nothing. Results are compared with the run
// (incarnation or owner, start token) and not with the epoch: a result that comes after the
// shard has moved is still the result.
//
// Rows that others have locked are an answer, ErrLocked, beside what was stored, so that one
// row which somebody has locked holds up nothing else.
//
// # States
//
// [State].CanBecome is the picture of what a run may become, and State.Codes its projection to
// XXL-JOB's trigger and handle codes. Final states never change; a result that comes after lost
// is noted once in the row. Dispatched is for remote executors: there one call and its answer
// lie between started and the end.
//
// # What follows the end of a run
//
// Run.Follow is pure: a run that has ended, its job and the time come in, the run that follows
// goes out. The store asks it in the transaction that ends the run, whichever that is (Finish,
// Start for refusals, Settle), and inserts the answer there, so that no death can come between.
// docs/failures.md describes it for users.
//   - The run that follows has no epoch, as if somebody had triggered it: the shard's owner
//     finds it by its next scan.
//   - A retry counts as born like the first run of its trigger (Run.Born). So a stop cancels
//     the retries of the schedule and no others: manual jobs, and At jobs, which are stopped
//     once they have fired, are tried again. Another schedule or zone cancels none, since the
//     work of an instant that has passed is still owed. A removal cancels all.
//   - OnLost has two values, and both are bounded. With FAIL a lost run uses Retries as any
//     failure does, and stays lost where there are none. With RERUN it has attempts of its own,
//     MaxReruns at most, so that a handler that kills its process does not kill node after
//     node. A run that a shutdown has cut off is lost, like one whose process crashed: a kill
//     is followed by nothing.
//   - Snoozed runs are stored as succeeded ones with a mark. They share the codes, and a node
//     of the version before takes them for done. Over the wire it is the other way round: the
//     result has the code of a failure beside the key snoozeIn, since an admin that does not
//     know the key would otherwise take work for done that was not done.
//   - What a success owes to children and joins (Run.Owes) becomes rows in that
//     transaction, which the owner of the shard pays (room scan), and which alarm an end is
//     (Run.Alarm) is decided there too.
//
// Ended runs and the first runs of their triggers are locked together, in order of id; then
// what follows is inserted; then the job is armed anew, so that a job which waits for the ended
// run (FixedDelay) waits for the next one instead.
package store
