// Package xxljob is an embeddable job scheduler with XXL-JOB's vocabulary. A
// service imports it and runs the whole loop in its own process: schedules, a
// time ring, routing over executors, block strategies, run logs. A [Store]
// keeps everything that outlives a moment: store/memory, for one process, or
// store/postgres. Several Schedulers that share one store are a cluster of equal
// nodes.
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		s, err := xxljob.New(memory.New(), xxljob.Config{App: "billing"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		err = s.Handle("report", func(ctx context.Context, t *xxljob.Task) error {
//			t.Log().Info("writing the report", "for", t.ScheduledAt)
//			return report(ctx, t.Param)
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if _, err := s.EnsureJob(ctx, xxljob.Job{
//			Name: "nightly report", Handler: "report", Param: "EMEA",
//			Schedule: xxljob.Cron("0 0 3 * * ?").In("Europe/Berlin"),
//		}); err != nil {
//			log.Fatal(err)
//		}
//		log.Println("the end:", s.Run(ctx))
//	}
//
// # The nouns
//
// A [Job] is a definition of work and its [Schedule]. A [Run] is one trigger of
// a job, with a [State]. A [Group] is an executor app and its addresses. A
// [Node] is one started [Scheduler]; a [Shard] is a part of all jobs that one
// node at a time schedules. [Router], [Registry], [TimeRing] and [Store] are
// interfaces with a default each (the store excepted: it is always given), and
// the first three can be implemented without importing this package.
//
// # The life of a trigger
//
// Each of these files begins with what comes in and what goes out:
//
//	scan.go      reads jobs due within Config.PreRead, and planned runs of others
//	plan.go      decides, purely: one run an instant; misfire, catch-up, backlog
//	claim.go     advances the job and inserts its runs, in one transaction
//	ring.go      holds planned runs until their time
//	  held.go      of an app with very many the earliest, and reads on in the store
//	start.go     takes what is due (collect.go), takes places for it (places.go), and marks
//	             it started (startbatch.go)
//	  route.go     address.go probe.go: which addresses there are, and which it is
//	  flight.go    queue.go lanes.go: turns of apps, lanes, lots where runs wait
//	deliver.go   send.go: sends a started run to its executor, never before its time
//	  remote.go    dispatch.go: executors over HTTP, and what they answer
//	  indoubt.go   runs whose executor may or may not have them
//	take.go      or another node takes it out of its inbox, by compare-and-set
//	executor/    runs the handler: block strategy, timeout, kill, panic, log
//	finish.go    stores the result once, then acknowledges it
//	  admin_results.go  the same for results that come over HTTP, to any node
//	lost.go      settles the runs of nodes that are gone
//	orphan.go    runs starts that took effect after their call had failed
//
// Beside it: parts.go is the list of the parts, duties.go the table of the loops,
// lifecycle.go the way up and stop.go the way down; kill.go ends a run wherever it is;
// leaser.go, lease.go and shares.go know nodes and shards, registrar.go and addressbook.go
// addresses; jobs.go and ensure.go change definitions, admin.go and jobadmin.go are what
// executors call, engine.go is what a node holds in memory, and what is the user's is
// called by hooks.go and the files whose names begin with "user".
//
// To read the code: job.go, run.go and schedule.go for the nouns, store.go for
// the contract everything rests on, then the files above in their order.
//
// # Who imports whom
//
//	5 programs    examples/*
//	4 backends    store/memory  store/postgres  store/storetest   xxljobtest
//	                     \___________|_______________|____________/
//	3 engine                      xxljob
//	2 engine          ___________/ | \______ executor
//	1 leaves      route  internal/cron          wire   block
//	0 below       internal/guard  internal/inside  internal/urgent
//
// An upper room imports a lower one and no line runs up; deps_test.go reads the
// real imports. Leaves import the standard library only (internal/cron also
// gronx, and wire internal/guard, which makes errors of panics). Route, block and internal/cron decide: they do no I/O and start no
// goroutine. A process that only executes imports executor and compiles no
// scheduler.
//
// # What is promised
//
//   - Every due instant of an enabled job ends as exactly one recorded run (one
//     a shard of a broadcast), or inside a recorded skip. The run is in the store
//     before anything in memory knows of it.
//   - A run never starts before its time. It is marked started at most 20 ms
//     before, and sent at its time by a clock that is never ahead of the store's.
//   - No two nodes start the same run. Plans, starts, new addresses and verdicts
//     carry the shard's epoch, and a node that has not been heard by the store
//     for LeaseTTL less a fifth plans, starts and sends nothing.
//   - A result is accepted once, and acknowledged after it is stored. Results of
//     attached executors are fenced by incarnation and start token, so that they
//     may arrive after the shard has moved.
//   - Runs of a node that left, was superseded or was silent for LostAfter are
//     put back when no handler had them, and recorded as lost when one had.
//   - What a remote executor answers is accepted, refused or unknown; unknown is
//     ended by a reply, a result, or evidence that the run is lost. Only an executor
//     that has shown at its registration that it knows ids again is sent one again.
//   - Memory, goroutines and what is sent at once are bounded. Over a bound, work
//     waits in the store, or is skipped with a record (Config.Limits.MaxPlanned).
//
// # What is not
//
// A handler whose process dies is interrupted: its run is recorded as lost and
// is not run again. A process paused for longer than LostAfter may go on with a
// handler whose run is recorded as lost by then, beside a later run of the job;
// its result is not accepted. A handler that ignores its context is recorded at
// once, but cannot be stopped; its job goes on after executor.Config.Grace. The
// memory store keeps nothing across an exit of the process; a fail-over of
// Postgres to an asynchronous standby, or a crash of it under
// postgres.Config.AllowAsyncCommit, can lose what was acknowledged, and repeat runs.
//
// A run that a remote executor has accepted and never reports, for its process is gone,
// stays dispatched. The token of XXL-JOB's protocol travels in clear, unless the
// addresses are of https, and can be replayed by anyone who has seen it.
//
// Not there yet: retries, children, alarms, reports and console, and the end of such
// runs. Job.Retries, Job.Children and Job.AlarmEmail are stored and not acted upon.
//
// # Concurrency
//
// All methods of a [Scheduler] are safe for concurrent use, before Start, while
// it runs and from handlers; values are copied in and out. Start waits for one
// answer of the store, five seconds at most, and does not block beyond that;
// Stop returns when every goroutine of the scheduler has ended, or two seconds
// after its context where the store hangs or a handler ignores its cancellation.
// Handlers run on goroutines of their own, one for each run under way; an idle
// job has none. Hooks are called one after the other, beside the loops. A panic in
// code that the Config brings, or in an executor of the user's, costs that call and
// not the process.
//
// Interfaces implemented by others, Store and Router among them, must be safe for
// concurrent use. Time is the time package's: tests run in testing/synctest
// bubbles, where a month of schedules takes moments (package xxljobtest).
package xxljob
