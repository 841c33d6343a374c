// Package idmap is a map by ids that are given out by counting. Ids that were given out one after
// the other are mostly used one after the other as well: their values lie together here, and most
// uses need no search.
package idmap

import (
	"iter"
	"math/bits"
)

const (
	shift = 3
	slots = 1 << shift // ids of a page
	// mostSpare is how many pages are kept for ids to come.
	mostSpare = 1024
)

// Map holds values by id. The zero value is empty. It is not safe for concurrent use, not even
// that of methods which only read: they note which page they have used.
//
// Each eight ids, from a multiple of eight on, share a page of memory, which one of them alone
// takes as well. Where ids are dense a Map takes less time than a map of Go, and about five times
// its memory where none is near another.
type Map[V any] struct {
	pages map[int64]*page[V]
	n     int
	last  *page[V]   // the page that was used last, nil for none; it is in pages
	spare []*page[V] // empty ones
}

type page[V any] struct {
	key  int64 // the ids' upper bits
	used uint8
	vals [slots]V
}

// at returns the page of an id, nil for none, and where on it the id is. It notes the page.
func (m *Map[V]) at(id int64) (p *page[V], i int) {
	key, i := id>>shift, int(id&(slots-1))
	if p = m.last; p != nil && p.key == key {
		return p, i
	}
	if p = m.pages[key]; p != nil {
		m.last = p
	}
	return p, i
}

// Get returns the value of an id, and whether there is one.
func (m *Map[V]) Get(id int64) (val V, ok bool) {
	p, i := m.at(id)
	if p == nil || p.used&(1<<i) == 0 {
		return val, false
	}
	return p.vals[i], true
}

// Of returns the value of an id, the zero value where there is none.
func (m *Map[V]) Of(id int64) V {
	if p, i := m.at(id); p != nil {
		return p.vals[i]
	}
	var none V
	return none
}

// Set holds a value under an id, in the place of another one.
func (m *Map[V]) Set(id int64, val V) {
	p, i := m.at(id)
	if p == nil {
		p = m.add(id >> shift)
	}
	if bit := uint8(1) << i; p.used&bit == 0 {
		p.used |= bit
		m.n++
	}
	p.vals[i] = val
}

// add adds a page.
func (m *Map[V]) add(key int64) (p *page[V]) {
	if n := len(m.spare); n > 0 {
		p, m.spare[n-1], m.spare = m.spare[n-1], nil, m.spare[:n-1]
	} else {
		p = new(page[V])
	}
	if m.pages == nil {
		m.pages = make(map[int64]*page[V])
	}
	p.key = key
	m.pages[key], m.last = p, p
	return p
}

// Delete forgets an id.
func (m *Map[V]) Delete(id int64) {
	p, i := m.at(id)
	if p == nil || p.used&(1<<i) == 0 {
		return
	}
	var none V
	p.used &^= 1 << i
	p.vals[i] = none
	if m.n--; p.used != 0 {
		return
	}
	delete(m.pages, p.key)
	m.last = nil
	if len(m.spare) < mostSpare {
		m.spare = append(m.spare, p)
	}
}

// Len returns how many ids have values.
func (m *Map[V]) Len() int { return m.n }

// All returns the ids and their values, in no order. One that is deleted before it comes does not
// come; one that is set meanwhile may come or not.
func (m *Map[V]) All() iter.Seq2[int64, V] {
	return func(yield func(int64, V) bool) {
		for key, p := range m.pages {
			for used := p.used; used != 0; used &= used - 1 {
				i := bits.TrailingZeros8(used)
				if p.key != key { // all of it was deleted meanwhile, and it is another page now
					break
				}
				if p.used&(1<<i) != 0 && !yield(key<<shift|int64(i), p.vals[i]) {
					return
				}
			}
		}
	}
}
