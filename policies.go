package xxljob

// How a job is run: the values that its strategies may have.

import (
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/route"
)

// Misfire says what becomes of instants that are found later than
// Config.MisfireThreshold. The values are XXL-JOB's misfire_strategy.
type Misfire string

const (
	// MisfireDoNothing, the default, records the missed instants as one
	// skipped run and goes on with the next instant.
	MisfireDoNothing Misfire = "DO_NOTHING"
	// MisfireFireOnceNow starts one run of type MISFIRE for all of them.
	MisfireFireOnceNow Misfire = "FIRE_ONCE_NOW"
)

// CatchUp says how many runs make up for instants that are late, but by no
// more than Config.MisfireThreshold.
type CatchUp string

const (
	// CatchUpEvery starts one run for each late instant. It is the default.
	CatchUpEvery CatchUp = "EVERY"
	// CatchUpOnce starts one run for all late instants, as XXL-JOB does.
	CatchUpOnce CatchUp = "ONCE"
)

// ChildParam says which parameter the children of a job are given.
type ChildParam string

// The values of ChildParam.
const (
	// ChildParamOwn: each child runs with its own, as in XXL-JOB.
	ChildParamOwn ChildParam = "OWN"
	// ChildParamParent: that of the run which has succeeded.
	ChildParamParent ChildParam = "PARENT"
	// ChildParamResult: the result of that run (Run.HandleMsg), of which a parameter's 64 KiB
	// are passed on.
	ChildParamResult ChildParam = "RESULT"
)

// GlueBean is the glue type of a job whose handler is Go code registered by
// name. The other types are XXL-JOB's script types: they are stored and sent
// to third-party executors; an executor of this module refuses them.
const GlueBean = "BEAN"

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
