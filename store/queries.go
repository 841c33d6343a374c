package store

import "time"

// ScanQuery asks for what is due in shards, each given with the epoch under
// which the caller owns it.
type ScanQuery struct {
	Shards []Shard
	// From, when set, says that jobs which are due before that may be left out.
	From       time.Time
	Before     time.Time
	Jobs, Runs int
}

// PlannedQuery asks for planned runs.
type PlannedQuery struct {
	Shards []Shard
	// App, when not empty, chooses runs of this app only.
	App    string
	Before time.Time
	// After and AfterID are the keyset: the Scheduled and ID of the last run of
	// the page before; zero for the first page.
	After   time.Time
	AfterID int64
	Limit   int
}

// MostTree is how many runs Store.Tree returns at most.
const MostTree = 10_000

// TooManySnoozes is the HandleMsg of a run that was to be snoozed once too often.
const TooManySnoozes = "snoozed too often: see Job.MaxSnoozes"

// DefaultSnoozes is what a Job.MaxSnoozes of zero stands for.
const DefaultSnoozes = 100
