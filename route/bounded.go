package route

// The bounds of what one router remembers of jobs; the package comment tells
// them. At worst they stand for some ten megabytes (ROUND) to some eighty (the
// strategies that remember addresses, if no two jobs have the same list).
const (
	maxJobs  = 1 << 17
	maxAddrs = 1 << 21
)

// bounded is a map from keys (job ids, say) to states that holds a limited
// number of entries of a limited total weight. To make room it drops the entry
// that was asked for least recently. It is not safe for concurrent use: its
// owner's lock guards it. DESIGN.md, Dependencies, says why no library does this.
type bounded[S any] struct {
	maxEntries, maxWeight int

	entries map[int64]*entry[S]
	weight  int      // sum over entries
	root    entry[S] // of the circle of entries: next is the most recent, prev the least
}

type entry[S any] struct {
	state S

	key        int64
	weight     int
	prev, next *entry[S]
}

func newBounded[S any](maxEntries, maxWeight int) *bounded[S] {
	b := &bounded[S]{
		maxEntries: maxEntries,
		maxWeight:  maxWeight,
		entries:    make(map[int64]*entry[S]),
	}
	b.root.prev, b.root.next = &b.root, &b.root
	return b
}

// get returns the entry of a key and makes it the most recent one. If there is
// none it puts in a new one, of weight 0 and with the zero state, and reports
// fresh.
func (b *bounded[S]) get(key int64) (e *entry[S], fresh bool) {
	e, ok := b.entries[key]
	if !ok {
		e = &entry[S]{key: key}
		b.entries[key] = e
		b.push(e)
		b.shrink()
		return e, true
	}
	if b.root.next != e {
		e.prev.next, e.next.prev = e.next, e.prev
		b.push(e)
	}
	return e, false
}

// weigh sets the weight of the most recent entry, and drops others if the total
// has become too much. An entry that is too heavy even alone is kept alone.
func (b *bounded[S]) weigh(e *entry[S], weight int) {
	b.weight += weight - e.weight
	e.weight = weight
	b.shrink()
}

// drop removes a key, if it is there.
func (b *bounded[S]) drop(key int64) {
	if e, ok := b.entries[key]; ok {
		b.remove(e)
	}
}

// shrink drops the least recent entries until the bounds hold, but never the
// most recent one, which is in use.
func (b *bounded[S]) shrink() {
	for len(b.entries) > 1 && (len(b.entries) > b.maxEntries || b.weight > b.maxWeight) {
		b.remove(b.root.prev)
	}
}

func (b *bounded[S]) push(e *entry[S]) {
	e.prev, e.next = &b.root, b.root.next
	e.prev.next, e.next.prev = e, e
}

func (b *bounded[S]) remove(e *entry[S]) {
	e.prev.next, e.next.prev = e.next, e.prev
	b.weight -= e.weight
	delete(b.entries, e.key)
}
