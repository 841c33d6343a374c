package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// TroubleCause says what kind of trouble it is. Its text is what logs, metrics and
// ReadyConfig.Troubles have.
type TroubleCause string

const (
	// TroubleLockedRows: somebody's transaction holds rows that the scheduler has to lock, so
	// that due jobs are not planned, or due runs not started. Whoever it is stands in
	// Trouble.Holder, where the store can tell.
	TroubleLockedRows TroubleCause = "locked-rows"
	// TroubleFalseRefusal: what stands in front of an executor has answered a trigger with a
	// status of HTTP that no executor gives, a login or a limit, say, so that the run ended as
	// refused, and the executor has reported a result of it all the same.
	TroubleFalseRefusal TroubleCause = "false-refusal"
	// TroubleSharedAddress: an address stands for several processes, as that of a balancer or of
	// a Service of Kubernetes does, and the executors behind it register it as theirs. A question
	// about a run comes to any of them.
	TroubleSharedAddress TroubleCause = "shared-address"
	// TroubleUnknownZone: a job's schedule has a zone of which this node has no data, as in an
	// image without tzdata. The node leaves the job as it is, neither stopped nor planned.
	TroubleUnknownZone TroubleCause = "unknown-zone"
	// TroubleUnknownSchedule: a job's schedule is of a type that this node does not know, as of a
	// newer release. The node leaves the job as it is, neither stopped nor planned.
	TroubleUnknownSchedule TroubleCause = "unknown-schedule"
	// TroubleNoExecutor: jobs or due runs of an app wait for an executor, since it has none
	// (Job.OnNoExecutor), or due runs have found nobody who could run them, and have ended as
	// refused: the app has no live executor, or, where JobID is set, none that has the job's handler.
	TroubleNoExecutor TroubleCause = "no-executor"
	// TroubleUnknownRouter: a job's routing strategy is one that no live node has in its
	// Config.Routers. Its due runs wait for such a node, each for an hour, and then end as refused.
	TroubleUnknownRouter TroubleCause = "unknown-router"
	// TroubleStuckRuns: due runs of an app have waited for longer than a LeaseTTL for something that
	// is neither a run of their own job nor a place that a running handler holds, and Ready has no
	// reason for it: for answers of executors to earlier triggers, for addresses, for what a former
	// owner of their shard has left, or for their turn. Without an app: due jobs cannot be read, or
	// what was planned far ahead or is owed for a success does not become a run, for as long.
	TroubleStuckRuns TroubleCause = "stuck-runs"
	// TroubleClock: the store's clock was moved within the last hour, or is further ahead than it
	// can be known to be right: nothing is deleted, and nothing expires, by its age. It is over by
	// itself.
	TroubleClock TroubleCause = "clock"
	// TroubleRefused: the store refuses for ever what the scheduler has to write about a job or one
	// of its runs, and even that it cannot be written: a constraint or a trigger on its tables,
	// perhaps. What it is about is left aside and tried again and again, and nothing else waits
	// for it.
	TroubleRefused TroubleCause = "refused"
	// TroubleUntold: alarms of an app were given up within the last hour, since no node has told of
	// them for a day: none has the rule that wants them, or none that has it could.
	TroubleUntold TroubleCause = "untold-alarms"
)

// Trouble is something that keeps runs of a scheduler from being run in time, and that another
// process of the service would do no better: taking this one out of a balancer, or starting it
// anew, mends nothing. Scheduler.Troubles has those of a node. What this process alone cannot do
// is an error of Scheduler.Ready instead.
type Trouble struct {
	Cause TroubleCause
	// App, JobID and Address say what it is about, as far as it is about one.
	App     string
	JobID   int64
	Address string
	// Since is when it began, as far as this node has seen it, by the store's clock.
	Since time.Time
	// Late is how many jobs or runs of this node are late, or were refused, because of it; zero
	// where that is not known.
	Late int
	// Holder is who holds what is waited for, in the store's words: of Postgres the process id,
	// user, program, address and state of the session.
	Holder string
	// Detail says what is seen, and Remedy what to do about it, each in words, in English.
	Detail, Remedy string
	// Seen is what Detail says, as data.
	Seen Seen
}

// String is the trouble in a line, as logs have it, without when it began.
func (t Trouble) String() string {
	var s strings.Builder
	s.WriteString(string(t.Cause))
	for _, about := range []struct {
		what string
		v    any
		set  bool
	}{{"app", t.App, t.App != ""}, {"job", t.JobID, t.JobID != 0}, {"address", t.Address, t.Address != ""}} {
		if about.set {
			fmt.Fprintf(&s, " %s %v", about.what, about.v)
		}
	}
	if t.Detail != "" {
		s.WriteString(": " + t.Detail)
	}
	return s.String()
}

// TroubleCauses returns all causes.
func TroubleCauses() []TroubleCause {
	return []TroubleCause{TroubleLockedRows, TroubleFalseRefusal, TroubleSharedAddress, TroubleUnknownZone, TroubleUnknownSchedule, TroubleNoExecutor, TroubleUnknownRouter, TroubleStuckRuns, TroubleClock, TroubleRefused, TroubleUntold}
}

// TroubleNotes are troubles that a node passes on to rules that other nodes have.
type TroubleNotes struct {
	// Incarnation is that of the node.
	Incarnation string
	// Told are the keys of its own rules: it tells of what they want by itself.
	Told []string
	List []TroubleNote
}

// TroubleNote says that a trouble has begun, or that it is over.
type TroubleNote struct {
	Cause   TroubleCause
	App     string
	JobID   int64
	Address string
	Over    bool
	// Text is what a message says of it, as AlarmText makes it.
	Text string
}

// Key, for authors of stores, tells the trouble from all others, whichever node has seen it: printable
// ASCII of 64 bytes.
func (n *TroubleNote) Key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q", n.Cause, n.App, n.JobID, n.Address))
	return hex.EncodeToString(sum[:])
}

// TroubleNoter is what a Store is as well that passes the troubles of a node on to rules that other
// nodes have. Both stores of this module are.
type TroubleNoter interface {
	// NoteTroubles inserts an alarm with the cause "trouble", without a run, for each trouble that
	// has begun or is over, if a rule that is kept, is not Gone and is not among Told wants it. Its
	// Told are those of the notes, its app is that of the job where the trouble has none.
	//
	// A trouble (TroubleNote.Key) has begun when the first live node notes that, and is over when
	// the last of those that have noted it notes its end: what others note between these inserts
	// nothing. A node is live that has joined and has not left. Where none of those lives that have
	// noted a beginning, it begins anew with the next note.
	//
	// While it lasts it is noted again, now and then, for rules that are kept later: where its alarm
	// is done with, and a rule wants it that is among Told neither of the notes nor of that alarm, is
	// not Gone and has been kept by a live node, another alarm is inserted, which has been told by
	// all of these. Else that alarm has been told by what is Told of the first notes of a node that
	// come once it is done with.
	//
	// It returns, for each note, whether it stands as this node's: of a beginning, that this node is
	// among those that have noted it; of an end, that it was.
	NoteTroubles(ctx context.Context, notes TroubleNotes) (mine []bool, err error)
}
