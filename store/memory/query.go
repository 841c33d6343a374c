package memory

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// stride is how many runs a query looks at before it lets others have the lock.
const stride = 4096

// Run returns one run.
func (s *Store) Run(ctx context.Context, id int64) (store.Run, error) {
	if err := s.look(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.mu.Unlock()
	r := s.runs.find(id)
	if r == nil {
		return store.Run{}, failed(store.ErrNotFound, "run %d", id)
	}
	return r.read(), nil
}

// RunsByID returns those of the runs that exist, each once.
func (s *Store) RunsByID(ctx context.Context, ids []int64) ([]store.Run, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	ids = copied(ids)
	slices.Sort(ids)
	var found []store.Run
	for _, id := range slices.Compact(ids) {
		if r := s.runs.find(id); r != nil {
			found = append(found, r.read())
		}
	}
	return found, nil
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f store.RunFilter) ([]store.Run, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	if f.Before <= 0 {
		f.Before = anyID
	}
	f.From, f.To = stored(f.From), stored(f.To)
	var found []store.Run
	for more := true; more; {
		if err := s.look(ctx); err != nil {
			return nil, err
		}
		found, more = s.walk(found, &f)
		s.mu.Unlock()
	}
	return found, nil
}

// walk looks at the next stride of runs below f.Before, which it moves on, and
// reports whether there may be more to find.
func (s *Store) walk(found []store.Run, f *store.RunFilter) ([]store.Run, bool) {
	if t := s.runs.find(f.TriggerID); t != nil && f.JobID == 0 {
		f.JobID = t.job.id // all runs of a trigger are of one job
	}
	r := s.below(f)
	for range stride {
		if r == nil || r.ID < f.TriggerID || len(found) == f.Limit {
			return found, false
		}
		f.Before = r.ID
		if chosen(r, f) {
			found = append(found, r.read())
		}
		if f.JobID != 0 {
			r = r.links[ofJob].prev
		} else {
			r = s.runs.before(r.ID)
		}
	}
	return found, true
}

// below returns the newest run below f.Before, of the job if one is chosen.
func (s *Store) below(f *store.RunFilter) *run {
	if f.JobID == 0 {
		return s.runs.before(min(f.Before, s.runs.last+1))
	}
	if r := s.runs.find(f.Before); r != nil && r.job.id == f.JobID {
		return r.links[ofJob].prev
	}
	j := s.jobs[f.JobID]
	if j == nil {
		return nil
	}
	r := j.runs.tail
	for r != nil && r.ID >= f.Before {
		r = r.links[ofJob].prev
	}
	return r
}

func chosen(r *run, f *store.RunFilter) bool {
	return (f.App == "" || r.terms.app == f.App) &&
		(f.JobID == 0 || r.job.id == f.JobID) &&
		(f.TriggerID == 0 || r.TriggerID == f.TriggerID) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.From.IsZero() || !fromMilli(r.scheduled).Before(f.From)) &&
		(f.To.IsZero() || fromMilli(r.scheduled).Before(f.To))
}
