package memory

// Lists of the jobs that programs define, and the jobs that are added by them.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// jobLists are the lists of jobs that EnsureJobs was given. All of it is guarded by
// Store.mu.
type jobLists struct {
	heads   map[string]store.ListHead       // by app
	ofNodes map[string]map[string]*nodeList // by app, then by incarnation
}

// nodeList is a node's list for one app. It is never changed, only replaced.
type nodeList struct {
	store.NodeList
	keys map[string]struct{} // in place of Keys
}

// surplusLimit is how many jobs a ListView has at most of each kind.
const surplusLimit = 10_000

// forget drops the lists of a deleted node.
func (l *jobLists) forget(incarnation string) {
	for _, lists := range l.ofNodes {
		delete(lists, incarnation)
	}
}

// listsHere returns the lists of nodes that are there and have not left, in order.
func (s *Store) listsHere(app string) []*nodeList {
	var here []*nodeList
	for inc, l := range s.jobLists.ofNodes[app] {
		if p := s.peers[inc]; p != nil && p.joined && !p.left {
			here = append(here, l)
		}
	}
	slices.SortFunc(here, func(a, b *nodeList) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	return here
}

// PutList keeps a list for its node and applies it where it is to be applied.
func (s *Store) PutList(ctx context.Context, put store.ListPut) (store.ListHead, error) {
	if err := s.begin(ctx); err != nil {
		return store.ListHead{}, err
	}
	defer s.done()
	s.keepList(&put)
	head, there := s.jobLists.heads[put.App]
	if !s.takesHead(&put, head, there) {
		return head, nil
	}
	if head.Generation != put.Generation || head.Digest != put.Digest || !there {
		head = store.ListHead{Generation: put.Generation, Digest: put.Digest, Node: put.Node}
		s.jobLists.heads[put.App] = head
	}
	return head, nil
}

// keepList makes the list that of its node, where that is there.
func (s *Store) keepList(put *store.ListPut) {
	if p := s.peers[put.Incarnation]; p == nil || !p.joined {
		return
	}
	lists := s.jobLists.ofNodes[put.App]
	if lists == nil {
		lists = map[string]*nodeList{}
		s.jobLists.ofNodes[put.App] = lists
	}
	l := &nodeList{NodeList: store.NodeList{Incarnation: put.Incarnation, Node: put.Node, JobList: put.JobList}, keys: map[string]struct{}{}}
	for _, key := range put.Keys {
		l.keys[key] = struct{}{}
	}
	l.Keys = nil
	lists[put.Incarnation] = l
}

// takesHead reports whether the list becomes the head of its app.
func (s *Store) takesHead(put *store.ListPut, head store.ListHead, there bool) bool {
	switch put.Apply {
	case store.ApplyNewer:
		return !there || put.Generation >= head.Generation
	case store.ApplyAlways:
		return true
	case store.ApplyInstead:
		return there && head == put.Over && !slices.ContainsFunc(s.listsHere(put.App), func(l *nodeList) bool {
			return l.Incarnation != put.Incarnation &&
				(l.Generation > put.Generation || l.Generation == head.Generation && l.Digest == head.Digest)
		})
	}
	return false
}

// Lists returns what the lists of an app say.
func (s *Store) Lists(ctx context.Context, app, incarnation string) (store.ListView, error) {
	if err := s.look(ctx); err != nil {
		return store.ListView{}, err
	}
	defer s.mu.Unlock()
	v := store.ListView{Head: s.jobLists.heads[app]}
	here := s.listsHere(app)
	var mine *nodeList
	for _, l := range here {
		v.Nodes = append(v.Nodes, l.NodeList)
		if l.Incarnation == incarnation {
			mine = l
		}
	}
	if mine == nil {
		return v, nil
	}
	own := s.apps[app]
	if own == nil {
		return v, nil
	}
	for c := own.jobs.after(noID, noID); c.peek() != nil; c.next() {
		switch j := c.peek().of; {
		case s.surplus(j, mine, here):
			v.Surplus = append(v.Surplus, j.id)
		case j.stopped && j.stopReason == store.StopPruned && mine.has(j.def.key):
			v.Pruned = append(v.Pruned, j.id)
		}
	}
	v.Surplus, v.Pruned = v.Surplus[:min(len(v.Surplus), surplusLimit)], v.Pruned[:min(len(v.Pruned), surplusLimit)]
	return v, nil
}

func (l *nodeList) has(key string) bool {
	_, ok := l.keys[key]
	return ok && key != ""
}

// surplus reports whether the list may prune the job, given all lists that count.
func (s *Store) surplus(j *job, mine *nodeList, here []*nodeList) bool {
	if j.unscheduled() || j.removed || j.named == nil || j.def.key == "" || !mine.Prune ||
		mine.Generation < min(*j.named, s.jobLists.heads[j.app].Generation) {
		return false
	}
	return !slices.ContainsFunc(here, func(l *nodeList) bool { return l.has(j.def.key) })
}

// guarded reports whether an edit's guard holds.
func (s *Store) guarded(j *job, g *store.ListGuard) bool {
	switch {
	case g == nil:
		return true
	case j.app != g.App:
		return false
	case g.SurplusOf == "":
		return s.isHead(g.ListID)
	}
	if head, there := s.jobLists.heads[g.App]; there && head.Generation == g.Generation && head.Digest != g.Digest {
		return false
	}
	here := s.listsHere(g.App)
	i := slices.IndexFunc(here, func(l *nodeList) bool { return l.Incarnation == g.SurplusOf })
	return i >= 0 && here[i].ID() == g.ListID && s.surplus(j, here[i], here)
}

// isHead reports whether it is this list that applies to its app.
func (s *Store) isHead(list store.ListID) bool {
	head, there := s.jobLists.heads[list.App]
	return there && head.Generation == list.Generation && head.Digest == list.Digest
}

// NameJobs notes that a list names jobs, and returns them.
func (s *Store) NameJobs(ctx context.Context, list store.ListID, keys []string) ([]store.Job, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	if !s.isHead(list) {
		return nil, failed(store.ErrSuperseded, "name jobs of %q in generation %d", list.App, list.Generation)
	}
	found, generation := map[int64]*job{}, list.Generation
	for _, key := range keys {
		if j := s.withKey(list.App, key); j != nil {
			found[j.id] = j
		}
	}
	var jobs []store.Job
	for _, id := range slices.Sorted(maps.Keys(found)) {
		found[id].named = &generation
		jobs = append(jobs, found[id].snapshot())
	}
	return jobs, nil
}

// UnnameJob notes that no list names the job, and returns it.
func (s *Store) UnnameJob(ctx context.Context, app, key string) (store.Job, error) {
	if err := s.begin(ctx); err != nil {
		return store.Job{}, err
	}
	defer s.done()
	j := s.withKey(app, key)
	if j == nil {
		return store.Job{}, failed(store.ErrNotFound, "unname job %q of %q", key, app)
	}
	j.named = nil
	return j.snapshot(), nil
}

// AddJobs inserts jobs that a list names.
func (s *Store) AddJobs(ctx context.Context, list store.ListID, defs []store.Job, instant store.FirstInstant) ([]store.Job, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	if !s.isHead(list) {
		return nil, failed(store.ErrSuperseded, "add jobs of %q in generation %d", list.App, list.Generation)
	}
	fresh, err := s.newJobs(list, defs, instant, s.clock())
	if err != nil {
		return nil, err
	}
	generation := list.Generation
	jobs := make([]store.Job, 0, len(fresh))
	for _, n := range fresh {
		n.job.named = &generation
		s.jobIDs.takeBack(n.job.id)
		s.addJob(ctx, n.job, n.def)
		jobs = append(jobs, store.Job{})
		n.job.put(&jobs[len(jobs)-1])
	}
	return jobs, nil
}

// newcomer is a job that is about to be added.
type newcomer struct {
	job *job
	def *store.Job
}

// newJobs are those of the jobs that the app has no other with the same key of. Ids are given to
// them, but after an error, or a panic of the function.
func (s *Store) newJobs(list store.ListID, defs []store.Job, instant store.FirstInstant, now time.Time) (fresh []newcomer, err error) {
	whole := false
	defer func() {
		if !whole {
			for _, n := range fresh {
				s.jobIDs.takeBack(n.job.id)
			}
			fresh = nil
		}
	}()
	seen := make(map[[2]string]bool, len(defs))
	own := make([]store.Job, 0, len(defs)) // what the caller has given is not changed
	fresh = make([]newcomer, 0, len(defs))
	for i := range defs {
		if key := defs[i].Key; s.withKey(list.App, key) != nil || seen[[2]string{list.App, key}] {
			continue
		}
		if err := store.CheckTexts("job", defs[i]); err != nil {
			return fresh, failed(err, "add jobs of %q", list.App)
		}
		own = append(own, defs[i])
		def := &own[len(own)-1]
		j, err := s.newJob(def, instant, now)
		if err != nil {
			return fresh, err
		}
		s.jobIDs.give(j.id)
		if def.Key != "" {
			seen[[2]string{def.App, def.Key}] = true
		}
		fresh = append(fresh, newcomer{j, def})
	}
	whole = true
	return fresh, nil
}
