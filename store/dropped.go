package store

import (
	"strings"
	"time"
)

// DropMark is where a walk through ended runs goes on. The zero value is its beginning; any
// other is what the store itself has returned, and means nothing to another one.
type DropMark struct{ JobID, RunID int64 }

// Dropped is what a call of RunDropper has come to.
type Dropped struct {
	// Runs is how many runs were deleted. In a dry run it is how many would have been.
	Runs int
	// Kept is how many of those that were chosen were not, since something still needs them.
	Kept int
	// Examined is how many runs were looked at.
	Examined int
	// More says that there is more to look at, from Next on.
	More bool
	// Next is the After of a call that goes on. It is the zero value where More is false.
	Next DropMark
}

// KeepQuery asks for ended runs to be deleted that their jobs do not keep for any longer.
type KeepQuery struct {
	// Now is what ages of runs are counted to.
	Now time.Time
	// EndedBefore leaves out runs that ended at that time or later.
	EndedBefore time.Time
	// After is where to go on, the zero value for the beginning.
	After DropMark
	// Limit is how many runs are looked at, at most 10,000; zero means 1,000.
	Limit int
}

// IsWindowKey reports whether the key is that of the run for a window (WindowKey).
func IsWindowKey(key string) bool { return strings.HasPrefix(key, WindowKeys) }

// WindowKeys is what keys of windows begin with.
const WindowKeys = OwnKeys + "join/"
