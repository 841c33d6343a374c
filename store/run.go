package store

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
)

// State is the truth about a run; XXL-JOB's trigger and handle codes are
// projections of it (see State.Codes).
//
//	planned ─┬─> started ─┬─> dispatched ─┬─> succeeded, snoozed, failed, timed out,
//	         │     │ ^    └───────────────┤   killed, lost, discarded
//	         │     v │ put back           │
//	         │   planned                  └─> refused
//	         ├─> refused      no address
//	         ├─> discarded    a later run covers it
//	         └─> cancelled    stop, removal, change of schedule, kill; also a
//	                          started run that is put back too late for its job
//	skipped                   recorded, never started
type State uint8

// The states of a run, in the order of its life.
const (
	// StatePlanned waits in the store for its time, or for room.
	StatePlanned State = iota
	// StateStarted has an address and a start token; it may be running.
	StateStarted
	// StateDispatched was accepted by a remote executor.
	StateDispatched
	// StateSucceeded ended without an error.
	StateSucceeded
	// StateFailed ended with an error or a panic.
	StateFailed
	// StateTimedOut was ended by Job.Timeout.
	StateTimedOut
	// StateKilled was ended by a kill or a cover-early.
	StateKilled
	// StateLost was interrupted: the process that had taken it is gone, or has shut down.
	StateLost
	// StateRefused found no address, or none that would have it.
	StateRefused
	// StateDiscarded was turned away by the block strategy.
	StateDiscarded
	// StateSkipped is a record of instants that were not run, and why.
	StateSkipped
	// StateCancelled was planned and then taken back.
	StateCancelled
	// StateSnoozed is to come again: its handler had nothing to do yet, see Snooze.
	StateSnoozed
)

var stateNames = [...]string{"planned", "started", "dispatched", "succeeded", "failed", "timed out", "killed", "lost", "refused", "discarded", "skipped", "cancelled", "snoozed"}

// String returns the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Ended reports whether s is final: nothing changes a run that has ended.
func (s State) Ended() bool { return s > StateDispatched }

// CanBecome reports whether a run in state s may change to state next.
func (s State) CanBecome(next State) bool {
	if next > StateSnoozed {
		return false
	}
	switch s {
	case StatePlanned:
		return next == StateStarted || next == StateRefused || next == StateDiscarded || next == StateCancelled
	case StateStarted:
		return next != StateStarted && next != StateSkipped
	case StateDispatched:
		return next.Ended() && next != StateSkipped && next != StateCancelled
	default:
		return false
	}
}

// Codes returns XXL-JOB's trigger_code and handle_code for s.
func (s State) Codes() (trigger, handle int) {
	switch s {
	case StateDispatched:
		return 200, 0
	case StateSucceeded, StateSkipped, StateCancelled, StateSnoozed:
		return 200, 200
	case StateFailed, StateKilled, StateLost:
		return 200, 500
	case StateTimedOut:
		return 200, 502
	case StateRefused, StateDiscarded:
		return 500, 0
	default:
		return 0, 0
	}
}

// TriggerType says what made a run. The first six are XXL-JOB's.
type TriggerType string

// The types of a trigger.
const (
	TriggerManual   TriggerType = "MANUAL"
	TriggerCron     TriggerType = "CRON"
	TriggerRetry    TriggerType = "RETRY"
	TriggerParent   TriggerType = "PARENT"
	TriggerAPI      TriggerType = "API"
	TriggerMisfire  TriggerType = "MISFIRE"
	TriggerFixRate  TriggerType = "FIX_RATE"
	TriggerFixDelay TriggerType = "FIX_DELAY"
	TriggerOnce     TriggerType = "ONCE"
)

// ScheduleBorn reports whether a schedule made the run. Only such runs are
// cancelled by a change of schedule, and only they, and the retries that follow
// them (Run.Born), are cancelled by a stop and need the job not to be stopped when they start.
func (t TriggerType) ScheduleBorn() bool {
	switch t {
	case TriggerCron, TriggerFixRate, TriggerFixDelay, TriggerOnce, TriggerMisfire:
		return true
	}
	return false
}

// Sharding is one part of a broadcast: Index counts from 0 to Total-1. The
// zero value means the run is not part of a broadcast; handlers see it as 0 of
// 1.
type Sharding struct{ Index, Total int }

// String returns "index/total", XXL-JOB's executor_sharding_param.
func (s Sharding) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Total) }

// Run is one trigger of a job: one row of XXL-JOB's xxl_job_log. Its ID is the
// wire's logId. A Run is a plain value and a snapshot: it does not change.
type Run struct {
	// ID is given by the store: positive, below 2^53, growing with time, but for runs that
	// are planned far ahead.
	ID    int64
	JobID int64
	App   string
	// JobName and JobKey are the job's, as they are now. They are filled in where runs are
	// read (Store.Run, Runs and RunsByID, Scheduler.Wait) and told of (Hooks, Events), and
	// are empty for a job that is removed.
	JobName, JobKey string
	// Secret is that of the job as it is now: who shows runs to people shows neither Param nor
	// HandleMsg. It is filled in where runs are read, and is false for a job that is removed.
	Secret bool `json:",omitzero"`
	// Shard is the scheduling shard the job lives in.
	Shard int
	// TriggerID is the first run of the same trigger: of a broadcast, of a
	// chain of retries. ParentID is the run whose success planned this one, or the one that this
	// one repeats (Scheduler.Again).
	TriggerID, ParentID int64
	// Attempt counts from 0. A run that follows a snoozed one has the Attempt of that.
	Attempt int
	Type    TriggerType
	// Depth is how many runs led to this one, each by its success: 0 for what has no parent.
	Depth int
	// Business is set for runs of type PARENT, and for what follows or repeats them: see
	// BusinessTime.
	Business time.Time
	// Scheduled is when the run is due, in UTC milliseconds. Lateness, and the order of runs, go
	// by it.
	Scheduled time.Time
	// StandsFor is the instant that the run stands for, where its trigger was for another one
	// than the present: for a time that was past (Trigger.At), for what another run stands for
	// (Scheduler.Again), or for the window of a job that runs behind others (Job.After), which it
	// begins with. Zero for all other runs: see Instant.
	StandsFor time.Time
	State     State
	// Born is set for runs that a schedule has made, and for the retries that follow them.
	Born bool
	// ParamSet and RetriesSet say that the run's trigger has given a Param and a number of
	// Retries, so that edits of the job change nothing.
	ParamSet, RetriesSet bool
	// LateNoted is set when a result came after the run was lost, or refused elsewhere: TriggerMsg
	// says which. It
	// is said once; further results change nothing.
	LateNoted bool
	// NoRetry is set when the handler said that trying again is of no use.
	NoRetry bool
	// StoppedJob is set in a run as Finish, Kill, Settle, Start and Take of a Store return it
	// which have ended it, where that has stopped its job: nothing of its schedule was left. Of
	// several runs of a job that one call has ended, one has it. It is not stored.
	StoppedJob bool
	// Sharding is the run's part of a broadcast.
	Sharding Sharding

	// Param is the parameter the run was started with; before that, what a
	// trigger gave in place of the job's, where ParamSet.
	Param string
	// Addresses are those a trigger gave in place of the app's.
	Addresses []string
	// Retries is how many further attempts are left, as far as that was known when the run
	// started; -1 until then means the job's own number. Of a run that has ended it is what it was
	// then: see RetriesLeft.
	Retries int
	// Reruns and Snoozes are how many of the trigger's runs before this one were run again
	// because they were lost (OnLostRerun), and were snoozed.
	Reruns, Snoozes int

	// PlanEpoch is the shard's epoch under which the run was planned or
	// loaded; zero when it was inserted without one.
	PlanEpoch int64
	// JobVersion, Handler and Block are what the run was started with.
	JobVersion int64
	Handler    string
	Block      string
	// Address is where it was sent. local://… is an attached executor.
	Address string
	// Trace is the Trigger.Trace that the run was asked for with; what follows the run has the
	// same, and what its success leads to. Empty for what a schedule makes, and where nobody
	// traces (Config.Tracer).
	Trace string
	// Owner is the incarnation of the node that started the run, Token the
	// number of that start: together they fence results of attached executors.
	Owner string
	Token int64
	// BootID is the boot id of the process at a remote address that the run was started
	// for. It is empty for a third-party executor and for one that has not shown any. Only
	// that process can say for certain that it was not sent the run.
	BootID string
	// KillReason is set when somebody asked for the run to be killed.
	KillReason string

	// Created is when the row was inserted, Started when the run was marked
	// started, Taken when an attached executor's node took it, Ended when its
	// final state was stored. Zero: not yet.
	Created, Started, Taken, Ended time.Time

	// TriggerMsg holds plain lines a person can read: how the run was routed
	// and what was answered. HandleMsg is the handler's result or error, or why the run
	// was refused, timed out, killed or lost, as far as that is known: see Err.
	TriggerMsg, HandleMsg string
	// Progress, in percent, and ProgressText are how far the handler has said that it is: see
	// Task.Progress. A run that is planned has none, and one that has ended keeps the last.
	Progress     int
	ProgressText string
	// AlarmStatus is XXL-JOB's: 0 default, -1 locked, 1 none needed, 2 sent, 3 failed.
	AlarmStatus int

	// First, Last and Count describe the instants that a skipped, a MISFIRE or a
	// catch-up run stands for, and a run that repeats it; those of a RETRY are the first run's. Counting stops at
	// 1,000 (CountCap): there may be more, and Last is then, for cron and crontab,
	// the end of the span and no instant.
	First, Last time.Time
	Count       int
	// Reason says why a run was skipped ("misfire", "backlog", "edit", "depth", "join") or
	// cancelled.
	Reason string
}

// Reasons in Run.Reason.
const (
	ReasonMisfire = "misfire"
	ReasonBacklog = "backlog"
	// ReasonEdit: the instants were overdue, by the store's clock, and not planned when
	// the job was stopped or its schedule changed.
	ReasonEdit = "edit"
	// ReasonDepth: more than MostDepth successes led to each other.
	ReasonDepth = "depth"
	// ReasonJoin: a window of Job.After was over before all jobs had succeeded for it;
	// TriggerMsg says which are missing.
	ReasonJoin = "join"
)

// Instant is the instant that the run stands for, in UTC milliseconds: StandsFor where that is
// set, else Scheduled, but for a RETRY, whose first run has it. So all runs of a trigger have the
// same, and so has one that repeats them.
func (r Run) Instant() time.Time {
	if !r.StandsFor.IsZero() {
		return r.StandsFor
	}
	return r.Due()
}

// Due, for authors of stores, is when the trigger of the run was due: Scheduled, but for a RETRY,
// whose first run has it. Start.AfterRetries and reports go by it, whatever the run stands for.
func (r Run) Due() time.Time {
	if r.Type == TriggerRetry && !r.Last.IsZero() {
		return r.Last
	}
	return r.Scheduled
}

// Lateness is how long after its instant the run was started; zero when it has
// not started. The mark in the store may be up to 20 ms ahead of the instant, to
// make up for the round trip; the handler is not called before, so that counts as
// zero too.
func (r Run) Lateness() time.Duration {
	if r.Started.IsZero() {
		return 0
	}
	return max(r.Started.Sub(r.Scheduled), 0)
}

// Err says in one line why the run did not succeed: its id, its state, and the beginning
// of the reason, which stands in full in HandleMsg, Reason or TriggerMsg. It is nil for a
// run that has succeeded or was snoozed, and for one that has not ended.
func (r Run) Err() error {
	if r.State == StateSucceeded || r.State == StateSnoozed || !r.State.Ended() {
		return nil
	}
	text := r.State.String()
	if r.State != StateFailed && r.State != StateTimedOut {
		text = "was " + text
	}
	why, _, _ := strings.Cut(strings.TrimSpace(r.why()), "\n")
	if why = errs.Shorten(strings.TrimSpace(why), maxErr); why != "" {
		text += ": " + why
	}
	return fmt.Errorf("xxljob: run %d %s", r.ID, text)
}

// maxErr is how much of a reason Run.Err says, in bytes.
const maxErr = 500

// why is the reason of a run's end, as far as its row knows one.
func (r Run) why() string {
	switch r.State {
	case StateSkipped:
		least := ""
		if r.Count >= CountCap {
			least = "at least "
		}
		return fmt.Sprintf("%s, instants: %s%d", r.Reason, least, r.Count)
	case StateCancelled:
		return r.Reason
	case StateRefused, StateDiscarded, StateLost:
		return cmp.Or(r.HandleMsg, lastLine(r.TriggerMsg))
	}
	return cmp.Or(r.HandleMsg, r.KillReason)
}

// lastLine is the line in which a TriggerMsg says why the run has ended: the last, but for
// the note of a result that came later.
func lastLine(msg string) (last string) {
	for line := range strings.Lines(msg) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "a result came after") {
			last = line
		}
	}
	return last
}

// CountCap is where the counting of missed instants stops: a Run whose Count is
// CountCap stands for that many at least.
const CountCap = 1000
