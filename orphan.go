package xxljob

// Runs of this node that nobody here knows of. A start or a take whose call ended
// with an error may take effect long after, when the store has been read again
// and did not show it: then the store has the run as under way here, and no
// handler was called. After such an error the node looks for them for a while.

import (
	"context"
	"time"
)

// adoptOrphans settles what is under way here by the store and unknown to this
// node. One look is not enough to tell: a start may be on its way from the store.
// What two looks find that are longer apart than a call may take is an orphan.
func (s *settler) adoptOrphans(ctx context.Context) error {
	now := time.Now()
	if s.life.draining.Load() || !s.doubts.any() && len(s.orphans) == 0 && now.Sub(s.orphaned) < orphansEvery {
		return nil
	}
	s.orphaned = now
	seen := make(map[int64]time.Time)
	var ripe []Run
	for after := int64(0); ; {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) {
			return s.store.StartedBy(ctx, s.allShards(), []string{s.leases.incarnation}, after, 4*storeBatch)
		})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if !s.mineToRun(r) || s.engine.knows(r.ID) || s.inDoubt.list.has(r.ID) || s.doubts.underWay(r.ID) {
				continue
			}
			first, known := s.orphans[r.ID]
			if !known {
				first = now
			}
			seen[r.ID] = first
			if now.Sub(first) > callTimeout+s.leases.times.ttl {
				ripe = append(ripe, r)
			}
		}
		if len(runs) < 4*storeBatch {
			break
		}
		after = runs[len(runs)-1].ID
	}
	s.orphans = seen
	return s.settleOrphans(ctx, ripe)
}

// mineToRun reports whether a started run is this node's to run, or to send to a
// remote executor.
func (s *settler) mineToRun(r Run) bool {
	if isRemote(r.Address) {
		return r.Owner == s.leases.incarnation
	}
	return r.Address == LocalAddress(s.leases.incarnation) && !r.Taken.IsZero()
}

// settleOrphans runs those whose start or take is in doubt. The calls of the others
// had no error, so their handlers were called: this node has stored their ends, and
// the store, a database that failed over perhaps, has forgotten them.
func (s *settler) settleOrphans(ctx context.Context, ripe []Run) error {
	var adopted []Run
	for _, r := range ripe {
		if s.doubts.about(r, s.leases.incarnation) && !s.engine.under.hasLanded(r) {
			adopted = append(adopted, r)
			continue
		}
		if isRemote(r.Address) { // its executor has it perhaps, and will report
			s.inDoubt.adoptInDoubt(r)
			continue
		}
		s.finisher.finishAsync(Result{RunID: r.ID, Incarnation: s.leases.incarnation, Token: r.Token, State: StateLost, HandleMsg: resultForgotten})
	}
	if len(adopted) == 0 {
		return nil
	}
	s.log.Warn("xxljob: running starts that took effect after their call had failed", "runs", len(adopted))
	return s.inbox.receiveAfterAll(ctx, adopted, time.Now())
}

// allShards names every shard, whoever owns it: a run may be addressed here by any
// node.
func (s *settler) allShards() []Shard {
	all := make([]Shard, s.cfg.Cluster.Shards)
	for i := range all {
		all[i].ID = i
	}
	return all
}
