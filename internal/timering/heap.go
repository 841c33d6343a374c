package timering

import (
	"iter"
	"slices"
)

// Heap keeps values by when they are due and by the id of their run: a binary heap, the earliest first.
// The key of each stands beside it, so that none is looked into to compare it.
type Heap[V any] []keyed[V]

type keyed[V any] struct {
	value V // in front of the key, where a value that is nothing takes no room
	key   Key
}

// Push adds a value, and reports whether it is the first now.
func (h *Heap[V]) Push(key Key, value V) (first bool) {
	*h = append(*h, keyed[V]{})
	s, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !key.Before(s[parent].key) {
			break
		}
		s[i], i = s[parent], parent
	}
	s[i] = keyed[V]{value, key}
	return i == 0
}

// First is the first, which there is.
func (h Heap[V]) First() V { return h[0].value }

// All are the values, the first of which is the earliest.
func (h Heap[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		for i := range h {
			if !yield(h[i].value) {
				return
			}
		}
	}
}

// At is when the first is due, in milliseconds since 1970. There is one.
func (h Heap[V]) At() int64 { return h[0].key.At }

// Pop takes the first, which there is.
func (h *Heap[V]) Pop() V {
	s := *h
	first, last := s[0].value, s[len(s)-1]
	s[len(s)-1] = keyed[V]{}
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].key.Before(s[child].key) {
			child++
		}
		if !s[child].key.Before(last.key) {
			break
		}
		s[i], i = s[child], child
	}
	if len(s) > 0 {
		s[i] = last
	}
	return first
}

// Remove takes out the value with a key, wherever it is, and reports whether there was one. It may look at all.
func (h *Heap[V]) Remove(key Key) bool {
	s := *h
	i := slices.IndexFunc(s, func(k keyed[V]) bool { return k.key == key })
	if i < 0 {
		return false
	}
	out := s[i]
	for i > 0 { // to the front, as if it were the first of all
		parent := (i - 1) / 2
		s[i], i = s[parent], parent
	}
	s[0] = out
	h.Pop()
	return true
}

// due counts those that are due at or before ms among the one at i and those below it.
func (h Heap[V]) due(ms int64, i int) int {
	if i >= len(h) || h[i].key.At > ms {
		return 0
	}
	return 1 + h.due(ms, 2*i+1) + h.due(ms, 2*i+2)
}
