// Package plan decides which instants of a job become runs. It is pure: a job and a time come
// in, a Plan goes out, and no transaction waits for it.
//
// # What becomes of instants
//
// planner.Plan covers every instant of a job up to the end of the window; each is in exactly
// one of the runs of the Plan, and Plan.Next is the first instant that is not:
//   - instants ahead, up to the end of the window: one planned run each, and one instant more
//     where the job comes round within a pre-read. Claiming a job costs the server more than
//     planning a run, since each claim adds an entry to the key and to the index of due jobs;
//   - the oldest unplanned instant is late by at most MisfireThreshold: every late instant is
//     planned to start now, or with CatchUpOnce one run for all of them;
//   - of a job with CatchUpEveryMissed every late instant is planned to start now, however late,
//     up to its bounds; those over the bounds are as the next says;
//   - later than that: one record of all instants up to now, skipped or MISFIRE, with first,
//     last and count. Counting stops at store.CountCap ("at least"), so that a long outage of a
//     job that runs each second costs a bounded time;
//   - more than MaxPlanned runs of the job waiting, the window's own not counted: one skipped
//     record, "backlog".
//
// A run for several instants (MISFIRE, CatchUpOnce) carries the last missed one as Scheduled,
// which is the one that the work is late for, with First, Last and Count beside it.
//
// Instants outside of the job's bounds, and those behind the last of its MaxRuns, do not exist.
// A schedule that fails, or does not advance (errNotAdvancing), stops its job with the error as
// reason. FixedDelay plans one run and waits for its end. A late run is inserted planned and is
// started by the start loop like any other: one path for all, at the price of one more write.
//
// # Edits
//
// An edit works out the next instant inside its transaction: strictly after now and after the
// latest instant that was started (Replanned, rescheduled, Restarted, rebounded). So none is
// lost or doubled, and XXL-JOB's skip of five seconds is not needed. "Now" is the store's own
// clock, read after the row of the job is locked; it becomes the job's Updated. AddJob asks for
// its first instant in the same way (FirstInstant). A node's estimate of that clock would not
// do. It is a lower bound, so that nothing starts early by it; a schedule planned from it would
// run instants from before the edit, and leave out of the record what came due since.
//
// An edit records what it leaves behind (Overdue). Instants that were overdue and not planned
// when a job is stopped or its schedule changes become one skipped record with reason "edit".
// So each instant of the old schedule up to the edit is in a row: its run was started; or it
// was planned, and its row is cancelled with the edit's verb as reason; or it is in that
// record.
//
// A job's version is raised by each edit, start and stop. Only planned runs that a schedule
// made are cancelled, and only by a stop, a removal, or a change of schedule, zone or bounds.
// Other edits leave planned runs alone: a run uses the definition at its start.
//
// What MaxRuns bounds is a number in the row of the job (Job.Runs). The claim raises it by the
// runs that it inserts; whatever cancels runs so that their instants may come again lowers it
// in the same transaction, before it works out the next instant. So nothing has to be counted,
// and nobody's death makes a run too many or too few. A planned run that a person kills stays
// counted, since nobody wants it made up for. Another schedule begins at zero, and runs of the
// former one that are put back later are none of its own (counted_after, an id). A change of
// the bounds alone keeps a rate in step and a delay waiting (goesOnWaiting).
//
// Manual jobs are stored stopped, with reason "manual", and start when they are given a
// schedule. So do jobs that stopped by themselves (finished, broken schedule) when their
// schedule is changed, and finished ones when their bounds are. A job that somebody stopped
// stays stopped (Define). "Enabled" then always means that there is something to plan.
//
// # Memory
//
// Scratch lends the memory for the runs of the plans of one scan. There is no lock here and no
// goroutine: a planner belongs to whoever made it.
package plan
