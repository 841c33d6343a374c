package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
)

// The record of changes: who has done what, when and from where. A store need not have all of
// it; whoever asks looks whether it does.

// Change is an entry of the record of changes. It is written in the transaction that makes the
// change, so that there is none of a change that was refused or rolled back, and it is never
// changed. Deletions of ended runs are several transactions, and their entry is written behind
// these: there is none if the process ends in between.
type Change struct {
	// ID is given by the store, in the order of writing: changes that were made side by side
	// may be told in either order, and an entry of a transaction that takes long, as that of a
	// host's may, appears behind others with greater IDs. At is the time by the store's clock.
	ID int64
	At time.Time
	// Actor, Client and RequestID are those in the context of the call (see WithActor and
	// WithClient). Actor is Scheduler for what nobody has asked for.
	Actor, Client, RequestID string
	// Verb is what was done. For jobs: "add", "remove", the Verb of the Edit, or "stop" for a
	// stop by the scheduler itself. For runs: "trigger", "again" or "kill". For apps: "add",
	// "update" or "remove". For ended runs: "drop".
	Verb string
	// Object is the kind of what it was done to: ObjectJob and the like. ObjectID is
	// which one: the ID of a job or a run, the name of an app, the day of runs. It is empty for
	// runs that were deleted one by one.
	Object, ObjectID string
	// App is the app that the object belongs to; empty for what belongs to none.
	App string
	// JobID is the job, also of a run; zero for what belongs to none. Version is that of the
	// job after the change; zero for all else.
	JobID, Version int64
	// Before and After are JSON objects of the fields that differ, named as the Go fields are.
	// Before is empty for what was added, After for what was removed; the other then has all
	// fields but those with their zero values. A field of more than 4 KiB is cut, and is a
	// string that ends in the number of bytes that are missing. Both are empty in entries of
	// versions of this module that did not write them.
	Before, After string
}

// ChangeRecord is what a Store is as well that answers questions about the record of changes.
// Both stores of this module are. What Store does itself, it records: each change of a job or
// an app, what it stops or prunes by itself, days of runs that it drops, and runs that are
// triggered, asked for again or killed in a context that names an actor.
type ChangeRecord interface {
	// SearchChanges returns entries that the search chooses, newest (greatest ID) first. It
	// looks at no more than Examine entries, the newest of its range, and says how far it got:
	// each entry that it chooses with an ID from SearchedTo up to Before is among those found.
	// Another search goes on from there, with SearchedTo as Before. Errors are those of
	// ChangeSearch.Validate.
	SearchChanges(ctx context.Context, q ChangeSearch) (ChangesFound, error)
	// JobAt returns the definition that a job had at a version, also of a job that was removed:
	// what Job.Definition returns, with Version. UpdateJob takes it, with the present Version or
	// none, to restore it. ErrNotFound where the record does not say it any more, or never did.
	JobAt(ctx context.Context, jobID, version int64) (Job, error)
	// RecordChange writes an entry about what is no change of the store's own, a login for
	// example, and returns it as stored. ID, At, Actor, Client and RequestID are the store's to
	// fill in, the latter three from ctx, and so is the ObjectID or the JobID of an entry about
	// a job that has only one of them. Errors are those of Change.Validate; after one nothing
	// is written.
	RecordChange(ctx context.Context, c Change) (Change, error)
	// DropChanges forgets the entries that were written before the given time, in batches, so
	// that after an error some of them are gone.
	DropChanges(ctx context.Context, before time.Time) error
}

// The bounds of an entry, in bytes.
const (
	mostVerb     = 64
	mostObject   = 32
	mostObjectID = 255
	mostValues   = 64 << 10 // of Before and of After
)

// Validate returns what is wrong with an entry that is to be written: a FieldError each,
// joined. Verb and Object are required, of at most 64 and 32 printable bytes, ObjectID of at
// most 255; App has at most 64; Before and After are empty or JSON objects of at most 64 KiB.
// Where Object is ObjectJob, ObjectID is JobID in decimal, or one of the two is left out.
func (c *Change) Validate() error {
	f := Faults{Of: "change"}
	f.Plain("Verb", c.Verb, 1, mostVerb)
	f.Plain("Object", c.Object, 1, mostObject)
	f.Text("ObjectID", c.ObjectID, 0, mostObjectID)
	f.Text("App", c.App, 0, 64)
	if c.JobID < 0 || c.JobID >= 1<<31 {
		f.Add("JobID", c.JobID, errors.New("want 0 to 2^31-1"))
	}
	if c.Object == ObjectJob {
		f.job(c)
	}
	if c.Version < 0 {
		f.Add("Version", c.Version, errors.New("is negative"))
	}
	for _, v := range []struct{ field, text string }{{"Before", c.Before}, {"After", c.After}} {
		var object map[string]json.RawMessage
		known := len(f.Errs)
		f.Text(v.field, v.text, 0, mostValues)
		if len(f.Errs) == known && v.text != "" && (json.Unmarshal([]byte(v.text), &object) != nil || object == nil) {
			f.Add(v.field, errs.Shorten(v.text, 40), errors.New("want a JSON object"))
		}
	}
	return f.Err()
}

// job checks which job an entry about one is about.
func (f *Faults) job(c *Change) {
	id, err := strconv.ParseInt(c.ObjectID, 10, 64)
	switch {
	case c.ObjectID == "" && c.JobID == 0:
		f.Add("ObjectID", "", coded{"required", errors.New("must not be empty for a job without a JobID")})
	case c.ObjectID == "":
	case err != nil || id <= 0 || id >= 1<<31 || strconv.FormatInt(id, 10) != c.ObjectID:
		f.Add("ObjectID", errs.Shorten(c.ObjectID, 40), errors.New("want the ID of a job"))
	case c.JobID != 0 && c.JobID != id:
		f.Add("JobID", c.JobID, fmt.Errorf("want %d as in ObjectID", id))
	}
}

// Complete, for authors of stores, fills in what an entry about a job has left out of ObjectID
// and JobID.
func (c *Change) Complete() {
	if c.Object != ObjectJob {
		return
	}
	if c.ObjectID == "" && c.JobID != 0 {
		c.ObjectID = strconv.FormatInt(c.JobID, 10)
	} else if c.JobID == 0 {
		c.JobID, _ = strconv.ParseInt(c.ObjectID, 10, 64)
	}
}

// ChangeSearch chooses entries of the record of changes. Zero fields choose all, and so does
// an empty list.
type ChangeSearch struct {
	// Since and Until bound At: Since <= At < Until. They are from 1970 on and before the year
	// 10000.
	Since, Until time.Time
	// Actor, Verb, Object and ObjectID choose by the whole field. ObjectID needs an Object.
	Actor, Verb, Object, ObjectID string
	// Apps choose entries about one of these apps, at most 1,000.
	Apps []string
	// JobID chooses entries about the job and its runs.
	JobID int64
	// Before is the keyset: entries with a smaller ID only.
	Before int64
	// Examine is how many entries are looked at, at most 200,000; zero means 20,000.
	Examine int
	// Limit is how many are returned, at most 1,000; zero means 100.
	Limit int
	// Brief leaves Before and After out, which may have 64 KiB each: for who counts changes, or says
	// no more than when there were any.
	Brief bool
}

// ChangesFound is what a search has found.
type ChangesFound struct {
	// Changes are those that were chosen, newest first.
	Changes []Change
	// SearchedTo is the ID down to which nothing was left out. It is 1 where the whole range
	// was searched, so that nothing is left to be found.
	SearchedTo int64
}

// Validate returns what is wrong with the search: a FieldError each, joined.
func (q *ChangeSearch) Validate() error {
	f := Faults{Of: "search for changes"}
	if n := len(q.Apps); n > mostChoices {
		f.Add("Apps", n, coded{"too-long", fmt.Errorf("has %d entries, at most %d", n, mostChoices)})
	}
	for _, app := range q.Apps {
		f.Text("Apps", app, 1, 64)
	}
	f.moment("Since", q.Since)
	f.moment("Until", q.Until)
	f.Text("Actor", q.Actor, 0, MostActor)
	f.Text("Verb", q.Verb, 0, mostVerb)
	f.Text("Object", q.Object, 0, mostObject)
	f.Text("ObjectID", q.ObjectID, 0, mostObjectID)
	if q.ObjectID != "" && q.Object == "" {
		f.Add("Object", q.Object, coded{"required", errors.New("must not be empty with an ObjectID")})
	}
	if q.JobID < 0 {
		f.Add("JobID", q.JobID, errors.New("is negative"))
	}
	f.upTo("Examine", q.Examine, mostExamined)
	f.upTo("Limit", q.Limit, mostFound)
	return f.Err()
}

// Complete, for authors of stores, fills in what zero stands for. It reports whether the search
// can choose any entry.
func (q *ChangeSearch) Complete() bool {
	completeSearch(&q.Examine, &q.Limit, &q.Before)
	return q.Since.IsZero() || q.Until.IsZero() || q.Since.Before(q.Until)
}
