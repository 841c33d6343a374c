// Package measure has what load runs and benchmarks measure with: CPU time of this process
// and of a Postgres server, bytes of WAL, allocations, memory, how late handlers are called,
// and what the machine and its settings were meanwhile.
//
// Comes in: the texts of /proc, the figures of the Go runtime, and answers of a Postgres
// server, for which the caller gives a [Query]. Goes out: numbers. What cannot be read is
// unknown, and never zero: a [Figure] says which.
//
// A measurement is two moments of a [Meter] and what has been used between them:
//
//	m := measure.Meter{Postmaster: pid, Query: query}
//	from := m.Now(ctx)
//	...
//	used := from.To(m.Now(ctx))
//	perRun := used.ServerCPU.Per(runs) // seconds of a core
//
// # Files
//
//   - figure.go: a number that may be unknown
//   - meter.go, cpu_unix.go: moments, and what is used between two
//   - proc.go, procstat.go: what /proc says of processes and of the machine
//   - postgres.go: the server's WAL, settings and first process
//   - heap.go: the peak of the heap and of what is resident
//   - shards.go, lateness.go, distribution.go: recording how late handlers are, and percentiles
//   - ratio.go: what a figure has become, by pairs, with an interval
//   - machine.go, rounds.go: the description of the machine; medians
package measure
