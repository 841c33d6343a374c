// Package executor runs job handlers.
//
// An [Executor] holds handlers by name, takes runs for them through
// [wire.Executor] and sends results to the [wire.Admin] it is bound to. It does
// not know where a run comes from: a scheduler in the same process and an admin
// that calls over HTTP use the same methods.
//
// # The life of a run
//
//	Run (accept.go)     known id? handler? block strategy? room?  answered at once
//	  → job.go          one handler of a job at a time, the others wait in order
//	  → worker.go       the handler, in a goroutine of its own
//	  → end.go          its one result, by the handler, a timeout, a kill or a stop
//	  → report.go       the result travels to the admin, again and again until it arrives
//
// Each accepted run has exactly one result. What ends a run from outside (timeout,
// kill, COVER_EARLY, Stop) cancels the handler's context with a cause and records the
// result at once; whatever the handler returns afterwards is ignored. A job
// never runs beside itself, with one exception: a handler that ignores
// cancellation for [Config.Grace] is abandoned, counted, and its job goes on.
//
// # Bounds
//
// Everything is bounded: handlers running at once ([Config.Places]), runs waiting
// for one job ([Config.Queue]) and for all ([Config.Backlog]), results the admin has
// not taken ([Config.Outbox]), remembered ids, and logs. Over a bound a run is
// refused with a message that names it; an accepted result is never dropped
// before [Executor.Stop].
//
// # Goroutines
//
// An idle executor has none. There is one per running handler, and one that
// delivers results while there are any. Stop returns when all have ended, save
// those of abandoned handlers.
package executor
