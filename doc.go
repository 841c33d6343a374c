// Package xxljob is an embeddable job scheduler with XXL-JOB's vocabulary. A service imports
// it and runs the whole loop in its own process: schedules, a time ring, routing over
// executors, block strategies, run logs.
//
//	s, err := xxljob.New(memory.New(), xxljob.Config{App: "billing"})
//	if err != nil {
//		log.Fatal(err)
//	}
//	err = s.Handle("report", func(ctx context.Context, t *xxljob.Task) error {
//		t.Log().Info("writing the report", "for", t.ScheduledAt)
//		return report(ctx, t.Param)
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	_, err = s.EnsureJob(ctx, xxljob.Job{
//		Key: "nightly-report", Name: "Nightly report", Handler: "report", Param: "EMEA",
//		Schedule: xxljob.Cron("0 0 3 * * ?").In("Europe/Berlin"),
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	log.Println("the end:", s.Run(ctx))
//
// # The nouns
//
// A [Job] is a definition of work and its [Schedule]. A [Run] is one trigger of a job, with
// a [State]. A [Group] is an executor app and its addresses. A [Node] is one started
// [Scheduler]; several that share one [Store] are a cluster of equal nodes. The store keeps
// everything that outlives a moment: store/memory for one process, or store/postgres.
//
// # Schedule
//
// [Cron] takes Quartz expressions and [Crontab] those of Unix; [FixedRate], [FixedDelay],
// [At] and [Manual] are the other schedules. Scheduler.EnsureJob makes a job exist as the
// program defines it, and EnsureJobs a whole list of them, from each replica of the program;
// AddJob, UpdateJob and RemoveJob are for jobs that people manage. Package jobfile reads a list
// of them from a file of JSON: it is a package of its own, since most programs write their jobs
// in Go, and whoever writes such a file needs no scheduler. Job.Misfire and
// Job.CatchUp say what becomes of instants that were missed.
//
// # Handle
//
// A [Handler] is the code of a job, registered with Scheduler.Handle under the name that
// Job.Handler has. [JSON] makes one with a typed parameter. A run succeeds when its handler
// returns nil; an error that is marked with [Permanent] is not worth another attempt.
// Handlers may also run in other processes: package executor has what they need, and
// Scheduler.AdminHandler takes their calls, those of XXL-JOB's own executors among them.
// Job.Route chooses among addresses, and Job.Block says what happens while the job is busy.
//
// # Trigger
//
// Scheduler.Trigger runs a job outside its schedule, now or at a time, which may be years
// ahead, and once for each Trigger.Key. Wait returns when a run has ended, and Kill ends it.
//
// # Read
//
// The store answers questions about jobs and runs (Store.Jobs, Store.Runs), Scheduler.Log
// returns what a run has logged, Run.Err says in a line why it did not succeed, and Hooks
// are called as things happen.
//
// # Operate
//
// Scheduler.Ready is for probes. Config.Limits bounds memory, goroutines and what is sent
// at once: over a bound, work waits in the store, or is skipped with a record. Postgres
// needs nothing but a schema of its own; see store/postgres.
//
// # Test
//
// Package xxljobtest runs a scheduler in virtual time (testing/synctest), where a month of
// schedules takes moments, and calls handlers by themselves.
//
// # What is promised
//
//   - Every due instant of an enabled job ends as exactly one recorded run (one for each
//     part of a broadcast), or inside a recorded skip.
//   - A run never starts before its time, by a clock that is never ahead of the store's.
//   - No two nodes start the same run, and a result is accepted once, and acknowledged after
//     it is stored.
//   - Runs of a node that left or died are planned again where no handler had them, and are
//     recorded as lost where one had.
//   - What a remote executor answers is accepted, refused or in doubt. Doubt is ended by a
//     reply, a result, or evidence that the run is lost.
//
// # What is not
//
// A handler whose process dies is interrupted: its run is recorded as lost, and is not run
// again unless Job.Retries or Job.OnLost say so. A process paused for longer than
// Config.Cluster.LostAfter may go on with a handler whose run is recorded as lost by then,
// beside a later run of the job; its result is not accepted. A handler that ignores its
// context cannot be stopped; its job goes on after executor.Config.Grace. The memory store
// keeps nothing across an exit of the process; a fail-over of Postgres to an asynchronous
// standby can lose what was acknowledged, and repeat runs. The token of XXL-JOB's protocol
// travels in clear, unless addresses are https.
//
// Not there yet: scripts (XXL-JOB's GLUE types), which executors of this module refuse.
//
// # Concurrency
//
// All methods of a Scheduler are safe for concurrent use, before Start, while it runs and
// from handlers; values are copied in and out. Handlers run on goroutines of their own, one
// for each run under way; an idle job has none. A panic in code that the Config brings, in a
// handler, or in an executor of the user's costs that call and not the process.
//
// # Stores of your own
//
// The interface Store may grow in minor versions. Package store has the contract, and the values
// that only its methods use; package store/storetest has a case for each sentence of it:
// after an update, run it, and it names what is missing.
package xxljob
