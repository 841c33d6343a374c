package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/catalog"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/dispatch"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The loop of a node's lease. Input: what the store says of the nodes and the shards. Output:
// trust, to all other loops; shards that are taken and given up; verdicts about nodes.

// leaseLoop joins the cluster and beats until ctx ends; after its end the node
// is silent.
func (l *leaser) leaseLoop(ctx context.Context, nodes <-chan struct{}) {
	backoff := loop.Backoff{Log: l.Logger, What: "beating"}
	joined := false
	for {
		wait, err := l.leaseOnce(ctx, &joined)
		if err != nil {
			l.doubts.LookLater() // a store that failed over may have forgotten what it had acknowledged
		}
		if errors.Is(err, errs.ErrShards) {
			l.Life.CannotWork(err, l.Logger)
			return
		}
		if backoff.Failed(ctx, err) {
			wait = min(backoff.Delay(), l.Cfg.Cluster.LeaseTTL/5)
		}
		if !l.leaseRest(ctx, wait, nodes) {
			return
		}
	}
}

// leaseRest waits until the next beat is due or a signal comes; the first moment
// it waits in any case, or nodes that signal each other would keep each other
// awake without end.
func (l *leaser) leaseRest(ctx context.Context, wait time.Duration, nodes <-chan struct{}) bool {
	pause := min(wait, l.Cfg.Cluster.LeaseTTL/50)
	if !loop.Sleep(ctx, pause) || wait == pause {
		return ctx.Err() == nil
	}
	if wait < loop.Forever {
		wait -= pause
	}
	return loop.Sleep(ctx, wait, nodes, l.Life.Wakes.Lease)
}

// leaseOnce beats, looks, gives up and takes shards, and settles the runs of
// nodes that are gone. It returns how long to wait for the next time.
func (l *leaser) leaseOnce(ctx context.Context, joined *bool) (time.Duration, error) {
	began := time.Now()
	view, err := l.beat(ctx, joined)
	if err != nil {
		l.failing.fitness.Silent()
		l.nodes.told.failed(err, l.Leases.Trusted(time.Now()))
		return 0, err
	}
	l.Clock.Sample(view.Now, began)
	l.server.noteServer(view.Server)
	l.lists.NoteRow(view, l.Leases.Incarnation)
	now := time.Now()
	self := l.failing.fitness.Judge()
	changed, regained, found := l.Leases.Look(view, self, began, now)
	l.nodes.noteLook(changed, found)
	l.nodes.told.answered()
	if regained || self.Failing != l.failing.was { // while it fails, the scan loop tries it out
		l.Life.Wakes.WakeLoops()
	}
	l.failing.was = self.Failing
	if said, err := l.failing.sayFailing(ctx, view, self.Failing); err != nil {
		return 0, err
	} else if said && self.Failing {
		// Only a view from after that tells who else fails: see hasAnnounced. What follows
		// here may take a while. The hint that this node's row has changed is no news.
		loop.Sleep(ctx, min(max(5*now.Sub(began), l.Cfg.Cluster.LeaseTTL/50), l.Cfg.Cluster.LeaseTTL/5), l.Life.Wakes.Lease)
		return 0, nil
	}
	err = l.tender.tend(ctx, view)
	l.nodes.told.shards(l.Leases.Owned())
	if view.Alone && !l.doubts.Any() {
		return loop.Forever, err
	}
	return l.Cfg.Cluster.LeaseTTL / 5, err
}

// beat joins the first time. It is seen through: a beat that is done after the node has
// left would bring it back, and the others would wait for its silence.
func (l *leaser) beat(ctx context.Context, joined *bool) (store.View, error) {
	if err := l.SetShards(ctx); err != nil {
		return store.View{}, err
	}
	return loop.Detached(ctx, func(ctx context.Context) (store.View, error) {
		if *joined {
			return l.Store.Beat(ctx, l.Leases.Incarnation, l.Leases.Local())
		}
		view, err := l.Store.Join(ctx, store.Node{ID: l.Cfg.Node, Incarnation: l.Leases.Incarnation, Attached: l.Leases.Local()})
		// A Join with an unknown outcome is followed by beats: they add the node
		// where it is not there.
		*joined = *joined || err == nil
		return view, err
	})
}

// resign releases the shards at Stop, so that others need not wait.
func (l *leaser) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout)
	defer cancel()
	shards := l.Leases.Owned()
	l.Leases.Drop(shards)
	l.nodes.told.end()
	if len(shards) > 0 {
		if err := l.Store.ReleaseShards(ctx, l.Leases.Incarnation, shards); err != nil {
			l.Logger.Warn("xxljob: could not release shards; other nodes will take them once this node has left", "error", err)
		}
	}
}

// The lease loop: what it has.

// leaser keeps this node's lease, and its part of the shards. It belongs to the lease loop.
type leaser struct {
	*core.Core
	doubts  *dispatch.Unconfirmed
	lists   *catalog.Lists
	nodes   *nodeNews
	server  *serverNews
	failing *failingNews
	tender  *tender
}

// What a beat has brought, and whom it concerns. All of it belongs to the lease loop.

// nodeNews has news of the other nodes reach those whom they concern.
type nodeNews struct {
	*core.Core
	engine     *queue.Queue
	memory     *registry.Memory
	desk       *runlog.Desk
	balancer   *balancer
	told       *leaseNews
	superseded bool // another node has this one's name, as it has said in the log
}

// serverNews are about the server process behind the store.
type serverNews struct {
	*core.Core
	doubts *dispatch.Unconfirmed
	lists  *catalog.Lists
	reload *lease.ReloadSet
	last   string // as of the last beat
}

// failingNews are about this node: what the other nodes and the log are to know of whether
// it fails.
type failingNews struct {
	*core.Core
	fitness *lease.Fitness
	rests   bool // this node leaves its shards to others, as it has said in the log
	was     bool // what this node thought of itself at the last beat
}

// noteLook has what a look has shown reach those whom it concerns. It makes no call, so that
// it is done with each look, whatever the node does next.
func (n *nodeNews) noteLook(changed bool, found []store.Shard) {
	if changed {
		n.memory.Forget()
	}
	n.balancer.takeUp(found)
	for _, inc := range n.Leases.TakeDoubts() {
		n.engine.Evict(store.LocalAddress(inc))
	}
	n.desk.Tell() // a node that was asked may be gone
	n.warnSuperseded()
}

// warnSuperseded says, once, that two nodes have one name.
func (n *nodeNews) warnSuperseded() {
	is := n.Leases.IsSuperseded()
	if is && !n.superseded {
		n.Logger.Error("xxljob: another node with the same Config.Node was started later; this one schedules nothing")
	}
	n.superseded = is
}

// noteServer has everything read again that the store may have forgotten, when another
// server has taken the place of the one that acknowledged it.
func (n *serverNews) noteServer(server string) {
	if n.last != "" && server != n.last {
		n.Logger.Warn("xxljob: the store is now served by another server process; rereading planned runs", "was", n.last, "is", server)
		n.doubts.LookLater()
		n.reload.Add(n.Leases.Owned())
		n.Life.Wakes.Scan.Poke()
		n.lists.Renewed()
	}
	n.last = server
}

// sayFailing tells the other nodes, where the store has it otherwise, whether this one
// fails, and reports whether it had to.
func (f *failingNews) sayFailing(ctx context.Context, v store.View, failing bool) (said bool, err error) {
	if rests := f.Leases.IsResting(); rests != f.rests {
		f.rests = rests
		switch {
		case rests:
			f.Logger.Error("xxljob: this node is failing and gives up its shards to other nodes", "error", f.fitness.Err(rests, 0))
		case failing:
			f.Logger.Warn("xxljob: this node is still failing but takes shards again, because no other node does better", "error", f.fitness.Err(rests, 0))
		default:
			f.Logger.Info("xxljob: this node has recovered and takes shards again")
		}
	}
	for _, n := range v.Nodes {
		if n.Incarnation == f.Leases.Incarnation && n.Failing != failing {
			_, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, f.Store.SetFailing(ctx, f.Leases.Incarnation, failing)
			})
			if err == nil {
				f.Leases.Said(failing, time.Now())
			}
			return true, err
		}
	}
	return false, nil
}

// What the lease loop has to tell of: shards that came and went, and a store that is away.

// leaseNews tells which shards this node has come to have and has no more, and whether the
// store answers. It is for the lease loop; Stop tells of shards too.
type leaseNews struct {
	teller *events.Bus

	mu   sync.Mutex
	has  []store.Shard // guarded by mu
	over bool          // guarded by mu: Stop has given up the shards, and no more is told of any
	good time.Time     // monotonic: the last answer of the store
	away bool          // it was told of
}

// took tells of shards that this node is about to schedule the jobs of.
func (n *leaseNews) took(shards []store.Shard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(slices.Concat(n.has, shards))
}

// shards compares what this node has with what it had.
func (n *leaseNews) shards(now []store.Shard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(now)
}

// end tells that this node has no shards any more. What the lease loop tells of shards after that
// is from before it.
func (n *leaseNews) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(nil)
	n.over = true
}

// look is called with mu held.
func (n *leaseNews) look(now []store.Shard) {
	if n.over {
		return
	}
	for i := range now {
		now[i].Owner, now[i].Free = n.teller.Leases.Incarnation, false
	}
	for _, sh := range n.has {
		if !slices.Contains(now, sh) {
			n.teller.Happened(core.Event{Kind: core.EventShardLost, Shard: &sh})
		}
	}
	for _, sh := range now {
		if !slices.Contains(n.has, sh) {
			n.teller.Happened(core.Event{Kind: core.EventShardTaken, Shard: &sh})
		}
	}
	n.has = now
}

// answered notes that the store has answered a beat.
func (n *leaseNews) answered() {
	now := time.Now()
	if n.away {
		n.teller.Happened(core.Event{Kind: core.EventStoreBack, Away: now.Sub(n.good)})
	}
	n.good, n.away = now, false
}

// failed notes that a beat has failed, and whether this node still relies on its shards.
func (n *leaseNews) failed(err error, trusted bool) {
	if n.good.IsZero() {
		n.good = time.Now()
	}
	if !trusted && !n.away {
		n.away = true
		n.teller.Happened(core.Event{Kind: core.EventStoreAway, Err: err})
	}
}

// What the lease loop does beside its beats.

// tender gives up and takes shards, settles runs, looks for orphans and mends jobs. It
// belongs to the lease loop.
type tender struct {
	*core.Core
	fitness  *lease.Fitness
	balancer *balancer
	settler  *dispatch.Recovery
	orphans  *dispatch.Orphans
	tended   int // how many duties it has done
}

// tend gives up and takes shards, settles the runs of nodes that are gone, and looks for
// runs and mends jobs that need it. None of these is kept from its work by what failed
// before it: or a node whose sweeps fail would neither give a shard up nor take one. But
// where claims or starts hang, so may all of this, and the next beat must not wait: what
// runs into a deadline ends it for this time, and the next time begins behind that.
func (t *tender) tend(ctx context.Context, view store.View) error {
	side, cancel := t.besideBeats(ctx)
	defer cancel()
	err := t.balancer.rebalance(ctx, side, view)
	duties := []func(context.Context) error{t.settler.SettleGone, t.orphans.AdoptOrphans, t.balancer.sweep}
	for range duties {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		do := duties[t.tended%len(duties)]
		t.tended++
		err = errors.Join(err, do(side))
	}
	return err
}

// besideBeats bounds what the lease loop does beside its beats, while it may hang.
func (t *tender) besideBeats(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.fitness.Troubled() {
		return context.WithTimeout(ctx, t.Cfg.Cluster.LeaseTTL/5)
	}
	return ctx, func() {}
}
