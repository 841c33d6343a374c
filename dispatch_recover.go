package xxljob

import (
	"context"
	"maps"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Runs of nodes that are absent or gone. What a node has taken is judged only when it
// has left, was superseded by a newer incarnation, or was silent for LostAfter; what it
// has not taken, as soon as it is away or silent for a LeaseTTL. Input: started runs of
// this node's shards. Output: planned runs again, or lost ones.

// interrupted is the handle_msg of a lost run.
const interrupted = "interrupted: the node that ran it is gone"

// settler settles runs that nobody looks after. It belongs to the lease loop.
type settler struct {
	*shared
	engine   *engine
	finisher *finisher
	watcher  *watcher
	inDoubt  *inDoubt
	reload   *reloadSet
}

// settleGone settles the runs of gone nodes in this node's shards, and buries
// the nodes. Nodes that take no more runs have those put back that they have not
// taken.
func (s *settler) settleGone(ctx context.Context) error {
	nodes := s.leases.toSettle()
	if err := s.settleNew(ctx, nodes); err != nil {
		return err
	}
	if err := s.settleOf(ctx, s.leases.owned(), nodes); err != nil || len(nodes) == 0 {
		return err
	}
	for _, o := range nodes {
		if !o.quiet {
			continue
		}
		if _, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.store.Bury(ctx, o.node.Incarnation, o.node.Beats)
		}); err != nil {
			return err
		}
	}
	return nil
}

// settleNew does so first for shards that are new to this node, and looks at the runs
// of all nodes there: no serial run is started before it is known which earlier ones the
// former owner has handed to nodes that have not taken them.
func (s *settler) settleNew(ctx context.Context, nodes []observed) error {
	shards := s.leases.unsettled()
	if len(shards) == 0 {
		s.engine.openLost()
		return nil
	}
	looked := make(map[string]bool, len(nodes))
	for _, o := range nodes {
		looked[o.node.Incarnation] = true
	}
	for _, o := range s.leases.others() {
		if !looked[o.node.Incarnation] {
			nodes = append(nodes[:len(nodes):len(nodes)], o)
		}
	}
	if err := s.settleOf(ctx, shards, nodes); err != nil {
		return err
	}
	s.engine.openSerial(func() { s.leases.note(shards, func(h *hold) { h.settled = true }) })
	return nil
}

// settleOf looks at the started runs of nodes in some shards.
func (s *settler) settleOf(ctx context.Context, shards []store.Shard, nodes []observed) error {
	if len(nodes) == 0 || len(shards) == 0 {
		return nil
	}
	incs := make([]string, len(nodes))
	byInc := make(map[string]observed, len(nodes))
	for i, o := range nodes {
		incs[i] = o.node.Incarnation
		byInc[o.node.Incarnation] = o
	}
	for after := int64(0); ; {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return s.store.StartedBy(ctx, shards, incs, after, loop.StoreBatch)
		})
		if err != nil {
			return err
		}
		if err := s.settle(ctx, runs, byInc); err != nil {
			s.reload.add(shards) // some may have been put back
			return err
		}
		if len(runs) < loop.StoreBatch {
			return nil
		}
		after = runs[len(runs)-1].ID
	}
}

// settle decides about a page of runs.
func (s *settler) settle(ctx context.Context, runs []store.Run, nodes map[string]observed) error {
	var verdicts []store.Verdict
	serial := map[int64]bool{}
	for _, r := range runs {
		v, ok := s.judge(r, nodes)
		switch {
		case ok:
			verdicts = append(verdicts, v)
			serial[r.ID] = inTransit(r)
		case inTransit(r) && r.Address != store.LocalAddress(s.leases.incarnation):
			s.engine.adopt(r) // the later ones of its job wait until it is taken, or put back
			s.watcher.goneAway(r)
		}
	}
	if len(verdicts) == 0 {
		return nil
	}
	settled, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return s.store.Settle(ctx, verdicts) })
	if err != nil {
		return err
	}
	var over []store.Run
	for _, r := range settled {
		switch {
		case r.State.Ended():
			over = append(over, r)
		case r.State == store.StatePlanned:
			s.engine.plannedAgain(r, serial[r.ID])
		case r.State == store.StateStarted && store.IsRemote(r.Address):
			s.inDoubt.adoptInDoubt(r)
		case r.State == store.StateStarted:
			s.engine.adopt(r)
			s.watcher.goneAway(r)
		}
	}
	s.finisher.ended(over)
	return nil
}

// judge decides about one run whose owner or addressee is among the nodes.
func (s *settler) judge(r store.Run, nodes map[string]observed) (store.Verdict, bool) {
	addressee, local := store.LocalIncarnation(r.Address)
	at, owner := nodes[addressee], nodes[r.Owner]
	switch {
	case local && r.Taken.IsZero() && (at.absent || at.drains || at.gone):
		return s.leases.verdict(r, store.StatePlanned, "put back: node "+addressee+" takes no more runs"), true
	case local && at.gone:
		return s.leases.verdict(r, store.StateLost, interrupted), true
	case local && r.Taken.IsZero() && (owner.absent || owner.gone) && addressee != s.leases.incarnation:
		// The addressee lives and will take it; this node waits for its end.
		return s.adoption(r), true
	case !local && (owner.absent || owner.gone || s.leftInDoubt(r)):
		return s.adoption(r), true // whether it was sent, nobody knows: see dispatch_indoubt.go
	}
	return store.Verdict{}, false
}

// leftInDoubt reports whether a run at a remote executor is still open at the live node that
// owned its shard until now: no trigger is under way for so long. Its next owner asks about
// it, who may put it back.
func (s *settler) leftInDoubt(r store.Run) bool {
	return r.Owner != s.leases.incarnation && !s.leases.isSettled(r.Shard) && s.clock.now().Sub(r.Started) > 2*s.cfg.HTTP.CallTimeout+loop.CallTimeout
}

// adoption makes this node the owner of a run that is under way elsewhere.
func (s *settler) adoption(r store.Run) store.Verdict {
	v := s.leases.verdict(r, store.StateStarted, "")
	v.NewOwner, v.NewToken = s.leases.incarnation, s.leases.newToken(v.Epoch)
	return v
}

// Runs of this node that nobody here knows of. A start or a take whose call ended
// with an error may take effect long after, when the store has been read again
// and did not show it: then the store has the run as under way here, and no
// handler was called. After such an error the node looks for them for a while.

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
	var ripe []store.Run
	for after := int64(0); ; {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return o.store.StartedBy(ctx, o.allShards(), []string{o.leases.incarnation}, after, 4*loop.StoreBatch)
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
			if now.Sub(first) > loop.CallTimeout+o.leases.times.ttl {
				ripe = append(ripe, r)
			}
		}
		if len(runs) < 4*loop.StoreBatch {
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
func (o *orphans) mineToRun(r store.Run) bool {
	if store.IsRemote(r.Address) {
		return r.Owner == o.leases.incarnation
	}
	return r.Address == store.LocalAddress(o.leases.incarnation) && !r.Taken.IsZero()
}

// settleOrphans runs those whose start or take is in doubt. The calls of the others
// had no error, so their handlers were called: this node has stored their ends, and
// the store, a database that failed over perhaps, has forgotten them.
func (o *orphans) settleOrphans(ctx context.Context, ripe []store.Run) error {
	var adopted []store.Run
	for _, r := range ripe {
		if o.doubts.about(r, o.leases.incarnation) && !o.engine.under.hasLanded(r) {
			adopted = append(adopted, r)
			continue
		}
		if store.IsRemote(r.Address) { // its executor has it perhaps, and will report
			o.inDoubt.adoptInDoubt(r)
			continue
		}
		if !o.sightings.ended[r.ID] { // else the store may not have had the end yet
			o.sightings.ended[r.ID] = true
			o.life.mishaps.forgotten.Add(1)
		}
		o.finisher.finishAsync(store.Result{RunID: r.ID, Incarnation: o.leases.incarnation, Token: r.Token, State: store.StateLost, HandleMsg: resultForgotten})
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
