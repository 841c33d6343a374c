package xxljob

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What a node has seen of the others, as lease_lease.go has taken it in: which are live, which
// are doubted, and what they have attached.

// localAddresses returns the addresses of live nodes with the app attached.
func (l *leases) localAddresses(app string) []string {
	here := l.local() // users' code: not under the lock
	l.mu.Lock()
	defer l.mu.Unlock()
	addrs := []string{}
	for inc := range l.seen.apps[app] {
		addrs = append(addrs, store.LocalAddress(inc))
	}
	for _, a := range here {
		if a.App == app && l.seen.apps[app][l.incarnation] == nil {
			addrs = append(addrs, store.LocalAddress(l.incarnation))
		}
	}
	return addrs
}

// serves reports whether a live node has the app, and in it the handler,
// attached. About itself a node asks its executors.
func (l *leases) serves(incarnation, app, handler string) (hasApp, hasHandler bool) {
	if incarnation == l.incarnation {
		return attaches(l.local(), app, handler)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.seen.apps[app][incarnation]; n != nil {
		return attaches(n.Attached, app, handler)
	}
	return false, false
}

// attaches reports whether one who has attached these serves the app, and within it the
// handler.
func attaches(list []store.Attachment, app, handler string) (hasApp, hasHandler bool) {
	for _, a := range list {
		if a.App != app {
			continue
		}
		hasApp = true
		for _, h := range a.Handlers {
			if h == handler {
				return true, true
			}
		}
	}
	return hasApp, false
}

// hasElsewhere reports whether another live node has the app attached.
func (l *leases) hasElsewhere(app string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen.apps[app]) > 0
}

// hasLooked reports whether the other nodes are known at all.
func (l *leases) hasLooked() bool {
	select {
	case <-l.seen.looked:
		return true
	default:
		return false
	}
}

// isLive reports whether the incarnation is a live node.
func (l *leases) isLive(incarnation string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.seen.nodes[incarnation]
	return incarnation == l.incarnation || o != nil && o.live
}

// isGone reports whether the incarnation will answer nothing any more. That it is
// not there says so only when this node has looked since the given time: it may
// have joined after the look before.
func (l *leases) isGone(incarnation string, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.seen.nodes[incarnation]; o != nil {
		return o.gone
	}
	return l.trust.alone || l.seen.read.After(since)
}

// index orders the live nodes by the apps they have attached.
func (l *leases) index() {
	l.seen.apps = map[string]map[string]*store.Node{}
	for inc, o := range l.seen.nodes {
		if !o.live || inc == l.incarnation {
			continue
		}
		for _, a := range o.node.Attached {
			if l.seen.apps[a.App] == nil {
				l.seen.apps[a.App] = map[string]*store.Node{}
			}
			l.seen.apps[a.App][inc] = &o.node
		}
	}
}

func sameAttached(a, b store.Node) bool {
	return slices.EqualFunc(a.Attached, b.Attached, func(x, y store.Attachment) bool {
		return x.App == y.App && slices.Equal(x.Handlers, y.Handlers)
	})
}

// takeDoubts returns the nodes that have come to be doubted since it was last asked.
func (l *leases) takeDoubts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	doubts := l.seen.doubts
	l.seen.doubts = nil
	return doubts
}

// isDoubted reports whether an address is that of a node which is away or has missed two
// beats.
func (l *leases) isDoubted(address string) bool {
	inc, local := store.LocalIncarnation(address)
	if !local {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.seen.nodes[inc]
	return o != nil && o.doubted
}

// undoubted leaves out the addresses of nodes that are doubted, unless there are no
// others.
func (l *leases) undoubted(addrs []string) []string {
	if !slices.ContainsFunc(addrs, l.isDoubted) {
		return addrs
	}
	if sure := slices.DeleteFunc(slices.Clone(addrs), l.isDoubted); len(sure) > 0 {
		return sure
	}
	return addrs
}

// toSettle returns the nodes whose runs are looked at: those that are gone or absent,
// those that take no more runs, and those that are doubted.
func (l *leases) toSettle() []observed {
	l.mu.Lock()
	defer l.mu.Unlock()
	var nodes []observed
	for _, o := range l.seen.nodes {
		if o.gone || o.absent || o.drains || o.doubted {
			nodes = append(nodes, *o)
		}
	}
	return nodes
}

// others returns all other nodes.
func (l *leases) others() []observed {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes := make([]observed, 0, len(l.seen.nodes))
	for inc, o := range l.seen.nodes {
		if inc != l.incarnation {
			nodes = append(nodes, *o)
		}
	}
	return nodes
}

// newestOf are the incarnations that have the names of the nodes now.
func newestOf(nodes []store.Node) map[string]store.Node {
	newest := map[string]store.Node{}
	for _, n := range nodes {
		if n.Left {
			continue
		}
		if o, ok := newest[n.ID]; !ok || n.Joined.After(o.Joined) || n.Joined.Equal(o.Joined) && n.Incarnation > o.Incarnation {
			newest[n.ID] = n
		}
	}
	return newest
}

// look takes in a view: the trust it gives, who is live, who is gone, and which shards are
// this node's. self is what this node has found out about its own claims and starts. It
// reports whether the live nodes or what they have attached have changed, and whether the
// node had no trust any more, and returns shards that an earlier call took without telling.
func (l *leases) look(v store.View, self selfVerdict, asked, answered time.Time) (changed, regained bool, found []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	regained = !l.trust.alone && !time.Now().Before(l.trust.until) // whoever has rested for it found so before this
	l.trust.alone = v.Alone
	l.trust.until = asked.Add(l.times.window)
	// Only while this node looked all the time does a counter that stands still
	// say anything.
	interrupted := answered.Sub(l.seen.read) > l.times.ttl/2
	l.seen.read = answered
	seen := make(map[string]*observed, len(v.Nodes))
	newest := newestOf(v.Nodes)
	fit := false // there is a live node that has a use for shards and does not fail
	for _, n := range v.Nodes {
		o := &observed{node: n, moved: answered}
		if was := l.seen.nodes[n.Incarnation]; was != nil && was.node.Beats == n.Beats && !interrupted {
			o.moved = was.moved
		}
		me := n.Incarnation == l.incarnation
		superseded := !n.Left && newest[n.ID].Incarnation != n.Incarnation
		silence := answered.Sub(o.moved)
		o.quiet = !me && (n.Left || silence >= l.times.lostAfter)
		o.absent = !me && (n.Away || silence >= l.times.ttl)
		o.live = !superseded && (me || !n.Left && silence < l.times.ttl)
		o.gone = o.quiet || superseded && !me
		o.idle = !me && o.live && (n.Away || n.Resting)
		if me {
			l.announce(n.Failing && self.failing, answered)
			l.mood.superseded, o.node.Failing = superseded, self.failing
		}
		fit = fit || o.live && !o.idle && !o.node.Failing && silence < 2*l.times.ttl/5
		seen[n.Incarnation] = o
	}
	// One that is better and has its shards yet, for all failed until now, keeps them.
	l.mood.rests = fit && self.failing && (l.mood.rests || !self.better && l.hasAnnounced(answered.Sub(asked), answered))
	for _, n := range v.Nodes {
		o, was, me := seen[n.Incarnation], l.seen.nodes[n.Incarnation], n.Incarnation == l.incarnation
		o.rests = fit && o.live && o.node.Failing
		if me {
			o.rests = o.live && l.mood.rests
		}
		o.idle = o.idle || o.rests
		o.doubted = !me && (n.Away || o.rests || answered.Sub(o.moved) >= 2*l.times.ttl/5)
		o.drains = !me && o.live && (o.rests || len(n.Attached) == 0)
		changed = changed || was == nil || was.live != o.live || was.doubted != o.doubted || !sameAttached(was.node, n)
		if o.doubted && (was == nil || !was.doubted) {
			l.seen.doubts = append(l.seen.doubts, n.Incarnation)
		}
	}
	changed = changed || len(seen) != len(l.seen.nodes)
	l.seen.nodes = seen
	l.index()
	l.seen.once.Do(func() { close(l.seen.looked) })
	return changed, regained, l.own(v.Shards, answered)
}
