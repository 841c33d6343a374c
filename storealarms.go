package xxljob

// Alarms as a store keeps them: inserted with what causes them, until somebody was told.

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// AlarmStore, for authors of stores, is an outbox of alarms.
//
// A store inserts one, as far as it was asked for by KnowAlarms, in the transaction that causes
// it: what Run.Alarm says of each run that ends, in whatever way
// (Finish, Start, Settle, Kill, Take), and of each record of skipped instants (Claim, EditJob,
// PayOwed, ExpireWindows); and where Claim stops a job with Plan.Stop, one with the cause
// "stopped", the reason as its Text, and no run. There is at most one for a run and a cause,
// and for a job, its version and a cause where there is no run.
type AlarmStore interface {
	// KnowAlarms is called by New with what Config.Alarms asks for. Of several schedulers over
	// one store, what any of them asks for holds. It does not block, and cannot fail.
	KnowAlarms(p store.AlarmPolicy)
	// Alarms returns those alarms of the shards that are not done with, in order of ID, with
	// IDs greater than after, at most limit.
	Alarms(ctx context.Context, shards []store.Shard, after int64, limit int) ([]store.Alarm, error)
	// MarkAlarms notes what became of alarms. A rule is added to Told once, and GaveUp stays
	// set once it is. An alarm that is
	// done with stays so; the AlarmStatus of its run, where that is there, becomes the greatest
	// of the statuses of its alarms. A run whose row others have locked may keep what it has.
	// Alarms that are not there are left out. Jobs replace the rows with the same job and rule,
	// and rows of jobs that are removed are dropped.
	MarkAlarms(ctx context.Context, m store.AlarmMarks) error
	// ToldJobs returns what is known of the jobs, in order of JobID and Rule, without
	// Recovered.
	ToldJobs(ctx context.Context, jobs []int64) ([]store.JobTold, error)
	// OpenAlarms returns the rows that are Open, of jobs in the shards that have Recovered, in
	// the same order, behind the job and the rule of after, at most limit; and how many are
	// open in all.
	OpenAlarms(ctx context.Context, shards []store.Shard, after store.JobTold, limit int) (recovered []store.JobTold, open int, err error)
	// AddLate inserts alarms with the cause "late" for runs that have not ended Job.LateAfter
	// behind their Instant, of jobs in the shards whose epoch is as given, the oldest first.
	AddLate(ctx context.Context, q store.LateQuery) (store.Late, error)
}
