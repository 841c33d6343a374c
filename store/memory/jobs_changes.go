package memory

// The record of changes: what is written in it, how it is read, and what bounds it.

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/store"
)

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
	return told(newest, false), nil
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
	e := s.write(c, nil, s.clock())
	if j := s.jobs[c.JobID]; j != nil && e.ofJob() && (j.audit != nil || !j.removed) {
		s.keepNote(j, e)
	}
	return e.tell(false), nil
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
	found.Changes = told(chosen, q.Brief)
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

// noted is an entry of the record of changes. It is guarded by Store.mu; copies of it may be read
// without that, for what it points to is never changed.
//
// That a job was added is by far the most frequent change, and all that there is to say of it
// follows from its definition: so its text is made when somebody reads it.
type noted struct {
	id, at int64
	change *store.Change // without ID and At; nil where it says that def was added
	by     *store.Origin // who has added def, nil for nobody
	def    *definition   // as it was then, of entries about jobs; nil once that is let go of
	prev   *noted        // the entry about the same job before it
}

// tell is the entry as callers get it, with its texts or briefly.
func (e *noted) tell(brief bool) (c store.Change) {
	switch {
	case e.change != nil:
		c = *e.change
	case brief:
		c = e.addedOf(&store.Job{ID: e.def.id, App: e.def.app()})
	default:
		c = e.added()
	}
	if brief {
		c.Before, c.After = "", ""
	}
	c.ID, c.At = e.id, fromMilli(e.at)
	return c
}

// added is what the entry says about a job that was added.
func (e *noted) added() store.Change {
	job := e.def.job()
	return e.addedOf(&job)
}

// addedOf is added of a job with as much of its definition as the texts of the entry are to have.
func (e *noted) addedOf(job *store.Job) store.Change {
	c := store.Change{Verb: "add"}
	c.OfJob(context.Background(), nil, job)
	c.Version = e.version()
	if e.by != nil {
		c.Actor, c.Client, c.RequestID = e.by.Actor, e.by.Client, e.by.RequestID
	}
	return c
}

// told are entries as callers get them; nil for none.
func told(entries []noted, brief bool) (list []store.Change) {
	for i := range entries {
		list = append(list, entries[i].tell(brief))
	}
	return list
}

// letGo makes an entry do without its definition.
func (s *Store) letGo(e *noted) {
	before := e.bytes()
	if e.change == nil {
		c := e.added()
		e.change = &c
	}
	e.def = nil
	if len(s.record) > 0 && e.id >= s.record[0].id {
		s.changes.bytes += e.bytes() - before
	}
}

// bytes is what the entry takes, without a definition, which it has in common with others.
func (e *noted) bytes() int64 {
	if c := e.change; c != nil {
		return int64(256 + len(c.Actor) + len(c.Client) + len(c.RequestID) + len(c.Verb) + len(c.Object) + len(c.ObjectID) + len(c.App) + len(c.Before) + len(c.After))
	}
	if e.by != nil {
		return int64(128 + len(e.by.Actor) + len(e.by.Client) + len(e.by.RequestID))
	}
	return 64
}

// jobID is the job that the entry is about, zero for none.
func (e *noted) jobID() int64 {
	if e.change == nil {
		return e.def.id
	}
	return e.change.JobID
}

// ofJob reports whether a job is what was changed.
func (e *noted) ofJob() bool { return e.change == nil || e.change.Object == store.ObjectJob }

// version is that of the job after the change.
func (e *noted) version() int64 {
	if e.change == nil {
		return 1
	}
	return e.change.Version
}

// sought reports whether the search chooses the entry.
func (e *noted) sought(q *store.ChangeSearch) bool {
	c := e.change
	if c == nil {
		short := e.brief()
		c = &short
	}
	return e.within(q) &&
		(q.Actor == "" || c.Actor == q.Actor) && (q.Verb == "" || c.Verb == q.Verb) &&
		(q.Object == "" || c.Object == q.Object) && (q.ObjectID == "" || c.ObjectID == q.ObjectID) &&
		(q.JobID == 0 || c.JobID == q.JobID) && (len(q.Apps) == 0 || slices.Contains(q.Apps, c.App))
}

// brief is the entry about a job that was added, without what is in its text.
func (e *noted) brief() store.Change {
	c := store.Change{Verb: "add", Object: store.ObjectJob, ObjectID: strconv.FormatInt(e.def.id, 10), App: e.def.app(), JobID: e.def.id}
	if e.by != nil {
		c.Actor = e.by.Actor
	}
	return c
}

// within reports whether the entry was written in the time of the search.
func (e *noted) within(q *store.ChangeSearch) bool {
	at := fromMilli(e.at)
	return (q.Since.IsZero() || !at.Before(q.Since)) && (q.Until.IsZero() || at.Before(q.Until))
}

// keepNote adds an entry to those about the job, of which it drops the oldest beyond a bound.
func (s *Store) keepNote(j *job, e *noted) {
	e.prev, j.audit = j.audit, e
	for n := 1; e.prev != nil; n++ {
		if n == auditPerJob {
			s.letGo(e.prev)
			e.prev = nil
			return
		}
		e = e.prev
	}
}

// dropNotes drops entries about the job.
func (j *job) dropNotes(chosen func(*noted) bool) {
	for at := &j.audit; *at != nil; {
		e := *at
		if !chosen(e) {
			at = &e.prev
			continue
		}
		*at, e.prev = e.prev, nil
	}
}

// forgetAudit drops all of them.
func (j *job) forgetAudit() { j.dropNotes(func(*noted) bool { return true }) }
