package xxljob

// The part of the contract of stores that EnsureJobs needs: lists of jobs, whose
// they are, and which of them applies.

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// ListStore, for authors of stores, is the part of a Store that keeps lists of jobs. An app has a head: what is known of the list that was
// applied last. A node has at most one list for each app, which counts from when the node
// is there until it has left or is deleted.
type ListStore interface {
	// PutList makes the list that of the incarnation, for its app, in place of a former
	// one, where such a node is there; one that is equal is not written. In the same
	// transaction it becomes the app's head, if put.Apply says so, and any difference is
	// written. It returns the head as it then is, the zero value where the app has none.
	PutList(ctx context.Context, put store.ListPut) (store.ListHead, error)
	// Lists returns the head of the app and what the lists of the nodes say of its jobs.
	// It takes no locks and may see a state that is already past.
	Lists(ctx context.Context, app, incarnation string) (store.ListView, error)
	// NameJobs notes for those jobs of the list's app which have one of the keys that a
	// list of its generation has named them, unless that is noted already, and returns
	// them in order of ID. ErrSuperseded, and nothing has changed, unless the list is the
	// app's head.
	NameJobs(ctx context.Context, list store.ListID, keys []string) ([]Job, error)
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
	AddJobs(ctx context.Context, list store.ListID, jobs []Job, first FirstInstant) ([]Job, error)
}
