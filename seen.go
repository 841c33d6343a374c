package xxljob

// What a node has seen of the others, as lease.go has taken it in: which are live, which
// are doubted, and what they have attached.

import (
	"slices"
	"time"
)

// localAddresses returns the addresses of live nodes with the app attached.
func (l *leases) localAddresses(app string) []string {
	here := l.local() // users' code: not under the lock
	l.mu.Lock()
	defer l.mu.Unlock()
	addrs := []string{}
	for inc := range l.apps[app] {
		addrs = append(addrs, LocalAddress(inc))
	}
	for _, a := range here {
		if a.App == app && l.apps[app][l.incarnation] == nil {
			addrs = append(addrs, LocalAddress(l.incarnation))
		}
	}
	return addrs
}

// serves reports whether a live node has the app, and in it the handler,
// attached. About itself a node asks its executors.
func (l *leases) serves(incarnation, app, handler string) (hasApp, hasHandler bool) {
	if incarnation == l.incarnation {
		return Node{Attached: l.local()}.serves(app, handler)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.apps[app][incarnation]; n != nil {
		return n.serves(app, handler)
	}
	return false, false
}

// hasElsewhere reports whether another live node has the app attached.
func (l *leases) hasElsewhere(app string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.apps[app]) > 0
}

// hasLooked reports whether the other nodes are known at all.
func (l *leases) hasLooked() bool {
	select {
	case <-l.looked:
		return true
	default:
		return false
	}
}

// isLive reports whether the incarnation is a live node.
func (l *leases) isLive(incarnation string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.nodes[incarnation]
	return incarnation == l.incarnation || o != nil && o.live
}

// isGone reports whether the incarnation will answer nothing any more. That it is
// not there says so only when this node has looked since the given time: it may
// have joined after the look before.
func (l *leases) isGone(incarnation string, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.nodes[incarnation]; o != nil {
		return o.gone
	}
	return l.alone || l.read.After(since)
}

// index orders the live nodes by the apps they have attached.
func (l *leases) index() {
	l.apps = map[string]map[string]*Node{}
	for inc, o := range l.nodes {
		if !o.live || inc == l.incarnation {
			continue
		}
		for _, a := range o.node.Attached {
			if l.apps[a.App] == nil {
				l.apps[a.App] = map[string]*Node{}
			}
			l.apps[a.App][inc] = &o.node
		}
	}
}

func sameAttached(a, b Node) bool {
	return slices.EqualFunc(a.Attached, b.Attached, func(x, y Attachment) bool {
		return x.App == y.App && slices.Equal(x.Handlers, y.Handlers)
	})
}

// takeDoubts returns the nodes that have come to be doubted since it was last asked.
func (l *leases) takeDoubts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	doubts := l.doubts
	l.doubts = nil
	return doubts
}

// isDoubted reports whether an address is that of a node which is away or has missed two
// beats.
func (l *leases) isDoubted(address string) bool {
	inc, local := LocalIncarnation(address)
	if !local {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.nodes[inc]
	return o != nil && o.doubted
}

// anyDoubted is isDoubted for the addresses of a route.
func (l *leases) anyDoubted(r routed) bool {
	return l.isDoubted(r.address) || slices.ContainsFunc(r.targets, l.isDoubted)
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
	for _, o := range l.nodes {
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
	nodes := make([]observed, 0, len(l.nodes))
	for inc, o := range l.nodes {
		if inc != l.incarnation {
			nodes = append(nodes, *o)
		}
	}
	return nodes
}
