package store

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// AlarmPolicy says which alarms a store inserts. The zero value is none.
type AlarmPolicy struct {
	// Ends are all but those of the next field.
	Ends bool
	// Attempts are those of runs that others follow, that were killed or discarded.
	Attempts bool
}

// Alarm is a row of the outbox: something that somebody may want to be told of.
type Alarm struct {
	ID    int64
	Shard int
	// App, JobKey, JobName and Email are those of the job when it happened; of a job that had
	// been removed all but App are empty, and JobVersion is 0.
	App, JobKey, JobName, Email string
	JobID, JobVersion           int64
	// Cause is an alarm.Cause.
	Cause string
	// RunID and TriggerID are the run that it happened to, zero for none, and State, Attempt
	// and Instant what is said of it: State as State.String has it.
	RunID, TriggerID int64
	State            string
	Attempt          int
	Instant          time.Time
	// Text says why, as AlarmText makes it.
	Text string
	// At is when it was inserted, by the store's clock.
	At time.Time
	// Told are the rules that have told it, or need not any more.
	Told []string
	// GaveUp says that one of these could not tell it.
	GaveUp bool
}

// MostAlarmText is how long the text of an alarm is at most, in bytes.
const MostAlarmText = 2048

// AlarmText is a text as an alarm has it: at most MostAlarmText bytes of UTF-8, without control
// characters but line feeds.
func AlarmText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, Cut(text, MostAlarmText))
	return strings.TrimSpace(text)
}

// Cut cuts a text to at most n bytes at a rune boundary, and makes it UTF-8.
func Cut(text string, n int) string {
	if len(text) > n {
		end := n
		for end > 0 && n-end < utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return strings.ToValidUTF8(text, " ")
}

// The values of Run.AlarmStatus that alarms end with.
const (
	AlarmNotNeeded = 1
	AlarmSent      = 2
	AlarmFailed    = 3
)

// AlarmMarks is what became of alarms.
type AlarmMarks struct {
	// Told are those that a rule has told, or need not.
	Told []AlarmTold
	// Done are those of which nothing more is to be told, with the status that their runs get.
	Done []AlarmDone
	// Jobs replace what is known of a job and a rule.
	Jobs []JobTold
}

// AlarmTold says that a rule has told of an alarm, or that it gave up trying to.
type AlarmTold struct {
	ID     int64
	Rule   string
	GaveUp bool
}

// AlarmDone says that an alarm is done with.
type AlarmDone struct {
	ID     int64
	Status int
}

// JobTold is what is known of a rule and a job: when it has told of it last.
type JobTold struct {
	JobID int64
	Shard int
	Rule  string
	// At is when the last message was handed over, by the store's clock as the node estimated
	// it.
	At time.Time
	// Open says that the rule wants to tell as well when the job has recovered. RunID and
	// TriggerID are those of the newest alarm that it has told, zero where that had none.
	Open             bool
	RunID, TriggerID int64
	// Recovered is filled in where such rows are read: when the first run ended that has
	// succeeded since, zero for not yet. It is a run of a later trigger, or that very run.
	Recovered time.Time
}

// LateQuery asks for runs that are late, of jobs in shards that are each given with the epoch
// under which the caller owns it.
type LateQuery struct {
	Shards []Shard
	// Now is the time by which they are late.
	Now   time.Time
	Limit int
}

// Late is what AddLate did.
type Late struct {
	// Alarms is how many were inserted.
	Alarms int
	// Least is the least Job.LateAfter of the jobs in the shards; zero for none.
	Least time.Duration
}
