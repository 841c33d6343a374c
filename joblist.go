package xxljob

// Lists of jobs, as a store keeps them.

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
