package xxljob

import "github.com/xxljob/xxljob/internal/errs"

// Errors of the Scheduler. They are wrapped with what was attempted; test for
// them with errors.Is.
var (
	// ErrUnknownRoute: no routing strategy has this name.
	ErrUnknownRoute = errs.ErrUnknownRoute
	// ErrUnknownBlock: no block strategy has this name.
	ErrUnknownBlock = errs.ErrUnknownBlock
	// ErrUnknownHandler: no executor offers the app or the handler
	// (Config.StrictHandlers), or nobody has a handler in an app that this process
	// serves (Scheduler.Start).
	ErrUnknownHandler = errs.ErrUnknownHandler
	// ErrNeverFires: the schedule has no instant in the future.
	ErrNeverFires = errs.ErrNeverFires
	// ErrManual: a job without a schedule cannot be started; trigger it.
	ErrManual = errs.ErrManual
	// ErrCycle: the success of the job would lead to the job again, by way of its children and
	// of the jobs that run behind it.
	ErrCycle = errs.ErrCycle
	// ErrStarted: Start was called before.
	ErrStarted = errs.ErrStarted
	// ErrStopped: the scheduler is stopped.
	ErrStopped = errs.ErrStopped
	// ErrNoLog: nobody has a log of the run, or none that can be asked for it.
	ErrNoLog = errs.ErrNoLog
	// ErrNotReady: see Scheduler.Ready and NotReadyError.
	ErrNotReady = errs.ErrNotReady
	// ErrWaitsForItself: a handler has called Wait for a run that cannot end, or not begin,
	// before its own has ended. That is so for its own run, and for a planned run of the same
	// job with SERIAL_EXECUTION which, by the addresses that its app has at that moment, as
	// far as this node knows, goes to the address where the handler runs, and to no other:
	//
	//   - the run can go to no other address: none else has the handler, or the trigger has
	//     named this one only. With BUSYOVER the run is refused then, and has thus ended;
	//   - FIRST, LAST, FAILOVER or CONSISTENT_HASH choose this address among all;
	//   - NEAREST, where the node of the handler has the job's shard. A shard that moves to
	//     another node before the run is due would take it along;
	//   - SHARDING_BROADCAST, where all are addresses of nodes: it begins when the job is idle
	//     at all of them.
	//
	// Any other run may end without the handler, so Wait waits for it: ROUND, RANDOM and the
	// like, and custom routers, may send it elsewhere, and it is not certain which node sends
	// it until it has been sent. If it does come here after all, the wait ends with its
	// context. The error changes nothing about the run: it begins once the handler has ended.
	//
	// Stop returns it to a handler that has called it with its context, and stops nothing.
	ErrWaitsForItself = errs.ErrWaitsForItself
)

// Errors of stores. A store wraps them with what was attempted; test for them
// with errors.Is.
var (
	// ErrNotFound: there is no such job, run, group or node.
	ErrNotFound = errs.ErrNotFound
	// ErrConflict: the job's version is not the one the caller had read.
	ErrConflict = errs.ErrConflict
	// ErrDuplicateKey: the app has a job with this Key already.
	ErrDuplicateKey = errs.ErrDuplicateKey
	// ErrGroupInUse: the group still has jobs.
	ErrGroupInUse = errs.ErrGroupInUse
	// ErrShards: the store was set up with another number of shards.
	ErrShards = errs.ErrShards
	// ErrStoreClosed: what the store goes by was closed under it, such as the pool of connections
	// that it was given. It is for good.
	ErrStoreClosed = errs.ErrStoreClosed
	// ErrSuperseded: another list applies to the app, of another generation or of the same
	// one, or others name the job that was to be pruned. Nothing was changed.
	ErrSuperseded = errs.ErrSuperseded
)
