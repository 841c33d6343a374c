package xxljob

// The loop of a node's lease. Input: what the store says of the nodes and the shards. Output:
// trust, to all other loops; shards that are taken and given up; verdicts about nodes.

import (
	"context"
	"errors"
	"time"
)

// leaseLoop joins the cluster and beats until ctx ends; after its end the node
// is silent.
func (l *leaser) leaseLoop(ctx context.Context, nodes <-chan struct{}) {
	retry := backoff{log: l.log, what: "beating"}
	joined := false
	for {
		wait, err := l.leaseOnce(ctx, &joined)
		if err != nil {
			l.doubts.lookLater() // a store that failed over may have forgotten what it had acknowledged
		}
		if errors.Is(err, ErrShards) {
			l.life.cannotWork(err, l.log)
			return
		}
		if retry.failed(ctx, err) {
			wait = min(retry.delay(), l.cfg.Cluster.LeaseTTL/5)
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
	pause := min(wait, l.cfg.Cluster.LeaseTTL/50)
	if !sleep(ctx, pause) || wait == pause {
		return ctx.Err() == nil
	}
	if wait < forever {
		wait -= pause
	}
	return sleep(ctx, wait, nodes, l.life.wakes.lease)
}

// leaseOnce beats, looks, gives up and takes shards, and settles the runs of
// nodes that are gone. It returns how long to wait for the next time.
func (l *leaser) leaseOnce(ctx context.Context, joined *bool) (time.Duration, error) {
	began := time.Now()
	view, err := l.beat(ctx, joined)
	if err != nil {
		l.fitness.silent()
		return 0, err
	}
	l.clock.sample(view.Now, began)
	l.noteServer(view.Server)
	l.lists.noteRow(view, l.leases.incarnation)
	now := time.Now()
	self := l.fitness.judge()
	changed, regained, found := l.leases.look(view, self, began, now)
	l.noteLook(changed, found)
	if regained || self.failing != l.failing { // while it fails, the scan loop tries it out
		l.wakeLoops()
	}
	l.failing = self.failing
	if said, err := l.sayFailing(ctx, view, self.failing); err != nil {
		return 0, err
	} else if said && self.failing {
		// Only a view from after that tells who else fails: see hasAnnounced. What follows
		// here may take a while. The hint that this node's row has changed is no news.
		sleep(ctx, min(max(5*now.Sub(began), l.cfg.Cluster.LeaseTTL/50), l.cfg.Cluster.LeaseTTL/5), l.life.wakes.lease)
		return 0, nil
	}
	err = l.tend(ctx, view)
	if view.Alone && !l.doubts.any() {
		return forever, err
	}
	return l.cfg.Cluster.LeaseTTL / 5, err
}

// tend gives up and takes shards, settles the runs of nodes that are gone, and looks for
// runs and mends jobs that need it. None of these is kept from its work by what failed
// before it: or a node whose sweeps fail would neither give a shard up nor take one. But
// where claims or starts hang, so may all of this, and the next beat must not wait: what
// runs into a deadline ends it for this time, and the next time begins behind that.
func (l *leaser) tend(ctx context.Context, view View) error {
	side, cancel := l.besideBeats(ctx)
	defer cancel()
	err := l.rebalance(ctx, side, view)
	duties := []func(context.Context) error{l.settler.settleGone, l.settler.adoptOrphans, l.sweep}
	for range duties {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		do := duties[l.tended%len(duties)]
		l.tended++
		err = errors.Join(err, do(side))
	}
	return err
}

// noteLook has what a look has shown reach those whom it concerns. It makes no call, so that
// it is done with each look, whatever the node does next.
func (l *leaser) noteLook(changed bool, found []Shard) {
	if changed {
		l.book.forget()
	}
	l.takeUp(found)
	for _, inc := range l.leases.takeDoubts() {
		l.engine.evict(LocalAddress(inc))
	}
	l.desk.tell() // a node that was asked may be gone
	l.warnSuperseded()
}

// sayFailing tells the other nodes, where the store has it otherwise, whether this one
// fails, and reports whether it had to.
func (l *leaser) sayFailing(ctx context.Context, v View, failing bool) (said bool, err error) {
	if rests := l.leases.isResting(); rests != l.rests {
		l.rests = rests
		switch {
		case rests:
			l.log.Error("xxljob: this node is failing and gives up its shards to other nodes", "error", l.fitness.err(rests))
		case failing:
			l.log.Warn("xxljob: this node is still failing but takes shards again, because no other node does better", "error", l.fitness.err(rests))
		default:
			l.log.Info("xxljob: this node has recovered and takes shards again")
		}
	}
	for _, n := range v.Nodes {
		if n.Incarnation == l.leases.incarnation && n.Failing != failing {
			_, err := call(ctx, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, l.store.SetFailing(ctx, l.leases.incarnation, failing)
			})
			if err == nil {
				l.leases.said(failing, time.Now())
			}
			return true, err
		}
	}
	return false, nil
}

// besideBeats bounds what the lease loop does beside its beats, while it may hang.
func (l *leaser) besideBeats(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.fitness.troubled() {
		return context.WithTimeout(ctx, l.cfg.Cluster.LeaseTTL/5)
	}
	return ctx, func() {}
}

// noteServer has everything read again that the store may have forgotten, when another
// server has taken the place of the one that acknowledged it.
func (l *leaser) noteServer(server string) {
	if l.server != "" && server != l.server {
		l.log.Warn("xxljob: the store is now served by another server process; rereading planned runs", "was", l.server, "is", server)
		l.doubts.lookLater()
		l.reload.add(l.leases.owned())
		l.life.wakes.scan.poke()
		l.lists.renewed()
	}
	l.server = server
}

// beat joins the first time. It is seen through: a beat that is done after the node has
// left would bring it back, and the others would wait for its silence.
func (l *leaser) beat(ctx context.Context, joined *bool) (View, error) {
	if err := l.setShards(ctx); err != nil {
		return View{}, err
	}
	return detached(ctx, func(ctx context.Context) (View, error) {
		if *joined {
			return l.store.Beat(ctx, l.leases.incarnation, l.attacher.attachments())
		}
		view, err := l.store.Join(ctx, Node{ID: l.cfg.Node, Incarnation: l.leases.incarnation, Attached: l.attacher.attachments()})
		// A Join with an unknown outcome is followed by beats: they add the node
		// where it is not there.
		*joined = *joined || err == nil
		return view, err
	})
}

// warnSuperseded says, once, that two nodes have one name.
func (l *leaser) warnSuperseded() {
	is := l.leases.isSuperseded()
	if is && !l.superseded {
		l.log.Error("xxljob: another node with the same Config.Node was started later; this one schedules nothing")
	}
	l.superseded = is
}

// resign releases the shards at Stop, so that others need not wait.
func (l *leaser) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if shards := l.leases.stopTaking(); len(shards) > 0 {
		if err := l.store.ReleaseShards(ctx, l.leases.incarnation, shards); err != nil {
			l.log.Warn("xxljob: could not release shards; other nodes will take them once this node has left", "error", err)
		}
	}
}
