package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The record of changes.

var _ store.ChangeRecord = (*Store)(nil)

// recordTotal is how many entries are kept in all, of whatever objects, recordBytes what they
// may take.
const (
	recordTotal = 100_000
	recordBytes = 64 << 20
)

// recorded is what the record takes: bytes of the entries, and how many places before them there
// are in its list still, of entries that were dropped.
type recorded struct {
	bytes int64
	gone  int
}

// write adds an entry to the record.
func (s *Store) write(c store.Change, def *definition, now time.Time) *noted {
	e := &noted{change: &c, def: def}
	s.enterRecord(e, now)
	return e
}

// enterRecord gives an entry its place in the record.
func (s *Store) enterRecord(e *noted, now time.Time) {
	s.lastChange++
	e.id, e.at = s.lastChange, toMilli(now)
	s.changes.bytes += e.bytes()
	for n := len(s.record); n >= recordTotal || n > 0 && s.changes.bytes > recordBytes; n-- {
		s.dropOldest()
	}
	s.record = append(s.record, e)
}

// dropOldest drops the first entry of the record. What is dropped for its size, or is none of
// the store's own, is none of its job's any more either.
func (s *Store) dropOldest() {
	e := s.record[0]
	if e.ofJob() && (e.def == nil || s.changes.bytes > recordBytes) {
		if j := s.jobs[e.jobID()]; j != nil {
			j.dropNotes(func(other *noted) bool { return other == e })
		}
	}
	s.changes.bytes -= e.bytes()
	s.record = s.record[1:]
	if s.changes.gone++; s.changes.gone > len(s.record) {
		s.record, s.changes.gone = slices.Clone(s.record), 0
	}
}

// note writes an entry about the job, of which after is nil where it is removed.
func (s *Store) note(ctx context.Context, j *job, verb string, before, after *store.Job, now time.Time) {
	c := store.Change{Verb: verb}
	c.OfJob(ctx, before, after)
	c.Version = j.version
	s.keepNote(j, s.write(c, j.def, now))
}

// noteAdded writes the entry about a job that was added.
func (s *Store) noteAdded(ctx context.Context, j *job) {
	e := &noted{def: j.def}
	if by := store.OriginOf(ctx); by != (store.Origin{}) {
		own := by // so that by itself need not be on the heap
		e.by = &own
	}
	s.enterRecord(e, fromMilli(j.def.added))
	s.keepNote(j, e)
}

// noteStop writes an entry about a stop by the scheduler itself.
func (s *Store) noteStop(j *job, reason string, now time.Time) {
	var c store.Change
	c.OfStop(j.id, j.app, j.version, reason)
	s.keepNote(j, s.write(c, j.def, now))
}

// Changes returns what was done to the job, newest first. The last hundred
// entries are kept, those of removed jobs for the last ten thousand of them.
func (s *Store) Changes(ctx context.Context, jobID int64, limit int) ([]store.Change, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	var newest []noted
	if j := s.jobs[jobID]; j != nil {
		for e := j.audit; e != nil && len(newest) < limit; e = e.prev {
			newest = append(newest, *e)
		}
	} else if !s.jobIDs.given(jobID) { // what others may have recorded about it
		for i := len(s.record) - 1; i >= 0 && len(newest) < limit; i-- {
			if e := s.record[i]; e.jobID() == jobID && e.ofJob() {
				newest = append(newest, *e)
			}
		}
	}
	s.mu.Unlock()
	return told(newest), nil
}

// JobAt returns the definition that the job had at the version, of the last hundred entries.
func (s *Store) JobAt(ctx context.Context, jobID, version int64) (store.Job, error) {
	if err := s.look(ctx); err != nil {
		return store.Job{}, err
	}
	defer s.mu.Unlock()
	if j := s.jobs[jobID]; j != nil {
		for e := j.audit; e != nil; e = e.prev {
			if e.version() == version && e.def != nil {
				def := e.def.job().Definition()
				def.Version = version
				return def, nil
			}
		}
	}
	return store.Job{}, failed(store.ErrNotFound, "version %d of job %d", version, jobID)
}

// RecordChange writes an entry about what is no change of the store's.
func (s *Store) RecordChange(ctx context.Context, c store.Change) (store.Change, error) {
	if err := over(ctx); err != nil {
		return store.Change{}, err
	}
	if err := c.Validate(); err != nil {
		return store.Change{}, err
	}
	c.Complete()
	if err := s.look(ctx); err != nil { // not begin: consoles write before there are shards
		return store.Change{}, err
	}
	defer s.mu.Unlock()
	o := store.OriginOf(ctx)
	c.Actor, c.Client, c.RequestID = o.Actor, o.Client, o.RequestID
	e := s.write(c, nil, clock())
	if j := s.jobs[c.JobID]; j != nil && e.ofJob() && (j.audit != nil || !j.removed) {
		s.keepNote(j, e)
	}
	return e.tell(), nil
}

// SearchChanges returns entries that the search chooses, newest first. Of all, the last hundred
// thousand are kept.
func (s *Store) SearchChanges(ctx context.Context, q store.ChangeSearch) (store.ChangesFound, error) {
	if err := over(ctx); err != nil {
		return store.ChangesFound{}, err
	}
	if err := q.Validate(); err != nil {
		return store.ChangesFound{}, err
	}
	found := store.ChangesFound{SearchedTo: 1}
	if !q.Complete() {
		return found, nil
	}
	var chosen []noted
	for more := true; more; {
		if err := s.look(ctx); err != nil {
			return store.ChangesFound{}, err
		}
		chosen, more = s.searchRecord(chosen, &q, &found.SearchedTo)
		s.mu.Unlock()
	}
	found.Changes = told(chosen)
	return found, nil
}

// searchRecord looks at the next stride of entries below q.Before, which it moves on, and of
// q.Examine, which it makes less. It reports whether there may be more to find.
func (s *Store) searchRecord(chosen []noted, q *store.ChangeSearch, to *int64) ([]noted, bool) {
	end, _ := slices.BinarySearchFunc(s.record, q.Before, func(e *noted, id int64) int { return cmp.Compare(e.id, id) })
	for i := range stride {
		switch at := end - 1 - i; {
		case at < 0:
			*to = 1
			return chosen, false
		case q.Examine == 0 || len(chosen) == q.Limit:
			return chosen, false
		default:
			e := s.record[at]
			q.Examine--
			q.Before, *to = e.id, e.id
			if e.sought(q) {
				chosen = append(chosen, *e)
			}
		}
	}
	return chosen, true
}

// DropChanges forgets the entries that were written before the given time.
func (s *Store) DropChanges(ctx context.Context, before time.Time) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	old := func(e *noted) bool { return fromMilli(e.at).Before(before) }
	s.record, s.changes = slices.DeleteFunc(slices.Clone(s.record), old), recorded{}
	for _, e := range s.record {
		s.changes.bytes += e.bytes()
	}
	for _, j := range s.jobs {
		j.dropNotes(old)
	}
	var forgotten []*job
	s.removed = slices.DeleteFunc(s.removed, func(id int64) bool {
		j := s.jobs[id]
		if j.audit == nil {
			forgotten = append(forgotten, j)
		}
		return j.audit == nil
	})
	for _, j := range forgotten {
		s.forgetJob(j)
	}
	return nil
}
