package xxljob

// Whether a definition that is about to be saved has a job follow from itself, and whether
// the jobs are there that it names. Input: the definitions that name others, as they are
// stored, and those that are to be. Output: faults.

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// links are the jobs that name others, and those that these name: which leads to which.
type links struct {
	byID map[int64]string   // the ref of a job: "app/key", or "#id" where it has no key
	had  map[string][]int64 // the ids that a stored definition names: they were there once
	next map[string][]string
}

// checkLinks refuses a definition by which its job would follow from itself, or that names an
// id which no job has.
// A job that gets another key may follow from itself by what others say alone.
func (d *definer) checkLinks(ctx context.Context, job Job, rekeyed bool) error {
	if !job.hasLinks() && !rekeyed {
		return nil
	}
	faulty, err := d.findLinks(ctx, []Job{job})
	if err != nil {
		return err
	}
	return faulty[0]
}

// linksOf is checkLinks for a list.
func (d *definer) linksOf(ctx context.Context, jobs []Job) (faulty []error, err error) {
	if !slices.ContainsFunc(jobs, func(j Job) bool { return j.hasLinks() }) {
		return make([]error, len(jobs)), nil
	}
	return d.findLinks(ctx, jobs)
}

// findLinks looks for the faults of definitions that are to be saved together.
func (d *definer) findLinks(ctx context.Context, jobs []Job) (faulty []error, err error) {
	faulty = make([]error, len(jobs))
	stored, err := d.store.Links(ctx)
	if err != nil {
		return nil, fmt.Errorf("xxljob: read which jobs name others: %w", err)
	}
	l, err := d.newLinks(ctx, stored, jobs)
	if err != nil {
		return nil, err
	}
	cycles := newCycles(l.next)
	for i := range jobs {
		f := faults{what: called(jobs[i])}
		l.known(&f, &jobs[i])
		if path := cycles.through(refOf(&jobs[i])); path != "" {
			f.add("Children", path, fmt.Errorf("%w: by Children, ChildKeys, After and AfterKeys each of these leads to the next", ErrCycle))
		}
		faulty[i] = f.err()
	}
	return faulty, nil
}

// newLinks puts what is to be saved in the place of what is stored, and looks up the keys of
// the ids that are named.
func (d *definer) newLinks(ctx context.Context, stored, given []Job) (*links, error) {
	l := &links{byID: map[int64]string{}, had: map[string][]int64{}, next: map[string][]string{}}
	saved, savedIDs := map[string]bool{}, map[int64]bool{0: false}
	for i := range given {
		saved[refOf(&given[i])], savedIDs[given[i].ID] = true, given[i].ID != 0
	}
	for i := range stored {
		l.byID[stored[i].ID] = refOf(&stored[i])
		l.had[refOf(&stored[i])] = slices.Concat(stored[i].Children, stored[i].After)
	}
	var all []*Job
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
func (d *definer) readRefs(ctx context.Context, ids map[int64]bool, refs map[int64]string) error {
	var unknown []int64
	for id := range ids {
		if refs[id] == "" {
			unknown = append(unknown, id)
		}
	}
	slices.Sort(unknown)
	for some := range slices.Chunk(unknown, storeBatch) {
		jobs, err := d.store.Jobs(ctx, JobFilter{IDs: some, Limit: len(some)})
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
func refOf(j *Job) string {
	if j.Key == "" {
		return store.IDRef(j.ID)
	}
	return j.App + "/" + j.Key
}

// ref is what a job is called that is named by its id.
func (l *links) ref(id int64) string { return cmp.Or(l.byID[id], store.IDRef(id)) }

// add takes in what a definition says.
func (l *links) add(j *Job) {
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
func (l *links) known(f *faults, j *Job) {
	for _, named := range []struct {
		field string
		ids   []int64
	}{{"Children", j.Children}, {"After", j.After}} {
		for _, id := range named.ids {
			if l.byID[id] == "" && !slices.Contains(l.had[refOf(j)], id) {
				f.add(named.field, id, fmt.Errorf("%w: no job has this id", ErrNotFound))
			}
		}
	}
}
