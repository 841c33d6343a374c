package memory

import (
	"context"
	"slices"
	"strconv"

	"github.com/xxljob/xxljob/store"
)

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

// tell is the entry as callers get it.
func (e *noted) tell() (c store.Change) {
	if e.change == nil {
		c = e.added()
	} else {
		c = *e.change
	}
	c.ID, c.At = e.id, fromMilli(e.at)
	return c
}

// added is what the entry says about a job that was added.
func (e *noted) added() store.Change {
	c, job := store.Change{Verb: "add"}, e.def.job()
	c.OfJob(context.Background(), nil, &job)
	c.Version = e.version()
	if e.by != nil {
		c.Actor, c.Client, c.RequestID = e.by.Actor, e.by.Client, e.by.RequestID
	}
	return c
}

// told are entries as callers get them; nil for none.
func told(entries []noted) (list []store.Change) {
	for i := range entries {
		list = append(list, entries[i].tell())
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
