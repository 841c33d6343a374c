package xxljob

import "github.com/xxljob/xxljob/store"

// Run is one trigger of a job, and what has become of it: one row of XXL-JOB's xxl_job_log,
// whose ID is the wire's logId. What one needs first are JobID and JobName, State, Scheduled,
// Started and Ended, Address, HandleMsg for what the handler has said, and TriggerMsg for how it
// was routed. It is a snapshot that does not change. For all its fields see [store.Run].
type Run = store.Run

// State is the truth about a run; XXL-JOB's trigger and handle codes are projections of it. A
// run is planned, then started, dispatched where its executor is elsewhere, and then ended:
// Final reports that. See [store.State] for who may change which into which.
type State = store.State

// The states of a run.
const (
	// StatePlanned: it is to be started when it is due.
	StatePlanned State = store.StatePlanned
	// StateStarted: it is under way in a node, or about to be sent to an executor elsewhere.
	StateStarted State = store.StateStarted
	// StateDispatched: an executor elsewhere has accepted it.
	StateDispatched State = store.StateDispatched
	// StateSucceeded: its handler returned no error.
	StateSucceeded State = store.StateSucceeded
	// StateFailed: its handler returned an error, or panicked.
	StateFailed State = store.StateFailed
	// StateTimedOut: it took longer than Job.Timeout.
	StateTimedOut State = store.StateTimedOut
	// StateKilled: somebody has killed it, or a later run took its place.
	StateKilled State = store.StateKilled
	// StateLost: the process that ran it has gone, or nobody has reported it in time.
	StateLost State = store.StateLost
	// StateRefused: no executor was there, or none has taken it.
	StateRefused State = store.StateRefused
	// StateDiscarded: another run of its job was under way (BlockDiscardLater).
	StateDiscarded State = store.StateDiscarded
	// StateSkipped: it is a record of instants that were not run; Reason says why.
	StateSkipped State = store.StateSkipped
	// StateCancelled: it was planned, and its job was stopped, changed or removed.
	StateCancelled State = store.StateCancelled
	// StateSnoozed: its handler asked to be called again later.
	StateSnoozed State = store.StateSnoozed
)

// TriggerType says what made a run. The first six are XXL-JOB's. See [store.TriggerType].
type TriggerType = store.TriggerType

// What made a run.
const (
	TriggerManual   TriggerType = store.TriggerManual
	TriggerCron     TriggerType = store.TriggerCron
	TriggerRetry    TriggerType = store.TriggerRetry
	TriggerParent   TriggerType = store.TriggerParent
	TriggerAPI      TriggerType = store.TriggerAPI
	TriggerMisfire  TriggerType = store.TriggerMisfire
	TriggerFixRate  TriggerType = store.TriggerFixRate
	TriggerFixDelay TriggerType = store.TriggerFixDelay
	TriggerOnce     TriggerType = store.TriggerOnce
)

// Reasons in Run.Reason.
const (
	ReasonMisfire = store.ReasonMisfire
	ReasonBacklog = store.ReasonBacklog
	// ReasonEdit: the instants were overdue, by the store's clock, and not planned when
	// the job was stopped or its schedule changed.
	ReasonEdit = store.ReasonEdit
	// ReasonDepth: more than store.MostDepth successes led to each other.
	ReasonDepth = store.ReasonDepth
	// ReasonJoin: a window of Job.After was over before all jobs had succeeded for it;
	// TriggerMsg says which are missing.
	ReasonJoin = store.ReasonJoin
)

// Sharding is one part of a broadcast: Index counts from 0 to Total-1. The zero value means
// that the run is no part of one; handlers see it as 0 of 1. See [store.Sharding].
type Sharding = store.Sharding

// Trigger asks for one run of a job outside its schedule. The zero value runs it now, as it is
// defined; Param or JSON give it another parameter, At a time, Key makes it one of its kind, and
// Addresses say where. See [store.Trigger].
type Trigger = store.Trigger
