package store

import "context"

// LockReader is what a Store is as well that can say who holds rows which others have locked. The
// one in Postgres is.
type LockReader interface {
	// LockHolders returns who holds locks that keep the shards, jobs or runs from being written,
	// at most ten, each in a line for the log: what identifies the session, who it is, and what
	// it is doing, as far as the caller may know that. It waits for none of these locks.
	LockHolders(ctx context.Context, q LockQuery) ([]string, error)
}

// LockQuery says whose rows LockReader.LockHolders is asked about.
type LockQuery struct {
	Shards []int
	Jobs   []int64
	Runs   []int64
}
