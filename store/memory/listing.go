package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/xxljob/xxljob"
)

const (
	// defaultLimit is the page size that a zero Limit stands for.
	defaultLimit = 100
	// jobStride is how many jobs are copied before others have the lock.
	jobStride = 512
)

// Jobs lists jobs in order of ID. Definitions are searched in a snapshot of the
// catalogue without a lock, for that may take long; those that match are then
// looked at again, with what changes with their runs, under the lock: each job is
// as it is at one moment, which need not be one moment for all of them.
func (s *Store) Jobs(ctx context.Context, f xxljob.JobFilter) ([]xxljob.Job, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	next, err := s.definitions(f)
	if err != nil {
		return nil, err
	}
	match := jobMatcher(f)
	var found []xxljob.Job
	for len(found) < f.Limit {
		var ids []int64
		for len(ids) < min(f.Limit-len(found), jobStride) {
			def := next()
			if def == nil {
				break
			}
			if match(def) {
				ids = append(ids, def.ID)
			}
		}
		if len(ids) == 0 {
			break
		}
		found = s.appendJobs(found, ids, f, match)
		if err := over(ctx); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// appendJobs adds those of the jobs that match as they now are.
func (s *Store) appendJobs(found []xxljob.Job, ids []int64, f xxljob.JobFilter, match func(*xxljob.Job) bool) []xxljob.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		j := s.live(id)
		if j == nil || !match(j.def) {
			continue
		}
		if f.Stopped != nil && *f.Stopped != j.stopped {
			continue
		}
		found = append(found, j.snapshot())
	}
	return found
}

// definitions returns a walk, in order of ID, over the definitions that the
// filter can choose, ending with nil.
func (s *Store) definitions(f xxljob.JobFilter) (func() *xxljob.Job, error) {
	txn := s.db.Txn(false)
	var it memdb.ResultIterator
	var err error
	switch {
	case len(f.IDs) > 0:
		return definitionsOf(txn, f), nil
	case f.App != "" && len(f.Keys) > 0:
		return definitionsWith(txn, f), nil
	case f.App != "" && f.Key != "":
		it, err = txn.Get(tableJobs, byKey, f.App, f.Key)
	case f.App != "":
		it, err = txn.LowerBound(tableJobs, byApp, f.App, max(f.After, 0)+1)
	default:
		it, err = txn.LowerBound(tableJobs, byID, max(f.After, 0)+1)
	}
	if err != nil {
		return nil, err
	}
	return func() *xxljob.Job {
		def, _ := it.Next().(*xxljob.Job)
		if def != nil && f.App != "" && def.App != f.App {
			return nil // behind the jobs of the app
		}
		return def
	}, nil
}

func definitionsOf(txn *memdb.Txn, f xxljob.JobFilter) func() *xxljob.Job {
	ids := copied(f.IDs)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return func() *xxljob.Job {
		for len(ids) > 0 {
			raw, err := txn.First(tableJobs, byID, ids[0])
			ids = ids[1:]
			if err == nil && raw != nil {
				return raw.(*xxljob.Job)
			}
		}
		return nil
	}
}

// definitionsWith are those of the app with one of the keys.
func definitionsWith(txn *memdb.Txn, f xxljob.JobFilter) func() *xxljob.Job {
	for _, key := range f.Keys {
		raw, err := txn.First(tableJobs, byKey, f.App, key)
		if def, _ := raw.(*xxljob.Job); err == nil && def != nil && def.Key == key {
			f.IDs = append(f.IDs, def.ID) // there were none
		}
	}
	return definitionsOf(txn, f)
}

// jobMatcher tests what does not change with runs.
func jobMatcher(f xxljob.JobFilter) func(*xxljob.Job) bool {
	name := strings.ToLower(f.Name)
	keys := make(map[string]bool, len(f.Keys))
	for _, key := range f.Keys {
		keys[key] = key != ""
	}
	return func(j *xxljob.Job) bool {
		return j.ID > f.After &&
			(f.App == "" || j.App == f.App) &&
			(f.Key == "" || j.Key == f.Key) &&
			(len(f.Keys) == 0 || keys[j.Key]) &&
			(f.Handler == "" || j.Handler == f.Handler) &&
			(f.Author == "" || j.Author == f.Author) &&
			(name == "" || strings.Contains(strings.ToLower(j.Name), name))
	}
}
