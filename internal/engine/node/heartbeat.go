package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/catalog"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/dispatch"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/release"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The loop of a node's lease. Input: what the store says of the nodes and the shards. Output:
// trust, to all other loops; shards that are taken and given up; verdicts about nodes. What a
// beat has brought goes to those whom it concerns.

// heartbeat keeps this node's lease, and its part of the shards. All of it but told belongs to
// the lease loop.
type heartbeat struct {
	*core.Core
	queue    *queue.Queue
	dispatch *dispatch.Dispatcher
	memory   *registry.Memory
	desk     *runlog.Desk
	routers  []string // this node's own routing strategies
	lists    *catalog.Lists
	fitness  *lease.Fitness
	reload   *lease.ReloadSet // takes shards whose planned runs are to be read as a whole
	told     leaseNews        // what hooks have heard
	// comes is called before the node joins.
	comes func(context.Context) error

	superseded bool   // another node has this one's name, as this one has said in the log
	server     string // the server process behind the store, as of the last beat
	rests      bool   // this node leaves its shards to others, as it has said in the log
	failing    bool   // what this node thought of itself at the last beat

	unswept lease.ReloadSet      // shards whose waiting jobs have to be mended yet
	outrun  bool                 // others were quicker to take shards, the last time
	tended  int                  // how many duties beside the beats it has done
	zones   []string             // without data here, as the store was told
	said    store.Process        // what the store was told of this process
	refused map[string]time.Time // apps of executors that beats leave out, and when the store refused them

	sayingZones, sayingProcess loop.Backoff
}

// loop joins the cluster and beats until ctx ends; after its end the node
// is silent.
func (h *heartbeat) loop(ctx context.Context, nodes <-chan struct{}) {
	backoff := loop.Backoff{Log: h.Logger, What: "beating"}
	joined := false
	for {
		wait, err := h.beatOnce(ctx, &joined)
		if err != nil {
			h.dispatch.LookForOrphans() // a store that failed over may have forgotten what it had acknowledged
		}
		if errors.Is(err, errs.ErrShards) {
			h.Life.CannotWork(err, h.Logger)
			return
		}
		if backoff.Failed(ctx, err) {
			wait = min(backoff.Delay(), h.Cfg.Cluster.LeaseTTL/5)
		}
		if !h.rest(ctx, wait, nodes) {
			return
		}
	}
}

// rest waits until the next beat is due or a signal comes; the first moment
// it waits in any case, or nodes that signal each other would keep each other
// awake without end.
func (h *heartbeat) rest(ctx context.Context, wait time.Duration, nodes <-chan struct{}) bool {
	pause := min(wait, h.Cfg.Cluster.LeaseTTL/50)
	if !loop.Sleep(ctx, pause) || wait == pause {
		return ctx.Err() == nil
	}
	if wait < loop.Forever {
		wait -= pause
	}
	return loop.Sleep(ctx, wait, nodes, h.Life.Wakes.Lease)
}

// beatOnce beats, looks, gives up and takes shards, and settles the runs of
// nodes that are gone. It returns how long to wait for the next time.
func (h *heartbeat) beatOnce(ctx context.Context, joined *bool) (time.Duration, error) {
	began := time.Now()
	view, err := h.beat(ctx, joined)
	if err != nil {
		h.fitness.Silent(err)
		h.told.failed(err, h.Leases.Trusted(time.Now()))
		return 0, err
	}
	h.Clock.Sample(view.Now, began)
	h.noteServer(view.Server)
	h.lists.NoteRow(view, h.Leases.Incarnation)
	h.tryZones(view)
	now := time.Now()
	self := h.fitness.Judge()
	changed, regained, found := h.Leases.Look(view, self, began, now)
	h.noteLook(changed, found)
	h.told.answered()
	if regained || self.Failing != h.failing { // while it fails, the scan loop tries it out
		h.Life.Wakes.WakeLoops()
	}
	h.failing = self.Failing
	if said, err := h.sayFailing(ctx, view, self.Failing); err != nil {
		return 0, err
	} else if said && self.Failing {
		// Only a view from after that tells who else fails: see hasAnnounced. What follows
		// here may take a while. The hint that this node's row has changed is no news.
		loop.Sleep(ctx, min(max(5*now.Sub(began), h.Cfg.Cluster.LeaseTTL/50), h.Cfg.Cluster.LeaseTTL/5), h.Life.Wakes.Lease)
		return 0, nil
	}
	err = h.tend(ctx, view)
	h.told.shards(h.Leases.Owned())
	if view.Alone && !h.dispatch.LooksAgain() {
		return loop.Forever, err
	}
	return h.Cfg.Cluster.LeaseTTL / 5, err
}

// beat joins the first time. It is seen through: a beat that is done after the node has
// left would bring it back, and the others would wait for its silence.
func (h *heartbeat) beat(ctx context.Context, joined *bool) (store.View, error) {
	if err := h.SetShards(ctx); err != nil {
		return store.View{}, err
	}
	if !*joined {
		if err := h.comes(ctx); err != nil {
			return store.View{}, err
		}
	}
	return loop.Detached(ctx, func(ctx context.Context) (store.View, error) {
		beat := func(attached []store.Attachment) (store.View, error) {
			if *joined {
				h.noteZones(ctx)
				h.noteProcess(ctx)
				return h.Store.Beat(ctx, h.Leases.Incarnation, attached)
			}
			view, err := h.Store.Join(ctx, store.Node{ID: h.Cfg.Node, Incarnation: h.Leases.Incarnation, Attached: attached, Zones: schedule.HasZones(), Knows: schedule.Knows, Routers: h.routers})
			// A Join with an unknown outcome is followed by beats: they add the node
			// where it is not there.
			*joined = *joined || err == nil
			return view, err
		}
		attached := h.attached()
		view, err := beat(attached)
		if errors.Is(err, store.ErrRefused) && len(attached) > 0 {
			return h.beatWithout(attached, beat)
		}
		return view, err
	})
}

// noteZones has the beat say which zones this node has no data of, where it has met more of them.
func (h *heartbeat) noteZones(ctx context.Context) {
	missing := h.Leases.Missing()
	noter, ok := core.Given(h.Store).(store.ZoneNoter)
	if !ok || len(missing) == len(h.zones) { // it only grows
		return
	}
	if h.note(ctx, &h.sayingZones, func(ctx context.Context) error {
		return noter.NoteUnknownZones(ctx, h.Leases.Incarnation, missing)
	}) {
		h.zones = missing
	}
}

// clockMoves is by how much this process's clock has to move against the store's for that to be said anew.
const clockMoves = 100 * time.Millisecond

// noteProcess has the beat say of which release this node is, and how far the store's clock is ahead of its
// own, where that has changed.
func (h *heartbeat) noteProcess(ctx context.Context) {
	noter, ok := core.Given(h.Store).(store.ProcessNoter)
	is := store.Process{Version: h.said.Version, ClockOffset: h.Clock.Offset().Round(time.Millisecond)}
	if !ok || is.Version != "" && (is.ClockOffset-h.said.ClockOffset).Abs() < clockMoves {
		return
	}
	is.Version, _ = release.Versions()
	if h.note(ctx, &h.sayingProcess, func(ctx context.Context) error {
		return noter.NoteProcess(ctx, h.Leases.Incarnation, is)
	}) {
		h.said = is
	}
}

// note tells the store what this node's beats are to say of it, and reports whether it took that. No lease is
// lost over that: where the store does not take it in time the node beats without, and tries again with the
// next beat.
func (h *heartbeat) note(ctx context.Context, saying *loop.Backoff, tell func(context.Context) error) bool {
	short, cancel := context.WithTimeout(ctx, h.Cfg.Cluster.LeaseTTL/10)
	defer cancel()
	return !saying.Failed(ctx, tell(short))
}

// tryZones looks here for the zones that others have met and have no data of, before a shard with
// such a job comes by.
func (h *heartbeat) tryZones(view store.View) {
	missing := h.Leases.Missing()
	for i := range view.Nodes {
		for _, zone := range view.Nodes[i].UnknownZones {
			if slices.Contains(missing, zone) {
				continue
			}
			if _, err := schedule.LoadZone(zone); err != nil {
				h.Leases.Miss([]string{zone})
			}
		}
	}
}

// leftOut is how long an attached executor is left out of beats that the store has refused for it.
// That is a trouble all the while.
const leftOut = 15 * time.Second

// attached are the executors here, but for those that are left out.
func (h *heartbeat) attached() []store.Attachment {
	maps.DeleteFunc(h.refused, func(_ string, at time.Time) bool { return time.Since(at) > leftOut })
	attached := h.Leases.Local()
	if len(h.refused) == 0 {
		return attached
	}
	return slices.DeleteFunc(slices.Clone(attached), func(a store.Attachment) bool { _, out := h.refused[a.App]; return out })
}

// beatWithout beats where the store has refused a beat with the executors that are attached here:
// without those that it refuses alone, so that a node which can say nothing of one app keeps its
// shards.
func (h *heartbeat) beatWithout(attached []store.Attachment, beat func([]store.Attachment) (store.View, error)) (store.View, error) {
	took := []store.Attachment{} // nil would say that the node is resting
	view, err := beat(took)
	if err != nil {
		return view, err
	}
	refused, why, err := loop.Halve(attached, func(part []store.Attachment) error {
		all := slices.Concat(took, part)
		is, err := beat(all)
		if err == nil {
			view, took = is, all
		}
		return err
	})
	for _, a := range refused {
		h.refused[a.App] = time.Now()
		h.Core.Troubles.Refused(h.Clock.Now(), a.App, 0, store.SeenRefusesNode, 0, why)
	}
	return view, err
}

// resign releases the shards at Stop, so that others need not wait.
func (h *heartbeat) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout)
	defer cancel()
	shards := h.Leases.Owned()
	h.Leases.Drop(shards)
	h.told.end()
	if len(shards) > 0 {
		if err := h.Store.ReleaseShards(ctx, h.Leases.Incarnation, shards); err != nil {
			h.Logger.Warn("xxljob: could not release shards; other nodes will take them once this node has left", "error", err)
		}
	}
}

// noteLook has what a look has shown reach those whom it concerns. It makes no call, so that
// it is done with each look, whatever the node does next.
func (h *heartbeat) noteLook(changed bool, found []store.Shard) {
	if changed {
		h.memory.Forget()
		h.queue.LookForRouters() // a node that knows what theirs does not may be there
		h.told.bus.Look()
	}
	h.takeUp(found)
	for _, inc := range h.Leases.TakeDoubts() {
		h.queue.Evict(store.LocalAddress(inc))
	}
	h.desk.Tell() // a node that was asked may be gone
	h.warnSuperseded()
}

// warnSuperseded says, once, that two nodes have one name.
func (h *heartbeat) warnSuperseded() {
	is := h.Leases.IsSuperseded()
	if is && !h.superseded {
		h.Logger.Error("xxljob: another node with the same Config.Node was started later; this one schedules nothing")
	}
	h.superseded = is
}

// noteServer has everything read again that the store may have forgotten, when another
// server has taken the place of the one that acknowledged it.
func (h *heartbeat) noteServer(server string) {
	if h.server != "" && server != h.server {
		h.Logger.Warn("xxljob: the store is now served by another server process; rereading planned runs", "was", h.server, "is", server)
		h.dispatch.LookForOrphans()
		h.reload.Add(h.Leases.Owned())
		h.Life.Wakes.Scan.Poke()
		h.lists.Renewed()
	}
	h.server = server
}

// sayFailing tells the other nodes, where the store has it otherwise, whether this one
// fails, and reports whether it had to.
func (h *heartbeat) sayFailing(ctx context.Context, v store.View, failing bool) (said bool, err error) {
	if rests := h.Leases.IsResting(); rests != h.rests {
		h.rests = rests
		switch {
		case rests:
			h.Logger.Error("xxljob: this node is failing and gives up its shards to other nodes", "error", h.fitness.Err(rests, 0))
		case failing:
			h.Logger.Warn("xxljob: this node is still failing but takes shards again, because no other node does better", "error", h.fitness.Err(rests, 0))
		default:
			h.Logger.Info("xxljob: this node has recovered and takes shards again")
		}
	}
	for _, n := range v.Nodes {
		if n.Incarnation == h.Leases.Incarnation && n.Failing != failing {
			err := loop.Do(ctx, func(ctx context.Context) error { return h.Store.SetFailing(ctx, h.Leases.Incarnation, failing) })
			if err == nil {
				h.Leases.Said(failing, time.Now())
			}
			return true, err
		}
	}
	return false, nil
}

// What the lease loop does beside its beats.

// tend gives up and takes shards, settles the runs of nodes that are gone, and looks for
// runs and mends jobs that need it. None of these is kept from its work by what failed
// before it: or a node whose sweeps fail would neither give a shard up nor take one. But
// where claims or starts hang, so may all of this, and the next beat must not wait: what
// runs into a deadline ends it for this time, and the next time begins behind that.
func (h *heartbeat) tend(ctx context.Context, view store.View) error {
	side, cancel := h.besideBeats(ctx)
	defer cancel()
	err := h.rebalance(ctx, side, view)
	duties := []func(context.Context) error{h.dispatch.SettleGone, h.dispatch.AdoptOrphans, h.sweep}
	for range duties {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		do := duties[h.tended%len(duties)]
		h.tended++
		err = errors.Join(err, do(side))
	}
	return err
}

// besideBeats bounds what the lease loop does beside its beats, while it may hang.
func (h *heartbeat) besideBeats(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.fitness.Troubled() {
		return context.WithTimeout(ctx, h.Cfg.Cluster.LeaseTTL/5)
	}
	return ctx, func() {}
}
