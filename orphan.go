package xxljob

// Runs of this node that nobody here knows of. A start or a take whose call ended
// with an error may take effect long after, when the store has been read again
// and did not show it: then the store has the run as under way here, and no
// handler was called. After such an error the node looks for them for a while.

import (
	"context"
	"slices"
	"time"
)

// suspicion is how long after an error a node looks for orphans: far longer than
// a call to the store may be under way.
const suspicion = 6 * callTimeout

// suspect makes the lease loop look for orphans.
func (s *scheduler) suspect() {
	s.doubt()
	s.leaseWake.poke()
}

// doubt makes it look when it next comes by.
func (s *scheduler) doubt() { s.suspectUntil.Store(time.Now().Add(suspicion).UnixNano()) }

// suspicious reports whether there may be orphans.
func (s *scheduler) suspicious() bool {
	return time.Now().UnixNano() < s.suspectUntil.Load()
}

// adoptOrphans runs what is under way here by the store and unknown to this
// node. One look is not enough to tell: a start may be on its way from the store.
// What two looks find that are longer apart than a call may take is an orphan.
func (s *scheduler) adoptOrphans(ctx context.Context) error {
	if !s.suspicious() || s.draining.Load() {
		clear(s.orphans)
		return nil
	}
	runs, err := call(ctx, func(ctx context.Context) ([]Run, error) {
		return s.store.StartedBy(ctx, s.allShards(), []string{s.incarnation}, 0, 4*startBatch)
	})
	if err != nil {
		return err
	}
	seen := make(map[int64]time.Time)
	var ripe []Run
	for _, r := range runs {
		if r.Address != LocalAddress(s.incarnation) || r.Taken.IsZero() || s.engine.knows(r.ID) {
			continue
		}
		first, known := s.orphans[r.ID]
		if !known {
			first = time.Now()
		}
		seen[r.ID] = first
		if time.Since(first) > callTimeout+s.leases.ttl {
			ripe = append(ripe, r)
		}
	}
	s.orphans = seen
	if len(ripe) == 0 {
		return nil
	}
	ripe = slices.DeleteFunc(ripe, s.forgotten)
	if len(ripe) == 0 {
		return nil
	}
	s.log.Warn("xxljob: running what was started behind this node's back", "runs", len(ripe))
	return s.receive(ctx, ripe, time.Now())
}

// forgotten ends a run whose end this node has stored and the store has forgotten: a
// database that failed over may have. Nobody has the result any more.
func (s *scheduler) forgotten(r Run) bool {
	if !s.engine.hasLanded(r) {
		return false
	}
	s.finishLater(Result{RunID: r.ID, Incarnation: s.incarnation, Token: r.Token, State: StateLost, HandleMsg: resultForgotten})
	return true
}

// resultForgotten is the handle_msg of such a run.
const resultForgotten = "the run has ended, and the store has lost its result"

// allShards names every shard, whoever owns it: a run may be addressed here by any
// node.
func (s *scheduler) allShards() []Shard {
	all := make([]Shard, s.cfg.Shards)
	for i := range all {
		all[i].ID = i
	}
	return all
}
