package store

import (
	"strconv"
	"strings"
	"time"
)

// Owed is what the success of a trigger owes to one job: a run as its child, or that it counts
// for a window of a job that runs behind it. It is stored with the success, in the shard of
// the run that has succeeded, and paid by the owner of that shard.
type Owed struct {
	// RunID is the run that has succeeded, TriggerID the first run of its trigger, ParentID
	// their job.
	RunID, TriggerID, ParentID int64
	Shard                      int
	// JobID is whom it is owed to, or App and Key where that is zero.
	JobID    int64
	App, Key string
	// Join says that it is a success for a window of the job, and not a child.
	Join bool
	// Param is what the child is given in place of its own parameter; nil for nothing.
	Param *string
	// Business is Run.BusinessTime of the run, Depth that of the run that comes of it.
	Business time.Time
	Depth    int
	// Trace is Run.Trace of the run, and of what comes of it.
	Trace string
}

// Unpaid says, in a line for the run that has succeeded, that the job is not there.
func (o *Owed) Unpaid() string {
	name := IDRef(o.JobID)
	if o.JobID == 0 {
		name = o.App + "/" + o.Key
	}
	return "nothing is triggered of " + name + ": there is no such job"
}

// Withheld is the line in the TriggerMsg of a child that is not given what it would be.
func (o *Owed) Withheld() string {
	return "it runs with the job's own parameter: what run " + strconv.FormatInt(o.RunID, 10) + " would hand on is secret, or was given to it by a run that is deleted and may have been, and this job is not secret, or is of another app"
}

// OwedQuery asks for what is owed in shards that are each given with the epoch under which
// the caller owns it.
type OwedQuery struct {
	Shards []Shard
	// Limit is how much is paid at most.
	Limit int
}

// Paid is what PayOwed did.
type Paid struct {
	// Owed is how many were paid, and Runs how many runs were planned for them.
	Owed, Runs int
	// Absent are those that were owed to jobs which are not there.
	Absent int
	// Skipped are how many records of skipped runs were made in place of children, and Records
	// these, as they are stored, without the names of their jobs.
	Skipped int
	Records []Run
	// Refused is why the store could not pay some that are owed, of which each alone was refused
	// (ErrRefused), so that it has left these for later; nil where there are none.
	Refused error
	// Unknown are jobs behind others of whose zone this process has no data (Job.Window): what is owed to
	// them is left as it is, for a process that has. Each is said once for each shard in which something is.
	Unknown []UnknownWindow
}

// UnknownWindow is a job behind others whose windows this process cannot work out.
type UnknownWindow struct {
	Shard     int // of what is owed
	JobID     int64
	App, Zone string
	Owed      int // how much of it was seen
}

// AddUnknown, for authors of stores, notes that something which is owed in a shard to such a job was left.
func (p *Paid) AddUnknown(shard int, job *Job) {
	for i := range p.Unknown {
		if u := &p.Unknown[i]; u.Shard == shard && u.JobID == job.ID {
			u.Owed++
			return
		}
	}
	p.Unknown = append(p.Unknown, UnknownWindow{shard, job.ID, job.App, job.AfterZone, 1})
}

// WindowQuery asks for open windows of jobs whose shards are each given with the epoch under
// which the caller owns it.
type WindowQuery struct {
	Shards []Shard
	// Before chooses the windows that are over at or before it.
	Before time.Time
	Limit  int
}

// Expired is what ExpireWindows did.
type Expired struct {
	// Windows is how many were closed, and Records are the records that were made where jobs were
	// missing, as they are stored, without the names of their jobs.
	Windows int
	Records []Run
	// Next is when the earliest of those that are open is over; zero where there is none.
	Next time.Time
	// Refused is as that of Paid, for windows that the store could not close.
	Refused error
}

// WindowOver is the line in the TriggerMsg of the record of a window that has expired.
func WindowOver(begin time.Time, missing []string) string {
	return "the window of " + begin.UTC().Format(time.RFC3339) + " is over, and these have not succeeded for it: " + strings.Join(missing, ", ")
}

// MostDepth is the greatest Run.Depth of a run that runs.
const MostDepth = 32

// OwnKeys begins the keys of triggers that are made by the scheduler itself.
const OwnKeys = "xxljob/"

// ChildKey is the key under which a child of a trigger is planned, WindowKey that of the run
// for a window. They are the same however often it is tried.
func ChildKey(triggerID int64) string { return OwnKeys + "child/" + strconv.FormatInt(triggerID, 10) }

// WindowKey: see ChildKey.
func WindowKey(window time.Time) string {
	return WindowKeys + strconv.FormatInt(window.UnixMilli(), 10)
}

// SplitRef splits "app/key" at the first slash. Ok is false where one of both is empty.
func SplitRef(ref string) (app, key string, ok bool) {
	app, key, ok = strings.Cut(ref, "/")
	return app, key, ok && app != "" && key != ""
}

// IDRef is how a job that is named by its id is written among such references.
func IDRef(id int64) string { return "#" + strconv.FormatInt(id, 10) }
