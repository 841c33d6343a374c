// Package bench puts a scheduler under a load, measures what becomes of it, and audits that
// every instant has run once.
//
// Comes in: a [Config], which says which store, which executors and which load. Goes out: a
// [Report]. It sees the scheduler as any program does: jobs are added and runs are planned by
// the store's own methods, handlers note when they are called, and what was recorded is read
// from the store afterwards.
//
// # Shapes
//
//   - steady: so many jobs a second, each due every second, spread evenly over it
//   - herd: all jobs are due at the same instant, every second
//   - sparse: very many jobs wait, few are due
//   - drain: runs that are due already wait when the scheduler starts
//   - overload: steady, with half as many again as come through
//
// Lateness is from the instant of the schedule to the first line of the handler. The audit goes
// by all instants from the first to the last, those of the warm-up included.
//
// # Files
//
//   - config.go, run.go, log.go: what is asked for, what is done, and what is said meanwhile
//   - host.go, memory.go, postgres.go: stores, a new one for each load
//   - node.go: the scheduler
//   - fleet.go, child.go: executors in processes of their own
//   - jobs.go, calendar.go: jobs, and which instants they have
//   - paced.go, sparse.go, drain.go, overload.go, window.go: the shapes, and what is measured
//   - calls.go, audit.go, series.go: what ran, and what the store has of it
//   - report.go, print.go: the figures
package bench
