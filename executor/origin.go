package executor

import "slices"

// origin is one admin that this executor works for: the scheduler in the same
// process, or one AdminCluster. Ids of runs and jobs are each admin's own and
// collide, so whatever is known by an id is known per origin. Handlers, places
// and the backlog are shared by all.
type origin struct {
	name string    // the cluster's, "" for the one within the process
	exec *Executor // set by New
	out  *outbox   // set by New, has its own lock, which may be taken under Executor.mu
	logs logStore  // set by New, has its own lock

	// Of clusters only; set by New.
	cluster *cluster
	tokens  []string // the access tokens that it may show; may be none

	// Guarded by Executor.mu.
	jobs      map[int64]*job // jobs that run or wait, and some that have
	runs      byRun[*run]    // accepted runs without a result, and nil for those whose result no admin has
	recent    recent         // runs with a result
	withdrawn withdrawn      // starts that are refused should they arrive
}

func newOrigin(cfg Config, name string, logs logStore, limit batchLimit) *origin {
	o := &origin{
		name:      name,
		out:       newOutbox(cfg, limit),
		logs:      logs,
		jobs:      make(map[int64]*job),
		recent:    newRecent(cfg.KeepFinished, cfg.KeepFinishedMax),
		withdrawn: newWithdrawn(cfg.KeepFinished, cfg.KeepFinishedMax),
	}
	o.out.settled = o.forget
	return o
}

// known reports whether a request means a run that waits or runs, and whether it means one
// that has ended and whose result is not delivered. Executor.mu is held.
func (o *origin) known(k runID) (runs, owed bool) {
	head, ok := o.runs.head(k.id)
	for at := &head; ok && at != nil; at = at.next {
		if k.is(runID{k.id, at.date}) {
			runs, owed = runs || at.val != nil, owed || at.val == nil
		}
	}
	return runs, owed
}

// forgetAtOnce is how many runs are forgotten while others wait for Executor.mu.
const forgetAtOnce = 100

// forget ends what is known of runs whose results are delivered, or will never be.
func (o *origin) forget(runs []runID) {
	for some := range slices.Chunk(runs, forgetAtOnce) {
		o.exec.mu.Lock()
		for _, k := range some {
			if r, ok := o.runs.exactly(k); ok && r == nil {
				o.runs.drop(k)
			}
		}
		o.exec.mu.Unlock()
	}
}

// remote reports whether the origin is an admin outside of this process.
func (o *origin) remote() bool { return o.cluster != nil }

// addOrigin makes the origin of one cluster.
func (e *Executor) addOrigin(a AdminCluster, c *cluster) error {
	logs, err := e.local.logs.of(e.cfg, a.Name)
	if err != nil {
		return err
	}
	cfg := e.cfg
	cfg.Logger = cfg.Logger.With("admin", a.Name)
	o := newOrigin(cfg, a.Name, logs, clusterBatch)
	o.exec, o.cluster, o.tokens = e, c, e.cfg.tokensOf(a)
	e.origins = append(e.origins, o)
	return nil
}
