// Package route decides which of an executor app's addresses a trigger of a
// job goes to, by XXL-JOB's routing strategies under their stored names.
//
//	FIRST, LAST            an end of the list
//	ROUND                  one after the other, per job
//	RANDOM                 any
//	CONSISTENT_HASH        the same one for the same job while the list lasts
//	LEAST_FREQUENTLY_USED  the one the job used least in the last day
//	LEAST_RECENTLY_USED    the one the job has not used for longest
//	FAILOVER, BUSYOVER     all, in order: the caller probes and stops at the first that answers
//	SHARDING_BROADCAST     all: one shard each
//	NEAREST                the node itself, else ROUND (ours, not XXL-JOB's)
//
// [Builtin] gives all of them by name. A router of one's own is any type with
// the method of [Router]; it need not import this package.
//
// # What routers promise
//
// Routers are deciders: they do no I/O, start no goroutine and never wait, so
// they do not look at the context. They are safe for concurrent use. They
// answer an empty list with [ErrNoAddress], and they never change the list.
// The answer is in order of preference and is for reading only: it is, where
// possible, a part of the caller's own list, so that routing allocates nothing.
// Its capacity is cut, so appending to it cannot write into that list.
//
// The list may differ from call to call, and may even be the same slice with
// other contents. Routers that remember a list compare it again every time,
// which costs about a quarter of a nanosecond per address while the strings
// themselves are the ones of the call before.
//
// # What routers remember
//
// ROUND, LEAST_FREQUENTLY_USED and LEAST_RECENTLY_USED remember something per
// job. As in XXL-JOB it lives in the process and is not shared by nodes. It is
// bounded: at most 131,072 jobs and, where addresses are remembered,
// 2,097,152 addresses over all jobs; beyond that the job triggered least
// recently is forgotten, and starts anew when it comes again. A removed job is
// forgotten by [Forgetter].
package route
