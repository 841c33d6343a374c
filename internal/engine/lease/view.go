package lease

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What a node has seen of the others, as lease.go has taken it in: which are live, which
// are doubted, and what they have attached.

// LocalAddresses returns the addresses of live nodes with the app attached.
func (l *Leases) LocalAddresses(app string) []string {
	here := l.Local() // users' code: not under the lock
	l.mu.Lock()
	defer l.mu.Unlock()
	addrs := []string{}
	for inc := range l.Seen.apps[app] {
		addrs = append(addrs, store.LocalAddress(inc))
	}
	for _, a := range here {
		if a.App == app && l.Seen.apps[app][l.Incarnation] == nil {
			addrs = append(addrs, store.LocalAddress(l.Incarnation))
		}
	}
	return addrs
}

// Serves reports whether a live node has the app, and in it the handler,
// attached. About itself a node asks its executors.
func (l *Leases) Serves(incarnation, app, handler string) (hasApp, hasHandler bool) {
	if incarnation == l.Incarnation {
		return attaches(l.Local(), app, handler)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.Seen.apps[app][incarnation]; n != nil {
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

// HasOthers reports whether another live node is there.
func (l *Leases) HasOthers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for inc, o := range l.Seen.nodes {
		if o.live && inc != l.Incarnation {
			return true
		}
	}
	return false
}

// Shards returns all shards, whoever owns them: those of this node as it has them, which it may have
// taken after the last look, and the others as of that.
func (l *Leases) Shards() []store.Shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	shards := slices.Clone(l.Seen.shards)
	for i := range shards {
		if h, own := l.Mine[shards[i].ID]; own {
			shards[i].Owner, shards[i].Epoch = l.Incarnation, h.Epoch
		}
	}
	return shards
}

// HasElsewhere reports whether another live node has the app attached.
func (l *Leases) HasElsewhere(app string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.Seen.apps[app]) > 0
}

// Nearness is how near to an app a node is that has a routing strategy of its own: services that
// share a store may each have one of the same name, and mean another.
type Nearness int

const (
	Attaches Nearness = iota // the node has an executor of the app attached
	Knows                    // it has the strategy
	Lacks                    // it does not
)

// KnownElsewhere reports whether another node that takes part has a routing strategy of this name.
func (l *Leases) KnownElsewhere(route, app string) bool {
	return len(l.Knowing(route, app, 0, Lacks)) > 0
}

// Knowing returns the nodes, other than this one, that take part and have a routing strategy of this
// name of their own, as far as they are nearer to the app than that: the nearest alone, in the order in
// which they are to be asked. Those that are doubted are last. A job begins with the same one as long as
// the same nodes are there, since strategies remember what they have chosen.
func (l *Leases) Knowing(route, app string, jobID int64, than Nearness) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sure, doubted []string
	for inc, o := range l.Seen.nodes {
		near := Knows
		if l.Seen.apps[app][inc] != nil {
			near = Attaches
		}
		if inc == l.Incarnation || near >= than || !o.live || o.idle && !o.rests || !slices.Contains(o.Node.Routers, route) {
			continue
		}
		if near == Attaches && than > Knows {
			sure, doubted, than = nil, nil, Knows // the others are not asked
		}
		if o.doubted {
			doubted = append(doubted, inc)
		} else {
			sure = append(sure, inc)
		}
	}
	for _, list := range [][]string{sure, doubted} {
		slices.Sort(list)
		if n := len(list); n > 1 {
			first := int(uint64(jobID) % uint64(n))
			copy(list, slices.Concat(list[first:], list[:first]))
		}
	}
	return append(sure, doubted...)
}

// Changes counts the looks that have shown other live nodes, or others of what they have attached.
func (l *Leases) Changes() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Seen.changes
}

// AppsElsewhere are the apps that other live nodes have attached.
func (l *Leases) AppsElsewhere() (apps []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for app := range l.Seen.apps {
		apps = append(apps, app)
	}
	return apps
}

// HasLooked reports whether the other nodes are known at all.
func (l *Leases) HasLooked() bool {
	select {
	case <-l.Seen.Looked:
		return true
	default:
		return false
	}
}

// IsLive reports whether the incarnation is a live node.
func (l *Leases) IsLive(incarnation string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.Seen.nodes[incarnation]
	return incarnation == l.Incarnation || o != nil && o.live
}

// IsGone reports whether the incarnation will answer nothing any more. That it is
// not there says so only when this node has looked since the given time: it may
// have joined after the look before.
func (l *Leases) IsGone(incarnation string, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.Seen.nodes[incarnation]; o != nil {
		return o.Gone
	}
	return l.trust.alone || l.Seen.read.After(since)
}

// index orders the live nodes by the apps they have attached.
func (l *Leases) index() {
	l.Seen.apps = map[string]map[string]*store.Node{}
	for inc, o := range l.Seen.nodes {
		if !o.live || inc == l.Incarnation {
			continue
		}
		for _, a := range o.Node.Attached {
			if l.Seen.apps[a.App] == nil {
				l.Seen.apps[a.App] = map[string]*store.Node{}
			}
			l.Seen.apps[a.App][inc] = &o.Node
		}
	}
}

func sameAttached(a, b store.Node) bool {
	return slices.EqualFunc(a.Attached, b.Attached, func(x, y store.Attachment) bool {
		return x.App == y.App && slices.Equal(x.Handlers, y.Handlers)
	})
}

// TakeDoubts returns the nodes that have come to be doubted since it was last asked.
func (l *Leases) TakeDoubts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	doubts := l.Seen.doubts
	l.Seen.doubts = nil
	return doubts
}

// IsDoubted reports whether an address is that of a node which is away or has missed two
// beats.
func (l *Leases) IsDoubted(address string) bool {
	inc, local := store.LocalIncarnation(address)
	if !local {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.Seen.nodes[inc]
	return o != nil && o.doubted
}

// Undoubted leaves out the addresses of nodes that are doubted, unless there are no
// others.
func (l *Leases) Undoubted(addrs []string) []string {
	if !slices.ContainsFunc(addrs, l.IsDoubted) {
		return addrs
	}
	if sure := slices.DeleteFunc(slices.Clone(addrs), l.IsDoubted); len(sure) > 0 {
		return sure
	}
	return addrs
}

// ToSettle returns the nodes whose runs are looked at: those that are gone or absent,
// those that take no more runs, and those that are doubted.
func (l *Leases) ToSettle() []Observed {
	l.mu.Lock()
	defer l.mu.Unlock()
	var nodes []Observed
	for _, o := range l.Seen.nodes {
		if o.Gone || o.Absent || o.Drains || o.doubted {
			nodes = append(nodes, *o)
		}
	}
	return nodes
}

// Others returns all other nodes.
func (l *Leases) Others() []Observed {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes := make([]Observed, 0, len(l.Seen.nodes))
	for inc, o := range l.Seen.nodes {
		if inc != l.Incarnation {
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

// Look takes in a view: the trust it gives, who is live, who is gone, and which shards are
// this node's. self is what this node has found out about its own claims and starts. It
// reports whether the live nodes or what they have attached have changed, and whether the
// node had no trust any more, and returns shards that an earlier call took without telling.
func (l *Leases) Look(v store.View, self selfVerdict, asked, answered time.Time) (changed, regained bool, found []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	regained = !l.trust.alone && !time.Now().Before(l.trust.until) // whoever has rested for it found so before this
	l.trust.alone = v.Alone
	l.trust.until = asked.Add(l.Times.Window)
	// Only while this node looked all the time does a counter that stands still
	// say anything.
	interrupted := answered.Sub(l.Seen.read) > l.Times.TTL/2
	l.Seen.read = answered
	seen := make(map[string]*Observed, len(v.Nodes))
	newest := newestOf(v.Nodes)
	fit := false // there is a live node that has a use for shards and does not fail
	for _, n := range v.Nodes {
		o := &Observed{Node: n, moved: answered}
		if was := l.Seen.nodes[n.Incarnation]; was != nil && was.Node.Beats == n.Beats && !interrupted {
			o.moved = was.moved
		}
		me := n.Incarnation == l.Incarnation
		superseded := !n.Left && newest[n.ID].Incarnation != n.Incarnation
		silence := answered.Sub(o.moved)
		o.Quiet = !me && (n.Left || silence >= l.Times.LostAfter)
		o.Absent = !me && (n.Away || silence >= l.Times.TTL)
		o.live = !superseded && (me || !n.Left && silence < l.Times.TTL)
		o.Gone = o.Quiet || superseded && !me
		o.idle = !me && o.live && (n.Away || n.Resting)
		if me {
			l.announce(n.Failing && self.Failing, answered)
			l.mood.superseded, o.Node.Failing = superseded, self.Failing
		}
		fit = fit || o.live && !o.idle && !o.Node.Failing && silence < 2*l.Times.TTL/5
		seen[n.Incarnation] = o
	}
	// One that is better and has its shards yet, for all failed until now, keeps them.
	l.mood.rests = fit && self.Failing && (l.mood.rests || !self.better && l.hasAnnounced(answered.Sub(asked), answered))
	for _, n := range v.Nodes {
		o, was, me := seen[n.Incarnation], l.Seen.nodes[n.Incarnation], n.Incarnation == l.Incarnation
		o.rests = fit && o.live && o.Node.Failing
		if me {
			o.rests = o.live && l.mood.rests
		}
		o.idle = o.idle || o.rests
		o.doubted = !me && (n.Away || o.rests || answered.Sub(o.moved) >= 2*l.Times.TTL/5)
		o.Drains = !me && o.live && (o.rests || len(n.Attached) == 0)
		changed = changed || was == nil || was.live != o.live || was.idle != o.idle || was.doubted != o.doubted || !sameAttached(was.Node, n)
		if o.doubted && (was == nil || !was.doubted) {
			l.Seen.doubts = append(l.Seen.doubts, n.Incarnation)
		}
	}
	if changed = changed || len(seen) != len(l.Seen.nodes); changed {
		l.Seen.changes++
	}
	l.Seen.nodes = seen
	l.index()
	l.Seen.once.Do(func() { close(l.Seen.Looked) })
	l.Seen.shards = v.Shards
	l.noteOwners(v.Shards, answered)
	return changed, regained, l.own(v.Shards, answered)
}
