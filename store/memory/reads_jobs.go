package memory

// Lists of jobs, and counts of them. They go through all jobs, of which a process has thousands.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// defaultLimit is the page size that a zero Limit stands for.
const defaultLimit = 100

// Jobs lists jobs in order of ID. Others have the lock between its strides, for the search may
// take long: each job is as it is at one moment, which need not be one moment for all of them.
func (s *Store) Jobs(ctx context.Context, f store.JobFilter) ([]store.Job, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	f.After = max(f.After, 0)
	match := jobMatcher(f)
	var found []store.Job
	for more := true; more; {
		if err := s.look(ctx); err != nil {
			return nil, err
		}
		found, more = s.jobsOn(found, &f, match)
		s.mu.Unlock()
	}
	listed(ctx).jobs(found)
	return found, nil
}

// jobs leaves of jobs what the list has.
func (has texts) jobs(list []store.Job) {
	for i := range list {
		if has.short {
			list[i].ShortenTexts(has.most)
		}
		if !has.links {
			list[i].ShortenLinks()
		}
	}
}

// jobsOn looks at the next stride of jobs behind f.After, which it moves on, and reports whether
// there may be more to find.
func (s *Store) jobsOn(found []store.Job, f *store.JobFilter, match func(*job) bool) ([]store.Job, bool) {
	chosen, more := s.chooseJobs(f, f.Limit-len(found), match)
	found = slices.Grow(found, len(chosen))
	for _, j := range chosen {
		found = append(found, store.Job{})
		j.put(&found[len(found)-1])
	}
	return found, more
}

// chooseJobs are those of the next stride of jobs that match, at most so many.
func (s *Store) chooseJobs(f *store.JobFilter, most int, match func(*job) bool) (chosen []*job, more bool) {
	next := s.candidates(f)
	for range stride {
		if len(chosen) == most {
			return chosen, false
		}
		j := next()
		if j == nil {
			return chosen, false
		}
		f.After = j.id
		if match(j) {
			chosen = append(chosen, j)
		}
	}
	return chosen, true
}

// candidates returns a walk, in order of ID from behind f.After, over the jobs that the filter
// can choose, ending with nil.
func (s *Store) candidates(f *store.JobFilter) func() *job {
	switch {
	case len(f.IDs) > 0:
		return s.walkIDs(f.IDs, f.After)
	case f.App != "" && len(f.Keys) > 0:
		return s.walkIDs(s.idsOf(f.App, f.Keys), f.After)
	case f.App != "" && f.Key != "":
		return s.walkIDs(s.idsOf(f.App, []string{f.Key}), f.After)
	}
	m := s.jobsAfter(f.App, f.After)
	return func() *job {
		e := m.peek()
		if e == nil {
			return nil
		}
		j := e.of
		m.next()
		return j
	}
}

// walkIDs walks those of the jobs that are there, behind an id.
func (s *Store) walkIDs(ids []int64, after int64) func() *job {
	ids = copied(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return func() *job {
		for len(ids) > 0 {
			id := ids[0]
			ids = ids[1:]
			if j := s.live(id); j != nil && id > after {
				return j
			}
		}
		return nil
	}
}

// idsOf are the ids of the app's jobs that have one of the keys.
func (s *Store) idsOf(app string, keys []string) (ids []int64) {
	for _, key := range keys {
		if j := s.withKey(app, key); j != nil {
			ids = append(ids, j.id)
		}
	}
	return ids
}

// jobMatcher tests whether the filter chooses a job.
func jobMatcher(f store.JobFilter) func(*job) bool {
	name := strings.ToLower(f.Name)
	keys := make(map[string]bool, len(f.Keys))
	for _, key := range f.Keys {
		keys[key] = key != ""
	}
	return func(j *job) bool {
		d := j.def
		return (f.App == "" || j.app == f.App) &&
			(f.Key == "" || d.key == f.Key) &&
			(len(f.Keys) == 0 || keys[d.key]) &&
			(f.Handler == "" || d.handler.Value() == f.Handler) &&
			(f.Author == "" || d.common.Value().author == f.Author) &&
			(f.Stopped == nil || *f.Stopped == j.stopped) &&
			(name == "" || strings.Contains(strings.ToLower(d.name), name))
	}
}

// SearchJobs returns jobs that the search chooses, in its order.
func (s *Store) SearchJobs(ctx context.Context, q store.JobSearch) ([]store.Job, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	q.Complete()
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var chosen []*job
	text := strings.ToLower(q.Text)
	for _, j := range s.jobs {
		if !j.removed && j.chosenBy(&q, text) && (q.After.ID <= 0 || j.behind(&q)) {
			chosen = append(chosen, j)
		}
	}
	slices.SortFunc(chosen, func(a, b *job) int { return compareJobs(q.Order, a.place(), b.place()) })
	var list []store.Job
	for _, j := range chosen[:min(len(chosen), q.Limit)] {
		list = append(list, j.snapshot())
	}
	listed(ctx).jobs(list)
	return list, nil
}

// jobPlace is where a job is in an order.
type jobPlace struct {
	id, next int64
	name     string
}

func (j *job) place() jobPlace { return jobPlace{j.id, j.next, j.def.name} }

func compareJobs(order store.JobOrder, a, b jobPlace) int {
	first := 0
	switch order {
	case store.ByName:
		first = cmp.Compare(a.name, b.name)
	case store.ByNext:
		first = cmp.Compare(a.next, b.next)
	}
	return cmp.Or(first, cmp.Compare(a.id, b.id))
}

// behind reports whether the job comes after the one behind which the search goes on.
func (j *job) behind(q *store.JobSearch) bool {
	return compareJobs(q.Order, j.place(), jobPlace{q.After.ID, toMilli(stored(q.After.Next)), q.After.Name}) > 0
}

func (j *job) chosenBy(q *store.JobSearch, text string) bool {
	has := func(field string) bool { return strings.Contains(strings.ToLower(field), text) }
	def := j.def
	return (len(q.Apps) == 0 || slices.Contains(q.Apps, j.app)) &&
		!slices.ContainsFunc(q.Tags, func(tag string) bool { return !slices.Contains(def.tags(), tag) }) &&
		(q.Handler == "" || q.Handler == def.handler.Value()) &&
		(q.Author == "" || q.Author == def.common.Value().author) &&
		(q.StopReason == "" || j.stopped && q.StopReason == j.stopReason) &&
		(q.Stopped == nil || *q.Stopped == j.stopped) &&
		(q.Order != store.ByNext || !j.unscheduled() && j.next != noTime) &&
		(text == "" || has(def.name) || has(def.key) || has(def.handler.Value()) || slices.ContainsFunc(def.tags(), has))
}

// CountJobs counts the jobs of each app.
func (s *Store) CountJobs(ctx context.Context) ([]store.JobCount, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	counts := map[string]*store.JobCount{}
	for _, j := range s.jobs {
		if j.removed {
			continue
		}
		c := counts[j.app]
		if c == nil {
			c = &store.JobCount{App: j.app}
			counts[j.app] = c
		}
		switch {
		case j.stopped:
			c.Stopped++
		case j.manual:
			c.Manual++
		default:
			c.Enabled++
		}
	}
	var list []store.JobCount
	for _, app := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, *counts[app])
	}
	return list, nil
}

// JobValues returns what jobs have in a field.
func (s *Store) JobValues(ctx context.Context, field, prefix string, limit int) ([]string, error) {
	of, known := map[string]func(*definition) []string{
		store.FieldApp:     func(d *definition) []string { return []string{d.app()} },
		store.FieldHandler: func(d *definition) []string { return []string{d.handler.Value()} },
		store.FieldAuthor:  func(d *definition) []string { return []string{d.common.Value().author} },
		store.FieldTag:     func(d *definition) []string { return d.tags() },
	}[field]
	if err := over(ctx); err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("memory: values of jobs: %q is no field", field)
	}
	if !store.CanBeSought(prefix) {
		return nil, nil
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	values := map[string]bool{}
	for _, j := range s.jobs {
		if j.removed {
			continue
		}
		for _, v := range of(j.def) {
			if v != "" && strings.HasPrefix(strings.ToLower(v), strings.ToLower(prefix)) {
				values[v] = true
			}
		}
	}
	list := slices.Sorted(maps.Keys(values))
	return list[:min(len(list), max(limit, 0))], nil
}

// Schedules returns the jobs whose schedules are neither stopped nor absent.
func (s *Store) Schedules(ctx context.Context, after int64, limit int) (list []store.Job, err error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var chosen []*job
	for _, j := range s.jobs {
		if !j.removed && !j.unscheduled() && j.id > after {
			chosen = append(chosen, j)
		}
	}
	slices.SortFunc(chosen, func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	for _, j := range chosen[:min(len(chosen), max(limit, 0))] {
		all := j.snapshot()
		list = append(list, store.Job{ID: all.ID, App: all.App, Key: all.Key, Name: all.Name, Schedule: all.Schedule,
			NotBefore: all.NotBefore, NotAfter: all.NotAfter, MaxRuns: all.MaxRuns, Runs: all.Runs, Next: all.Next})
	}
	return list, nil
}
