package store

// What a store keeps of definitions: jobs, their changes, groups.

import (
	"context"
	"time"
)

// JobStore is the part of a Store that keeps definitions and executor apps. Programs read
// them here and change them through the Scheduler; the rest is for authors of stores.
type JobStore interface {
	// AddJob inserts the job with a new ID, with Version 1 and with the Stopped it
	// was given (one without a schedule is stopped only if that says so), in shard ID modulo the number of shards. Its Next is what first
	// returns; the one it was given where first is nil. Its Runs is 0. NotBefore and
	// NotAfter are kept to the millisecond, here and by EditJob. A Key that the app has
	// already is ErrDuplicateKey; an empty Key is never a duplicate; an error of
	// first is returned as it is. After any of these nothing has changed. It returns
	// the job as stored.
	AddJob(ctx context.Context, job Job, first FirstInstant) (Job, error)
	// EditJob changes one job in one transaction (see Edit) and returns the job
	// as it then is. An absent job is ErrNotFound; an edit.Version that is
	// neither zero nor the job's is ErrConflict; an edit.Guard that does not hold is
	// ErrSuperseded; a Key taken by another job is
	// ErrDuplicateKey; an error of edit.Change or edit.Next is returned as it is.
	// After any of these nothing has changed. When Change leaves the job as it
	// was and asks for no replan, nothing is written and Version stays. When the schedule
	// is planned anew, the rule of Finish for jobs without a next instant holds here too.
	EditJob(ctx context.Context, id int64, edit Edit) (Job, error)
	// RemoveJob deletes the job and cancels all its planned runs, of every type,
	// in one transaction; its runs stay readable. ErrNotFound when absent. Where very many
	// runs of the job are kept apart, they may be cancelled before that: after an error some
	// may be, while the job is there.
	RemoveJob(ctx context.Context, id int64) error
	// Job returns one job, or ErrNotFound.
	Job(ctx context.Context, id int64) (Job, error)
	// JobByKey returns the job with the given non-empty key, or ErrNotFound.
	JobByKey(ctx context.Context, app, key string) (Job, error)
	// Jobs lists jobs in order of ID.
	Jobs(ctx context.Context, f JobFilter) ([]Job, error)
	// Changes returns what was done to the job itself, not to its runs, newest first, at most
	// limit entries, with those that others have recorded about it (ChangeRecord): these have
	// no definition, so JobAt does not go by them. It goes on answering after the job is removed, until the store's
	// retention drops the entries; an unknown job has none. What the changes are about, and
	// what changed, is in their entries too: see Change.
	Changes(ctx context.Context, jobID int64, limit int) ([]Change, error)

	// SaveGroup inserts or replaces the group.
	SaveGroup(ctx context.Context, g Group) error
	// EnsureGroup inserts an automatic group for app when there is none, and
	// otherwise writes nothing.
	EnsureGroup(ctx context.Context, app string) error
	// RemoveGroup deletes it: ErrGroupInUse while jobs of the app exist,
	// ErrNotFound when absent.
	RemoveGroup(ctx context.Context, app string) error
	// Group returns one group, or ErrNotFound.
	Group(ctx context.Context, app string) (Group, error)
	// Groups lists all groups in order of App.
	Groups(ctx context.Context) ([]Group, error)
}

// FirstInstant works out the Next of a job that is added, the zero time for none. It
// is called inside the transaction, with the job as it will be stored and the store's
// own clock, as read there: the job's Added. It is pure and may be called more than once.
type FirstInstant func(job Job, now time.Time) (time.Time, error)

// Edit, for authors of stores, is a change of one job.
type Edit struct {
	// Version, when not zero, makes the edit a compare-and-set.
	Version int64
	// Guard, when not nil, has to hold, in the same transaction.
	Guard *ListGuard
	// Verb names the change in the audit: "update", "start", "stop", "ensure",
	// "prune".
	Verb string
	// Change alters the definition; it sees the job as it is, and reports
	// whether the schedule has to be planned anew. It is pure and may be called
	// more than once. ID, Version, Shard, Next, Last, WaitRun, Runs, Added and Updated
	// are the store's: what Change does to them is ignored.
	Change func(job *Job) (replan bool, err error)
	// Missed, when it is set, is called when the schedule of an enabled job with a
	// Next is planned anew, with the job as it was and the time of the edit. The
	// ended run that it returns, if it returns one, is inserted in the same
	// transaction: a record of instants that were due and that nothing was planned
	// for. It is pure.
	//
	// The time of the edit is the store's own clock, read once after the job can be
	// claimed by nobody else, however long the edit waited for that; the job's Updated
	// is set to it. No node's estimate of that clock will do: it lags behind.
	Missed func(was Job, now time.Time) (record NewRun, missed bool)
	// Recorded, when it is set, is given the record that was inserted, as it is stored, without
	// the name of its job, before EditJob returns without an error. It stays as it is where
	// there is none.
	Recorded *Run
	// Next is called when the schedule is planned anew, with the changed job, the latest
	// instant that a schedule-born run of it was started or refused for (zero: none), and the
	// time of the edit as for Missed. It returns the job's new Next; the zero time for none.
	// By then the job's WaitRun is cleared, and planned runs of it are cancelled, with Verb as
	// their Reason, and taken out of its Runs: all that are Born where the job is stopped now,
	// otherwise those that its schedule itself has made, and no retries.
	//
	// Each of the cancelled runs is taken out of Runs, unless it is a part of a broadcast:
	// that has begun. Where Change gives the job another Schedule, Runs is 0 instead, and
	// no run that was claimed before is taken out of it later.
	Next func(job Job, started, now time.Time) (time.Time, error)
}

// JobFilter chooses jobs. Zero fields choose all, and so do empty lists, nil or not: check
// a list that may be empty before you ask for its jobs.
type JobFilter struct {
	App, Key, Handler, Author string
	// Name is a part of the name, regardless of case.
	Name string
	// Stopped chooses by Job.Stopped, where it is not nil.
	Stopped *bool
	// IDs chooses these jobs only.
	IDs []int64
	// Keys chooses jobs with one of these keys. A job without a key has none of them.
	// Each page looks all of them up, so ask for thousands in batches, each with its
	// length as Limit.
	Keys []string
	// After is the keyset: jobs with a greater ID only.
	After int64
	// Limit is the page size; zero means 100.
	Limit int
}

// The part of the contract of stores that EnsureJobs needs: lists of jobs, whose
// they are, and which of them applies.

// ListStore, for authors of stores, is the part of a Store that keeps lists of jobs. An app has a head: what is known of the list that was
// applied last. A node has at most one list for each app, which counts from when the node
// is there until it has left or is deleted.
type ListStore interface {
	// PutList makes the list that of the incarnation, for its app, in place of a former
	// one, where such a node is there; one that is equal is not written. In the same
	// transaction it becomes the app's head, if put.Apply says so, and any difference is
	// written. It returns the head as it then is, the zero value where the app has none.
	PutList(ctx context.Context, put ListPut) (ListHead, error)
	// Lists returns the head of the app and what the lists of the nodes say of its jobs.
	// It takes no locks and may see a state that is already past.
	Lists(ctx context.Context, app, incarnation string) (ListView, error)
	// NameJobs notes for those jobs of the list's app which have one of the keys that a
	// list of its generation has named them, unless that is noted already, and returns
	// them in order of ID. ErrSuperseded, and nothing has changed, unless the list is the
	// app's head.
	NameJobs(ctx context.Context, list ListID, keys []string) ([]Job, error)
	// UnnameJob notes that no list has named the job with this key, so that none prunes it
	// until one names it again, and returns it as it is after that: where the job was
	// pruned at the same time, it is pruned in what is returned, or is not pruned. Where
	// no list has named it, nothing is written. ErrNotFound where there is no such job; an
	// empty key is nobody's.
	UnnameJob(ctx context.Context, app, key string) (Job, error)
	// AddJobs is AddJob for jobs with keys, all of the list's app, which the list names.
	// It is one transaction. Jobs whose keys the app has already are left out; it returns
	// the others as stored, in the order given. An error of first is returned as it is,
	// and ErrSuperseded is as for NameJobs; after either nothing has changed.
	AddJobs(ctx context.Context, list ListID, jobs []Job, first FirstInstant) ([]Job, error)
}
