package store

import (
	"github.com/xxljob/xxljob/internal/errs"
)

// Errors of stores. A store wraps them with what was attempted; test for them
// with errors.Is.
var (
	// ErrNotFound: there is no such job, run, group or node.
	ErrNotFound = errs.ErrNotFound
	// ErrConflict: the job's version is not the one the caller had read.
	ErrConflict = errs.ErrConflict
	// ErrDuplicateKey: the app has a job with this Key already.
	ErrDuplicateKey = errs.ErrDuplicateKey
	// ErrGroupInUse: the group still has jobs.
	ErrGroupInUse = errs.ErrGroupInUse
	// ErrShards: the store was set up with another number of shards.
	ErrShards = errs.ErrShards
	// ErrLocked: others hold locks on rows that the call needs; what the call returned beside it
	// has taken effect, and the rest may be tried again.
	ErrLocked = errs.ErrLocked
	// ErrRefused: the store has answered that it takes nothing of a call for what that brings, and
	// would answer so again. Nothing was changed by the transaction that was refused. It may be
	// about one member of a batch, and then the others may be tried without it.
	ErrRefused = errs.ErrRefused
	// ErrStoreClosed: what the store goes by was closed under it, such as the pool of connections
	// that it was given. It is for good: where Beat returns it, Scheduler.Ready does at once.
	ErrStoreClosed = errs.ErrStoreClosed
	// ErrSuperseded: another list applies to the app, of another generation or of the same
	// one, or others name the job that was to be pruned. Nothing was changed.
	ErrSuperseded = errs.ErrSuperseded
)
