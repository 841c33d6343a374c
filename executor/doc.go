// Package executor runs job handlers.
//
// An [Executor] holds handlers by name, takes runs for them through
// [wire.Executor] and sends results to a [wire.Admin]. It works for a scheduler in
// the same process, which it is bound to, for any number of admins that call over
// HTTP, XXL-JOB's own among them, and for all of these at once. Their run and job
// ids may be the same: what is known by an id is kept apart for each admin.
//
// # The life of a run
//
//	HTTPHandler (lifecycle.go) a request finds the admin that it is from, by path or token
//	  → executor.go            the executor as that admin sees it
//	Run (accept.go)            known id? handler? block strategy? room?  answered at once
//	  → job.go                 one handler of a job at a time, the others wait in order;
//	                           the handler, in a goroutine that does nothing else meanwhile;
//	                           its one result, by the handler, a timeout, a kill or a stop
//	  → internal/spool         the result is written to the disk, if that is configured
//	  → outbox.go              it travels to the admin, again and again until it arrives
//	  → refused.go             or is put aside, where an admin elsewhere takes all but this one
//	  → cluster.go             at the node that worked last, or else at the next one
//
// Each accepted run has exactly one result. What ends a run from outside (timeout,
// kill, COVER_EARLY, Stop) cancels the handler's context with a cause and records the
// result at once; whatever the handler returns afterwards is ignored. A job
// never runs beside itself, with one exception: a handler that ignores
// cancellation for [Config.Grace] is abandoned, counted, and its job goes on.
//
// A run is known by its id and the date that its trigger carries, or by the id alone
// where there is no date (accept.go): an admin that begins its ids anew gives an id
// twice. One that arrives again, on another connection or after it has ended, is
// answered and not run again, for as long as [Config.KeepFinished] at least and until
// its result is delivered; later it is refused, if its admin is of this module and says
// that it sends it again. One that was meant for an earlier process at the same address
// is refused, if its admin is of this module and says so. So is one that arrives after
// its admin, of this module, has asked about it and heard that it is not known
// (accept.go).
//
// # Admins elsewhere
//
// [Executor.Start] registers with one node of each of [Config.Admins] and goes on
// to do so (register.go); [Executor.Stop] takes that back first of all. Admins
// reach the executor through [Executor.HTTPHandler] in the host's own mux, or through
// the server of [Config.Addr]. Without Admins and Addr there is nothing to start.
//
// With [Config.SpoolDir] results are on the disk before they are first sent, and
// survive the process: an executor on the same directory delivers them. The
// admin may get a result twice then, which it knows to ignore. Running runs do not
// survive.
//
// # Bounds
//
// Everything is bounded: handlers running at once ([Config.Places]), runs waiting
// for one job ([Config.Queue]) and for all ([Config.Backlog]), results that one admin
// has not taken ([Config.Outbox], [Config.SpoolBytes]), remembered ids, and logs.
// Over a bound a run is refused with a message that names it; an accepted result is
// never dropped before [Executor.Stop], but for one that an admin elsewhere has refused three
// times alone while it has taken others: that is put aside, with a line in the log.
//
// # Goroutines
//
// An idle executor has none, and a started one has one for each of Config.Admins
// and one for the server of Config.Addr. There is one per running handler, which may go on
// with that of another run, and up to 64 that are on their way to further ones; one per
// admin that delivers results while there are any, and one that writes them to the
// spool. Stop returns when all have ended, save those of abandoned handlers.
package executor
