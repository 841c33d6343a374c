package xxljob

import (
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Job is a definition of work and of when it is due: one row of XXL-JOB's xxl_job_info. What
// one needs first are Name, Handler, Schedule and Param; then Route and Block, Timeout, Retries
// and OnLost, AlarmEmail, and Children or After for what follows from other jobs. ID, Version,
// Next, Last and what else the store sets have to be empty when a job is added. A Job is a plain
// value: each call copies it in and out. For all its fields see [store.Job].
type Job = store.Job

// Misfire, for Job.Misfire, says what becomes of instants that are found later than
// Config.MisfireThreshold. The values are XXL-JOB's misfire_strategy. See [store.Misfire].
type Misfire = store.Misfire

// What becomes of instants that are found far too late.
const (
	// MisfireDoNothing, the default, records the missed instants as one skipped run.
	MisfireDoNothing Misfire = store.MisfireDoNothing
	// MisfireFireOnceNow starts one run of type MISFIRE for all of them.
	MisfireFireOnceNow Misfire = store.MisfireFireOnceNow
)

// CatchUp, for Job.CatchUp, says how many runs make up for instants that are late, but by no
// more than Config.MisfireThreshold, or with CatchUpEveryMissed for all that were missed. See
// [store.CatchUp].
type CatchUp = store.CatchUp

// How many runs make up for late instants.
const (
	// CatchUpEvery, the default, starts one run for each late instant.
	CatchUpEvery CatchUp = store.CatchUpEvery
	// CatchUpOnce starts one run for all late instants, as XXL-JOB does.
	CatchUpOnce CatchUp = store.CatchUpOnce
	// CatchUpEveryMissed, of a Job, starts one run for each missed instant, however late, within
	// Job.CatchUpMost and CatchUpAge.
	CatchUpEveryMissed CatchUp = store.CatchUpEveryMissed
)

// OnNoExecutor, for Job.OnNoExecutor, says what becomes of a job while its app has no live executor.
// Empty goes by how the app was served last. See [store.OnNoExecutor].
type OnNoExecutor = store.OnNoExecutor

// What becomes of a job while nobody is there for it.
const (
	// OnNoExecutorWait plans nothing until somebody is there; then Job.Misfire decides about what
	// has passed. Runs that are planned already wait. It is the default of apps whose executors run
	// inside schedulers.
	OnNoExecutorWait OnNoExecutor = store.OnNoExecutorWait
	// OnNoExecutorRefuse records each run as refused, as XXL-JOB does, once nobody has been there
	// for a while. It is the default of apps whose executors register.
	OnNoExecutorRefuse OnNoExecutor = store.OnNoExecutorRefuse
)

// ChildParam, for Job.ChildParam, says which parameter the children of a job are given. See
// [store.ChildParam].
type ChildParam = store.ChildParam

// Which parameter children are given.
const (
	// ChildParamOwn: each child runs with its own, as in XXL-JOB.
	ChildParamOwn ChildParam = store.ChildParamOwn
	// ChildParamParent: that of the run which has succeeded.
	ChildParamParent ChildParam = store.ChildParamParent
	// ChildParamResult: the result of that run (Run.HandleMsg), up to 64 KiB of it.
	ChildParamResult ChildParam = store.ChildParamResult
)

// Backoff, for Job.RetryBackoff, is how long after the end of a failed run the next attempt is
// due: First, doubled up to Max where that is set, and apart by Jitter percent. See
// [store.Backoff].
type Backoff = store.Backoff

// OnLost, for Job.OnLost, says what follows a lost run: one whose process has gone, and of which
// nobody knows how far it came. See [store.OnLost].
type OnLost = store.OnLost

// What follows a lost run.
const (
	// OnLostFail, the default, takes it for a failure: it uses one of Job.Retries, and where
	// there is none it stays lost.
	OnLostFail OnLost = store.OnLostFail
	// OnLostRerun runs it again without using Retries, at most Job.MaxReruns times. It is for
	// handlers that may run twice.
	OnLostRerun OnLost = store.OnLostRerun
)

// GlueBean is the glue type of a job whose handler is Go code registered by name. The other
// types are XXL-JOB's script types: they are stored and sent to third-party executors; an
// executor of this module refuses them.
const GlueBean = store.GlueBean

// Names of the reasons in Job.StopReason that this module itself gives.
const (
	// StopFinished marks a job whose schedule has no further instant. Where it is a bound of
	// the job that has ended it, the name of that follows: "finished: NotAfter".
	StopFinished = store.StopFinished
	// StopPruned marks a job that is gone from all lists of EnsureJobs.
	StopPruned = store.StopPruned
)

// Routing strategies, for Job.Route, under the names that XXL-JOB stores. Package route
// says how each of them chooses.
const (
	RouteFirst               = route.First
	RouteLast                = route.Last
	RouteRound               = route.Round
	RouteRandom              = route.Random
	RouteConsistentHash      = route.ConsistentHash
	RouteLeastFrequentlyUsed = route.LeastFrequentlyUsed
	RouteLeastRecentlyUsed   = route.LeastRecentlyUsed
	RouteFailover            = route.Failover
	RouteBusyover            = route.Busyover
	// RouteShardingBroadcast starts one run at each address of the app.
	RouteShardingBroadcast = route.ShardingBroadcast
	// RouteNearest, the default, prefers the node that has the job's shard. It is not one
	// of XXL-JOB's.
	RouteNearest = route.Nearest
)

// Block strategies, for Job.Block, under the names that XXL-JOB stores: what an executor
// does with a run of a job that it is running already.
const (
	// BlockSerial, the default, runs them one after the other.
	BlockSerial = block.SerialExecution
	// BlockDiscardLater ends the new run as discarded.
	BlockDiscardLater = block.DiscardLater
	// BlockCoverEarly kills what is running or waiting, and runs the new one.
	BlockCoverEarly = block.CoverEarly
	// BlockConcurrent runs them side by side, up to Job.MaxPerExecutor. It is not one of
	// XXL-JOB's: third-party executors run them one after the other.
	BlockConcurrent = block.Concurrent
)

// Group is an executor app and the addresses that serve it: one row of XXL-JOB's xxl_job_group.
// App is its name; Addresses are those that register, or those that were given where it is
// Manual. See [store.Group].
type Group = store.Group

// FieldError is what is wrong with one field of a value that was given: which Field of what,
// the Value, and the kind of fault as a Code. See [store.FieldError].
type FieldError = store.FieldError

// FieldErrors returns all that an error says of fields, in the order in which it was found.
// errors.As finds the first of them.
func FieldErrors(err error) []*FieldError { return store.FieldErrors(err) }
