package xxljob

import (
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Due runs that wait for their turn or for room, in memory. What is here is in
// the store too, planned: losing this loses nothing. All of it is guarded by the
// engine's mutex.

// entry is a planned run that this node holds.
type entry struct {
	run plannedRun
	ref *jobRef
	// held is set while it is the one in heldRuns.
	held bool
	// due is set when the run has come up on the ring. From then on it has a passage.
	due bool
	// starting is set while the store is asked to start the run, readAgain when the run was read
	// meanwhile, planned.
	starting, readAgain bool
	// waited is set while the run has been let out of the lot from, and has not taken yet
	// what it waited for; keeps, while room there is kept for it.
	waited, keeps bool
	// turned is set for one that goes apart (dispatch_start.go) when its turn has come, until it has
	// to wait for another run or its start has had no effect. tried is set when a start of
	// its own has had none, and no other run was in its way.
	turned, tried bool
	*passage
}

// passage is what a due run goes through until it is started.
type passage struct {
	// route is where the run was routed, kept while it waits for room there, routedFor
	// the version of the job that it was routed by, and routedAt when that was. It is never
	// nil, and others may have the same one: it is replaced, and not changed.
	route     *routed
	routedFor int64
	routedAt  time.Time
	// choice is what the router has said, until the run is started or waits for room.
	choice *routeChoice
	// from is the lot that it was let out of last, which others may have as well; nil for none.
	from *lot
}

// cameFrom reports whether a lot is the one that an entry was let out of last.
func (en *entry) cameFrom(at lot) bool { return en.from != nil && *en.from == at }

// found takes in that the run was read, planned, while it was held.
func (en *entry) found(r *store.Run) {
	en.readAgain = en.starting
	en.refresh(r)
}

// refresh takes over what another node may have changed of a planned run: it was
// started as part of a broadcast, and put back.
func (en *entry) refresh(r *store.Run) {
	if en.run.sharding() == r.Sharding {
		return
	}
	if en.run.setSharding(r.Sharding); en.passage != nil {
		en.routedFor = 0 // to be routed anew
	}
}

// waiting is a heap of entries, the earliest first: whenever and from wherever one comes,
// it has its place by its instant and its id.
type waiting []waitingEntry

// waitingEntry is one with its place in the order, so that none is looked into for that.
type waitingEntry struct {
	key ringEntry
	*entry
}

func (q *waiting) push(e *entry) {
	w := waitingEntry{e.run.key(), e}
	*q = append(*q, w)
	s, i := *q, len(*q)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !w.key.before(s[parent].key) {
			break
		}
		s[i], i = s[parent], parent
	}
	s[i] = w
}

func (q *waiting) pop() *entry {
	s := *q
	first, last := s[0].entry, s[len(s)-1]
	s[len(s)-1] = waitingEntry{}
	s = s[:len(s)-1]
	*q = s
	if len(s) == 0 {
		if cap(s) > spareEntries {
			*q = nil // a large herd is over
		}
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].key.before(s[child].key) {
			child++
		}
		if !s[child].key.before(last.key) {
			break
		}
		s[i], i = s[child], child
	}
	s[i] = last
	return first
}

// turns holds a queue for each app, and lets the apps take turns: a thousand
// due runs of one app do not hold up the one of another.
type turns struct {
	n      int // entries in all
	apps   map[string]*waiting
	order  []string // apps that have something, in turn
	passed int      // of order: those whose turn was, less than half of it
	spare  *waiting // an empty queue for the next app; nil where there is none
}

func newTurns() turns { return turns{apps: map[string]*waiting{}} }

func (t *turns) len() int { return t.n }

func (t *turns) push(e *entry) {
	q := t.apps[e.run.App]
	if q == nil {
		if q, t.spare = t.spare, nil; q == nil {
			q = &waiting{}
		}
		t.apps[e.run.App] = q
		t.order = append(t.order, e.run.App)
	}
	q.push(e)
	t.n++
}

// pop takes the next entry of the app whose turn it is, nil when there is none.
func (t *turns) pop() *entry {
	if len(t.order) == 0 {
		return nil
	}
	app := t.order[t.passed]
	q := t.apps[app]
	e := q.pop()
	t.n--
	t.passed++
	if 2*t.passed >= len(t.order) { // in place, and seldom
		t.order = slices.Delete(t.order, 0, t.passed)
		t.passed = 0
	}
	if len(*q) > 0 {
		t.order = append(t.order, app)
	} else {
		delete(t.apps, app)
		t.spare = q
	}
	return e
}

// lots are the entries that wait for room, by what they wait for; those of a kind that nobody
// waits for cost no look.
type lots struct {
	by   [lotDue]map[lot]*turns
	left *lot // of the last one who was let out; it is not changed
}

// one is a lot that those who are let out of it one after the other share: it is nine times as large
// as a pointer.
func (l *lots) one(at lot) *lot {
	if l.left == nil || *l.left != at {
		l.left = new(lot)
		*l.left = at
	}
	return l.left
}

// at is who waits in a lot, nil for nobody.
func (l *lots) at(at lot) *turns { return l.by[at.kind][at] }

func (l *lots) park(at lot, e *entry) {
	if l.by[at.kind] == nil {
		l.by[at.kind] = map[lot]*turns{}
	}
	t := l.by[at.kind][at]
	if t == nil {
		one := newTurns()
		t = &one
		l.by[at.kind][at] = t
	}
	t.push(e)
}

// leave takes the head of a lot, nil when nobody waits there.
func (l *lots) leave(at lot) *entry {
	t := l.at(at)
	if t == nil {
		return nil
	}
	e := t.pop()
	if len(t.order) == 0 {
		delete(l.by[at.kind], at)
	}
	return e
}

// head is the earliest of an app in a lot, nil when none waits there.
func (l *lots) head(at lot, app string) *entry {
	if t := l.at(at); t != nil && t.apps[app] != nil {
		return (*t.apps[app])[0].entry
	}
	return nil
}

// len is how many lots there are.
func (l *lots) len() (n int) {
	for _, kind := range l.by {
		n += len(kind)
	}
	return n
}

// all are the lots, and who waits there.
func (l *lots) all() iter.Seq2[lot, *turns] {
	return func(yield func(lot, *turns) bool) {
		for _, kind := range l.by {
			for at, t := range kind {
				if !yield(at, t) {
					return
				}
			}
		}
	}
}

// keyOfRun orders runs as the store does: by time, then by id.
func keyOfRun(r *store.Run) ringEntry { return ringEntry{r.Scheduled.UnixMilli(), r.ID} }

// attempt is one entry on its way to be started.
type attempt struct {
	*entry
	job   *store.Job
	start store.Start
}

// keep appends the attempt at i to those of the batch that were kept, which are at its beginning.
func keep(kept, batch []attempt, i int) []attempt {
	if len(kept) < i { // an attempt is large: most are where they are to be
		return append(kept, batch[i])
	}
	return batch[:i+1]
}

// goesApart reports whether the start of a routed entry is one of these.
func (en *entry) goesApart() bool { return en.route.refused != "" || len(en.route.targets) > 0 }

// routed is where a run goes.
type routed struct {
	address string
	targets []string      // of a broadcast, address being the first
	choices []string      // of a probing route: where to go after a refusal
	exec    wire.Executor // nil when the address is another node's
	remote  bool          // the executor is called over HTTP
	fanned  bool          // a further part of a broadcast: see deliver
	lane    laneName
	places  int
	serial  lot  // of kind lotSerial for a serial job
	ordered bool // a serial job: see queue_order.go
	refused string
	msg     string
	probing bool       // the answers to probes are not in yet
	behind  *store.Run // another part of the broadcast, whose end has to be waited for
	failed  error      // the store did not tell where the other parts are
	asks    []string   // among these a router of the user's has to choose yet
}

func (r *routed) key(app string) addressKey { return addressKey{app, r.address} }

// routeChoice is a router's answer about a run.
type routeChoice struct {
	version int64 // of the job
	chosen  []string
	refused string
}

// fits reports whether a choice is still one among the addresses.
func (c *routeChoice) fits(job *store.Job, addrs []string) bool {
	if c == nil || c.version != job.Version {
		return false
	}
	for _, a := range c.chosen {
		if _, there := slices.BinarySearch(addrs, a); !there {
			return false
		}
	}
	return true
}

// routeMemo is where the last run of a job went, for those that go the same way. It belongs to
// the start loop.
type routeMemo struct {
	job   *store.Job
	addrs []string // as they were read last
	kind  store.TriggerType
	r     *routed
}

// isFor reports whether a run of the job goes the same way, where there are the same addresses
// still. Parts of broadcasts go ways of their own.
func (m *routeMemo) isFor(job *store.Job, addrs []string, run *plannedRun) bool {
	return m != nil && m.job == job && m.kind == run.runType() && run.sharding() == (store.Sharding{}) && len(addrs) > 0 &&
		(sameList(addrs, m.addrs) || slices.Equal(addrs, m.addrs))
}

// isCalledAs reports whether a run that goes by r is called at the same executor, and bounded in the
// same way, as one that goes by the other.
func (r *routed) isCalledAs(other *routed) bool {
	return sameExecutor(r.exec, other.exec) && r.remote == other.remote && r.lane == other.lane && r.places == other.places &&
		r.serial == other.serial && r.ordered == other.ordered && r.refused == other.refused
}

// sameExecutor compares executors, which may be of a type of the user's that cannot be compared.
func sameExecutor(a, b wire.Executor) bool {
	return a == nil && b == nil || reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// sameList reports whether two lists of addresses, which nobody changes, are one and the same.
func sameList(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
