package store

// How instants become planned runs.

import (
	"context"
	"time"
)

// PlanStore, for authors of stores, finds due jobs and claims their instants, for the scan loop.
type PlanStore interface {
	// SetShards fixes the number of shards, once: a later call with the same
	// number writes nothing, with another it is ErrShards and names both. Every
	// method that writes may be called only after it.
	SetShards(ctx context.Context, n int) error
	// Scan returns, of the shards in q: enabled jobs with Next at or before
	// q.Before, the earliest first, at most q.Jobs; and planned runs due at or
	// before q.Before that have no PlanEpoch, the earliest first, at most q.Runs.
	// Runs that were planned or returned under a former epoch of their shard may be among
	// them. Jobs and runs are appended to those of dst (see Store). A run that was returned
	// once may or may not be returned again, even if the call returned an error; Planned
	// returns it in any case. Scan takes no locks and may see a state that is already out of
	// date: its answer is a hint of what to try.
	Scan(ctx context.Context, dst ScanResult, q ScanQuery) (ScanResult, error)
	// Planned returns all planned runs of the shards, whatever their epoch, due at
	// or before q.Before, in order of (Scheduled, ID), after the keyset, at most
	// q.Limit, appended to dst (see Store).
	Planned(ctx context.Context, dst []Run, q PlannedQuery) ([]Run, error)
	// Claim advances jobs and inserts runs: for each plan whose job is enabled
	// and has its Version, and whose Next equals Due, in a shard that has its
	// Epoch, the job's Next and WaitRun are set as the plan says, its Last to the
	// latest instant of the plan's runs, its Runs is raised by the number of those that
	// are planned, and the runs are inserted with that PlanEpoch. A zero Due matches no
	// job. Other plans change nothing. It returns the inserted runs in the order of the
	// plans, appended to dst (see Store). The rule of Finish for jobs without a next instant
	// holds here too. A plan with a Stop stops the job with that reason, raises its version,
	// and cancels nothing.
	Claim(ctx context.Context, dst []Run, plans []Plan) ([]Run, error)
	// MoveAhead makes planned runs of those that AddAhead keeps in shards which have the
	// given epochs, and which are to move at or before q.Before: the earliest first, at
	// most q.Limit. Each is then as AddRun would have inserted it, without an epoch, but
	// for its ID and Created, which are from AddAhead. One that cannot keep its ID (see
	// q.Oldest) gets a new one, which its Key leads to from then on. Runs whose rows others
	// have locked are left out.
	MoveAhead(ctx context.Context, q AheadQuery) (Moved, error)
	// Sweep re-arms jobs of the shards that wait for a run which has ended or is
	// gone, as Finish does (from the time of the call where the end is not
	// known), and stops those that Finish would stop as finished. Jobs for which the store
	// refuses that alone are left as they are, and ErrRefused says so, when all others are done.
	Sweep(ctx context.Context, shards []Shard) error
}

// ScanResult, for authors of stores, is what a Scan found.
type ScanResult struct {
	Jobs []DueJob
	Runs []Run
	// Next is the earliest time, later than q.Before, at which an enabled job or
	// a planned run without PlanEpoch of the shards becomes due; zero when there is none. Where the
	// batch was full it is q.Before at the latest.
	Next time.Time
}

// DueJob, for authors of stores, is a job that is due.
type DueJob struct {
	Job
	// Waiting is the number of its planned runs, without those of type RETRY: at least those
	// that have been due for a few seconds, at most all.
	Waiting int
}

// Plan, for authors of stores, is the claim of one job.
type Plan struct {
	JobID int64
	Shard int
	Epoch int64
	// Version and Due are compared with the job's Version and Next.
	Version int64
	Due     time.Time
	// Next is the first instant not planned by this claim; zero for none.
	Next time.Time
	// Wait makes the job wait for the plan's only run (FixedDelay).
	Wait bool
	// Stop, when not empty, stops the job for this reason.
	Stop string
	Runs []NewRun
}

// NewRun, for authors of stores, is a run that a claim inserts: planned, or skipped (a record).
type NewRun struct {
	At    time.Time
	Type  TriggerType
	State State
	// First, Last, Count and Reason are as in Run.
	First, Last time.Time
	Count       int
	Reason      string
}

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
