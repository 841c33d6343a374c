package console

// Which jobs a job leads to, and which lead to it.

import (
	"maps"
	"slices"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// jobLink is a job that another is bound up with.
type jobLink struct {
	ID   int64
	Name string
	App  string
	Join bool // it runs behind others, of which this is one
}

// mostLinks is how many jobs of a kind a page names.
const mostLinks = 200

// jobLinks are jobs that one is bound up with, and whether there are more than a page names.
type jobLinks struct {
	Jobs []jobLink
	More bool
}

// jobLinks are the jobs that a success of the job leads to, and those whose success leads to it,
// as far as the user sees them.
func (q *request) jobLinks(j *xxljob.Job) (children, parents jobLinks, err error) {
	all, err := q.Store.Links(q.ctx)
	if err != nil {
		return children, parents, err
	}
	ref := j.App + "/" + j.Key
	names := func(ids []int64, keys []string, other *xxljob.Job) bool {
		return slices.Contains(ids, other.ID) || other.Key != "" && slices.Contains(keys, other.App+"/"+other.Key)
	}
	down, up := map[int64]bool{}, map[int64]bool{} // by id: whether it is a join
	for i := range all {
		o := &all[i]
		if o.ID == j.ID {
			continue
		}
		if slices.Contains(o.Children, j.ID) || j.Key != "" && slices.Contains(o.ChildKeys, ref) {
			up[o.ID] = false
		}
		if names(o.After, o.AfterKeys, j) {
			down[o.ID] = true
		}
	}
	if err := q.named(down, j.Children, j.ChildKeys, false); err != nil {
		return children, parents, err
	}
	if err := q.named(up, j.After, j.AfterKeys, true); err != nil {
		return children, parents, err
	}
	found, err := q.jobsByID(linked(down, up))
	return q.seen(down, found), q.seen(up, found), err
}

// linked are the ids of jobs that are bound up with one, no more than a page names of each kind.
func linked(down, up map[int64]bool) []int64 {
	var ids []int64
	for _, m := range []map[int64]bool{down, up} {
		list := slices.Sorted(maps.Keys(m))
		ids = append(ids, list[:min(len(list), mostLinks)]...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// named adds the jobs that a definition names.
func (q *request) named(to map[int64]bool, ids []int64, keys []string, join bool) error {
	for _, id := range ids {
		to[id] = join
	}
	byApp := map[string][]string{}
	for _, key := range keys {
		if app, name, ok := store.SplitRef(key); ok && allowed(q.user, see, app) {
			byApp[app] = append(byApp[app], name)
		}
	}
	for app, list := range byApp {
		jobs, err := q.Store.Jobs(q.ctx, xxljob.JobFilter{App: app, Keys: list, Limit: len(list)})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			to[j.ID] = join
		}
	}
	return nil
}

// seen are those of the jobs that were found and that the user sees, in order of their IDs.
func (q *request) seen(jobs map[int64]bool, found map[int64]xxljob.Job) (list jobLinks) {
	list.More = len(jobs) > mostLinks
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		if j, there := found[id]; there && allowed(q.user, see, j.App) {
			list.Jobs = append(list.Jobs, jobLink{j.ID, j.Name, j.App, jobs[id]})
		}
	}
	return list
}

// MostLinks is how many jobs of a kind the page names.
func (p *page) MostLinks() int { return mostLinks }
