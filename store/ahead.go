package store

import "time"

// A run that is due within farAhead is an ordinary planned run from the start. One that is
// due later is kept apart and becomes one aheadReach before it is due: early enough that no
// outage of a few hours makes it late.
const (
	farAhead   = 48 * time.Hour
	aheadReach = 24 * time.Hour
)

// Ahead reports whether a run is due so far ahead that AddAhead is to keep it apart, and if
// so when it is to move. Retention is how long runs are kept, which is zero where it is not
// known: a planned run is kept for no longer than any other, so that where it is less than
// three days fewer runs are planned at once, and these move later.
func Ahead(at, now time.Time, retention time.Duration) (move time.Time, far bool) {
	most, reach := farAhead, aheadReach
	if retention > 0 {
		most, reach = min(most, PlannedFor(retention)), min(reach, retention/2)
	}
	return at.Add(-reach), at.After(now.Add(most))
}

// PlannedFor is how long a run may wait as a planned one where runs are kept for the
// retention: a day less, which is left for the run itself, or half of a short one.
func PlannedFor(retention time.Duration) time.Duration {
	return max(retention-24*time.Hour, retention/2)
}

// AheadQuery asks for the runs that are kept apart and whose time to move has come, of
// shards that are each given with the epoch under which the caller owns it.
type AheadQuery struct {
	Shards []Shard
	// Before chooses the runs that are to move at or before it.
	Before time.Time
	// Oldest is for stores whose IDs say how long a run is kept: a run whose ID is from
	// before it gets a new one. Zero means that every run keeps its ID.
	Oldest time.Time
	Limit  int
}

// Moved is what MoveAhead did.
type Moved struct {
	// Runs is how many have become planned runs.
	Runs int
	// Next is when the earliest of those that are left is to move; zero where there is none.
	// It may be past: the batch was full, others have rows locked, or the store refuses one.
	Next time.Time
	// Refused is why the store could not move some, of which each alone was refused (ErrRefused), so
	// that it has left these for later; nil where there are none.
	Refused error
}
