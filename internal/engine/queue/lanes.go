package queue

// The bounds on what is under way: lanes, bulkheads and places. All of it is
// guarded by the lock of the Queue.

// laneName tells the two lanes apart. LaneNone is for runs that need no lane:
// their trigger is a call that only enqueues, or a row that another node finds.
type laneName uint8

const (
	LaneNone laneName = iota
	LaneFast
	laneSlow
)

// addressKey is a bulkhead: an app at an address. One address may serve several
// apps, and one that hangs must not take the others with it.
type addressKey struct{ app, address string }

// lanes count what is under way. A trigger holds a place in its lane, of its
// app and at its address until the executor has answered; a run at an attached
// executor holds a place at the address until it has ended.
type lanes struct {
	limit   [3]int // by lane
	used    [3]int
	apps    map[appLane]int
	address map[addressLane]int
	running map[addressKey]int
	// storing are the runs whose handlers have returned, and that have left their places, while
	// their results are stored: as many as there are places at most.
	storing map[addressKey]int
}

type appLane struct {
	app  string
	lane laneName
}

// addressLane is a bulkhead in one lane: slow jobs do not keep the ordinary ones
// of their address waiting.
type addressLane struct {
	addressKey
	lane laneName
}

func newLanes(fast, slow int) lanes {
	return lanes{
		limit:   [3]int{LaneFast: fast, laneSlow: slow},
		apps:    map[appLane]int{},
		address: map[addressLane]int{},
		running: map[addressKey]int{},
		storing: map[addressKey]int{},
	}
}

// One app may hold half of a lane and one address of it a quarter, so that an
// app that hangs, or a few addresses that do, leave room for the others.
func (b *lanes) appLimit(l laneName) int     { return max(1, b.limit[l]/2) }
func (b *lanes) addressLimit(l laneName) int { return max(1, b.limit[l]/4) }

// fits says whether there is room for a trigger, and if not, what to wait for.
func (b *lanes) fits(l laneName, k addressKey, places int) (WaitKey, bool) {
	switch {
	case places > 0 && b.running[k] >= places:
		return WaitKey{kind: kindPlace, app: k.app, address: k.address}, false
	case l == LaneNone:
		return WaitKey{}, true
	case b.address[addressLane{k, l}] >= b.addressLimit(l):
		return WaitKey{kind: kindAddress, lane: l, app: k.app, address: k.address}, false
	case b.apps[appLane{k.app, l}] >= b.appLimit(l):
		return WaitKey{kind: kindApp, app: k.app, lane: l}, false
	case b.used[l] >= b.limit[l]:
		return WaitKey{kind: kindLane, lane: l}, false
	}
	return WaitKey{}, true
}

// reserve takes the room that is waited for in a waitlist, and unreserve gives it back.
func (b *lanes) reserve(at WaitKey) {
	key := addressKey{at.app, at.address}
	switch at.kind {
	case kindPlace:
		b.running[key]++
	case kindAddress:
		b.address[addressLane{key, at.lane}]++
	case kindApp:
		b.apps[appLane{at.app, at.lane}]++
	case kindLane:
		b.used[at.lane]++
	}
}

func (b *lanes) unreserve(at WaitKey) {
	key := addressKey{at.app, at.address}
	switch at.kind {
	case kindPlace:
		drop(b.running, key)
	case kindAddress:
		drop(b.address, addressLane{key, at.lane})
	case kindApp:
		drop(b.apps, appLane{at.app, at.lane})
	case kindLane:
		b.used[at.lane]--
	}
}

// isRoomOf reports whether the room that is waited for in a waitlist is among the places of a
// trigger.
func (at WaitKey) isRoomOf(l laneName, k addressKey, places int) bool {
	here := at.app == k.app && at.address == k.address
	switch at.kind {
	case kindPlace:
		return here && places > 0
	case kindAddress:
		return here && at.lane == l
	case kindApp:
		return at.app == k.app && at.lane == l
	case kindLane:
		return at.lane == l
	}
	return false
}

// enter takes the places of a trigger; places is as for fits.
func (b *lanes) enter(l laneName, k addressKey, places int) {
	if places > 0 {
		b.running[k]++
	}
	if l != LaneNone {
		b.used[l]++
		b.apps[appLane{k.app, l}]++
		b.address[addressLane{k, l}]++
	}
}

// answered gives back what a trigger held in its lane, and appends the waitlists that
// may go on, three at most.
func (b *lanes) answered(dst []WaitKey, l laneName, k addressKey) []WaitKey {
	if l == LaneNone {
		return dst
	}
	b.used[l]--
	drop(b.apps, appLane{k.app, l})
	drop(b.address, addressLane{k, l})
	return append(dst,
		WaitKey{kind: kindAddress, lane: l, app: k.app, address: k.address},
		WaitKey{kind: kindApp, app: k.app, lane: l},
		WaitKey{kind: kindLane, lane: l},
	)
}

// ended gives back the place of a run at an attached executor.
func (b *lanes) ended(k addressKey) WaitKey {
	drop(b.running, k)
	return WaitKey{kind: kindPlace, app: k.app, address: k.address}
}

// leave frees a place at an attached executor while the result of its run is stored, unless as many
// runs as there are places have left theirs already: what the store is slow to take stays bounded.
func (b *lanes) leave(k addressKey, places int) (WaitKey, bool) {
	if b.storing[k] >= places {
		return WaitKey{}, false
	}
	b.storing[k]++
	return b.ended(k), true
}

// stored is called when the end of a run that has left its place is known.
func (b *lanes) stored(k addressKey) { drop(b.storing, k) }

// drop lowers a count and forgets it at zero.
func drop[K comparable](m map[K]int, k K) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}
