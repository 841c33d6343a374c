package memory

// The index by time and id, and walks through several of them at once.

import (
	"math"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// order is an index by (time, id): the jobs of a shard by their next instant,
// its planned runs by theirs, and, with one time for all, runs by id.
//
// It is a sorted list cut into chunks. To insert and to remove cost two binary
// searches and a move within one chunk, without a pointer back from what is
// indexed and without an allocation but for the chunks. It is not safe for
// concurrent use: every order is guarded by Store.mu.
type order[T any] struct {
	chunks []chunk[T]
	spare  []entry[T] // the room of the last chunk that ran empty
}

// chunk holds the entries from its bound up to the bound of the next one. The
// bound of the first chunk does not count.
type chunk[T any] struct {
	at, id  int64
	entries []entry[T]
}

type entry[T any] struct {
	at, id int64
	of     *T
}

// chunkSize bounds the entries of a chunk: few enough to move, and enough for a
// million entries in some ten thousand chunks.
const chunkSize = 128

// less compares (at, id) pairs.
func less(at, id, at2, id2 int64) bool { return at < at2 || at == at2 && id < id2 }

// chunkOf returns the chunk whose range the key is in; zero for an empty order.
func (o *order[T]) chunkOf(at, id int64) int {
	lo, hi := 1, len(o.chunks)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if c := &o.chunks[m]; less(at, id, c.at, c.id) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo - 1
}

// find returns where in c the key is or would be.
func (c *chunk[T]) find(at, id int64) int {
	lo, hi := 0, len(c.entries)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if e := &c.entries[m]; less(e.at, e.id, at, id) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// insert adds an entry whose key is not there yet.
func (o *order[T]) insert(at, id int64, of *T) {
	if len(o.chunks) == 0 {
		o.chunks = append(o.chunks, chunk[T]{})
	}
	i := o.chunkOf(at, id)
	c := &o.chunks[i]
	pos := c.find(at, id)
	if len(c.entries) == chunkSize {
		// Entries mostly come in rising order: then the full chunk stays full.
		cut := chunkSize
		if pos < chunkSize {
			cut = chunkSize / 2
		}
		o.split(i, cut, at, id)
		if pos > cut || cut == chunkSize { // one at the cut is less than the new bound, and stays before it
			i, pos = i+1, pos-cut
		}
		c = &o.chunks[i]
	}
	c.entries = slices.Insert(c.entries, pos, entry[T]{at, id, of})
}

// empty reports whether nothing is in the order.
func (o *order[T]) empty() bool {
	c := o.after(noID, noID)
	return c.peek() == nil
}

// split moves the entries of a full chunk from cut on to a new one behind it,
// whose bound is the first of them, or the given key where there is none.
func (o *order[T]) split(i, cut int, at, id int64) {
	tail := o.chunks[i].entries[cut:]
	if len(tail) > 0 {
		at, id = tail[0].at, tail[0].id
	}
	entries := append(o.spare, tail...)
	o.spare = nil
	clear(tail)
	o.chunks[i].entries = o.chunks[i].entries[:cut]
	o.chunks = slices.Insert(o.chunks, i+1, chunk[T]{at, id, entries})
}

// remove takes out the entry with the key and reports whether it was there.
func (o *order[T]) remove(at, id int64) bool {
	if len(o.chunks) == 0 {
		return false
	}
	i := o.chunkOf(at, id)
	c := &o.chunks[i]
	pos := c.find(at, id)
	if pos == len(c.entries) || c.entries[pos].at != at || c.entries[pos].id != id {
		return false
	}
	c.entries = slices.Delete(c.entries, pos, pos+1)
	if len(c.entries) < chunkSize/4 {
		o.merge(i)
	}
	return true
}

// merge joins a chunk that ran low with its neighbours, where the two have room
// in half a chunk, so that the number of chunks stays in proportion.
func (o *order[T]) merge(i int) {
	o.join(i)
	if i > 0 {
		o.join(i - 1)
	}
}

// join makes the chunk and the one behind it one, if they are small enough.
func (o *order[T]) join(i int) {
	if i+1 >= len(o.chunks) {
		return
	}
	left, right := &o.chunks[i], &o.chunks[i+1]
	switch {
	case len(left.entries) == 0: // nothing to move
		o.spare = left.entries
		left.entries = right.entries
	case len(left.entries)+len(right.entries) <= chunkSize/2 || len(right.entries) == 0:
		left.entries = append(left.entries, right.entries...)
		clear(right.entries)
		o.spare = right.entries[:0]
	default:
		return
	}
	o.chunks = slices.Delete(o.chunks, i+1, i+2)
}

// clone returns a copy that shares no entries with o.
func (o *order[T]) clone() order[T] {
	chunks := slices.Clone(o.chunks)
	for i := range chunks {
		chunks[i].entries = slices.Clone(chunks[i].entries)
	}
	return order[T]{chunks: chunks}
}

// after returns a cursor at the first entry behind the key.
func (o *order[T]) after(at, id int64) cursor[T] {
	if len(o.chunks) == 0 {
		return cursor[T]{}
	}
	i := o.chunkOf(at, id)
	pos := o.chunks[i].find(at, id)
	if e := o.chunks[i].entries; pos < len(e) && e[pos].at == at && e[pos].id == id {
		pos++
	}
	c := cursor[T]{chunks: o.chunks[i:], pos: pos}
	c.settle()
	return c
}

// cursor walks an order that does not change meanwhile.
type cursor[T any] struct {
	chunks []chunk[T]
	pos    int
}

// peek returns the entry at the cursor, or nil at the end.
func (c *cursor[T]) peek() *entry[T] {
	if len(c.chunks) == 0 {
		return nil
	}
	return &c.chunks[0].entries[c.pos]
}

// next moves on by one; the cursor is not at the end.
func (c *cursor[T]) next() {
	c.pos++
	c.settle()
}

func (c *cursor[T]) settle() {
	for len(c.chunks) > 0 && c.pos >= len(c.chunks[0].entries) {
		c.chunks, c.pos = c.chunks[1:], 0
	}
}

// merged walks several orders as if they were one. It is a binary heap of
// cursors, the earliest on top; none of them is at its end.
type merged[T any] struct{ heads []cursor[T] }

// merge joins the orders of those of the shards that are under the given epochs. Called with mu held.
func merge[T any](s *Store, shards []store.Shard, of func(*shard) *order[T]) (m merged[T]) {
	for _, own := range shards {
		if sh := s.fenced(own.ID, own.Epoch); sh != nil {
			m.add(of(sh), noID, noID)
		}
	}
	return m
}

// add joins the entries behind the key to those that m walks.
func (m *merged[T]) add(o *order[T], at, id int64) {
	c := o.after(at, id)
	if c.peek() == nil {
		return
	}
	m.heads = append(m.heads, c)
	for i := len(m.heads) - 1; i > 0; {
		parent := (i - 1) / 2
		if !m.less(i, parent) {
			return
		}
		m.heads[i], m.heads[parent] = m.heads[parent], m.heads[i]
		i = parent
	}
}

// peek returns the earliest entry, or nil at the end.
func (m *merged[T]) peek() *entry[T] {
	if len(m.heads) == 0 {
		return nil
	}
	return m.heads[0].peek()
}

// next moves on by one; m is not at its end.
func (m *merged[T]) next() {
	m.heads[0].next()
	if m.heads[0].peek() == nil {
		last := len(m.heads) - 1
		m.heads[0] = m.heads[last]
		m.heads = m.heads[:last]
	}
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(m.heads) {
			return
		}
		if child+1 < len(m.heads) && m.less(child+1, child) {
			child++
		}
		if !m.less(child, i) {
			return
		}
		m.heads[i], m.heads[child] = m.heads[child], m.heads[i]
		i = child
	}
}

func (m *merged[T]) less(i, j int) bool {
	a, b := m.heads[i].peek(), m.heads[j].peek()
	return less(a.at, a.id, b.at, b.id)
}

// take returns the earliest entries up to the time before, at most limit of
// them, and reports whether the batch was full. Then m is behind them.
func (m *merged[T]) take(before int64, limit int) (found []*T, full bool) {
	for e := m.peek(); e != nil && e.at <= before; e = m.peek() {
		if len(found) >= limit {
			return found, true
		}
		found = append(found, e.of)
		m.next()
	}
	return found, limit > 0 && len(found) >= limit
}

// The keys before and behind every id.
const (
	noID  int64 = math.MinInt64
	anyID int64 = math.MaxInt64
)
