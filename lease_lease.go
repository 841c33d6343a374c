package xxljob

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Nodes and shards. Every LeaseTTL/5 a node beats and looks at the others;
// shards of nodes that are gone or silent are taken, and the live nodes hold
// equal shares. Nothing here compares wall clocks: silence is a beat counter
// that does not move while this node's own reads succeed.

// leases is what a node knows about the cluster and about its own shards.
type leases struct {
	incarnation string
	times       leaseTimes
	local       func() []store.Attachment // what is attached here, at this moment

	mu    sync.Mutex
	mine  map[int]hold // guarded by mu: owned shards
	trust trust        // guarded by mu
	mood  mood         // guarded by mu
	seen  nodesSeen    // guarded by mu, but for the channel
	idle  idleShards   // guarded by mu

	token atomic.Int64 // the number of the latest start
}

// leaseTimes are the durations that leases go by.
type leaseTimes struct {
	window    time.Duration // how long a beat is trusted: LeaseTTL minus the margin
	ttl       time.Duration
	lostAfter time.Duration
	maxHold   time.Duration
}

// trust is how long this node may act on its leases.
type trust struct {
	until time.Time // monotonic
	alone bool      // it does not run out
}

// mood is why this node takes no shards, if it does not.
type mood struct {
	resting    bool      // Stop has begun
	rests      bool      // this node fails, and another does not
	announced  time.Time // since when the store has it that this node fails; zero where it has not
	superseded bool      // another node has this one's name
}

// nodesSeen are the nodes of the store as of the last look.
type nodesSeen struct {
	nodes  map[string]*observed              // by incarnation
	apps   map[string]map[string]*store.Node // live nodes by app attached
	read   time.Time                         // monotonic: the last successful look
	doubts []string                          // nodes that have come to be doubted, until takeDoubts
	looked chan struct{}                     // closed by the first look
	once   sync.Once
}

// idleShards are shards that are nobody's, or should be somebody else's.
type idleShards struct {
	since  map[int]time.Time // shards that nobody looks after, since when
	look   time.Time         // when that was last looked at
	rest   map[int]time.Time // shards given up by LeaseMaxHold, until when
	rescue map[int]time.Time // shards taken above the share, when
}

// hold is the lease of one shard.
type hold struct {
	epoch int64
	since time.Time
	// settled is set once it is known which runs the former owner has handed to nodes
	// that have not taken them, loaded once its planned runs are held: from then on runs
	// of serial jobs are started, in their order.
	settled, loaded bool
	// loadedTo is up to which of them all are held, until they are loaded.
	loadedTo ringEntry
}

// observed is a node as this node has watched it.
type observed struct {
	node  store.Node
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

func newLeases(incarnation string, times leaseTimes, local func() []store.Attachment) *leases {
	return &leases{
		incarnation: incarnation,
		times:       times,
		local:       local, mine: map[int]hold{},
		seen: nodesSeen{nodes: map[string]*observed{}, looked: make(chan struct{})},
		idle: idleShards{rest: map[int]time.Time{}, rescue: map[int]time.Time{}},
	}
}

// window is how long a beat is trusted.
func (l *leases) window() time.Duration { return l.times.window }

// trusted reports whether this node may plan, start and send at the moment now.
func (l *leases) trusted(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trust.alone || now.Before(l.trust.until)
}

// state is how many shards this node has, and for how long it may still act on them.
func (l *leases) state(now time.Time) (shards int, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left = l.trust.until.Sub(now)
	switch {
	case l.trust.alone:
		left = l.times.ttl
	case l.trust.until.IsZero():
		left = 0
	}
	return len(l.mine), left
}

// silentFor is for how long the store has acknowledged no beat, and whether it ever has.
func (l *leases) silentFor(now time.Time) (silent time.Duration, ever bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trust.until.IsZero() {
		return 0, false
	}
	return now.Sub(l.trust.until.Add(-l.times.window)), true
}

// isAlone reports whether no other node is open on the store.
func (l *leases) isAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trust.alone
}

// epoch returns the epoch under which this node owns a shard.
func (l *leases) epoch(shard int) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.mine[shard]
	return h.epoch, ok
}

// owned returns the shards of this node in order of ID.
func (l *leases) owned() []store.Shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	shards := make([]store.Shard, 0, len(l.mine))
	for id, h := range l.mine {
		shards = append(shards, store.Shard{ID: id, Owner: l.incarnation, Epoch: h.epoch})
	}
	slices.SortFunc(shards, func(a, b store.Shard) int { return a.ID - b.ID })
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
func (l *leases) drop(shards []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range shards {
		delete(l.mine, sh.ID)
	}
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
		l.mood.announced = time.Time{}
	case l.mood.announced.IsZero():
		l.mood.announced = now
	}
}

// hasAnnounced reports whether the others had time to say that they fail too, since this
// node has said it: where the store is slow for all, they come to fail one after the other,
// and each learns of it late. How slow it is the beat tells; after a LeaseTTL they had time
// enough. Called with mu held.
func (l *leases) hasAnnounced(beat time.Duration, now time.Time) bool {
	return !l.mood.announced.IsZero() && now.Sub(l.mood.announced) >= min(4*beat, l.times.ttl)
}

// own takes over from the store's rows which shards are this node's, and returns
// those that are new to it.
func (l *leases) own(shards []store.Shard, now time.Time) (found []store.Shard) {
	for _, sh := range shards {
		h, has := l.mine[sh.ID]
		switch {
		case sh.Owner != l.incarnation:
			delete(l.mine, sh.ID)
		case l.mood.resting || l.mood.rests || has && h.epoch == sh.Epoch:
		default:
			l.mine[sh.ID] = hold{epoch: sh.Epoch, since: now}
			found = append(found, sh)
		}
	}
	return found
}

// stopTaking forgets this node's shards, and takes none from here on.
func (l *leases) stopTaking() []store.Shard {
	shards := l.owned()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mood.resting = true
	clear(l.mine)
	return shards
}

// isResting reports whether this node leaves its shards to others, for it fails.
func (l *leases) isResting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mood.rests
}

// isSuperseded reports whether a newer incarnation has this node's ID.
func (l *leases) isSuperseded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mood.superseded
}

// add notes which shards this node has taken, and which of them are above its share.
func (l *leases) add(taken, above []store.Shard, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range taken {
		l.mine[sh.ID] = hold{epoch: sh.Epoch, since: now}
	}
	for _, sh := range slices.Concat(taken, above) {
		if !hasShard(taken, sh.ID) || !hasShard(above, sh.ID) {
			delete(l.idle.rescue, sh.ID)
		}
	}
}

func hasShard(shards []store.Shard, id int) bool {
	return slices.ContainsFunc(shards, func(sh store.Shard) bool { return sh.ID == id })
}

// What is known of shards that are new to this node: until their former owner's runs are
// looked at and what is planned is loaded, no run of a serial job is started there.

// isOpen reports whether a run of a serial job of a shard may be started, for what its former
// owner has left of those up to it is known, and whether the shard is this node's at all.
func (l *leases) isOpen(shard int, run ringEntry) (open, owned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, owned := l.mine[shard]
	return h.settled && (h.loaded || !h.loadedTo.before(run)), owned
}

// isSettled reports whether what the former owner of a shard has left was looked at.
func (l *leases) isSettled(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mine[shard].settled
}

// unsettled returns the shards that are not settled, and unloaded those that are not
// loaded (see hold).
func (l *leases) unsettled() []store.Shard {
	return l.which(func(h hold) bool { return !h.settled })
}

func (l *leases) unloaded() []store.Shard {
	return l.which(func(h hold) bool { return !h.loaded })
}

func (l *leases) which(is func(hold) bool) (shards []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, h := range l.mine {
		if is(h) {
			shards = append(shards, store.Shard{ID: id, Owner: l.incarnation, Epoch: h.epoch})
		}
	}
	return shards
}

// note changes what is known of shards, unless they were lost meanwhile.
func (l *leases) note(shards []store.Shard, change func(*hold)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range shards {
		if h, ok := l.mine[sh.ID]; ok && h.epoch == sh.Epoch {
			change(&h)
			l.mine[sh.ID] = h
		}
	}
}

// verdict is about a run as this node has seen it.
func (l *leases) verdict(r store.Run, to store.State, msg string) store.Verdict {
	epoch, _ := l.epoch(r.Shard)
	return store.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: epoch, Owner: r.Owner, Token: r.Token, Taken: !r.Taken.IsZero(), To: to, Msg: msg}
}

// newToken numbers a start, or the adoption of one, under the epoch of its shard. Of two
// starts of a run the later has the greater number: under one epoch they are one node's,
// and a later owner has a greater epoch.
func (l *leases) newToken(epoch int64) int64 {
	return epoch<<tokenBits | l.token.Add(1)&(1<<tokenBits-1)
}

// tokenBits is how many bits of a token number the starts of a node.
const tokenBits = 36

// ringEntry is free of pointers, so that a full ring costs the collector
// nothing.
type ringEntry struct{ at, runID int64 }

func (e ringEntry) before(o ringEntry) bool {
	return e.at < o.at || e.at == o.at && e.runID < o.runID
}

func (e ringEntry) compare(o ringEntry) int {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.runID, o.runID))
}
