package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Whether a definition that is about to be saved has a job follow from itself, and whether
// the jobs are there that it names. Input: the definitions that name others, as they are
// stored, and those that are to be. Output: faults.

// links are the jobs that name others, and those that these name: which leads to which.
type links struct {
	byID map[int64]string   // the ref of a job: "app/key", or "#id" where it has no key
	had  map[string][]int64 // the ids that a stored definition names: they were there once
	next map[string][]string
}

// hasLinks reports whether other jobs follow from a definition, or it from theirs.
func hasLinks(j *store.Job) bool {
	return len(j.After)+len(j.AfterKeys)+len(j.Children)+len(j.ChildKeys) > 0
}

// checkLinks refuses a definition by which its job would follow from itself, or that names an
// id which no job has.
// A job that gets another key may follow from itself by what others say alone.
func (d *Catalog) checkLinks(ctx context.Context, job store.Job, rekeyed bool) error {
	if !hasLinks(&job) && !rekeyed {
		return nil
	}
	faulty, err := d.findLinks(ctx, []store.Job{job})
	if err != nil {
		return err
	}
	return faulty[0]
}

// linksOf is checkLinks for a list.
func (d *Catalog) linksOf(ctx context.Context, jobs []store.Job) (faulty []error, err error) {
	if !slices.ContainsFunc(jobs, func(j store.Job) bool { return hasLinks(&j) }) {
		return make([]error, len(jobs)), nil
	}
	return d.findLinks(ctx, jobs)
}

// findLinks looks for the faults of definitions that are to be saved together.
func (d *Catalog) findLinks(ctx context.Context, jobs []store.Job) (faulty []error, err error) {
	faulty = make([]error, len(jobs))
	stored, err := d.Store.Links(ctx)
	if err != nil {
		return nil, fmt.Errorf("xxljob: read which jobs name others: %w", err)
	}
	l, err := d.newLinks(ctx, stored, jobs)
	if err != nil {
		return nil, err
	}
	cycles := newCycles(l.next)
	for i := range jobs {
		f := store.Faults{Of: store.Called(jobs[i])}
		l.known(&f, &jobs[i])
		if path := cycles.through(refOf(&jobs[i])); path != "" {
			f.Add("Children", path, fmt.Errorf("%w: by Children, ChildKeys, After and AfterKeys each of these leads to the next", errs.ErrCycle))
		}
		faulty[i] = f.Err()
	}
	return faulty, nil
}

// newLinks puts what is to be saved in the place of what is stored, and looks up the keys of
// the ids that are named.
func (d *Catalog) newLinks(ctx context.Context, stored, given []store.Job) (*links, error) {
	l := &links{byID: map[int64]string{}, had: map[string][]int64{}, next: map[string][]string{}}
	saved, savedIDs := map[string]bool{}, map[int64]bool{0: false}
	for i := range given {
		saved[refOf(&given[i])], savedIDs[given[i].ID] = true, given[i].ID != 0
	}
	for i := range stored {
		l.byID[stored[i].ID] = refOf(&stored[i])
		l.had[refOf(&stored[i])] = slices.Concat(stored[i].Children, stored[i].After)
	}
	var all []*store.Job
	for i := range stored {
		if !saved[refOf(&stored[i])] && !savedIDs[stored[i].ID] {
			all = append(all, &stored[i])
		}
	}
	for i := range given {
		all = append(all, &given[i])
	}
	ids := map[int64]bool{}
	for _, j := range all {
		for _, id := range slices.Concat(j.Children, j.After) {
			ids[id] = true
		}
		if j.ID != 0 {
			l.byID[j.ID] = refOf(j)
		}
	}
	if err := d.readRefs(ctx, ids, l.byID); err != nil {
		return nil, err
	}
	for _, j := range all {
		l.add(j)
	}
	return l, nil
}

// readRefs adds the refs of jobs that are there to those that are known.
func (d *Catalog) readRefs(ctx context.Context, ids map[int64]bool, refs map[int64]string) error {
	var unknown []int64
	for id := range ids {
		if refs[id] == "" {
			unknown = append(unknown, id)
		}
	}
	slices.Sort(unknown)
	for some := range slices.Chunk(unknown, loop.StoreBatch) {
		jobs, err := d.Store.Jobs(ctx, store.JobFilter{IDs: some, Limit: len(some)})
		if err != nil {
			return fmt.Errorf("xxljob: read the jobs that others name: %w", err)
		}
		for i := range jobs {
			refs[jobs[i].ID] = refOf(&jobs[i])
		}
	}
	return nil
}

// refOf is what a job is called here: one that is about to be added has no id yet.
func refOf(j *store.Job) string {
	if j.Key == "" {
		return store.IDRef(j.ID)
	}
	return j.App + "/" + j.Key
}

// ref is what a job is called that is named by its id.
func (l *links) ref(id int64) string { return cmp.Or(l.byID[id], store.IDRef(id)) }

// add takes in what a definition says.
func (l *links) add(j *store.Job) {
	self := refOf(j)
	for _, id := range j.Children {
		l.lead(self, l.ref(id))
	}
	for _, ref := range j.ChildKeys {
		l.lead(self, ref)
	}
	for _, id := range j.After {
		l.lead(l.ref(id), self)
	}
	for _, ref := range j.AfterKeys {
		l.lead(ref, self)
	}
}

func (l *links) lead(from, to string) { l.next[from] = append(l.next[from], to) }

// known adds the ids to the faults that no job has. Keys need not be there yet, and who names a
// job that was removed since may go on to do so.
func (l *links) known(f *store.Faults, j *store.Job) {
	for _, named := range []struct {
		field string
		ids   []int64
	}{{"Children", j.Children}, {"After", j.After}} {
		for _, id := range named.ids {
			if l.byID[id] == "" && !slices.Contains(l.had[refOf(j)], id) {
				f.Add(named.field, id, fmt.Errorf("%w: no job has this id", errs.ErrNotFound))
			}
		}
	}
}

// Which jobs follow from themselves. Input: which leads to which. Output: a way round for each
// of those that are asked for. Pure.

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
