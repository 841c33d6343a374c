package lease

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// Nodes and shards. Every LeaseTTL/5 a node beats and looks at the others;
// shards of nodes that are gone or silent are taken, and the live nodes hold
// equal shares. Nothing here compares wall clocks: silence is a beat counter
// that does not move while this node's own reads succeed.

// Leases is what a node knows about the cluster and about its own shards.
type Leases struct {
	Incarnation string
	Times       Times
	Local       func() []store.Attachment // what is attached here, at this moment

	mu    sync.Mutex
	Mine  map[int]Hold // guarded by mu: owned shards
	trust trust        // guarded by mu
	mood  mood         // guarded by mu
	Seen  nodesSeen    // guarded by mu, but for the channel
	idle  idleShards   // guarded by mu
	able  abilities    // guarded by mu

	token atomic.Int64 // the number of the latest start
}

// Times are the durations that leases go by.
type Times struct {
	Window    time.Duration // how long a beat is trusted: LeaseTTL minus the margin
	TTL       time.Duration
	LostAfter time.Duration
	MaxHold   time.Duration
}

// trust is how long this node may act on its leases.
type trust struct {
	until time.Time // monotonic
	alone bool      // it does not run out
}

// mood is why this node takes no shards, if it does not.
type mood struct {
	stops      bool      // Stop has begun
	rests      bool      // this node fails, and another does not
	announced  time.Time // since when the store has it that this node fails; zero where it has not
	superseded bool      // another node has this one's name
}

// nodesSeen are the nodes of the store as of the last look.
type nodesSeen struct {
	nodes  map[string]*Observed              // by incarnation
	apps   map[string]map[string]*store.Node // live nodes by app attached
	read   time.Time                         // monotonic: the last successful look
	doubts []string                          // nodes that have come to be doubted, until TakeDoubts
	shards []store.Shard
	Looked chan struct{} // closed by the first look
	once   sync.Once

	changes uint64 // see Changes
}

// idleShards are shards that are nobody's, or should be somebody else's.
type idleShards struct {
	since  map[int]time.Time // shards that nobody looks after, since when
	look   time.Time         // when that was last looked at
	rest   map[int]time.Time // shards given up by LeaseMaxHold, until when
	rescue map[int]time.Time // shards taken above the share, when
}

// abilities are shards with jobs that some node cannot work out.
type abilities struct {
	lacks map[int]Lack   // shards of this node with such jobs, and why it cannot
	zones []string       // that this node has no data of, as far as it has met them
	gave  map[int]gift   // shards that it has given up for that
	owner map[int]string // of all shards, as of the last look
	kept  map[int]bool   // shards that a node which knows less has given up to this one, perhaps for that
}

// gift is when a shard was given up, and what for.
type gift struct {
	at   time.Time
	lack Lack
}

// Hold is the lease of one shard.
type Hold struct {
	Epoch int64
	since time.Time
	// Settled is set once it is known which runs the former owner has handed to nodes
	// that have not taken them, loaded once its planned runs are held: from then on runs
	// of serial jobs are started, in their order.
	Settled, Loaded bool
	// LoadedTo is up to which of them all are held, until they are loaded.
	LoadedTo timering.Key
}

// Observed is a node as this node has watched it.
type Observed struct {
	Node  store.Node
	moved time.Time // monotonic: when its counter was last seen to move
	live  bool
	Gone  bool // its runs may be judged
	// rests is set for a live node that says that it fails, while another one does not.
	rests bool
	// doubted is set for a node that is away, rests, or has missed two beats: it is not
	// chosen where there is another.
	doubted bool
	// Absent is set for a node that is away, or was silent for a LeaseTTL: what it has
	// not taken is put back, and what it owned and had not sent is adopted.
	Absent bool
	Quiet  bool // it has left, or was silent for LostAfter: it may be buried
	// Drains is set for a live node that rests, or has no executors: it stops, perhaps,
	// and takes no more runs.
	Drains bool
	// idle is set for a live node that has no use for a share of the shards.
	idle bool
}

func New(incarnation string, times Times, local func() []store.Attachment) *Leases {
	return &Leases{
		Incarnation: incarnation,
		Times:       times,
		Local:       local, Mine: map[int]Hold{},
		Seen: nodesSeen{nodes: map[string]*Observed{}, Looked: make(chan struct{})},
		idle: idleShards{rest: map[int]time.Time{}, rescue: map[int]time.Time{}},
		able: abilities{gave: map[int]gift{}, owner: map[int]string{}, kept: map[int]bool{}},
	}
}

// Trusted reports whether this node may plan, start and send at the moment now.
func (l *Leases) Trusted(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trust.alone || now.Before(l.trust.until)
}

// State is how many shards this node has, and for how long it may still act on them.
func (l *Leases) State(now time.Time) (shards int, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left = l.trust.until.Sub(now)
	switch {
	case l.trust.alone:
		left = l.Times.TTL
	case l.trust.until.IsZero():
		left = 0
	}
	return len(l.Mine), left
}

// SilentFor is for how long the store has acknowledged no beat, and whether it ever has.
func (l *Leases) SilentFor(now time.Time) (silent time.Duration, ever bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trust.until.IsZero() {
		return 0, false
	}
	return now.Sub(l.trust.until.Add(-l.Times.Window)), true
}

// IsAlone reports whether no other node is open on the store.
func (l *Leases) IsAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trust.alone
}

// Epoch returns the epoch under which this node owns a shard.
func (l *Leases) Epoch(shard int) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.Mine[shard]
	return h.Epoch, ok
}

// Owned returns the shards of this node in order of ID.
func (l *Leases) Owned() []store.Shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	shards := make([]store.Shard, 0, len(l.Mine))
	for id, h := range l.Mine {
		shards = append(shards, store.Shard{ID: id, Owner: l.Incarnation, Epoch: h.Epoch})
	}
	slices.SortFunc(shards, func(a, b store.Shard) int { return a.ID - b.ID })
	return shards
}

// Lose forgets a shard that a write was refused for.
func (l *Leases) Lose(shard int, epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Mine[shard].Epoch == epoch {
		delete(l.Mine, shard)
	}
}

// Drop forgets shards that are about to be released.
func (l *Leases) Drop(shards []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range shards {
		delete(l.Mine, sh.ID)
	}
}

// Said notes that the store has acknowledged whether this node fails.
func (l *Leases) Said(fails bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.announce(fails, now)
}

// announce notes whether the store has it that this node fails. Called with mu held.
func (l *Leases) announce(fails bool, now time.Time) {
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
func (l *Leases) hasAnnounced(beat time.Duration, now time.Time) bool {
	return !l.mood.announced.IsZero() && now.Sub(l.mood.announced) >= min(4*beat, l.Times.TTL)
}

// own takes over from the store's rows which shards are this node's, and returns
// those that are new to it.
func (l *Leases) own(shards []store.Shard, now time.Time) (found []store.Shard) {
	for _, sh := range shards {
		h, has := l.Mine[sh.ID]
		switch {
		case sh.Owner != l.Incarnation:
			delete(l.Mine, sh.ID)
		case l.mood.stops || l.mood.rests || has && h.Epoch == sh.Epoch:
		default:
			l.Mine[sh.ID] = Hold{Epoch: sh.Epoch, since: now}
			found = append(found, sh)
		}
	}
	return found
}

// StopTaking has this node take no shards from here on. It has its own until it gives them up.
func (l *Leases) StopTaking() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mood.stops = true
}

// IsResting reports whether this node leaves its shards to others, for it fails.
func (l *Leases) IsResting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mood.rests
}

// IsSuperseded reports whether a newer incarnation has this node's ID.
func (l *Leases) IsSuperseded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mood.superseded
}

// Add notes which shards this node has taken, and which of them are above its share. It reports
// false, and notes nothing, where Stop has begun while they were taken: they are to be given
// back.
func (l *Leases) Add(taken, above []store.Shard, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mood.stops {
		return false
	}
	for _, sh := range taken {
		l.Mine[sh.ID] = Hold{Epoch: sh.Epoch, since: now}
	}
	for _, sh := range slices.Concat(taken, above) {
		if !hasShard(taken, sh.ID) || !hasShard(above, sh.ID) {
			delete(l.idle.rescue, sh.ID)
		}
	}
	return true
}

func hasShard(shards []store.Shard, id int) bool {
	return slices.ContainsFunc(shards, func(sh store.Shard) bool { return sh.ID == id })
}

// What is known of shards that are new to this node: until their former owner's runs are
// looked at and what is planned is loaded, no run of a serial job is started there.

// IsOpen reports whether a run of a serial job of a shard may be started, for what its former
// owner has left of those up to it is known, and whether the shard is this node's at all.
func (l *Leases) IsOpen(shard int, run timering.Key) (open, owned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, owned := l.Mine[shard]
	return h.Settled && (h.Loaded || !h.LoadedTo.Before(run)), owned
}

// IsSettled reports whether what the former owner of a shard has left was looked at.
func (l *Leases) IsSettled(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Mine[shard].Settled
}

// Unsettled returns the shards that are not settled, and unloaded those that are not
// loaded (see hold).
func (l *Leases) Unsettled() []store.Shard {
	return l.which(func(h Hold) bool { return !h.Settled })
}

func (l *Leases) Unloaded() []store.Shard {
	return l.which(func(h Hold) bool { return !h.Loaded })
}

func (l *Leases) which(is func(Hold) bool) (shards []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, h := range l.Mine {
		if is(h) {
			shards = append(shards, store.Shard{ID: id, Owner: l.Incarnation, Epoch: h.Epoch})
		}
	}
	return shards
}

// Note changes what is known of shards, unless they were lost meanwhile.
func (l *Leases) Note(shards []store.Shard, change func(*Hold)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range shards {
		if h, ok := l.Mine[sh.ID]; ok && h.Epoch == sh.Epoch {
			change(&h)
			l.Mine[sh.ID] = h
		}
	}
}

// Verdict is about a run as this node has seen it.
func (l *Leases) Verdict(r store.Run, to store.State, msg string) store.Verdict {
	epoch, _ := l.Epoch(r.Shard)
	return store.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: epoch, Owner: r.Owner, Token: r.Token, Taken: !r.Taken.IsZero(), To: to, Msg: msg}
}

// NewToken numbers a start, or the adoption of one, under the epoch of its shard. Of two
// starts of a run the later has the greater number: under one epoch they are one node's,
// and a later owner has a greater epoch.
func (l *Leases) NewToken(epoch int64) int64 {
	return epoch<<tokenBits | l.token.Add(1)&(1<<tokenBits-1)
}

// HasSince reports whether this node has a shard since the start, or the adoption, of a run in it that
// has the token: nobody else had it meanwhile.
func (l *Leases) HasSince(shard int, token int64) bool {
	epoch, owned := l.Epoch(shard)
	return owned && epoch == token>>tokenBits
}

// tokenBits is how many bits of a token number the starts of a node.
const tokenBits = 36
