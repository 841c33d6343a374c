package dispatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
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

// recovery settles runs that nobody looks after: those of nodes that are gone, and orphans. It
// belongs to the lease loop.
type recovery struct {
	*core.Core
	queue          *queue.Queue
	finisher       *finisher
	inDoubt        *inDoubt
	launcher       *launcher
	unconfirmed    *unconfirmed
	reload         *lease.ReloadSet
	sightings      sightings
	verdictRefused bool                // the store has refused a verdict at the last look: it is tried again with the next beat
	unanswered     map[int64]time.Time // runs that former owners of shards may be sending, and until when they are waited for
}

// settleGone settles the runs of gone nodes in this node's shards, and buries
// the nodes. Nodes that take no more runs have those put back that they have not
// taken.
func (c *recovery) settleGone(ctx context.Context) error {
	c.verdictRefused = false
	nodes := c.Leases.ToSettle()
	if err := c.settleNew(ctx, nodes); err != nil {
		return err
	}
	if err := c.adoptUnanswered(ctx); err != nil {
		return err
	}
	if len(nodes) == 0 {
		return nil
	}
	if err := c.settleOf(ctx, c.Leases.Owned(), nodes); err != nil {
		return err
	}
	for _, o := range nodes {
		if !o.Quiet {
			continue
		}
		if err := loop.Do(ctx, func(ctx context.Context) error { return c.Store.Bury(ctx, o.Node.Incarnation, o.Node.Beats) }); err != nil {
			return err
		}
	}
	return nil
}

// settleNew does so first for shards that are new to this node, and looks at the runs
// of all nodes there: no run of a job that has an order is started before it is known which earlier
// ones the former owner has handed to nodes that have not taken them, or may be sending.
func (c *recovery) settleNew(ctx context.Context, nodes []lease.Observed) error {
	shards := c.Leases.Unsettled()
	if len(shards) == 0 {
		c.queue.OpenLost()
		return nil
	}
	looked := make(map[string]bool, len(nodes))
	for _, o := range nodes {
		looked[o.Node.Incarnation] = true
	}
	for _, o := range c.Leases.Others() {
		if !looked[o.Node.Incarnation] {
			nodes = append(nodes[:len(nodes):len(nodes)], o)
		}
	}
	if err := c.settleOf(ctx, shards, nodes); err != nil {
		return err
	}
	c.queue.OpenSerial(nil, func() { c.Leases.Note(shards, func(h *lease.Hold) { h.Settled = true }) })
	return nil
}

// settleOf looks at the started runs of nodes in some shards.
func (c *recovery) settleOf(ctx context.Context, shards []store.Shard, nodes []lease.Observed) error {
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
			return c.Store.StartedBy(ctx, shards, incs, after, loop.StoreBatch)
		})
		if err != nil {
			return err
		}
		if err := c.settle(ctx, runs, byInc); err != nil {
			c.reload.Add(shards) // some may have been put back
			return err
		}
		if len(runs) < loop.StoreBatch {
			return nil
		}
		after = runs[len(runs)-1].ID
	}
}

// settle decides about a page of runs.
func (c *recovery) settle(ctx context.Context, runs []store.Run, nodes map[string]lease.Observed) error {
	var verdicts []store.Verdict
	serial := map[int64]bool{}
	for _, r := range runs {
		c.awaitAnswer(r, nodes[r.Owner])
		v, ok := c.judge(r, nodes)
		switch {
		case ok:
			verdicts = append(verdicts, v)
			serial[r.ID] = queue.InTransit(r)
		case queue.InTransit(r) && r.Address != store.LocalAddress(c.Leases.Incarnation):
			c.queue.Adopt(r) // the later ones of its job wait until it is taken, or put back
		}
	}
	if len(verdicts) == 0 {
		return nil
	}
	return c.settleHalves(ctx, runs, verdicts, serial)
}

// settleHalves has verdicts carried out, and of those that the store refuses together each half by
// itself, in any order, until it seems to refuse all. A run whose verdict it refuses stays as it is,
// under way by the store: nobody starts it a second time, later runs of a serial job wait for it
// where it is in transit, and its node is not forgotten while it has it, so that the next look tries
// the verdict again.
func (c *recovery) settleHalves(ctx context.Context, runs []store.Run, verdicts []store.Verdict, serial map[int64]bool) error {
	done, refused := make(map[int64]bool, len(verdicts)), map[int64]error{}
	settle := func(part []store.Verdict) error {
		settled, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return c.Store.Settle(ctx, part) })
		switch {
		case err == nil:
			for i := range part {
				done[part[i].RunID] = true
			}
			c.settled(settled, serial)
		case errors.Is(err, store.ErrRefused) && len(part) == 1:
			if refused[part[0].RunID] = err; len(refused) >= loop.RefusedFew && len(done) == 0 {
				return errAllRefused
			}
		}
		return err
	}
	err := settle(verdicts)
	if errors.Is(err, store.ErrRefused) {
		rand.Shuffle(len(verdicts), func(i, k int) { verdicts[i], verdicts[k] = verdicts[k], verdicts[i] })
		_, _, err = loop.Halve(verdicts, settle)
	}
	if err != nil && err != errAllRefused {
		return err
	}
	for i := range runs {
		r := &runs[i]
		_, judged := serial[r.ID]
		if !judged || done[r.ID] {
			continue
		}
		c.verdictRefused = true
		if why := refused[r.ID]; why != nil {
			c.Core.Troubles.Refused(c.Clock.Now(), r.App, r.JobID, store.SeenRefusesVerdict, r.ID, why)
		}
		if queue.InTransit(*r) && r.Address != store.LocalAddress(c.Leases.Incarnation) {
			c.queue.Adopt(*r)
		}
	}
	return nil
}

// settled acts on runs that were decided about.
func (c *recovery) settled(settled []store.Run, serial map[int64]bool) {
	var over []store.Run
	for _, r := range settled {
		switch {
		case r.State.Ended():
			over = append(over, r)
		case r.State == store.StatePlanned:
			c.queue.PlannedAgain(r, serial[r.ID])
		case r.State == store.StateStarted && store.IsRemote(r.Address):
			c.inDoubt.adopt(r)
		case r.State == store.StateStarted:
			c.queue.Adopt(r)
		}
	}
	c.finisher.ended(over)
}

// judge decides about one run whose owner or addressee is among the nodes.
func (c *recovery) judge(r store.Run, nodes map[string]lease.Observed) (store.Verdict, bool) {
	addressee, local := store.LocalIncarnation(r.Address)
	at, owner := nodes[addressee], nodes[r.Owner]
	switch {
	case local && r.Taken.IsZero() && (at.Absent || at.Drains || at.Gone):
		return c.Leases.Verdict(r, store.StatePlanned, "put back: node "+addressee+" takes no more runs"), true
	case local && at.Gone:
		return c.Leases.Verdict(r, store.StateLost, interrupted), true
	case local && r.Taken.IsZero() && (owner.Absent || owner.Gone) && addressee != c.Leases.Incarnation:
		// The addressee lives and will take it; this node waits for its end.
		return c.adoption(r), true
	case !local && (owner.Absent || owner.Gone || c.leftInDoubt(r)):
		return c.adoption(r), true // whether it was sent, nobody knows: see indoubt.go
	}
	return store.Verdict{}, false
}

// leftInDoubt reports whether a run at a remote executor is still open at the live node that
// owned its shard until now: no trigger is under way for so long. Its next owner asks about
// it, who may put it back.
func (c *recovery) leftInDoubt(r store.Run) bool {
	return r.Owner != c.Leases.Incarnation && !c.Leases.IsSettled(r.Shard) && c.Clock.Now().Sub(r.Started) > calledFor(c.Core)
}

// calledFor is for how long after its start a run may be on its way to a remote executor, by a live
// node that has its shard no more.
func calledFor(c *core.Core) time.Duration { return 2*c.Cfg.HTTP.CallTimeout + loop.CallTimeout }

// awaitAnswer has the later runs of a job wait for one that the live node which owned its shard until
// now may be sending to a remote executor. An old one that is in doubt may have been sent again just
// before that node gave up the shard.
func (c *recovery) awaitAnswer(r store.Run, owner lease.Observed) {
	if c.Leases.IsSettled(r.Shard) || owner.Absent || owner.Gone || !store.IsRemote(r.Address) || !blockrule.Of(r.Block).SentInOrder {
		return
	}
	most := calledFor(c.Core)
	until := time.Now().Add(max(min(most-c.Clock.Now().Sub(r.Started), most), c.Cfg.HTTP.CallTimeout))
	c.queue.AwaitAnswer(r, until)
	if r.BootID != "" {
		if c.unanswered == nil {
			c.unanswered = map[int64]time.Time{}
		}
		c.unanswered[r.ID] = until
	}
}

// adoptUnanswered makes this node the owner of runs at executors of ours for which it has waited for long
// enough: the former owner sends them no more. Where their executor says that it was not sent them they are
// put back, which a node that has not their shard cannot do.
func (c *recovery) adoptUnanswered(ctx context.Context) error {
	var ids []int64
	for id, until := range c.unanswered {
		if !time.Now().Before(until) {
			ids = append(ids, id)
		}
	}
	for page := range slices.Chunk(ids, loop.StoreBatch) {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return c.Store.RunsByID(ctx, page) })
		if err != nil {
			return err
		}
		var verdicts []store.Verdict
		serial := map[int64]bool{}
		for _, r := range runs {
			_, owned := c.Leases.Epoch(r.Shard)
			if owned && r.State == store.StateStarted && store.IsRemote(r.Address) && r.Owner != c.Leases.Incarnation {
				verdicts, serial[r.ID] = append(verdicts, c.adoption(r)), false
			}
		}
		if len(verdicts) > 0 {
			if err := c.settleHalves(ctx, runs, verdicts, serial); err != nil {
				return err
			}
		}
		for _, id := range page {
			delete(c.unanswered, id)
		}
	}
	return nil
}

// adoption makes this node the owner of a run that is under way elsewhere.
func (c *recovery) adoption(r store.Run) store.Verdict {
	v := c.Leases.Verdict(r, store.StateStarted, "")
	v.NewOwner, v.NewToken = c.Leases.Incarnation, c.Leases.NewToken(v.Epoch)
	return v
}
