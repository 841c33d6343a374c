package xxljob

// Which jobs follow from themselves. Input: which leads to which. Output: a way round for each
// of those that are asked for. Pure.

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// ownCycles is for how many of the jobs that are asked for a shortest way round is looked
	// for; more of them get one that was found before, so that a list costs what it has.
	ownCycles = 8
	// saidOfPath is how many jobs of a way round are named at either end.
	saidOfPath = 4
)

// cycles are the strongly connected components of a graph: whoever leads to itself is in one
// with all that are on its ways round.
type cycles struct {
	next  map[string][]string
	of    map[string]int // the component of each node
	size  []int          // of each component
	found []*wayRound    // of each component a way round, once one was looked for
	own   int            // how many were looked for
}

// newCycles finds the components as Tarjan does ("Depth-first search and linear graph
// algorithms", 1972), without recursion: chains of jobs may be long.
func newCycles(next map[string][]string) *cycles {
	c := &cycles{next: next, of: map[string]int{}}
	t := tarjan{cycles: c, index: map[string]int{}, low: map[string]int{}}
	for node := range next {
		if _, seen := t.index[node]; !seen {
			t.search(node)
		}
	}
	c.found = make([]*wayRound, len(c.size))
	return c
}

// tarjan is a search that is under way.
type tarjan struct {
	*cycles
	index, low map[string]int // when a node was met; the earliest that is open and that it leads to
	open       []string       // nodes whose component is not complete
	way        []tarjanStep   // from where the search began to where it is
}

// tarjanStep is a node and how many of those that it leads to were looked at.
type tarjanStep struct {
	node string
	done int
}

func (t *tarjan) enter(node string) {
	t.index[node] = len(t.index)
	t.low[node] = t.index[node]
	t.open = append(t.open, node)
	t.way = append(t.way, tarjanStep{node: node})
}

func (t *tarjan) search(from string) {
	for t.enter(from); len(t.way) > 0; {
		step := &t.way[len(t.way)-1]
		if step.done == len(t.next[step.node]) {
			t.leave(step.node)
			continue
		}
		to := t.next[step.node][step.done]
		step.done++
		if at, met := t.index[to]; !met {
			t.enter(to)
		} else if _, closed := t.of[to]; !closed {
			t.low[step.node] = min(t.low[step.node], at)
		}
	}
}

// leave ends the search from a node, and closes its component if that was met here first.
func (t *tarjan) leave(node string) {
	t.way = t.way[:len(t.way)-1]
	if len(t.way) > 0 {
		before := t.way[len(t.way)-1].node
		t.low[before] = min(t.low[before], t.low[node])
	}
	if t.low[node] != t.index[node] {
		return
	}
	size := 0
	for closed := false; !closed; size++ {
		last := t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
		t.of[last] = len(t.size)
		closed = last == node
	}
	t.size = append(t.size, size)
}

// through is a way from a node to itself in words, with the node at both ends; empty where
// there is none. Of many nodes of one component some get a way round that passes by them.
func (c *cycles) through(node string) string {
	of, met := c.of[node]
	if !met || c.size[of] == 1 && !slices.Contains(c.next[node], node) {
		return ""
	}
	if c.found[of] == nil || c.own < ownCycles {
		c.own++
		c.found[of] = c.shortest(node)
	}
	return c.found[of].say(node)
}

// wayRound is nodes of which each leads to the next, and the last to the first.
type wayRound struct {
	nodes []string
	at    map[string]int
}

// say names the nodes from one of them on, of a long way those at both ends.
func (w *wayRound) say(from string) string {
	n := len(w.nodes)
	var said []string
	for i := 0; i <= n; i++ {
		if more := n + 1 - 2*saidOfPath; i == saidOfPath && more > 1 {
			said = append(said, fmt.Sprintf("%d more", more))
			i += more
		}
		said = append(said, w.nodes[(w.at[from]+i)%n])
	}
	return strings.Join(said, " > ")
}

// shortest is the shortest way round of a node that has one.
func (c *cycles) shortest(node string) *wayRound {
	from, queue := map[string]string{}, []string{node}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, to := range c.next[at] {
			if to == node {
				return roundOf(node, at, from)
			}
			if _, seen := from[to]; !seen && c.of[to] == c.of[node] {
				from[to] = at
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// roundOf is the way round of a node that was found from its last node back.
func roundOf(node, last string, from map[string]string) *wayRound {
	w := &wayRound{at: map[string]int{}}
	for ; last != node; last = from[last] {
		w.nodes = append(w.nodes, last)
	}
	w.nodes = append(w.nodes, node)
	slices.Reverse(w.nodes)
	for i, n := range w.nodes {
		w.at[n] = i
	}
	return w
}
