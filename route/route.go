package route

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The strategies' names, as XXL-JOB stores them in executor_route_strategy.
// Nearest is ours.
const (
	First               = "FIRST"
	Last                = "LAST"
	Round               = "ROUND"
	Random              = "RANDOM"
	ConsistentHash      = "CONSISTENT_HASH"
	LeastFrequentlyUsed = "LEAST_FREQUENTLY_USED"
	LeastRecentlyUsed   = "LEAST_RECENTLY_USED"
	Failover            = "FAILOVER"
	Busyover            = "BUSYOVER"
	ShardingBroadcast   = "SHARDING_BROADCAST"
	Nearest             = "NEAREST"
)

// ErrNoAddress is returned by every router of this package for an empty list.
var ErrNoAddress = errors.New("xxljob: route: no address")

// Router decides where a trigger of a job goes.
type Router interface {
	// Route returns those of addrs that a trigger of the job goes to, in
	// order of preference, or an error if there is none. It does not change
	// addrs or keep hold of it after the call. The result may be a part of
	// addrs: the caller reads it and leaves both alone while it does. Route
	// is safe for concurrent use.
	Route(ctx context.Context, jobID int64, addrs []string) ([]string, error)
}

// Forgetter is implemented by routers that remember something per job.
type Forgetter interface {
	// Forget drops what is known of a job, normally because it was removed.
	// A job that is not known is no mistake. Forget is safe for concurrent
	// use.
	Forget(jobID int64)
}

// Func is a Router that needs neither the context, nor the job, nor a memory:
// it chooses from a list that is not empty.
type Func func(addrs []string) []string

// Route calls f, or returns ErrNoAddress if addrs is empty.
func (f Func) Route(_ context.Context, _ int64, addrs []string) ([]string, error) {
	if len(addrs) == 0 {
		return nil, ErrNoAddress
	}
	return f(addrs), nil
}

// Builtin returns a new router for each name of Names. They share no memory
// with those of another call. The clock is for the strategies that count over a
// day; nil means time.Now. Self is the node's own attached address, for
// NEAREST; it may be empty.
func Builtin(now func() time.Time, self string) map[string]Router {
	round := NewRound()
	return map[string]Router{
		First:               NewFirst(),
		Last:                NewLast(),
		Round:               round,
		Random:              NewRandom(),
		ConsistentHash:      NewHash(),
		LeastFrequentlyUsed: NewLFU(now),
		LeastRecentlyUsed:   NewLRU(now),
		Failover:            NewFailover(),
		Busyover:            NewBusyover(),
		ShardingBroadcast:   NewBroadcast(),
		Nearest:             NewNearest(self, round),
	}
}

// Names returns the names of the strategies of this package, XXL-JOB's first
// and in its order. The slice is the caller's.
func Names() []string {
	return []string{
		First, Last, Round, Random, ConsistentHash, LeastFrequentlyUsed,
		LeastRecentlyUsed, Failover, Busyover, ShardingBroadcast, Nearest,
	}
}

// Valid reports whether name is the name of a strategy of this package, in
// exactly the stored spelling.
func Valid(name string) bool { return slices.Contains(Names(), name) }

// only returns addrs[i] alone, as a part of addrs: nothing is allocated, and
// the capacity of one keeps an append from reaching the neighbour.
func only(addrs []string, i int) []string { return addrs[i : i+1 : i+1] }

// clock is now, or time.Now if now is nil.
func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
