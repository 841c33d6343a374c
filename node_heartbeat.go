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
	backoff := backoff{log: l.log, what: "beating"}
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
		if backoff.failed(ctx, err) {
			wait = min(backoff.delay(), l.cfg.Cluster.LeaseTTL/5)
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
		l.failing.fitness.silent()
		l.nodes.told.failed(err, l.leases.trusted(time.Now()))
		return 0, err
	}
	l.clock.sample(view.Now, began)
	l.server.noteServer(view.Server)
	l.lists.noteRow(view, l.leases.incarnation)
	now := time.Now()
	self := l.failing.fitness.judge()
	changed, regained, found := l.leases.look(view, self, began, now)
	l.nodes.noteLook(changed, found)
	l.nodes.told.answered()
	if regained || self.failing != l.failing.was { // while it fails, the scan loop tries it out
		l.life.wakes.wakeLoops()
	}
	l.failing.was = self.failing
	if said, err := l.failing.sayFailing(ctx, view, self.failing); err != nil {
		return 0, err
	} else if said && self.failing {
		// Only a view from after that tells who else fails: see hasAnnounced. What follows
		// here may take a while. The hint that this node's row has changed is no news.
		sleep(ctx, min(max(5*now.Sub(began), l.cfg.Cluster.LeaseTTL/50), l.cfg.Cluster.LeaseTTL/5), l.life.wakes.lease)
		return 0, nil
	}
	err = l.tender.tend(ctx, view)
	l.nodes.told.shards(l.leases.owned())
	if view.Alone && !l.doubts.any() {
		return forever, err
	}
	return l.cfg.Cluster.LeaseTTL / 5, err
}

// beat joins the first time. It is seen through: a beat that is done after the node has
// left would bring it back, and the others would wait for its silence.
func (l *leaser) beat(ctx context.Context, joined *bool) (View, error) {
	if err := l.setShards(ctx); err != nil {
		return View{}, err
	}
	return detached(ctx, func(ctx context.Context) (View, error) {
		if *joined {
			return l.store.Beat(ctx, l.leases.incarnation, l.leases.local())
		}
		view, err := l.store.Join(ctx, Node{ID: l.cfg.Node, Incarnation: l.leases.incarnation, Attached: l.leases.local()})
		// A Join with an unknown outcome is followed by beats: they add the node
		// where it is not there.
		*joined = *joined || err == nil
		return view, err
	})
}

// resign releases the shards at Stop, so that others need not wait.
func (l *leaser) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	shards := l.leases.stopTaking()
	l.nodes.told.shards(nil)
	if len(shards) > 0 {
		if err := l.store.ReleaseShards(ctx, l.leases.incarnation, shards); err != nil {
			l.log.Warn("xxljob: could not release shards; other nodes will take them once this node has left", "error", err)
		}
	}
}
