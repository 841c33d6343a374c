package executor

// origin is one admin that this executor works for: the scheduler in the same
// process, or one AdminCluster. Ids of runs and jobs are each admin's own and
// collide, so whatever is known by an id is known per origin. Handlers, places
// and the backlog are shared by all.
type origin struct {
	name string   // the cluster's, "" for the one within the process
	out  *outbox  // set by New, has its own lock, which may be taken under Executor.mu
	logs logStore // set by New, has its own lock

	// Of clusters only; set by New.
	cluster *cluster
	tokens  []string // the access tokens that it may show; may be none

	// Guarded by Executor.mu.
	jobs      map[int64]*job // jobs that run or wait, no others
	runs      byRun[*run]    // accepted runs without a result
	recent    recent         // runs with a result
	withdrawn withdrawn      // starts that are refused should they arrive
}

func newOrigin(cfg Config, name string, logs logStore, limit batchLimit) *origin {
	return &origin{
		name:      name,
		out:       newOutbox(cfg, limit),
		logs:      logs,
		jobs:      make(map[int64]*job),
		recent:    newRecent(cfg.KeepFinished, cfg.KeepFinishedMax),
		withdrawn: newWithdrawn(cfg.KeepFinished, cfg.KeepFinishedMax),
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
	o.cluster, o.tokens = c, e.cfg.tokensOf(a)
	e.origins = append(e.origins, o)
	return nil
}
