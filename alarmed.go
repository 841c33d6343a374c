package xxljob

// Which alarm the end of a run is. It is pure.

import (
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Alarm, for authors of stores, says which alarm a run is that has ended, or with late one that
// has not and is late; ok is false for none. Followed says that another run follows it. What
// is the store's and the job's is not filled in: ID, JobVersion, JobKey, JobName, Email, At.
func (r Run) Alarm(followed, late bool) (a store.Alarm, ok bool) {
	cause := r.alarmCause(followed)
	if late && !r.State.Ended() {
		cause = alarm.Late
	}
	if cause == "" {
		return a, false
	}
	return store.Alarm{
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
		return "it has started at " + inWords(r.Started) + " and has not ended"
	}
	text := r.why()
	if r.State == StateSkipped && r.TriggerMsg != "" {
		text = r.TriggerMsg
	}
	return store.AlarmText(text)
}
