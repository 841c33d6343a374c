package postgres

// What tells the owner of a shard about runs that a transaction of the host's has
// planned. Comes in: ids of jobs, once that has committed, or with Config.TxNotify the
// transaction itself. Goes out: a hint for each shard concerned (see signals.go).

import (
	"context"
	"errors"
	"fmt"
)

// Wake tells the owners of the jobs' shards that runs of the jobs wait for them, as
// Trigger does. It is for hosts that have planned runs by TriggerTx or TriggerSQLTx, and
// is called when their transaction has committed: a wake that comes before the commit
// finds nothing. Without it, and without Config.TxNotify, the runs are found within Poll.
//
// It waits for no answer: an owner in this process is told before it returns, others by a
// NOTIFY that is sent soon after, together with what else there is to be told, at most
// forty times a second. Close sends what is left; a Wake after it tells no other process.
// A notification that is lost costs the wait for the poll and nothing else, and in
// LeaseRow no other process is told at all.
//
// Whether a job is there is not looked at: the shard follows from the id, so that any
// number of ids makes at most one hint a shard, and of a job that is not there its owner
// finds nothing to do. An id that is not positive is an error, with which nobody is told.
// The first call of a process that runs no Scheduler reads the number of shards; where it
// cannot, or there is none yet, that is the error. It is safe for concurrent use.
func (s *Store) Wake(ctx context.Context, jobIDs ...int64) error {
	if err := ended(ctx); err != nil {
		return err
	}
	for _, id := range jobIDs {
		if id < 1 {
			return fmt.Errorf("postgres: wake: job %d: want positive ids", id)
		}
	}
	if len(jobIDs) == 0 {
		return nil
	}
	shards, err := s.shards(ctx)
	if err != nil {
		return failed(err, "wake %d jobs", len(jobIDs))
	}
	woken := make([]bool, shards)
	for _, id := range jobIDs {
		if shard := shardOf(id, shards); !woken[shard] {
			woken[shard] = true
			s.wakeRun(shard)
		}
	}
	return nil
}

// shardOf is the shard of a job.
func shardOf(jobID int64, shards int) int { return int(jobID % int64(shards)) }

var errNoContext = errors.New("postgres: the context is nil")

// ended returns the error of a context that has ended, or is none.
func ended(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctx.Err()
}
