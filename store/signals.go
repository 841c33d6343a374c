package store

// Signals are hints, each channel with a buffer of one.
type Signals struct {
	// Scan: a job or planned run that may be due earlier than known was written
	// in a shard of the incarnation, other than by a Claim.
	Scan <-chan struct{}
	// Ahead: a run that is to be kept apart until it moves was added to a shard of the
	// incarnation.
	Ahead <-chan struct{}
	// Owed: something is owed by a run of a shard of the incarnation, or a window was opened of
	// a job in one.
	Owed <-chan struct{}
	// Alarms: an alarm was inserted, or somebody has given up a rule.
	Alarms <-chan struct{}
	// Inbox: a run, a kill or a question was addressed to the incarnation.
	Inbox <-chan struct{}
	// Nodes: a node joined or left, its executors changed, it has come to fail or does
	// so no more, shards were released, or an app is served again (NoteServed).
	Nodes <-chan struct{}
	// Ended: runs ended, or a question was answered.
	Ended <-chan struct{}
}
