package xxljob

// What follows the end of a run. It is pure: stores ask in the transaction that ends the run,
// and insert what it says there, so that no death can come between. Input: a run that has
// ended, its job, the time. Output: the run that follows it, if one does.

import (
	"cmp"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Follow, for authors of stores, says what follows a run that has ended, as it then is. The job
// is as it is now, nil where it is removed. After is how long after the end its handler wants
// the next attempt (Result.After), zero for nothing said. First is when the first run of the
// trigger was inserted or, where it was kept apart before (Store.AddAhead), was to move.
// Retention is how long runs are kept, zero for 30 days: nothing is planned for later than
// store.PlannedFor of it behind First.
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
	last := first.Add(store.PlannedFor(cmp.Or(retention, 30*24*time.Hour))).Truncate(time.Millisecond)
	if !r.Ended.Before(last) {
		return Run{}, fmt.Sprintf("nothing follows: the first run of the trigger is of %s, and runs are kept for too short a time for another one", inWords(first))
	}
	if next.Scheduled.After(last) {
		next.Scheduled = last
	}
	return next, ""
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
		return Run{}, "nothing follows: the job is removed"
	case r.Born && d.job.Stopped:
		return Run{}, "nothing follows: the job is stopped"
	case r.KillReason != "":
		return Run{}, "nothing follows: somebody wanted the run to be killed"
	case again == rerunAgain && r.Reruns >= d.job.reruns():
		return Run{}, fmt.Sprintf("nothing follows: run again %d times, which is the most", r.Reruns)
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
		Depth: r.Depth, Business: r.Business, Attempt: r.Attempt, Type: TriggerRetry, Born: r.Born, State: StatePlanned, Sharding: r.Sharding,
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
