package dispatch

import (
	"context"
	"maps"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Orphans: runs of this node that nobody here knows of. A start or a take whose call ended
// with an error may take effect long after, when the store has been read again
// and did not show it: then the store has the run as under way here, and no
// handler was called. After such an error the node looks for them for a while, and once a
// minute in any case. Output: runs that are this node's to run, to launch.go; others, to
// indoubt.go, or lost ones.

// orphansEvery is how often a node looks for orphans without a reason: a database
// may fail over between two calls, and nobody has noticed.
const orphansEvery = time.Minute

// sightings are what the looks for orphans have found.
type sightings struct {
	since  map[int64]time.Time // runs that may be orphans, since when they were seen
	ended  map[int64]bool      // those of them that were ended, and are counted
	looked time.Time           // the last look
}

// adoptOrphans settles what is under way here by the store and unknown to this
// node. One look is not enough to tell: a start may be on its way from the store.
// What two looks find that are longer apart than a call may take is an orphan.
func (c *recovery) adoptOrphans(ctx context.Context) error {
	now := time.Now()
	lately := now.Sub(c.sightings.looked) < orphansEvery
	if c.Life.Draining.Load() || lately && (c.inDoubt.isFull() || !c.mayHaveOrphans() && len(c.sightings.since) == 0) {
		return nil
	}
	c.sightings.looked = now
	seen := make(map[int64]time.Time)
	var ripe []store.Run
	for after := int64(0); ; {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return c.Store.StartedBy(ctx, c.allShards(), []string{c.Leases.Incarnation}, after, 4*loop.StoreBatch)
		})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if !c.mineToRun(r) || c.queue.Knows(r.ID) || c.inDoubt.list.has(r.ID) || c.unconfirmed.isLaunching(r.ID) {
				continue
			}
			first, known := c.sightings.since[r.ID]
			if !known {
				first = now
			}
			seen[r.ID] = first
			if now.Sub(first) > loop.CallTimeout+c.Leases.Times.TTL {
				ripe = append(ripe, r)
			}
		}
		if len(runs) < 4*loop.StoreBatch {
			break
		}
		after = runs[len(runs)-1].ID
	}
	c.sightings.since = seen
	maps.DeleteFunc(c.sightings.ended, func(id int64, _ bool) bool { return seen[id].IsZero() })
	c.inDoubt.leftOut.Store(false)
	return c.settleOrphans(ctx, ripe)
}

// mayHaveOrphans reports whether there is a reason to look for them before a minute has passed.
func (c *recovery) mayHaveOrphans() bool {
	return c.unconfirmed.mayTurnUp() || c.inDoubt.leftOut.Load()
}

// mineToRun reports whether a started run is this node's to run, or to send to a
// remote executor.
func (c *recovery) mineToRun(r store.Run) bool {
	if store.IsRemote(r.Address) {
		return r.Owner == c.Leases.Incarnation
	}
	return r.Address == store.LocalAddress(c.Leases.Incarnation) && !r.Taken.IsZero()
}

// settleOrphans runs those whose start or take is in doubt. The calls of the others
// had no error, so their handlers were called: this node has stored their ends, and
// the store, a database that failed over perhaps, has forgotten them.
func (c *recovery) settleOrphans(ctx context.Context, ripe []store.Run) error {
	var adopted []store.Run
	for _, r := range ripe {
		if c.unconfirmed.concerns(r, c.Leases.Incarnation) && !c.queue.InFlight.HasLanded(r) {
			adopted = append(adopted, r)
			continue
		}
		if store.IsRemote(r.Address) { // its executor has it perhaps, and will report
			c.inDoubt.adopt(r)
			continue
		}
		if !c.sightings.ended[r.ID] { // else the store may not have had the end yet
			c.sightings.ended[r.ID] = true
			c.Life.FaultCounts.Forgotten.Add(1)
		}
		c.finisher.finishAsync(store.Result{RunID: r.ID, Incarnation: c.Leases.Incarnation, Token: r.Token, State: store.StateLost, HandleMsg: resultForgotten})
	}
	if len(adopted) == 0 {
		return nil
	}
	c.Life.FaultCounts.Adopted.Add(uint64(len(adopted)))
	c.Logger.Warn("xxljob: running starts that took effect after their call had failed", "runs", len(adopted))
	return c.launcher.launchFound(ctx, adopted, time.Now())
}

// allShards names every shard, whoever owns it: a run may be addressed here by any
// node.
func (c *recovery) allShards() []store.Shard {
	all := make([]store.Shard, c.Cfg.Cluster.Shards)
	for i := range all {
		all[i].ID = i
	}
	return all
}
