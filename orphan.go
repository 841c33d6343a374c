package xxljob

// Runs of this node that nobody here knows of. A start or a take whose call ended
// with an error may take effect long after, when the store has been read again
// and did not show it: then the store has the run as under way here, and no
// handler was called. After such an error the node looks for them for a while.

import (
	"context"
	"maps"
	"time"

	"github.com/xxljob/xxljob/store"
)

// orphans finds such runs. It belongs to the lease loop.
type orphans struct {
	*shared
	engine    *engine
	finisher  *finisher
	inDoubt   *inDoubt
	receiver  *receiver
	doubts    *doubts
	sightings sightings
}

// sightings are what the looks for orphans have found.
type sightings struct {
	since  map[int64]time.Time // runs that may be orphans, since when they were seen
	ended  map[int64]bool      // those of them that were ended, and are counted
	looked time.Time           // the last look
}

// adoptOrphans settles what is under way here by the store and unknown to this
// node. One look is not enough to tell: a start may be on its way from the store.
// What two looks find that are longer apart than a call may take is an orphan.
func (o *orphans) adoptOrphans(ctx context.Context) error {
	now := time.Now()
	if o.life.draining.Load() || !o.doubts.any() && len(o.sightings.since) == 0 && now.Sub(o.sightings.looked) < orphansEvery {
		return nil
	}
	o.sightings.looked = now
	seen := make(map[int64]time.Time)
	var ripe []Run
	for after := int64(0); ; {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) {
			return o.store.StartedBy(ctx, o.allShards(), []string{o.leases.incarnation}, after, 4*storeBatch)
		})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if !o.mineToRun(r) || o.engine.knows(r.ID) || o.inDoubt.list.has(r.ID) || o.doubts.underWay(r.ID) {
				continue
			}
			first, known := o.sightings.since[r.ID]
			if !known {
				first = now
			}
			seen[r.ID] = first
			if now.Sub(first) > callTimeout+o.leases.times.ttl {
				ripe = append(ripe, r)
			}
		}
		if len(runs) < 4*storeBatch {
			break
		}
		after = runs[len(runs)-1].ID
	}
	o.sightings.since = seen
	maps.DeleteFunc(o.sightings.ended, func(id int64, _ bool) bool { return seen[id].IsZero() })
	return o.settleOrphans(ctx, ripe)
}

// mineToRun reports whether a started run is this node's to run, or to send to a
// remote executor.
func (o *orphans) mineToRun(r Run) bool {
	if isRemote(r.Address) {
		return r.Owner == o.leases.incarnation
	}
	return r.Address == store.LocalAddress(o.leases.incarnation) && !r.Taken.IsZero()
}

// settleOrphans runs those whose start or take is in doubt. The calls of the others
// had no error, so their handlers were called: this node has stored their ends, and
// the store, a database that failed over perhaps, has forgotten them.
func (o *orphans) settleOrphans(ctx context.Context, ripe []Run) error {
	var adopted []Run
	for _, r := range ripe {
		if o.doubts.about(r, o.leases.incarnation) && !o.engine.under.hasLanded(r) {
			adopted = append(adopted, r)
			continue
		}
		if isRemote(r.Address) { // its executor has it perhaps, and will report
			o.inDoubt.adoptInDoubt(r)
			continue
		}
		if !o.sightings.ended[r.ID] { // else the store may not have had the end yet
			o.sightings.ended[r.ID] = true
			o.life.mishaps.forgotten.Add(1)
		}
		o.finisher.finishAsync(Result{RunID: r.ID, Incarnation: o.leases.incarnation, Token: r.Token, State: StateLost, HandleMsg: resultForgotten})
	}
	if len(adopted) == 0 {
		return nil
	}
	o.life.mishaps.adopted.Add(uint64(len(adopted)))
	o.log.Warn("xxljob: running starts that took effect after their call had failed", "runs", len(adopted))
	return o.receiver.receiveAfterAll(ctx, adopted, time.Now())
}

// allShards names every shard, whoever owns it: a run may be addressed here by any
// node.
func (o *orphans) allShards() []store.Shard {
	all := make([]store.Shard, o.cfg.Cluster.Shards)
	for i := range all {
		all[i].ID = i
	}
	return all
}
