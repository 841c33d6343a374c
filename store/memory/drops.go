package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// dropStride is how many runs are looked at before others have the lock.
const dropStride = 1000

// dropping is a walk through runs that deletes some: through those of each job in turn, or of
// all, newest first. Its mark is the run that it has looked at last.
type dropping struct {
	q      *store.RunDrop
	jobs   []int64             // in order; nil for the runs of all
	before map[int64]time.Time // of each job, in the place of q.Before
	mark   store.DropMark
	found  store.Dropped
	now    time.Time
	needs  needs
}

// DropEnded deletes runs that have ended and that the question chooses, or counts them.
func (s *Store) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	if err := over(ctx); err != nil {
		return store.Dropped{}, err
	}
	if err := q.Validate(); err != nil {
		return store.Dropped{}, err
	}
	d := dropping{q: &q, mark: q.After}
	if len(q.JobIDs) > 0 {
		d.jobs = slices.Compact(slices.Sorted(slices.Values(q.JobIDs)))
	}
	err := s.drop(ctx, &d)
	return d.found, err
}

// DropExpired deletes runs that their jobs do not keep for any longer.
func (s *Store) DropExpired(ctx context.Context, k store.KeepQuery) (store.Dropped, error) {
	if err := over(ctx); err != nil {
		return store.Dropped{}, err
	}
	q := store.RunDrop{All: true, EndedBefore: k.EndedBefore, Limit: k.Limit}
	if err := q.Validate(); err != nil {
		return store.Dropped{}, err
	}
	d := dropping{q: &q, mark: k.After, before: map[int64]time.Time{}}
	if err := s.look(ctx); err != nil {
		return store.Dropped{}, err
	}
	for id := range s.keepers {
		d.before[id] = k.Now.Add(-s.jobs[id].def.keepRuns())
	}
	s.mu.Unlock()
	d.jobs = slices.AppendSeq([]int64{}, maps.Keys(d.before)) // never nil, which is all
	slices.Sort(d.jobs)
	err := s.drop(ctx, &d)
	return d.found, err
}

func (s *Store) drop(ctx context.Context, d *dropping) error {
	d.q.Complete()
	for more := true; more; {
		if err := s.look(ctx); err != nil {
			return err
		}
		d.now, d.needs = clock(), s.needs()
		room := min(dropStride, d.q.Limit-d.found.Examined)
		if d.jobs == nil {
			more = s.dropAny(d, room)
		} else {
			more = s.dropOfJobs(d, room)
		}
		s.mu.Unlock()
		if more && d.found.Examined == d.q.Limit {
			d.found.More, d.found.Next = true, d.mark
			more = false
		}
	}
	return nil
}

// dropAny looks at the next runs of all jobs, and reports whether there are more.
func (s *Store) dropAny(d *dropping, room int) bool {
	r := s.runs.before(min(cmp.Or(d.mark.RunID, anyID), s.runs.last+1))
	for ; r != nil && room > 0; room-- {
		s.dropOne(d, r, anyID)
		r = s.runs.before(d.mark.RunID)
	}
	return r != nil
}

// dropOfJobs looks at the next runs of the jobs, and reports whether there are more.
func (s *Store) dropOfJobs(d *dropping, room int) bool {
	at, _ := slices.BinarySearch(d.jobs, d.mark.JobID)
	for _, id := range d.jobs[at:] {
		if d.mark.JobID != id {
			d.mark = store.DropMark{JobID: id}
		}
		j := s.jobs[id]
		if j == nil {
			continue
		}
		end := j.oldestKept(d.q.KeepNewest)
		r := s.below(&store.RunFilter{JobID: id, Before: cmp.Or(d.mark.RunID, anyID)})
		for ; r != nil; room-- {
			if room == 0 {
				return true
			}
			next := r.links[ofJob].prev
			s.dropOne(d, r, end)
			r = next
		}
		d.mark = store.DropMark{JobID: id + 1}
	}
	return false
}

// oldestKept is the ID of the oldest of so many of its newest ended runs.
func (j *job) oldestKept(n int) int64 {
	end := anyID
	for r := j.runs.tail; r != nil && n > 0; r = r.links[ofJob].prev {
		if r.State.Ended() && !r.ahead {
			end = r.ID
			n--
		}
	}
	if n > 0 {
		return 0
	}
	return end
}

// dropOne looks at a run, and deletes it if it may go and its ID is less than end.
func (s *Store) dropOne(d *dropping, r *run, end int64) {
	d.found.Examined++
	d.mark.RunID = r.ID
	switch {
	case r.ID >= end || !d.chosen(r):
	case s.needed(d, r):
		d.found.Kept++
	case d.q.DryRun:
		d.found.Runs++
	default:
		d.found.Runs++
		s.evict(r)
	}
}

// chosen reports whether the run has ended and is one of those that are to go.
func (d *dropping) chosen(r *run) bool {
	q, before := d.q, d.q.Before
	if d.before != nil {
		before = d.before[r.job.id]
	}
	return r.State.Ended() && !r.ahead &&
		(before.IsZero() || r.plannedAt().Before(before)) &&
		(q.EndedBefore.IsZero() || fromMilli(r.ended).Before(q.EndedBefore)) &&
		(len(q.Apps) == 0 || slices.Contains(q.Apps, r.terms.app))
}

// needs are the ended runs that something still needs, but for those of which the run itself
// or its job knows.
type needs struct {
	runs map[int64]bool
	told map[int64][]store.JobTold // of jobs that are waited for to recover
}

func (s *Store) needs() needs {
	n := needs{runs: map[int64]bool{}, told: map[int64][]store.JobTold{}}
	for _, w := range s.windows {
		n.runs[w.last.parent] = true
	}
	for _, a := range s.alarms {
		n.runs[a.RunID] = true
	}
	for _, t := range s.told {
		if t.Open {
			n.told[t.JobID] = append(n.told[t.JobID], t)
		}
	}
	return n
}

// needed reports whether something needs the run, which has ended.
func (s *Store) needed(d *dropping, r *run) bool {
	first := s.runs.find(r.TriggerID)
	return first != nil && first.unended > 0 ||
		s.owing[r.ID] > 0 || d.needs.runs[r.ID] ||
		slices.ContainsFunc(d.needs.told[r.job.id], func(t store.JobTold) bool {
			return r.ID == t.RunID || r.State == store.StateSucceeded && r.ID > t.RunID
		}) ||
		r.job.waitRun == r.ID || fromMilli(r.scheduled).After(d.now) ||
		!r.job.removed && store.IsWindowKey(r.extra().key) && r.job.windowPassed(r.extra().business).After(d.now)
}
