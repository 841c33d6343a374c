package memory

import "math"

// merged walks several orders as if they were one. It is a binary heap of
// cursors, the earliest on top; none of them is at its end.
type merged[T any] struct{ heads []cursor[T] }

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
