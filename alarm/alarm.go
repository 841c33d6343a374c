// Package alarm has the words between a scheduler and those who tell people that something is
// wrong: what an alarm says, whom a rule tells of it, and how it reads in three languages.
// Ready alarmers are in the packages below: mail, webhook and log. An alarmer of your own is
// one method, for which Format makes texts, and Clean, Line and Block make safe to show what
// others wrote.
//
// A scheduler takes rules in xxljob.Config.Alarms. What happened is a row in its store,
// written in the transaction that made it happen, and the scheduler delivers it at least once:
// an alarmer that returns an error is called again.
package alarm

import (
	"context"
	"time"
)

// Alarmer tells somebody of something. Alarm returns nil once the message has been handed
// over, and an error where it has to be tried again: with pauses that grow from a second to
// ten minutes, for a day after the event. The context ends after Rule.Timeout. It is called
// by several goroutines, and for one job by one at a time, unless a call ignores the end of its
// context: that is given up a second later, and keeps its place among the eight of its rule.
//
// A message may come more than once, where a process died between handing it over and noting
// that. Message.ID is then the same unless more has happened to the job meanwhile.
type Alarmer interface {
	Alarm(ctx context.Context, m Message) error
}

// Cause is why somebody is told.
type Cause string

// The causes of alarms.
const (
	// Failed: the last attempt of a trigger has failed, was timed out or refused; or it was to make
	// up for a failure, and was discarded or covered.
	Failed Cause = "failed"
	// Lost: the last attempt of a trigger was lost with its process.
	Lost Cause = "lost"
	// Attempt: a run has not succeeded, and this is no alarm by the two rules above: another
	// attempt follows, or it was killed, or discarded as a first attempt. XXL-JOB sends an alarm for each of
	// these; here a rule has to ask for them.
	Attempt Cause = "attempt"
	// Skipped: instants were recorded as not run.
	Skipped Cause = "skipped"
	// Stopped: a job has stopped by itself, because its schedule cannot be evaluated.
	Stopped Cause = "stopped"
	// Late: a run has not ended xxljob.Job.LateAfter behind its instant, or not even started.
	Late Cause = "late"
	// Recovered: a run of the job has succeeded after an alarm. A rule has to ask for it.
	Recovered Cause = "recovered"
	// Trouble: something has kept runs from being run in time for a minute, and a restart would not
	// mend it: see xxljob.Trouble. Each node tells of those that it has, once as they begin, and
	// with TroubleOver once they have been over for a minute; those of one app and kind together. To
	// rules that only other nodes have it passes them on by the store, and one of these tells.
	// A rule with Jobs tells of those about these jobs, one with Apps of those about these apps.
	Trouble Cause = "trouble"
	// TroubleOver comes to rules that tell of Trouble, after it: they do not name it.
	TroubleOver Cause = "trouble-over"
)

// Rule says which alarms an alarmer is told of. The zero value of each field but Name and To
// is complete.
type Rule struct {
	// Name says in the store and in the log which rule it is: 1 to 64 bytes of printable
	// characters without spaces, unique in a configuration. Two nodes have the same rule, of
	// which one of them tells, if Name, Apps, Jobs and Causes agree. A rule of which one of these
	// changes is another one, and tells once more of what has not been told by all rules. The
	// store keeps these four until a day after the last node that had the rule, so that an alarm
	// waits for it whatever node has ended the run.
	Name string
	// To is whom it tells.
	To Alarmer
	// Apps are the apps whose jobs it is about. Empty means all.
	Apps []string
	// Jobs are the jobs that it is about, each as "app/key". Empty means all those of Apps.
	Jobs []string
	// Causes are what it tells of. Empty means Failed, Lost, Skipped, Stopped, Late and Trouble.
	Causes []Cause
	// Window is how long after a message about a job the next one about that job is held
	// back. It then says how often something has happened. 0 means five minutes, -1 that
	// each event is a message of its own; else 1 s to 24 h.
	Window time.Duration
	// Timeout bounds one call of To. 0 means 30 s; at most 10 min.
	Timeout time.Duration
}

// Message is what an alarmer is told: what has happened to one job since it was told last, or to
// the troubles of one kind.
type Message struct {
	// ID names the message by its newest event and the rule. It is at most 100 bytes of
	// printable ASCII. Of the messages of one store no two have the same, but for those that
	// come more than once. A store in memory is another one in each process and after each
	// start, and counts from the beginning: its IDs come again for other messages, and so may
	// the last ones of a database that was put back to a backup, or fell back to a standby that
	// was behind. Who remembers IDs for longer remembers App, JobKey and Last with them.
	ID string
	// Cause is that of the newest event.
	Cause Cause
	// Trouble is the kind of trouble that a message of cause Trouble or TroubleOver is about, as in
	// xxljob.TroubleCause; empty for the others.
	Trouble string
	// App, JobID, JobKey and JobName are those of the job when the newest event happened. Those
	// that a trouble is not about are empty: it may be about an app, or about all of them.
	App, JobKey, JobName string
	JobID                int64
	// Emails are the addresses in xxljob.Job.AlarmEmail, at most 20 of them.
	Emails []string
	// Count is how many events the message stands for, First and Last when they happened, by
	// the store's clock.
	Count       int
	First, Last time.Time
	// Events are the newest of them, newest first, at most ten.
	Events []Event
	// Node is the name of the node that sends the message.
	Node string
}

// Event is one thing that has happened.
type Event struct {
	Cause Cause
	// At is when it happened, by the store's clock.
	At time.Time
	// RunID is the run that it happened to, State that run's state in XXL-JOB's words
	// ("failed", "timed out", …) and Attempt which attempt it was, from 0; zero where the
	// event is about no run.
	RunID   int64
	State   string
	Attempt int
	// Instant is the instant that the run stands for.
	Instant time.Time
	// Text says why, as the run's result or the store's record does: UTF-8 of at most 2 KiB
	// without control characters but line feeds.
	Text string
}
