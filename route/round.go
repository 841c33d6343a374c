package route

import (
	"context"
	"math/rand/v2"
	"sync"
)

// roundStart bounds the random number a job's counter starts with, so that
// jobs with the same schedule do not all begin at the first address. XXL-JOB:
// 0..99.
const roundStart = 100

// RoundRobin is the router ROUND: a job's triggers go to the addresses one
// after the other. While the list stays as it is, any n triggers in a row reach
// all n addresses once each, however many goroutines route them.
//
// XXL-JOB counts to a million and forgets all counters every 24 hours, either
// of which breaks the row. Here a counter has 64 bits and lasts until its job
// is removed or crowded out by more recent ones (see the package comment).
type RoundRobin struct {
	mu   sync.Mutex
	jobs *bounded[uint64] // the number of the next trigger; guarded by mu
}

// NewRound returns the router ROUND.
func NewRound() *RoundRobin {
	return &RoundRobin{jobs: newBounded[uint64](maxJobs, maxAddrs)}
}

// Route returns the address whose turn it is.
func (r *RoundRobin) Route(_ context.Context, jobID int64, addrs []string) ([]string, error) {
	if len(addrs) == 0 {
		return nil, ErrNoAddress
	}
	return only(addrs, int(r.next(jobID)%uint64(len(addrs)))), nil
}

// next returns the job's counter and counts on.
func (r *RoundRobin) next(jobID int64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, fresh := r.jobs.get(jobID)
	if fresh {
		e.state = rand.Uint64N(roundStart)
	}
	n := e.state
	e.state++
	return n
}

// Forget drops the job's counter.
func (r *RoundRobin) Forget(jobID int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs.drop(jobID)
}
