// Command peers measures this module beside its peers, on one machine and in one run: River as
// a queue on Postgres, and gocron, robfig/cron and go-quartz as schedulers in memory.
//
//	go run ./bench/peers                         all parts, some fifteen minutes
//	go run ./bench/peers -only drain -rounds 2
//	go run ./bench/peers -json >figures.json
//	go run ./bench/peers -strict                 exit with 1 where a target is not met
//
// Absolute figures hold for one machine and one hour; ratios of one run are what can be
// compared. So the contestants take turns, each round is in a process of its own against a
// database of its own, after a checkpoint, and medians are printed with the least and the
// greatest round. Load of others is printed beside them: with more than 0.15 of a core, it is
// better to measure again.
//
// # What is the same for both
//
// One Postgres server, whose settings are printed, with commits that wait for the disk; the
// same pool of connections; handlers that note their call and return; the time from the start
// of the client to the moment at which the store has the last unit as done. Beside it is when
// the first handler was called, and how fast it went from then on. After each round the store is
// asked whether every unit is recorded as succeeded, and the calls are compared with that: a
// round with a unit that is missing, or a handler that was called twice, fails.
//
// # What is not
//
// This module is configured by its defaults; of a herd in memory it may run all handlers at once
// (executor.Config.Places), as its peers there do, which bound nothing. River's defaults are
// meant for gentler loads, so it has the settings of its own benchmark command: fetches 2 ms
// apart, a poll every 20 ms, 2,000 workers. A unit of River is a job that was inserted. One of
// ours is a run of one of 5,000 jobs; in a drain it is planned already, and by a schedule it is
// planned, and its job moved on, while others run. River has no schedule of that kind: beside
// ours are jobs that were all inserted before, each with the time at which it is to run.
//
// Schedulers in memory record nothing of what they have run; ours does. They do not say either
// for which instant they call: it is taken to be the last whole second, so their lateness is
// never overstated, and what they leave out is counted as not called. What ours has not called
// by the end is late, and not lost: the audit knows no gap but before the last call of a job.
//
// # Files
//
//   - main.go, parts.go: flags; which rounds there are, and in which order
//   - drain.go, scheduled.go, inmemory.go: one round of each part
//   - child.go, childmain.go: a contestant's process, from outside and inside
//   - ours.go, oursmemory.go, oursdata.go, river.go, gocron.go, robfig.go, quartz.go: contestants
//   - calls.go, audit.go: what handlers note, what is found in it, and whether the store agrees
//   - server.go: the Postgres server and its databases
//   - sample.go, report.go, targets.go: figures of a round, tables, and what they ought to be
package main
