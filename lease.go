package xxljob

// Nodes and shards. Every LeaseTTL/5 a node beats and looks at the others;
// shards of nodes that are gone or silent are taken, and the live nodes hold
// equal shares. Nothing here compares wall clocks: silence is a beat counter
// that does not move while this node's own reads succeed.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// leases is what a node knows about the cluster and about its own shards.
type leases struct {
	incarnation string
	window      time.Duration // how long a beat is trusted: LeaseTTL minus the margin
	ttl         time.Duration
	lostAfter   time.Duration
	maxHold     time.Duration
	local       func() []Attachment // what is attached here, at this moment

	mu         sync.Mutex
	mine       map[int]hold                // guarded by mu: owned shards
	trust      time.Time                   // guarded by mu: monotonic; until when
	alone      bool                        // guarded by mu: the trust does not run out
	resting    bool                        // guarded by mu: Stop has begun, take nothing
	rests      bool                        // guarded by mu: this node fails, and another does not
	announced  time.Time                   // guarded by mu: since when the store has it that this node fails; zero where it has not
	superseded bool                        // guarded by mu
	nodes      map[string]*observed        // guarded by mu: by incarnation
	apps       map[string]map[string]*Node // guarded by mu: live nodes by app attached
	rest       map[int]time.Time           // guarded by mu: shards given up by LeaseMaxHold, until when
	idleSince  map[int]time.Time           // guarded by mu: shards that nobody looks after, since when
	idleLook   time.Time                   // guarded by mu: when that was last looked at
	rescue     map[int]time.Time           // guarded by mu: shards taken above the share, when
	read       time.Time                   // guarded by mu: monotonic, the last successful look
	doubts     []string                    // guarded by mu: nodes that have come to be doubted, until takeDoubts

	looked     chan struct{} // closed by the first look
	lookedOnce sync.Once
}

// hold is the lease of one shard.
type hold struct {
	epoch int64
	since time.Time
	// settled is set once it is known which runs the former owner has handed to nodes
	// that have not taken them, loaded once its planned runs are held: from then on runs
	// of serial jobs are started, in their order.
	settled, loaded bool
}

// observed is a node as this node has watched it.
type observed struct {
	node  Node
	moved time.Time // monotonic: when its counter was last seen to move
	live  bool
	gone  bool // its runs may be judged
	// rests is set for a live node that says that it fails, while another one does not.
	rests bool
	// doubted is set for a node that is away, rests, or has missed two beats: it is not
	// chosen where there is another.
	doubted bool
	// absent is set for a node that is away, or was silent for a LeaseTTL: what it has
	// not taken is put back, and what it owned and had not sent is adopted.
	absent bool
	quiet  bool // it has left, or was silent for LostAfter: it may be buried
	// drains is set for a live node that rests, or has no executors: it stops, perhaps,
	// and takes no more runs.
	drains bool
	// idle is set for a live node that has no use for a share of the shards.
	idle bool
}

func newLeases(incarnation string, c *Config, local func() []Attachment) *leases {
	return &leases{
		incarnation: incarnation,
		window:      c.LeaseTTL - c.LeaseTTL/5,
		ttl:         c.LeaseTTL, lostAfter: c.LostAfter, maxHold: c.LeaseMaxHold,
		local:  local,
		looked: make(chan struct{}),
		mine:   map[int]hold{}, nodes: map[string]*observed{}, rest: map[int]time.Time{}, rescue: map[int]time.Time{},
	}
}

// trusted reports whether this node may plan, start and send at the moment now.
func (l *leases) trusted(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alone || now.Before(l.trust)
}

// isAlone reports whether no other node is open on the store.
func (l *leases) isAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alone
}

// epoch returns the epoch under which this node owns a shard.
func (l *leases) epoch(shard int) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.mine[shard]
	return h.epoch, ok
}

// owned returns the shards of this node in order of ID.
func (l *leases) owned() []Shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	shards := make([]Shard, 0, len(l.mine))
	for id, h := range l.mine {
		shards = append(shards, Shard{ID: id, Owner: l.incarnation, Epoch: h.epoch})
	}
	slices.SortFunc(shards, func(a, b Shard) int { return a.ID - b.ID })
	return shards
}

// lose forgets a shard that a write was refused for.
func (l *leases) lose(shard int, epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mine[shard].epoch == epoch {
		delete(l.mine, shard)
	}
}

// drop forgets shards that are about to be released.
func (l *leases) drop(shards []Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range shards {
		delete(l.mine, sh.ID)
	}
}

// leaseLoop joins the cluster and beats until ctx ends; after its end the node
// is silent.
func (s *scheduler) leaseLoop(ctx context.Context) {
	retry := backoff{log: s.log, what: "beating"}
	joined := false
	for {
		wait, err := s.leaseOnce(ctx, &joined)
		if err != nil {
			s.doubt() // a store that failed over may have forgotten what it had acknowledged
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
	s.noteRow(view)
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
	if view.Alone && !s.suspicious() {
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
		s.doubt()
		s.reload.add(s.leases.owned())
		s.wakes.scan.poke()
		s.lists.rows.Add(1)
		s.wakes.list.poke()
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

// look takes in a view: the trust it gives, who is live, who is gone, and which shards are
// this node's. self is what this node has found out about its own claims and starts. It
// reports whether the live nodes or what they have attached have changed, and whether the
// node had no trust any more, and returns shards that an earlier call took without telling.
func (l *leases) look(v View, self selfVerdict, asked, answered time.Time) (changed, regained bool, found []Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	regained = !l.alone && !time.Now().Before(l.trust) // whoever has rested for it found so before this
	l.alone = v.Alone
	l.trust = asked.Add(l.window)
	// Only while this node looked all the time does a counter that stands still
	// say anything.
	interrupted := answered.Sub(l.read) > l.ttl/2
	l.read = answered
	seen := make(map[string]*observed, len(v.Nodes))
	newest := map[string]Node{}
	for _, n := range v.Nodes {
		if n.Left {
			continue
		}
		if o, ok := newest[n.ID]; !ok || n.Joined.After(o.Joined) || n.Joined.Equal(o.Joined) && n.Incarnation > o.Incarnation {
			newest[n.ID] = n
		}
	}
	fit := false // there is a live node that has a use for shards and does not fail
	for _, n := range v.Nodes {
		o := &observed{node: n, moved: answered}
		if was := l.nodes[n.Incarnation]; was != nil && was.node.Beats == n.Beats && !interrupted {
			o.moved = was.moved
		}
		me := n.Incarnation == l.incarnation
		superseded := !n.Left && newest[n.ID].Incarnation != n.Incarnation
		silence := answered.Sub(o.moved)
		o.quiet = !me && (n.Left || silence >= l.lostAfter)
		o.absent = !me && (n.Away || silence >= l.ttl)
		o.live = !superseded && (me || !n.Left && silence < l.ttl)
		o.gone = o.quiet || superseded && !me
		o.idle = !me && o.live && (n.Away || n.Resting)
		if me {
			l.announce(n.Failing && self.failing, answered)
			l.superseded, o.node.Failing = superseded, self.failing
		}
		fit = fit || o.live && !o.idle && !o.node.Failing && silence < 2*l.ttl/5
		seen[n.Incarnation] = o
	}
	// One that is better and has its shards yet, for all failed until now, keeps them.
	l.rests = fit && self.failing && (l.rests || !self.better && l.hasAnnounced(answered.Sub(asked), answered))
	for _, n := range v.Nodes {
		o, was, me := seen[n.Incarnation], l.nodes[n.Incarnation], n.Incarnation == l.incarnation
		o.rests = fit && o.live && o.node.Failing
		if me {
			o.rests = o.live && l.rests
		}
		o.idle = o.idle || o.rests
		o.doubted = !me && (n.Away || o.rests || answered.Sub(o.moved) >= 2*l.ttl/5)
		o.drains = !me && o.live && (o.rests || len(n.Attached) == 0)
		changed = changed || was == nil || was.live != o.live || was.doubted != o.doubted || !sameAttached(was.node, n)
		if o.doubted && (was == nil || !was.doubted) {
			l.doubts = append(l.doubts, n.Incarnation)
		}
	}
	changed = changed || len(seen) != len(l.nodes)
	l.nodes = seen
	l.index()
	l.lookedOnce.Do(func() { close(l.looked) })
	return changed, regained, l.own(v.Shards, answered)
}

// said notes that the store has acknowledged whether this node fails.
func (l *leases) said(fails bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.announce(fails, now)
}

// announce notes whether the store has it that this node fails. Called with mu held.
func (l *leases) announce(fails bool, now time.Time) {
	switch {
	case !fails:
		l.announced = time.Time{}
	case l.announced.IsZero():
		l.announced = now
	}
}

// hasAnnounced reports whether the others had time to say that they fail too, since this
// node has said it: where the store is slow for all, they come to fail one after the other,
// and each learns of it late. How slow it is the beat tells; after a LeaseTTL they had time
// enough. Called with mu held.
func (l *leases) hasAnnounced(beat time.Duration, now time.Time) bool {
	return !l.announced.IsZero() && now.Sub(l.announced) >= min(4*beat, l.ttl)
}

// own takes over from the store's rows which shards are this node's, and returns
// those that are new to it.
func (l *leases) own(shards []Shard, now time.Time) (found []Shard) {
	for _, sh := range shards {
		h, has := l.mine[sh.ID]
		switch {
		case sh.Owner != l.incarnation:
			delete(l.mine, sh.ID)
		case l.resting || l.rests || has && h.epoch == sh.Epoch:
		default:
			l.mine[sh.ID] = hold{epoch: sh.Epoch, since: now}
			found = append(found, sh)
		}
	}
	return found
}

// stopTaking forgets this node's shards, and takes none from here on.
func (l *leases) stopTaking() []Shard {
	shards := l.owned()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting = true
	clear(l.mine)
	return shards
}

// isResting reports whether this node leaves its shards to others, for it fails.
func (l *leases) isResting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rests
}

// isSuperseded reports whether a newer incarnation has this node's ID.
func (l *leases) isSuperseded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.superseded
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
