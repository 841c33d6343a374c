package store

// ListID says which list of an app is meant. A generation does not say it: releases that
// give none all have the same. Lists with one ID say the same.
type ListID struct {
	App        string
	Generation int64
	Digest     string
}

// JobList is what EnsureJobs was given for an app.
type JobList struct {
	App string
	// Generation orders the lists of an app: of a later one it is greater. Not negative.
	Generation int64
	// Prune says that jobs which earlier lists named, and no list names any more, are to
	// be stopped.
	Prune bool
	// Digest stands for the keys and the definitions: lists that say the same have the
	// same one.
	Digest string
	// Keys are those of the jobs. Their order means nothing.
	Keys []string
}

// ID says which list it is.
func (l JobList) ID() ListID { return ListID{l.App, l.Generation, l.Digest} }

// ListHead is what is known of the list of an app that was applied last.
type ListHead struct {
	Generation int64
	Digest     string
	// Node is the ID of the node that applied it.
	Node string
}

// ListGuard makes an edit depend on lists. Where it does not hold the error is
// ErrSuperseded.
type ListGuard struct {
	// ListID is the list that the edit goes by: it is to be the head of the job's app.
	ListID
	// SurplusOf, when it is not empty, is whose list it is to be; it need not be the head
	// then, unless the head has its generation. And the job is to be one of the Surplus of
	// this incarnation, as Lists would return it at the moment of the edit. A list that is
	// put at the same time either counts, or is put after the edit.
	SurplusOf string
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
