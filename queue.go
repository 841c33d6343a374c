package xxljob

// Due runs that wait for their turn or for room, in memory. What is here is in
// the store too, planned: losing this loses nothing. All of it is guarded by the
// engine's mutex.

// entry is a planned run that this node holds.
type entry struct {
	run Run
	// due is set when the run has come up on the ring.
	due bool
	// route is where the run was routed, kept while it waits for room there, and
	// routedFor the version of the job that it was routed by.
	route     routed
	routedFor int64
	// choice is what a router of the user's has said, until the run is routed.
	choice *routeChoice
	// waited is set while the run has just been let out of the lot from.
	waited bool
	from   lot
}

// refresh takes over what another node may have changed of a planned run: it was
// started as part of a broadcast, and put back.
func (en *entry) refresh(r *Run) {
	if en.run.Sharding != r.Sharding {
		en.run.Sharding = r.Sharding
		en.routedFor = 0 // to be routed anew
	}
}

// fifo is a queue of entries.
type fifo struct {
	items []*entry
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(e *entry) {
	if q.head > 64 && q.head > len(q.items)/2 {
		// A queue that never runs empty must not keep what has left it.
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, e)
}

// unshift puts e at the front.
func (q *fifo) unshift(e *entry) {
	if q.head == 0 {
		q.items = append(make([]*entry, 16, 16+len(q.items)+len(q.items)/2), q.items...)
		q.head = 16
	}
	q.head--
	q.items[q.head] = e
}

// insert puts e before those that come after it in time.
func (q *fifo) insert(e *entry) {
	q.push(e)
	key := keyOfRun(&e.run)
	i := len(q.items) - 1
	for ; i > q.head && key.before(keyOfRun(&q.items[i-1].run)); i-- {
		q.items[i] = q.items[i-1]
	}
	q.items[i] = e
}

func (q *fifo) pop() *entry {
	e := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > 4096 {
			q.items = nil
		}
	}
	return e
}

// turns holds a queue for each app, and lets the apps take turns: a thousand
// due runs of one app do not hold up the one of another.
type turns struct {
	n     int // entries in all
	apps  map[string]*fifo
	order []string // apps that have something, the next one first
}

func newTurns() turns { return turns{apps: map[string]*fifo{}} }

func (t *turns) queue(app string) *fifo {
	q := t.apps[app]
	if q == nil {
		q = &fifo{}
		t.apps[app] = q
	}
	if q.len() == 0 {
		t.order = append(t.order, app)
	}
	return q
}

func (t *turns) len() int { return t.n }

func (t *turns) push(e *entry) {
	t.queue(e.run.App).push(e)
	t.n++
}

func (t *turns) insert(e *entry) {
	t.queue(e.run.App).insert(e)
	t.n++
}

func (t *turns) unshift(e *entry) {
	t.queue(e.run.App).unshift(e)
	t.n++
}

// pop takes the next entry of the app whose turn it is, nil when there is none.
func (t *turns) pop() *entry {
	if len(t.order) == 0 {
		return nil
	}
	app := t.order[0]
	t.order = t.order[1:]
	q := t.apps[app]
	e := q.pop()
	t.n--
	if q.len() > 0 {
		t.order = append(t.order, app)
	} else {
		delete(t.apps, app)
	}
	return e
}

// lots are the entries that wait for room, by what they wait for.
type lots map[lot]*turns

func (l lots) park(at lot, e *entry) {
	if l[at] == nil {
		l[at] = &turns{apps: map[string]*fifo{}}
	}
	if at.sorted() {
		l[at].insert(e)
	} else {
		l[at].push(e)
	}
}

// leave takes the head of a lot, nil when nobody waits there.
func (l lots) leave(at lot) *entry {
	t := l[at]
	if t == nil {
		return nil
	}
	e := t.pop()
	if len(t.order) == 0 {
		delete(l, at)
	}
	return e
}
