package xxljob

// The part of the contract of stores that EnsureJobs needs: lists of jobs, whose
// they are, and which of them applies.

import (
	"context"
)

// ListStore keeps lists of jobs. An app has a head: what is known of the list that was
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

// ListPut is a list and what is to become of it.
type ListPut struct {
	JobList
	// Incarnation is whose list it is, Node the ID of that node. It need not be there.
	Incarnation, Node string
	Apply             ListApply
	// Over is for ApplyInstead.
	Over ListHead
}

// ListApply says when a list becomes its app's head.
type ListApply uint8

const (
	// ApplyNever leaves the head alone.
	ApplyNever ListApply = iota
	// ApplyNewer applies where the head has no greater generation, or is not there.
	ApplyNewer
	// ApplyAlways applies whatever the head is.
	ApplyAlways
	// ApplyInstead applies while the head is Over, and no other node that is there and
	// has not left has a list for the app with a greater generation, or one with the
	// generation and the digest of Over.
	ApplyInstead
)

// ListView is what the lists of an app say.
type ListView struct {
	Head ListHead
	// Nodes are the lists of the nodes that are there and have not left, in order of
	// Incarnation.
	Nodes []NodeList
	// Surplus are the jobs that the list of the incarnation asked for may prune, in order
	// of ID, at most 10,000. Each of them is enabled, was named by a list, and is named by
	// none of Nodes; the list prunes, and its generation is at least that of the list
	// which named the job last, or the head's, whichever is less. A node that is not
	// among Nodes may prune none.
	Surplus []int64
	// Pruned are the jobs that this list names and that are stopped with StopPruned, in
	// order of ID, at most 10,000.
	Pruned []int64
}

// NodeList is a list without its keys, and whose it is.
type NodeList struct {
	Incarnation string
	// Node is the node's ID.
	Node string
	JobList
}
