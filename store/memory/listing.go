package memory

import (
	"context"
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
	return found, nil
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
