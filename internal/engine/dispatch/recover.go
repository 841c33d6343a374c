package dispatch

import (
	"context"
	"maps"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Runs of nodes that are absent or gone. What a node has taken is judged only when it
// has left, was superseded by a newer incarnation, or was silent for LostAfter; what it
// has not taken, as soon as it is away or silent for a LeaseTTL. Input: started runs of
// this node's shards. Output: planned runs again, or lost ones.

// interrupted is the handle_msg of a lost run.
const interrupted = "interrupted: the node that ran it is gone"

// Recovery settles runs that nobody looks after. It belongs to the lease loop.
type Recovery struct {
	*core.Core
	Engine   *queue.Queue
	Finisher *Finisher
	Watcher  *Watcher
	InDoubt  *InDoubt
	Reload   *lease.ReloadSet
}

// SettleGone settles the runs of gone nodes in this node's shards, and buries
// the nodes. Nodes that take no more runs have those put back that they have not
// taken.
func (s *Recovery) SettleGone(ctx context.Context) error {
	nodes := s.Leases.ToSettle()
	if err := s.settleNew(ctx, nodes); err != nil {
		return err
	}
	if err := s.settleOf(ctx, s.Leases.Owned(), nodes); err != nil || len(nodes) == 0 {
		return err
	}
	for _, o := range nodes {
		if !o.Quiet {
			continue
		}
		if _, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.Store.Bury(ctx, o.Node.Incarnation, o.Node.Beats)
		}); err != nil {
			return err
		}
	}
	return nil
}

// settleNew does so first for shards that are new to this node, and looks at the runs
// of all nodes there: no serial run is started before it is known which earlier ones the
// former owner has handed to nodes that have not taken them.
func (s *Recovery) settleNew(ctx context.Context, nodes []lease.Observed) error {
	shards := s.Leases.Unsettled()
	if len(shards) == 0 {
		s.Engine.OpenLost()
		return nil
	}
	looked := make(map[string]bool, len(nodes))
	for _, o := range nodes {
		looked[o.Node.Incarnation] = true
	}
	for _, o := range s.Leases.Others() {
		if !looked[o.Node.Incarnation] {
			nodes = append(nodes[:len(nodes):len(nodes)], o)
		}
	}
	if err := s.settleOf(ctx, shards, nodes); err != nil {
		return err
	}
	s.Engine.OpenSerial(func() { s.Leases.Note(shards, func(h *lease.Hold) { h.Settled = true }) })
	return nil
}

// settleOf looks at the started runs of nodes in some shards.
func (s *Recovery) settleOf(ctx context.Context, shards []store.Shard, nodes []lease.Observed) error {
	if len(nodes) == 0 || len(shards) == 0 {
		return nil
	}
	incs := make([]string, len(nodes))
	byInc := make(map[string]lease.Observed, len(nodes))
	for i, o := range nodes {
		incs[i] = o.Node.Incarnation
		byInc[o.Node.Incarnation] = o
	}
	for after := int64(0); ; {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return s.Store.StartedBy(ctx, shards, incs, after, loop.StoreBatch)
		})
		if err != nil {
			return err
		}
		if err := s.settle(ctx, runs, byInc); err != nil {
			s.Reload.Add(shards) // some may have been put back
			return err
		}
		if len(runs) < loop.StoreBatch {
			return nil
		}
		after = runs[len(runs)-1].ID
	}
}

// settle decides about a page of runs.
func (s *Recovery) settle(ctx context.Context, runs []store.Run, nodes map[string]lease.Observed) error {
	var verdicts []store.Verdict
	serial := map[int64]bool{}
	for _, r := range runs {
		v, ok := s.judge(r, nodes)
		switch {
		case ok:
			verdicts = append(verdicts, v)
			serial[r.ID] = queue.InTransit(r)
		case queue.InTransit(r) && r.Address != store.LocalAddress(s.Leases.Incarnation):
			s.Engine.Adopt(r) // the later ones of its job wait until it is taken, or put back
			s.Watcher.goneAway(r)
		}
	}
	if len(verdicts) == 0 {
		return nil
	}
	settled, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return s.Store.Settle(ctx, verdicts) })
	if err != nil {
		return err
	}
	var over []store.Run
	for _, r := range settled {
		switch {
		case r.State.Ended():
			over = append(over, r)
		case r.State == store.StatePlanned:
			s.Engine.PlannedAgain(r, serial[r.ID])
		case r.State == store.StateStarted && store.IsRemote(r.Address):
			s.InDoubt.adoptInDoubt(r)
		case r.State == store.StateStarted:
			s.Engine.Adopt(r)
			s.Watcher.goneAway(r)
		}
	}
	s.Finisher.Ended(over)
	return nil
}

// judge decides about one run whose owner or addressee is among the nodes.
func (s *Recovery) judge(r store.Run, nodes map[string]lease.Observed) (store.Verdict, bool) {
	addressee, local := store.LocalIncarnation(r.Address)
	at, owner := nodes[addressee], nodes[r.Owner]
	switch {
	case local && r.Taken.IsZero() && (at.Absent || at.Drains || at.Gone):
		return s.Leases.Verdict(r, store.StatePlanned, "put back: node "+addressee+" takes no more runs"), true
	case local && at.Gone:
		return s.Leases.Verdict(r, store.StateLost, interrupted), true
	case local && r.Taken.IsZero() && (owner.Absent || owner.Gone) && addressee != s.Leases.Incarnation:
		// The addressee lives and will take it; this node waits for its end.
		return s.adoption(r), true
	case !local && (owner.Absent || owner.Gone || s.leftInDoubt(r)):
		return s.adoption(r), true // whether it was sent, nobody knows: see indoubt.go
	}
	return store.Verdict{}, false
}

// leftInDoubt reports whether a run at a remote executor is still open at the live node that
// owned its shard until now: no trigger is under way for so long. Its next owner asks about
// it, who may put it back.
func (s *Recovery) leftInDoubt(r store.Run) bool {
	return r.Owner != s.Leases.Incarnation && !s.Leases.IsSettled(r.Shard) && s.Clock.Now().Sub(r.Started) > 2*s.Cfg.HTTP.CallTimeout+loop.CallTimeout
}

// adoption makes this node the owner of a run that is under way elsewhere.
func (s *Recovery) adoption(r store.Run) store.Verdict {
	v := s.Leases.Verdict(r, store.StateStarted, "")
	v.NewOwner, v.NewToken = s.Leases.Incarnation, s.Leases.NewToken(v.Epoch)
	return v
}

// Runs of this node that nobody here knows of. A start or a take whose call ended
// with an error may take effect long after, when the store has been read again
// and did not show it: then the store has the run as under way here, and no
// handler was called. After such an error the node looks for them for a while.

// Orphans finds such runs. It belongs to the lease loop.
type Orphans struct {
	*core.Core
	Engine    *queue.Queue
	Finisher  *Finisher
	InDoubt   *InDoubt
	Receiver  *Receiver
	Doubts    *Unconfirmed
	Sightings Sightings
}

// Sightings are what the looks for orphans have found.
type Sightings struct {
	since  map[int64]time.Time // runs that may be orphans, since when they were seen
	Ended  map[int64]bool      // those of them that were ended, and are counted
	looked time.Time           // the last look
}

// AdoptOrphans settles what is under way here by the store and unknown to this
// node. One look is not enough to tell: a start may be on its way from the store.
// What two looks find that are longer apart than a call may take is an orphan.
func (o *Orphans) AdoptOrphans(ctx context.Context) error {
	now := time.Now()
	if o.Life.Draining.Load() || !o.Doubts.Any() && len(o.Sightings.since) == 0 && now.Sub(o.Sightings.looked) < orphansEvery {
		return nil
	}
	o.Sightings.looked = now
	seen := make(map[int64]time.Time)
	var ripe []store.Run
	for after := int64(0); ; {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return o.Store.StartedBy(ctx, o.allShards(), []string{o.Leases.Incarnation}, after, 4*loop.StoreBatch)
		})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if !o.mineToRun(r) || o.Engine.Knows(r.ID) || o.InDoubt.list.has(r.ID) || o.Doubts.underWay(r.ID) {
				continue
			}
			first, known := o.Sightings.since[r.ID]
			if !known {
				first = now
			}
			seen[r.ID] = first
			if now.Sub(first) > loop.CallTimeout+o.Leases.Times.TTL {
				ripe = append(ripe, r)
			}
		}
		if len(runs) < 4*loop.StoreBatch {
			break
		}
		after = runs[len(runs)-1].ID
	}
	o.Sightings.since = seen
	maps.DeleteFunc(o.Sightings.Ended, func(id int64, _ bool) bool { return seen[id].IsZero() })
	return o.settleOrphans(ctx, ripe)
}

// mineToRun reports whether a started run is this node's to run, or to send to a
// remote executor.
func (o *Orphans) mineToRun(r store.Run) bool {
	if store.IsRemote(r.Address) {
		return r.Owner == o.Leases.Incarnation
	}
	return r.Address == store.LocalAddress(o.Leases.Incarnation) && !r.Taken.IsZero()
}

// settleOrphans runs those whose start or take is in doubt. The calls of the others
// had no error, so their handlers were called: this node has stored their ends, and
// the store, a database that failed over perhaps, has forgotten them.
func (o *Orphans) settleOrphans(ctx context.Context, ripe []store.Run) error {
	var adopted []store.Run
	for _, r := range ripe {
		if o.Doubts.about(r, o.Leases.Incarnation) && !o.Engine.Under.HasLanded(r) {
			adopted = append(adopted, r)
			continue
		}
		if store.IsRemote(r.Address) { // its executor has it perhaps, and will report
			o.InDoubt.adoptInDoubt(r)
			continue
		}
		if !o.Sightings.Ended[r.ID] { // else the store may not have had the end yet
			o.Sightings.Ended[r.ID] = true
			o.Life.Mishaps.Forgotten.Add(1)
		}
		o.Finisher.finishAsync(store.Result{RunID: r.ID, Incarnation: o.Leases.Incarnation, Token: r.Token, State: store.StateLost, HandleMsg: resultForgotten})
	}
	if len(adopted) == 0 {
		return nil
	}
	o.Life.Mishaps.Adopted.Add(uint64(len(adopted)))
	o.Logger.Warn("xxljob: running starts that took effect after their call had failed", "runs", len(adopted))
	return o.Receiver.receiveAfterAll(ctx, adopted, time.Now())
}

// allShards names every shard, whoever owns it: a run may be addressed here by any
// node.
func (o *Orphans) allShards() []store.Shard {
	all := make([]store.Shard, o.Cfg.Cluster.Shards)
	for i := range all {
		all[i].ID = i
	}
	return all
}
