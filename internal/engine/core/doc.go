// Package core has what every room is given: the checked configuration, the store with its
// calls counted, the store's clock, the leases, the wakes of the loops, and whether the
// scheduler is started or stopping.
//
// shared carries all of that. New makes it once, and from then on it is only read. A part of
// the scheduler knows shared and the few parts that it needs; none knows the scheduler.
//
// # Configuration
//
// A Config whose zero value is complete takes the place of functional options: each field is
// documented where it stands, and one reads them all in one place. It is nested (Cluster, HTTP,
// Limits), so that a reader meets about fifteen fields first, and what comes later adds to a
// group. validate collects all faults of a Config at once and never puts a token into an error.
// An executor that other admins call is its owner's and is attached, not configured:
// Config.Executor refuses Addr and Admins, because Scheduler.Stop would end such an executor at
// the wrong moment.
//
// # The store
//
// Meter is around the store that New was given, and counts the calls and how long they
// take, for Stats. What a store is beside a Store has to be asked of given, since the meter
// hides it; such calls are counted by metered.
//
// An error of a store means that the outcome is unknown: read again, never assume. SetShards
// fixes the number of shards before the first write, and is repeated until it has succeeded
// once (onceOK).
//
// # The clock
//
// The store's clock is the cluster's. Each answer of the store brings a sample of it, which is
// in the past already when it arrives. The estimate (clock) is the greatest of the last eight
// samples, carried on by the monotonic clock, less half a millisecond for each second of their
// age, by which the clocks may have drifted apart: the greatest sample alone would be ahead of
// a store whose clock runs slower. So the estimate is never ahead of the store, no run starts
// early by it, and a step of the local clock changes nothing. A sample says at most what the
// clock was when it was asked; so an older sample that says more is from before the store's
// clock was set back, and is dropped at the next answer. A store in the same process gives no
// samples.
//
// The estimate is a lower bound. Whatever an edit decides goes by the store's own clock in its
// transaction instead: room plan says why.
//
// # Life and wakes
//
// life has what Start and Stop have come to, and the loops in three stages that end one after
// the other: plan, work, lease (stages). wakes are the pokes of the loops, for whoever has news
// for one. faultCounts count what should not happen, where it is logged, for Scheduler.Stats.
//
// Start asks for the number of shards before it starts anything, because trying again does not
// mend another number; it is the one call of the store that Start waits for, five seconds at
// most. Where the store does not answer, the lease loop finds out and ends there (CannotWork).
//
// After Stop nothing is triggered or ensured and nobody begins to wait (ErrStopped): nobody is
// left here who would hear of an end, and a replica on its way out is not to bring its
// definitions up again. While Stop waits for handlers these calls work as before; requests over
// HTTP do so afterwards too.
//
// # Code of the user's
//
// A panic in code that the Config brings costs that call and not the process: it is recovered
// around each call (internal/guard), with one line for a place and the stack. Code that may end
// its goroutine, as runtime.Goexit does, gets one of its own, for which the caller waits
// (guard.Apart): executors and rings of the user's, AllowIP, DialContext. Our own loops recover
// from nothing, since that hides faults. A Tracer is told of a trigger and of a send
// (tracing), for 100 ms at most; it is a seam of strings, so that a program that does not trace
// compiles nothing for it.
//
// # Locks
//
// Clock.mu is a leaf. life.Mu comes before the lock of the leases (Scheduler.Ready). The meter
// has a lock that is a leaf too. This package starts no goroutine.
package core
