package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/xxljob/xxljob/alarm"
)

// AlarmRule is what a store keeps of a rule of Config.Alarms: what it is about, and nothing of
// whom it tells.
type AlarmRule struct {
	// Key tells the rule from all others: two nodes have the same rule if Name, Apps, Jobs and
	// Causes agree, in whatever order. It is at most 64 bytes of printable ASCII.
	Key string
	// Name is the rule's name, Apps and Jobs, as "app/key", what it is about (empty means all),
	// and Causes what it tells of, each in order and once.
	Name               string
	Apps, Jobs, Causes []string
	// Gone is when no node had kept the rule for a day, the zero time while one has. A store sets
	// it.
	Gone time.Time
}

// NewAlarmRule returns what is kept of a rule whose Causes are filled in.
func NewAlarmRule(r alarm.Rule) AlarmRule {
	causes := make([]string, len(r.Causes))
	for i, cause := range r.Causes {
		causes[i] = string(cause)
	}
	kept := AlarmRule{Name: r.Name, Apps: ordered(r.Apps), Jobs: ordered(r.Jobs), Causes: ordered(causes)}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", kept.Name, kept.Apps, kept.Jobs, kept.Causes))
	kept.Key = r.Name[:min(len(r.Name), 55)] + "-" + hex.EncodeToString(sum[:4])
	return kept
}

func ordered(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// Wants reports whether the rule is to tell of the alarm, whatever was told of it.
func (r *AlarmRule) Wants(a *Alarm) bool {
	return r.Concerns(a.App, a.JobKey) && slices.Contains(r.Causes, a.Cause)
}

// Concerns reports whether the rule is about a job, whatever happens to it.
func (r *AlarmRule) Concerns(app, key string) bool {
	return (len(r.Apps) == 0 || slices.Contains(r.Apps, app)) && (len(r.Jobs) == 0 || slices.Contains(r.Jobs, app+"/"+key))
}

// RuleKeeper is a node that has rules.
type RuleKeeper struct {
	// App and Node are Config.App and Config.Node, Incarnation the node's.
	App, Node, Incarnation string
	Rules                  []AlarmRule
}

// RuleHold says who may tell of what a rule wants.
type RuleHold struct {
	// Held says that it is the one who has asked, from now on for as long as was asked for.
	Held bool
	// Anew says that another one may have told since the asker held the rule last.
	Anew bool
	// Left is for how long another one holds it, where it does.
	Left time.Duration
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
	// Text says why, as AlarmText makes it; SecretText where Cause is failed, lost or attempt, and the
	// job is Secret: it would be what the run has returned.
	Text string
	// At is when it was inserted, by the store's clock.
	At time.Time
	// Told are the keys of the rules that have told it, or need not any more.
	Told []string
	// GaveUp says that one of these could not tell it.
	GaveUp bool
	// Trouble and Address are set where a node passes a trouble on (TroubleNoter), whose Cause is
	// trouble: what kind it is, and the address that it is about. Over says that it is over. JobID,
	// and what is of the job, are those that it is about, JobVersion is 0.
	Trouble TroubleCause
	Address string
	Over    bool
}

// OfAResult, for authors of stores, reports whether the alarm is about how a run has ended (failed,
// lost, attempt), so that its Text may be what that has returned.
func (a *Alarm) OfAResult() bool {
	switch alarm.Cause(a.Cause) {
	case alarm.Failed, alarm.Lost, alarm.Attempt:
		return true
	}
	return false
}

// MostAlarmText is how long the text of an alarm is at most, in bytes.
const MostAlarmText = 2048

// SecretText is the text of an alarm about the end of a run whose job is Secret.
const SecretText = "not said, since the job is secret"

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

// AlarmTold says that a rule, by its key, has told of an alarm, or that it gave up trying to.
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
	// Rule is the key of the rule.
	Rule string
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
	// Refused is why the store could not insert some, of which each alone was refused (ErrRefused),
	// so that it has left these for later; nil where there are none.
	Refused error
}
