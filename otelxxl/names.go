package otelxxl

import (
	"maps"
	"slices"
	"sync"
)

// other stands for the names beyond the bound.
const other = "other"

// names bounds how many values an attribute has, alone or beside that of another.
type names struct {
	most int

	mu   sync.Mutex
	seen map[string]bool // guarded by mu
}

// of is the name itself, or other where there are too many.
func (n *names) of(name string) string { return n.within("", name) }

// within is the name within another, which tells it apart.
func (n *names) within(outer, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	whole := outer + name
	if outer != "" {
		whole = outer + "/" + name
	}
	if !n.seen[whole] {
		if len(n.seen) >= n.most {
			return other
		}
		if n.seen == nil {
			n.seen = map[string]bool{}
		}
		n.seen[whole] = true
	}
	return name
}

// all are the names that there are, and other where there may be more, in order.
func (n *names) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := slices.Sorted(maps.Keys(n.seen))
	if len(list) >= n.most {
		list = append(list, other)
	}
	return list
}
