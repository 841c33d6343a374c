package memory

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// The record of changes. Entries are never changed but for their definitions, which are let go
// of before the entries are.

var _ xxljob.ChangeRecord = (*Store)(nil)

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

// noted is an entry of the record. Those of jobs have the definition as it was then.
type noted struct {
	xxljob.Change
	def *xxljob.Job
}

// write adds an entry to the record.
func (s *Store) write(c xxljob.Change, def *xxljob.Job, now time.Time) *noted {
	s.lastChange++
	c.ID, c.At = s.lastChange, now
	e := &noted{c, def}
	s.changes.bytes += e.bytes()
	for n := len(s.record); n >= recordTotal || n > 0 && s.changes.bytes > recordBytes; n-- {
		s.dropOldest()
	}
	s.record = append(s.record, e)
	return e
}

// bytes is what the entry takes, without a definition, which it has in common with others.
func (e *noted) bytes() int64 {
	return int64(256 + len(e.Actor) + len(e.Client) + len(e.RequestID) + len(e.Verb) + len(e.Object) + len(e.ObjectID) + len(e.App) + len(e.Before) + len(e.After))
}

// dropOldest drops the first entry of the record. What is dropped for its size, or is none of
// the store's own, is none of its job's any more either.
func (s *Store) dropOldest() {
	e := s.record[0]
	if j := s.jobs[e.JobID]; j != nil && e.Object == store.ObjectJob && (e.def == nil || s.changes.bytes > recordBytes) {
		if i := slices.Index(j.audit, e); i >= 0 {
			e.def = nil
			j.audit = slices.Delete(j.audit, i, i+1)
		}
	}
	s.changes.bytes -= e.bytes()
	s.record = s.record[1:] // what it begins with stays as it is: somebody may be reading it
	if s.changes.gone++; s.changes.gone > len(s.record) {
		s.record, s.changes.gone = slices.Clone(s.record), 0
	}
}

// note writes an entry about the job, of which before is nil where it is added.
func (s *Store) note(ctx context.Context, j *job, verb string, before, after *xxljob.Job, now time.Time) {
	c := xxljob.Change{Verb: verb}
	c.OfJob(ctx, before, after)
	c.Version = j.version
	s.keepNote(j, s.write(c, j.def, now))
}

// noteStop writes an entry about a stop by the scheduler itself.
func (s *Store) noteStop(j *job, reason string, now time.Time) {
	var c xxljob.Change
	c.OfStop(j.id, j.def.App, j.version, reason)
	s.keepNote(j, s.write(c, j.def, now))
}

func (s *Store) keepNote(j *job, e *noted) {
	if len(j.audit) == auditPerJob {
		j.audit[0].def = nil
		j.audit = slices.Delete(j.audit, 0, 1)
	}
	j.audit = append(j.audit, e)
}

// Changes returns what was done to the job, newest first. The last hundred
// entries are kept, those of removed jobs for the last ten thousand of them.
func (s *Store) Changes(ctx context.Context, jobID int64, limit int) ([]xxljob.Change, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	var entries []*noted
	if j := s.jobs[jobID]; j != nil {
		entries = slices.Clone(j.audit)
	} else if _, known := s.jobIDs.next[jobID]; !known {
		entries = s.record // what others may have recorded about it
	}
	s.mu.Unlock()
	var newest []xxljob.Change
	for i := len(entries) - 1; i >= 0 && len(newest) < limit; i-- {
		if c := &entries[i].Change; c.JobID == jobID && c.Object == store.ObjectJob {
			newest = append(newest, *c)
		}
	}
	return newest, nil
}

// JobAt returns the definition that the job had at the version, of the last hundred entries.
func (s *Store) JobAt(ctx context.Context, jobID, version int64) (xxljob.Job, error) {
	if err := s.look(ctx); err != nil {
		return xxljob.Job{}, err
	}
	defer s.mu.Unlock()
	if j := s.jobs[jobID]; j != nil {
		for _, e := range slices.Backward(j.audit) {
			if e.Version == version && e.def != nil {
				def := e.def.Definition()
				def.Version = version
				return def, nil
			}
		}
	}
	return xxljob.Job{}, failed(xxljob.ErrNotFound, "version %d of job %d", version, jobID)
}

// RecordChange writes an entry about what is no change of the store's.
func (s *Store) RecordChange(ctx context.Context, c xxljob.Change) (xxljob.Change, error) {
	if err := over(ctx); err != nil {
		return xxljob.Change{}, err
	}
	if err := c.Validate(); err != nil {
		return xxljob.Change{}, err
	}
	c.Complete()
	if err := s.look(ctx); err != nil { // not begin: consoles write before there are shards
		return xxljob.Change{}, err
	}
	defer s.mu.Unlock()
	o := store.OriginOf(ctx)
	c.Actor, c.Client, c.RequestID = o.Actor, o.Client, o.RequestID
	e := s.write(c, nil, clock())
	if j := s.jobs[c.JobID]; j != nil && c.Object == store.ObjectJob && (j.audit != nil || !j.removed) {
		s.keepNote(j, e)
	}
	return e.Change, nil
}

// SearchChanges returns entries that the search chooses, newest first. Of all, the last hundred
// thousand are kept.
func (s *Store) SearchChanges(ctx context.Context, q xxljob.ChangeSearch) (xxljob.ChangesFound, error) {
	if err := over(ctx); err != nil {
		return xxljob.ChangesFound{}, err
	}
	if err := q.Validate(); err != nil {
		return xxljob.ChangesFound{}, err
	}
	found := xxljob.ChangesFound{SearchedTo: 1}
	if !q.Complete() {
		return found, nil
	}
	if err := s.look(ctx); err != nil {
		return found, err
	}
	record := s.record // entries are not changed but for what is not read here
	s.mu.Unlock()
	end, _ := slices.BinarySearchFunc(record, q.Before, func(e *noted, id int64) int { return int(min(max(e.ID-id, -1), 1)) })
	looked := 0
	for _, e := range slices.Backward(record[:end]) {
		if looked == q.Examine || len(found.Changes) == q.Limit {
			return found, nil
		}
		looked++
		if sought(&q, &e.Change) {
			found.Changes = append(found.Changes, e.Change)
		}
		found.SearchedTo = e.ID
	}
	found.SearchedTo = 1
	return found, nil
}

// sought reports whether the search chooses the entry.
func sought(q *xxljob.ChangeSearch, c *xxljob.Change) bool {
	return (q.Since.IsZero() || !c.At.Before(q.Since)) && (q.Until.IsZero() || c.At.Before(q.Until)) &&
		(q.Actor == "" || c.Actor == q.Actor) && (q.Verb == "" || c.Verb == q.Verb) &&
		(q.Object == "" || c.Object == q.Object) && (q.ObjectID == "" || c.ObjectID == q.ObjectID) &&
		(q.JobID == 0 || c.JobID == q.JobID) && (len(q.Apps) == 0 || slices.Contains(q.Apps, c.App))
}

// DropChanges forgets the entries that were written before the given time.
func (s *Store) DropChanges(ctx context.Context, before time.Time) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	old := func(e *noted) bool { return e.At.Before(before) }
	kept := make([]*noted, 0, len(s.record)) // others may be reading the former list
	for _, e := range s.record {
		if !old(e) {
			kept = append(kept, e)
		}
	}
	s.record, s.changes = kept, recorded{}
	for _, e := range kept {
		s.changes.bytes += e.bytes()
	}
	for _, j := range s.jobs {
		if j.audit = slices.DeleteFunc(j.audit, old); len(j.audit) == 0 {
			j.audit = nil
		}
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
