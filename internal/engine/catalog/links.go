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
		return nil, errs.In("read which jobs name others", err)
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
	ctx = store.WithShortTexts(ctx, 0)
	for some := range slices.Chunk(unknown, loop.StoreBatch) {
		jobs, err := d.Store.Jobs(ctx, store.JobFilter{IDs: some, Limit: len(some)})
		if err != nil {
			return errs.In("read the jobs that others name", err)
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
	// for in any case; more of them get one that was found before, if they are in one, so that a
	// long ring is not gone round for each of its jobs.
	ownCycles = 8
	// saidOfPath is how many jobs of a way round are named at either end.
	saidOfPath = 4
)

// cycles are the ways round in a graph.
type cycles struct {
	next  map[string][]string
	left  map[string]bool      // the nodes that are in a cycle, or lead from one to another
	found map[string]*wayRound // a way round that a node is in, once one was looked for
	own   int                  // how many were looked for
}

// newCycles sorts the graph topologically, from both ends: what has no place is left.
func newCycles(next map[string][]string) *cycles {
	c := &cycles{next: next, left: map[string]bool{}, found: map[string]*wayRound{}}
	before := map[string][]string{}
	for from, list := range next {
		c.left[from] = true
		for _, to := range list {
			c.left[to] = true
			before[to] = append(before[to], from)
		}
	}
	c.sort(next, before)
	c.sort(before, next)
	return c
}

// sort takes out, one after the other, the nodes that no other node which is left leads to.
func (c *cycles) sort(next, before map[string][]string) {
	waits, free := map[string]int{}, []string(nil) // for how many that lead to it a node waits
	for node := range c.left {
		for _, from := range before[node] {
			if c.left[from] {
				waits[node]++
			}
		}
		if waits[node] == 0 {
			free = append(free, node)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		delete(c.left, free[0])
		for _, to := range next[free[0]] {
			if waits[to]--; waits[to] == 0 && c.left[to] {
				free = append(free, to)
			}
		}
	}
}

// through is a way from a node to itself in words, with the node at both ends; empty where
// there is none.
func (c *cycles) through(node string) string {
	if !c.left[node] {
		return ""
	}
	way := c.found[node]
	if way == nil || c.own < ownCycles {
		if way = c.shortest(node); way == nil {
			return ""
		}
		c.own++
		for _, n := range way.nodes {
			c.found[n] = way
		}
	}
	return way.say(node)
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

// shortest is the shortest way round of a node, nil where it has none.
func (c *cycles) shortest(node string) *wayRound {
	from, queue := map[string]string{}, []string{node}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, to := range c.next[at] {
			if to == node {
				return roundOf(node, at, from)
			}
			if _, seen := from[to]; !seen && c.left[to] {
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
