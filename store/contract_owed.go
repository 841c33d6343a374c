package store

// What successes owe to other jobs: children, and windows of jobs that run behind several.

import (
	"context"
	"time"
)

// OwedStore, for authors of stores, keeps what the successes of runs owe to other jobs.
//
// A trigger has succeeded when each of its parts has a run that has: a run that is no part of
// a broadcast is the only part, and of a broadcast there are as many as were started. The
// transaction that ends the last of these (Finish) stores what Run.Owes says, once for a
// trigger. Of a trigger whose job is removed by then nothing is owed.
type OwedStore interface {
	// PayOwed pays what is owed in the shards whose epoch is as given, what was owed first
	// first, and takes it away in the same transaction. Rows that others have locked stay
	// for later.
	//
	// A child becomes a planned run, without an epoch, as by AddRun: of type PARENT, with
	// RunID as its ParentID, the Param, Business and Depth that are owed, due now, and under
	// ChildKey of the TriggerID, so that a job which is named twice has one child. A child that is
	// not Secret, or is of another app than that of RunID, is not given the Param where that run is
	// secret: its job is Secret or removed, or it has its own Param (ParamSet) from a run of ParentID
	// that is, or that is not there any more while the app has a job that is Secret, 32 steps up at
	// most. It has Withheld in its TriggerMsg then. Where Depth is more than MostDepth it becomes a record
	// instead: StateSkipped, of type PARENT, with ReasonDepth and a Count of 1, with the same key.
	// Where the job is not there nothing is planned, and the TriggerMsg of the run that has
	// succeeded says so in a line.
	//
	// A success counts for the window of its Business (Job.Window) of a job that runs behind
	// others. The first one opens the window, for Job.WindowTimeout. When it is open and all
	// jobs of After and AfterKeys have succeeded for it (Job.Missing), by the definition as it
	// is then, it is closed, and the job has a planned run as a child has, but with the
	// beginning of the window as Business and StandsFor, the greatest Depth of the successes, the
	// last of them as ParentID, and WindowKey. A window that is closed stays so, whatever
	// succeeds again, for as long as runs are kept. What is owed to a job whose windows this process
	// cannot work out (Job.Window) is left as it is and said (Unknown), and holds up nothing else. What was
	// paid before an error is returned with it.
	PayOwed(ctx context.Context, q OwedQuery) (Paid, error)
	// ExpireWindows closes windows that are over, of jobs in the shards whose epoch is as
	// given, those that are over first first. Where jobs are missing it inserts a record:
	// StateSkipped, of type PARENT, with ReasonJoin, a Count of 1, the beginning of the window
	// as Scheduled and Business, and a line with the missing ones in TriggerMsg. Where none is
	// missing any more, since the definition has changed, the job has its run, as by PayOwed.
	// Windows of a job that is removed or runs behind nothing any more are closed without.
	ExpireWindows(ctx context.Context, q WindowQuery) (Expired, error)
	// Links returns the jobs whose definitions name others, as far as these fields say:
	// ID, App, Key, Children, ChildKeys, ChildParam, After and AfterKeys, in order of ID.
	Links(ctx context.Context) ([]Job, error)
}

// Alarms as a store keeps them: inserted with what causes them, until somebody was told.

// AlarmStore, for authors of stores, is an outbox of alarms, and keeps what the rules of all nodes
// are about.
//
// A store inserts an alarm if a rule that is kept, and is not Gone, wants it (AlarmRule.Wants), in
// the transaction that causes it: what Run.Alarm says of each run that ends, in whatever way
// (Finish, Start, Settle, Kill, Take), and of each record of skipped instants (Claim, EditJob,
// PayOwed, ExpireWindows); and where Claim stops a job with Plan.Stop, one with the cause
// "stopped", the reason as its Text, and no run. A rule counts once KeepRules has returned,
// whatever node ends the run. There is at most one alarm for a run and a cause, and for a job, its
// version and a cause where there is no run. An alarm that the store refuses is dropped, and said in
// its log: what has caused it takes effect all the same; but those of runs that are late stay (Late).
type AlarmStore interface {
	// KeepRules keeps the rules as those of the node: they are kept from now, and not Gone. It
	// forgets those that this app has had under the same names, where no other app has had them
	// and no live node has them any more. It returns the other live nodes of the app that have kept
	// others, in order of Node, with the names and keys of their rules in order of Key. A node is
	// live that has joined and has not left.
	KeepRules(ctx context.Context, k RuleKeeper) ([]RuleKeeper, error)
	// HoldRule makes the incarnation the only one who may tell of what a rule wants, for that
	// long from now by the store's clock, unless another one is. Zero gives it up. A hold of
	// more than an hour counts as over. ErrNotFound where the rule is not kept.
	HoldRule(ctx context.Context, rule, incarnation string, d time.Duration) (RuleHold, error)
	// Rules returns the rules that are kept, and those that are Gone, in order of Key.
	Rules(ctx context.Context) ([]AlarmRule, error)
	// DropRules makes the rules Gone that were kept before the time last, and forgets those that
	// were so two days earlier. It reports whether there are alarms that are not done with.
	DropRules(ctx context.Context, before time.Time) (open bool, err error)
	// Alarms returns those alarms of the shards that are not done with, in order of ID, with
	// IDs greater than after, at most limit: with rules, which are keys, those that one of these
	// wants and has not told.
	Alarms(ctx context.Context, shards []Shard, rules []string, after int64, limit int) ([]Alarm, error)
	// MarkAlarms notes what became of alarms. A rule is added to Told once, and GaveUp stays
	// set once it is. An alarm is done with once it is in Done, or each rule that wants it and
	// was not Gone when it happened has told it, then with AlarmSent or, where it has GaveUp,
	// AlarmFailed. An alarm that is
	// done with stays so; the AlarmStatus of its run, where that is there, becomes the greatest
	// of the statuses of its alarms. A run whose row others have locked may keep what it has.
	// Alarms that are not there are left out. Jobs replace the rows with the same job and rule,
	// and rows of jobs that are removed are dropped.
	MarkAlarms(ctx context.Context, m AlarmMarks) error
	// ToldJobs returns what is known of the jobs, in order of JobID and Rule, without
	// Recovered.
	ToldJobs(ctx context.Context, jobs []int64) ([]JobTold, error)
	// OpenAlarms returns the rows that are Open, of jobs in the shards that have Recovered, in
	// the same order, behind the job and the rule of after, at most limit; and how many are
	// open in all. With rules it goes by the rows of these alone.
	OpenAlarms(ctx context.Context, shards []Shard, rules []string, after JobTold, limit int) (recovered []JobTold, open int, err error)
	// AddLate inserts alarms with the cause "late" for runs that have not ended Job.LateAfter
	// behind their Instant, of jobs in the shards whose epoch is as given, the oldest first, as
	// far as a rule wants them.
	AddLate(ctx context.Context, q LateQuery) (Late, error)
}
