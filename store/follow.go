package store

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/errs"
)

// What follows the end of a run. It is pure: stores ask in the transaction that ends the run,
// and insert what it says there, so that no death can come between. Input: a run that has
// ended, its job, the time. Output: the run that follows it, if one does.

// Follow, for authors of stores, says what follows a run that has ended, as it then is. The job
// is as it is now, nil where it is removed. After is how long after the end its handler wants
// the next attempt (Result.After), zero for nothing said. First is when the first run of the
// trigger was inserted or, where it was kept apart before (Store.AddAhead), was to move.
// Retention is how long runs are kept, zero for 30 days: nothing is planned for later than
// PlannedFor of it behind First.
//
// Next is the planned run that follows, without what a store gives it (ID, Created); its JobID
// is zero where none does. Note, where there is one, is a line for the TriggerMsg of the run
// that has ended: why nothing follows although it was to.
func (r Run) Follow(job *Job, after time.Duration, first time.Time, retention time.Duration) (next Run, note string) {
	d := follower{run: &r, job: job, after: after}
	next, note = d.next()
	if next.JobID == 0 {
		return Run{}, note
	}
	last := first.Add(PlannedFor(cmp.Or(retention, 30*24*time.Hour))).Truncate(time.Millisecond)
	if !r.Ended.Before(last) {
		return Run{}, fmt.Sprintf(nothingFollows+"the first run of the trigger is of %s, and runs are kept for too short a time for another one", errs.InWords(first))
	}
	if next.Scheduled.After(last) {
		next.Scheduled = last
	}
	return next, ""
}

// RetriesLeft, for authors of stores, is what Retries of a run becomes with its end: how many further
// attempts were left to it by the number that the job has then, 0 where no other run follows it though
// its end is one that is tried again. What a trigger has given stays as it is, and so does that of all
// other ends. The run and the job are as Follow is given them. So the row alone says whether it is the
// end of its trigger: see FailedForGood.
func (r Run) RetriesLeft(job *Job, followed bool) int {
	d := follower{run: &r, job: job}
	switch again := d.again(); {
	case r.RetriesSet, again != retryAgain && again != rerunAgain, followed && again == rerunAgain:
		return r.Retries
	case !followed:
		return 0
	}
	return max(d.left(), 0)
}

// nothingFollows begins the notes that say why.
const nothingFollows = "nothing follows: "

// FailedForGood reports whether a run is the end of its trigger, or of its part of a broadcast, in
// failure: it has failed, timed out, was refused or lost, and no other attempt follows; or it was to make
// up for such a run, and was discarded or killed without anybody's wish, as by a later run that covers it.
// Where somebody asked for the end it is no failure. Of a lost run that is run again beside its retries
// (OnLostRerun) it may say so, until that one has ended.
func (r *Run) FailedForGood() bool {
	switch r.State {
	case StateFailed, StateTimedOut, StateRefused, StateLost:
		return r.KillReason == "" && (r.NoRetry || r.Retries <= 0 || strings.Contains(r.TriggerMsg, nothingFollows))
	}
	return r.givesUp()
}

// givesUp reports whether it is a further attempt that has not come to its end, and that nothing follows.
// One behind a snooze alone has the Attempt 0: nothing has failed before it.
func (r *Run) givesUp() bool {
	return (r.State == StateDiscarded || r.State == StateKilled) && r.Type == TriggerRetry && r.Attempt > 0 && r.KillReason == ""
}

// follower decides about one run.
type follower struct {
	run   *Run
	job   *Job
	after time.Duration
}

func (d *follower) next() (next Run, note string) {
	r := d.run
	again := d.again()
	switch {
	case again == noAgain, again == retryAgain && d.left() <= 0:
		return Run{}, ""
	case d.job == nil:
		return Run{}, nothingFollows + "the job is removed"
	case r.Born && d.job.Stopped:
		return Run{}, nothingFollows + "the job is stopped"
	case r.KillReason != "":
		return Run{}, nothingFollows + "somebody wanted the run to be killed"
	case again == rerunAgain && r.Reruns >= d.job.reruns():
		return Run{}, fmt.Sprintf(nothingFollows+"run again %d times, which is the most", r.Reruns)
	}
	next = d.successor()
	pause := d.after
	switch again {
	case snoozeAgain:
		next.Snoozes++
		pause = max(d.after, time.Millisecond)
	case rerunAgain:
		next.Attempt, next.Reruns = r.Attempt+1, r.Reruns+1
		pause = d.pause(r.Reruns)
	case retryAgain:
		next.Attempt = r.Attempt + 1
		if r.RetriesSet {
			next.Retries = d.left() - 1
		}
		pause = d.pause(r.Attempt - r.Reruns)
	}
	next.Scheduled = r.Ended.Add(pause).Truncate(time.Millisecond)
	return next, ""
}

// again is why a run comes again.
type again int

const (
	noAgain again = iota
	retryAgain
	rerunAgain
	snoozeAgain
)

func (d *follower) again() again {
	switch r := d.run; {
	case r.NoRetry:
	case r.State == StateSnoozed:
		return snoozeAgain
	case r.State == StateLost && d.job != nil && d.job.OnLost == OnLostRerun:
		return rerunAgain
	case r.State == StateFailed, r.State == StateTimedOut, r.State == StateRefused, r.State == StateLost:
		return retryAgain
	}
	return noAgain
}

// left is how many retries are left. What the trigger has given wins over the job; otherwise
// the job's number counts as it is now. Of a job that is removed it is what it was.
func (d *follower) left() int {
	if d.run.RetriesSet || d.job == nil {
		return d.run.Retries
	}
	return d.job.Retries - (d.run.Attempt - d.run.Reruns)
}

// pause is how long after the end the next attempt is due, behind so many earlier ones.
func (d *follower) pause(before int) time.Duration {
	if d.after > 0 {
		return d.after
	}
	return d.job.RetryBackoff.pause(before, d.run.ID)
}

// successor is the next run as far as it is the same for all.
func (d *follower) successor() Run {
	r := d.run
	next := Run{
		JobID: r.JobID, App: r.App, Shard: r.Shard, TriggerID: r.TriggerID, ParentID: r.ParentID,
		Depth: r.Depth, Business: r.Business, StandsFor: r.StandsFor, Attempt: r.Attempt, Type: TriggerRetry, Born: r.Born, State: StatePlanned, Sharding: r.Sharding,
		ParamSet: r.ParamSet, Addresses: r.Addresses,
		Retries: -1, RetriesSet: r.RetriesSet, Reruns: r.Reruns, Snoozes: r.Snoozes, Trace: r.Trace,
		First: r.First, Last: r.Last, Count: r.Count,
	}
	if r.ParamSet {
		next.Param = r.Param
	}
	if r.RetriesSet {
		next.Retries = r.Retries
	}
	if next.Last.IsZero() {
		next.First, next.Last = r.Scheduled, r.Scheduled
	}
	return next
}

// SnoozedTooOften reports whether a run of the job that is snoozed has failed instead: it was
// snoozed Job.MaxSnoozes times before. Without a job it was not.
func (r Run) SnoozedTooOften(job *Job) bool { return job != nil && r.Snoozes >= job.snoozes() }

// What the success of a trigger owes to other jobs. It is pure. Input: the run with which the
// trigger has succeeded, its job, the jobs that run behind that. Output: what is owed.

// Owes, for authors of stores, says what a run owes with whose end its trigger has succeeded:
// the last attempt, and every part of a broadcast. The job is as it is now, nil where it is
// removed; joins are the IDs of the jobs that have it in After or AfterKeys, by its ID or by
// its App and Key.
func (r Run) Owes(job *Job, joins []int64) (owed []Owed) {
	if r.State != StateSucceeded || job == nil {
		return nil
	}
	one := Owed{
		RunID: r.ID, TriggerID: r.TriggerID, ParentID: r.JobID, Shard: r.Shard,
		Business: r.BusinessTime(), Depth: r.Depth + 1, Trace: r.Trace,
	}
	child := one
	child.Param = r.childParam(job)
	for _, id := range job.Children {
		child.JobID = id
		owed = append(owed, child)
	}
	child.JobID = 0
	for _, ref := range job.ChildKeys {
		child.App, child.Key, _ = SplitRef(ref)
		owed = append(owed, child)
	}
	one.Join = true
	for _, id := range joins {
		one.JobID = id
		owed = append(owed, one)
	}
	return owed
}

// childParam is the parameter that children of the run are given; nil for their own.
func (r *Run) childParam(job *Job) *string {
	switch job.ChildParam {
	case ChildParamParent:
		return new(r.Param)
	case ChildParamResult:
		return new(Cut(r.HandleMsg, maxParam))
	}
	return nil
}

// Which alarm the end of a run is. It is pure.

// Alarm, for authors of stores, says which alarm a run is that has ended, or with late one that
// has not and is late; ok is false for none. Followed says that another run follows it. What
// is the store's and the job's is not filled in: ID, JobVersion, JobKey, JobName, Email, At.
func (r Run) Alarm(followed, late bool) (a Alarm, ok bool) {
	cause := r.alarmCause(followed)
	if late && !r.State.Ended() {
		cause = alarm.Late
	}
	if cause == "" {
		return a, false
	}
	return Alarm{
		Shard: r.Shard, App: r.App, JobID: r.JobID, Cause: string(cause), RunID: r.ID, TriggerID: r.TriggerID,
		State: r.State.String(), Attempt: r.Attempt, Instant: r.Instant(), Text: r.alarmText(),
	}, true
}

// alarmCause is the table of docs/failures.md.
func (r *Run) alarmCause(followed bool) alarm.Cause {
	switch r.State {
	case StateSkipped:
		return alarm.Skipped
	case StateKilled, StateDiscarded:
		if !followed && r.givesUp() {
			return alarm.Failed
		}
		return alarm.Attempt
	case StateFailed, StateTimedOut, StateRefused, StateLost:
		switch {
		case followed, r.KillReason != "":
			return alarm.Attempt
		case r.State == StateLost:
			return alarm.Lost
		}
		return alarm.Failed
	}
	return ""
}

// alarmText is why the run has ended so, or that it has not.
func (r *Run) alarmText() string {
	if !r.State.Ended() {
		if r.Started.IsZero() {
			return "it has not started"
		}
		return "it has started at " + errs.InWords(r.Started) + " and has not ended"
	}
	text := r.why()
	if r.State == StateSkipped && r.TriggerMsg != "" {
		text = r.TriggerMsg
	}
	return AlarmText(text)
}
