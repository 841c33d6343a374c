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
func (s *scheduler) leaseLoop(ctx context.Context) {
	retry := backoff{log: s.log, what: "beating"}
	joined := false
	for {
		wait, err := s.leaseOnce(ctx, &joined)
		if err != nil {
			s.doubts.later() // a store that failed over may have forgotten what it had acknowledged
		}
		if errors.Is(err, ErrShards) {
			s.cannotWork(err)
			return
		}
		if retry.failed(ctx, err) {
			wait = min(retry.delay(), s.cfg.LeaseTTL/5)
		}
		if !s.leaseRest(ctx, wait) {
			return
		}
	}
}

// leaseRest waits until the next beat is due or a signal comes; the first moment
// it waits in any case, or nodes that signal each other would keep each other
// awake without end.
func (s *scheduler) leaseRest(ctx context.Context, wait time.Duration) bool {
	pause := min(wait, s.cfg.LeaseTTL/50)
	if !sleep(ctx, pause) || wait == pause {
		return ctx.Err() == nil
	}
	if wait < forever {
		wait -= pause
	}
	return sleep(ctx, wait, s.signals.Nodes, s.wakes.lease)
}

// leaseOnce beats, looks, gives up and takes shards, and settles the runs of
// nodes that are gone. It returns how long to wait for the next time.
func (s *scheduler) leaseOnce(ctx context.Context, joined *bool) (time.Duration, error) {
	began := time.Now()
	view, err := s.beat(ctx, joined)
	if err != nil {
		s.fitness.silent()
		return 0, err
	}
	s.clock.sample(view.Now, began)
	s.noteServer(view.Server)
	s.lists.noteRow(view, s.incarnation)
	now := time.Now()
	self := s.fitness.judge()
	changed, regained, found := s.leases.look(view, self, began, now)
	s.noteLook(changed, found)
	if regained || self.failing != s.failing { // while it fails, the scan loop tries it out
		s.wakeLoops()
	}
	s.failing = self.failing
	if said, err := s.sayFailing(ctx, view, self.failing); err != nil {
		return 0, err
	} else if said && self.failing {
		// Only a view from after that tells who else fails: see hasAnnounced. What follows
		// here may take a while. The hint that this node's row has changed is no news.
		sleep(ctx, min(max(5*now.Sub(began), s.cfg.LeaseTTL/50), s.cfg.LeaseTTL/5), s.wakes.lease)
		return 0, nil
	}
	err = s.tend(ctx, view)
	if view.Alone && !s.doubts.suspicious() {
		return forever, err
	}
	return s.cfg.LeaseTTL / 5, err
}

// tend gives up and takes shards, settles the runs of nodes that are gone, and looks for
// runs and mends jobs that need it. None of these is kept from its work by what failed
// before it: or a node whose sweeps fail would neither give a shard up nor take one. But
// where claims or starts hang, so may all of this, and the next beat must not wait: what
// runs into a deadline ends it for this time, and the next time begins behind that.
func (s *scheduler) tend(ctx context.Context, view View) error {
	side, cancel := s.besideBeats(ctx)
	defer cancel()
	err := s.rebalance(ctx, side, view)
	duties := []func(context.Context) error{s.settleGone, s.adoptOrphans, s.sweep}
	for range duties {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		do := duties[s.tended%len(duties)]
		s.tended++
		err = errors.Join(err, do(side))
	}
	return err
}

// noteLook has what a look has shown reach those whom it concerns. It makes no call, so that
// it is done with each look, whatever the node does next.
func (s *scheduler) noteLook(changed bool, found []Shard) {
	if changed {
		s.book.forget()
	}
	s.takeUp(found)
	for _, inc := range s.leases.takeDoubts() {
		s.engine.evict(LocalAddress(inc))
	}
	s.desk.tell() // a node that was asked may be gone
	s.warnSuperseded()
}

// sayFailing tells the other nodes, where the store has it otherwise, whether this one
// fails, and reports whether it had to.
func (s *scheduler) sayFailing(ctx context.Context, v View, failing bool) (said bool, err error) {
	if rests := s.leases.isResting(); rests != s.rests {
		s.rests = rests
		switch {
		case rests:
			s.log.Error("xxljob: this node is failing and gives up its shards to other nodes", "error", s.fitness.err(rests))
		case failing:
			s.log.Warn("xxljob: this node is still failing but takes shards again, because no other node does better", "error", s.fitness.err(rests))
		default:
			s.log.Info("xxljob: this node has recovered and takes shards again")
		}
	}
	for _, n := range v.Nodes {
		if n.Incarnation == s.incarnation && n.Failing != failing {
			_, err := call(ctx, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, s.store.SetFailing(ctx, s.incarnation, failing)
			})
			if err == nil {
				s.leases.said(failing, time.Now())
			}
			return true, err
		}
	}
	return false, nil
}

// besideBeats bounds what the lease loop does beside its beats, while it may hang.
func (s *scheduler) besideBeats(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.fitness.troubled() {
		return context.WithTimeout(ctx, s.cfg.LeaseTTL/5)
	}
	return ctx, func() {}
}

// noteServer has everything read again that the store may have forgotten, when another
// server has taken the place of the one that acknowledged it.
func (s *scheduler) noteServer(server string) {
	if s.server != "" && server != s.server {
		s.log.Warn("xxljob: the store is now served by another server process; rereading planned runs", "was", s.server, "is", server)
		s.doubts.later()
		s.reload.add(s.leases.owned())
		s.wakes.scan.poke()
		s.lists.renewed()
	}
	s.server = server
}

// beat joins the first time. It is seen through: a beat that is done after the node has
// left would bring it back, and the others would wait for its silence.
func (s *scheduler) beat(ctx context.Context, joined *bool) (View, error) {
	if err := s.setShards(ctx); err != nil {
		return View{}, err
	}
	return detached(ctx, func(ctx context.Context) (View, error) {
		if *joined {
			return s.store.Beat(ctx, s.incarnation, s.attachments())
		}
		view, err := s.store.Join(ctx, Node{ID: s.cfg.Node, Incarnation: s.incarnation, Attached: s.attachments()})
		// A Join with an unknown outcome is followed by beats: they add the node
		// where it is not there.
		*joined = *joined || err == nil
		return view, err
	})
}

// warnSuperseded says, once, that two nodes have one name.
func (s *scheduler) warnSuperseded() {
	is := s.leases.isSuperseded()
	if is && !s.superseded {
		s.log.Error("xxljob: another node with the same Config.Node was started later; this one schedules nothing")
	}
	s.superseded = is
}

// resign releases the shards at Stop, so that others need not wait.
func (s *scheduler) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if shards := s.leases.stopTaking(); len(shards) > 0 {
		if err := s.store.ReleaseShards(ctx, s.incarnation, shards); err != nil {
			s.log.Warn("xxljob: could not release shards; other nodes will take them once this node has left", "error", err)
		}
	}
}
