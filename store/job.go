package store

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/schedule"
)

// Job is a definition of work and of when it is due: one row of XXL-JOB's
// xxl_job_info. A Job is a plain value: every call copies it in and out, so the
// caller may keep and change what it passed or received.
//
// ID, StopReason, Version, Ensured, GlueUpdated, Shard, Next, Last, WaitRun, Runs, Added and
// Updated are the store's: they have to be empty when a job is added, and are not changed by
// an update, where Version may say which definition it replaces.
type Job struct {
	// ID is given by the store: positive and below 2^31, as the wire protocol
	// needs it.
	ID int64
	// App is the executor app that runs the job. Empty means Config.App.
	// At most 64 bytes.
	App string
	// Key identifies the job within its app, and is unique there. Empty means
	// Name for jobs added through the Scheduler; a job that came over the wire
	// or by import may have none. At most 255 bytes.
	Key string
	// Name is the title people read (XXL-JOB: job_desc). Without a Key it is the identity
	// as well: to EnsureJob, a changed name is then another job, beside the one with the
	// former name. Required, at most 255 bytes.
	Name string
	// Author is the owner's name, for people only. At most 64 bytes.
	Author string
	// AlarmEmail is a comma list of addresses that alarms of the job are sent to, by an
	// alarmer that sends mail (Config.Alarms) and is allowed to write to them
	// (alarm/mail.Config.Allow). At most 255 bytes; of more than 20 addresses, the first 20 are
	// told.
	AlarmEmail string
	// Tags are words by which the job is found: at most 16, each once, of at most 64 bytes.
	Tags []string `json:",omitempty"`

	// Schedule says when the job is due. The zero value is Manual().
	Schedule schedule.Schedule
	// Misfire defaults to MisfireDoNothing.
	Misfire Misfire
	// CatchUp overrides Config.CatchUp for this job. Empty keeps it.
	CatchUp CatchUp
	// CatchUpMost and CatchUpAge are the bounds of CatchUpEveryMissed, and for that alone: how many
	// missed instants are caught up at most, the latest ones, at most 1,000, zero means 100; and how
	// old they may be, from a minute on in whole milliseconds, zero for any age. What is over the
	// bounds goes by Misfire, as one record.
	CatchUpMost int           `json:",omitzero"`
	CatchUpAge  time.Duration `json:",omitzero"`
	// OnNoExecutor says what becomes of instants and runs for which the app has no live executor.
	// Empty goes by who has served the app last, and waits for an executor that ran inside a
	// scheduler: see the type.
	OnNoExecutor OnNoExecutor `json:",omitzero"`
	// NotBefore and NotAfter bound the schedule. Both are inclusive, and kept in UTC to the
	// millisecond; the zero time is no bound. Instants outside of them do not exist for the
	// job: they are neither run nor recorded as missed. A FixedRate begins with the first of
	// its instants from NotBefore on, a FixedDelay at NotBefore or after its first delay,
	// whichever is later. What NotAfter finds under way, or late, it leaves alone.
	NotBefore time.Time `json:",omitzero"`
	NotAfter  time.Time `json:",omitzero"`
	// MaxRuns is how many runs the schedule makes in all, at most 2^31-1; zero is no bound.
	// See Runs for what counts.
	MaxRuns int `json:",omitzero"`

	// Route names the routing strategy: RouteRound and the like, or a key of
	// Config.Routers. Empty means RouteNearest.
	Route string
	// Handler is the name under which executors know the code. Required when
	// GlueType is BEAN. At most 255 bytes.
	Handler string
	// Param is handed to the handler as it is. At most 64 KiB.
	Param string
	// Secret hides Param and the results of the job's runs: the console shows neither, whatever
	// Config.Redact of it says, and ChildParam gives them to jobs of the same App alone that are Secret
	// too, whoever has made the link. Another child runs with its own parameter, and its TriggerMsg says
	// so. What a child is given so is as secret in what it hands on itself. Alarms say that a run has
	// failed, and not with what. Whoever may read the store reads it, and what handlers log is shown. What
	// was handed on before a job got the mark, or is in runs of a job that has lost it, is shown.
	Secret bool `json:",omitzero"`
	// Block names the block strategy: BlockSerial and the like. Empty means
	// BlockSerial.
	Block string
	// MaxPerExecutor is how many runs of a BlockConcurrent job one executor runs side by
	// side, 1 to 10,000; zero means as many as it has places. It has to be zero with any
	// other block strategy.
	MaxPerExecutor int `json:",omitempty"`
	// Timeout ends a run that lasts longer. Whole seconds; zero means none.
	Timeout time.Duration
	// Retries is how often a failed run is tried again (XXL-JOB:
	// executor_fail_retry_count), 0 to 30,000: one that has failed, was timed out, refused or
	// lost, but not one that was killed, covered or discarded, nor an error that is marked
	// with Permanent. Each attempt is a run of its own, of type RETRY. docs/failures.md has
	// the table.
	Retries int
	// RetryBackoff is the pause before each of them. Together the pauses have to be shorter
	// than Config.RunRetention less a day.
	RetryBackoff Backoff `json:",omitzero"`
	// RetryAside lets later runs of a BlockSerial job pass one that waits to be tried again, or
	// was snoozed.
	// Otherwise they wait for it: the job goes through its instants in their order.
	RetryAside bool `json:",omitzero"`
	// OnLost says what follows a lost run. Empty means OnLostFail.
	OnLost OnLost `json:",omitzero"`
	// MaxReruns is how often OnLostRerun runs one trigger again, at most 1,000; zero means 3.
	MaxReruns int `json:",omitzero"`
	// MaxSnoozes is how often one trigger may be snoozed (see Snooze), at most 30,000; zero
	// means 100. A run that is snoozed once more has failed for good.
	MaxSnoozes int `json:",omitzero"`
	// Children are the ids of the jobs that a success triggers (XXL-JOB: child_jobid), each
	// once a trigger: when its last attempt, and every part of a broadcast, has succeeded.
	// ChildKeys are more of them, as "app/key", and need not be there yet. At most 100 of both.
	// A job cannot be its own child, through others neither.
	Children  []int64
	ChildKeys []string `json:",omitempty"`
	// ChildParam says which parameter children are given. Empty means ChildParamOwn.
	ChildParam ChildParam `json:",omitzero"`
	// After are ids of jobs, and AfterKeys jobs as "app/key", behind which this one runs: once
	// for each window in which all of them have succeeded, whatever its own schedule says. A
	// success counts for the window of its Run.BusinessTime. At most 100 of both.
	After     []int64  `json:",omitempty"`
	AfterKeys []string `json:",omitempty"`
	// AfterWindow is how long a window is: a divisor of a day, of a second at least, or whole
	// days, at most 31; zero means a day. See Window. AfterZone is the IANA zone whose clocks
	// it goes by; empty means Config.Location.
	AfterWindow time.Duration `json:",omitzero"`
	AfterZone   string        `json:",omitzero"`
	// AfterTimeout is how long after its first success a window is open; then it is recorded as
	// skipped, with the jobs that are missing. From 1 s to 31 days; zero means a day.
	AfterTimeout time.Duration `json:",omitzero"`
	// LateAfter has an alarm sent for a run that has not ended so long after its trigger was due. From
	// 1 s to 31 days; zero means none.
	LateAfter time.Duration `json:",omitzero"`
	// KeepRuns is how long the job's ended runs are kept where that is shorter than
	// Config.RunRetention, which it never lengthens. It is counted from when a run was planned;
	// they are looked for every quarter of an hour, and what has ended within ten minutes, or is
	// needed (RunDropper), stays for longer. From 1 minute to 100 years; zero means RunRetention.
	KeepRuns time.Duration `json:",omitzero"`

	// GlueType is BEAN, the default, or one of XXL-JOB's script types.
	GlueType string
	// GlueSource is the script's text. At most 16 MiB.
	GlueSource string
	// GlueRemark is a note on this version of the script. At most 128 bytes.
	GlueRemark string
	// GlueUpdated is when GlueSource last changed. The store sets it.
	GlueUpdated time.Time

	// Stopped is true for a job whose schedule is stopped (XXL-JOB: trigger_status 0).
	// Triggers run it all the same. A job without a schedule is not stopped for that, but
	// may be: it is then stopped when it is given one.
	Stopped bool
	// StopReason says why it is stopped: empty after StopJob, "finished" if the schedule
	// has no further instant, "finished: NotAfter" if those that it has come after NotAfter,
	// "finished: MaxRuns" if all of its runs were made, "pruned" if no list of EnsureJobs
	// names the job any more, or the error of a schedule that cannot be evaluated.
	StopReason string

	// Version is raised by each edit, start and stop. In UpdateJob, a version
	// other than zero makes the call a compare-and-set.
	Version int64
	// Ensured is the digest of the definition that EnsureJob wrote last. It is empty for
	// other jobs, and for the library's own use.
	Ensured string

	// Shard is the shard the job lives in. The store sets it.
	Shard int
	// Next is the oldest instant that is not planned yet, in UTC milliseconds;
	// zero when there is none (XXL-JOB: trigger_next_time). It is the scheduler's own
	// mark: instants before it may be planned and not run yet. Scheduler.NextFire says
	// which instant is run next.
	Next time.Time
	// Last is the instant planned last (XXL-JOB: trigger_last_time).
	Last time.Time
	// WaitRun is the run whose end a FixedDelay job waits for, or zero.
	WaitRun int64
	// Runs is how many runs the schedule has made, as MaxRuns counts them: each run that it
	// has planned, whatever becomes of it. So a run that was refused counts, one that stands
	// for several instants once, and a broadcast once for all of its parts; records of
	// skipped instants, triggers and retries do not. A run that an edit or a stop takes back
	// before it has run does not count either, but one that Kill cancels does. Another
	// Schedule begins at zero; a change of MaxRuns alone does not.
	Runs int `json:",omitzero"`
	// Added and Updated are set by the store.
	Added, Updated time.Time
}

// Names of the reasons in Job.StopReason that this module itself gives.
const (
	// StopFinished marks a job whose schedule has no further instant. Where it is a bound of
	// the job that has ended it, the name of that follows: "finished: NotAfter".
	StopFinished = "finished"
	// StopPruned marks a job that is gone from all lists of EnsureJobs.
	StopPruned = "pruned"
)

// What follows xxljob.StopFinished in the StopReason of a job that a bound has ended.
const (
	// ByMaxRuns: the schedule has made MaxRuns runs.
	ByMaxRuns = ": MaxRuns"
	// ByNotAfter: it has made fewer, and its next instant comes after NotAfter.
	ByNotAfter = ": NotAfter"
)

// IsScript reports whether the job is one of XXL-JOB's scripts, of whatever kind, and no handler.
func (j *Job) IsScript() bool { return j.GlueType != "" && j.GlueType != GlueBean }

// Clone returns a copy of j that shares nothing with it. Empty lists become nil.
func (j Job) Clone() Job {
	j.Children, j.After = append([]int64(nil), j.Children...), append([]int64(nil), j.After...)
	j.ChildKeys, j.AfterKeys = append([]string(nil), j.ChildKeys...), append([]string(nil), j.AfterKeys...)
	j.Tags = append([]string(nil), j.Tags...)
	return j
}

// Called is what an error calls a job.
func Called(j Job) string {
	name := j.Name
	if strings.TrimSpace(name) == "" {
		name = j.Key
	}
	if strings.TrimSpace(name) == "" {
		return "job"
	}
	return fmt.Sprintf("job %q", errs.Shorten(name, 40))
}

// InJob is an error that names the job, once.
func InJob(j Job, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "xxljob: "+Called(j)+": ") {
		return err
	}
	return errs.In(Called(j), err)
}

// How a job is run: the values that its strategies may have.

// Misfire says what becomes of instants that are found later than
// Config.MisfireThreshold. The values are XXL-JOB's misfire_strategy.
type Misfire string

const (
	// MisfireDoNothing, the default, records the missed instants as one
	// skipped run and goes on with the next instant.
	MisfireDoNothing Misfire = "DO_NOTHING"
	// MisfireFireOnceNow starts one run of type MISFIRE for all of them.
	MisfireFireOnceNow Misfire = "FIRE_ONCE_NOW"
)

// CatchUp says how many runs make up for instants that are late, but by no
// more than Config.MisfireThreshold, or with CatchUpEveryMissed for all that were missed.
type CatchUp string

const (
	// CatchUpEvery starts one run for each late instant. It is the default.
	CatchUpEvery CatchUp = "EVERY"
	// CatchUpOnce starts one run for all late instants, as XXL-JOB does.
	CatchUpOnce CatchUp = "ONCE"
	// CatchUpEveryMissed starts one run for each missed instant, however late it is, within
	// Job.CatchUpMost and CatchUpAge: for work that is owed for each day or month. It is a value of
	// Job.CatchUp, not of Config.CatchUp. Of a FixedDelay at most one instant is missed, and with
	// Config.Limits.MaxPlanned or more runs that wait already fewer are caught up. A node of a
	// release that does not know it takes it for CatchUpEvery.
	CatchUpEveryMissed CatchUp = "EVERY_MISSED"
)

// MostCatchUp, for Schedulers, returns CatchUpMost, or 100 where that is zero.
func (j *Job) MostCatchUp() int { return cmp.Or(j.CatchUpMost, 100) }

// OnNoExecutor says what becomes of a job for which nobody is there: no node has an executor of its
// app attached, and none is registered. Empty means OnNoExecutorWait for an app that was served last by
// an executor inside a scheduler, or that nobody has served yet where EnsureJob or EnsureJobs has
// written any of its jobs; for any other app it means OnNoExecutorRefuse.
type OnNoExecutor string

const (
	// OnNoExecutorWait plans nothing while nobody is there. When somebody is, the instants that
	// have passed are made up for as after an outage: late by up to Config.MisfireThreshold they
	// are caught up, later ones Job.Misfire decides about, once for all of them. Runs that are
	// planned already wait, for Config.RunRetention less a day at most, and then end as refused.
	OnNoExecutorWait OnNoExecutor = "WAIT"
	// OnNoExecutorRefuse records each run as refused, as XXL-JOB does, once nobody has been there
	// for Config.Cluster.Dead, or for LostAfter where the executor ran inside a scheduler. Until
	// then runs wait, so that a restart over an instant loses nothing.
	OnNoExecutorRefuse OnNoExecutor = "REFUSE"
)

// ChildParam says which parameter the children of a job are given.
type ChildParam string

// The values of ChildParam.
const (
	// ChildParamOwn: each child runs with its own, as in XXL-JOB.
	ChildParamOwn ChildParam = "OWN"
	// ChildParamParent: that of the run which has succeeded.
	ChildParamParent ChildParam = "PARENT"
	// ChildParamResult: the result of that run (Run.HandleMsg), of which a parameter's 64 KiB
	// are passed on.
	ChildParamResult ChildParam = "RESULT"
)

// GlueBean is the glue type of a job whose handler is Go code registered by
// name. The other types are XXL-JOB's script types: they are stored and sent
// to third-party executors; an executor of this module refuses them.
const GlueBean = "BEAN"
