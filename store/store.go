package store

// Store keeps everything that outlives a moment: jobs, runs, groups, nodes, shards and the
// registry. Programs read from it: Job, JobByKey, Jobs, Changes, Group, Groups, Run, Runs,
// Registrations; everything else is for authors of stores. It is composed of
// smaller interfaces and may grow in minor versions. Package store/storetest holds a case
// for each sentence below, so that an author who runs it after an update is told what is
// missing.
//
//	contract_jobs.go    definitions, groups, and lists of jobs
//	contract_runs.go    runs: reading them, their results and ends
//	contract_plans.go   from an instant to a planned run
//	contract_starts.go  from a planned run to one that is under way
//	contract_owed.go    what a success owes to other jobs; alarms
//	contract_logs.go    what handlers and nodes have said of runs
//	contract_nodes.go   nodes, shards, executors elsewhere, signals
//
// For every method:
//   - it is safe for concurrent use, by many Schedulers;
//   - values are copied in and out: neither side sees the other's later changes;
//   - one call is one transaction: it takes effect as a whole or not at all,
//     except that a batch of several shards may be one transaction a shard, and
//     a batch of runs may leave out those that do not match;
//   - a ctx that has ended changes nothing and returns its error, and a nil one is an
//     error too; with either Watch returns channels that nothing comes through;
//   - an error that is none of those which internal/errs/errs.go has for stores, ErrNotFound and the
//     like, nor ErrLocked, means that the outcome is unknown: the call may have taken effect. The caller
//     reads again, it never assumes;
//   - Start, Finish, Scan, Claim and Planned append what they return to dst, as append does, so that
//     callers can use memory again: a batch of runs takes a megabyte. They keep nothing of it, nor
//     of their other arguments, beyond the call. Beside an error they return nothing, not even dst, but for Finish beside
//     ErrLocked;
//   - a text is kept that is UTF-8 without NUL. A definition, a Group, a Trigger and an entry of the
//     record with any other are refused with a FieldError; in any other text what is none becomes
//     U+FFFD, so that no word of a running program is an error;
//   - times are kept to the millisecond, in UTC; the zero time stays zero;
//   - the arguments named now, Before and the like decide about dueness and
//     planned times only. Leases, epochs, ids, Created, Started, Taken and Ended
//     use the store's own clock.
type Store interface {
	JobStore
	ListStore
	RunStore
	PlanStore
	StartStore
	OwedStore
	AlarmStore
	NodeStore
	RegistryStore
}
