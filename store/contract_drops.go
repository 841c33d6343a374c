package store

// Ended runs that are deleted before their age would have them dropped. A store need not be
// able to: whoever asks looks whether it is.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// RunDropper is what a Store is as well that deletes ended runs when it is told to. Both
// stores of this module are.
//
// Some runs that have ended stay whatever is asked for, because something still needs them:
//
//   - one of whose trigger a run has not ended: a part of the broadcast, an attempt, what was
//     snoozed;
//   - one that has succeeded, as long as what it owes is not paid, and the last that has
//     succeeded for a window which is open;
//   - one of which an alarm is not done with; of a job that rules wait for to recover, the run
//     that they have told of, and what has succeeded since;
//   - one that its job waits for, or whose instant is still to come;
//   - the run or the record of a window, until the window and AfterTimeout have passed: by it
//     a success that comes late is known to be one too many;
//   - one that is kept apart (RunStore.AddAhead).
//
// With a run its Trigger.Key goes, as it does where it is dropped for its age.
type RunDropper interface {
	// DropEnded deletes runs that have ended and that the question chooses, or counts them.
	// It looks at no more than Limit runs, at fewer where these have very long logs, and says
	// where to go on. A call may be several transactions, and takes pages of a log away before
	// the run goes; what it returns beside an error is done. Errors about the question are
	// those of RunDrop.Validate.
	DropEnded(ctx context.Context, q RunDrop) (Dropped, error)
	// DropExpired deletes runs of jobs with a KeepRuns that were planned longer than that
	// before Now, give or take a moment, and have ended before EndedBefore. It is as bounded
	// as DropEnded. After an error about the runs of one job More is true, and Next is behind
	// that job.
	DropExpired(ctx context.Context, q KeepQuery) (Dropped, error)
}

// The bounds of RunDrop.
const (
	dropped      = 1000
	mostDropped  = 10_000
	mostKeptRuns = 100_000
)

// RunDrop chooses ended runs that are to be deleted. One of Before, KeepNewest and All has to
// be given. Empty lists choose all.
type RunDrop struct {
	// Apps and JobIDs choose runs with one of these, at most 1,000 each; apps and jobs that
	// were removed, too.
	Apps   []string
	JobIDs []int64
	// Before chooses runs that were planned before it, as their IDs say: give or take a
	// moment.
	Before time.Time
	// KeepNewest leaves the newest ended runs of each of the jobs, so many, whatever app they
	// are of: 1 to 100,000. It needs JobIDs, and a call may be about one of them only.
	KeepNewest int
	// All chooses runs of any age. It cannot be given together with Before or KeepNewest.
	All bool
	// EndedBefore leaves out runs that ended at that time or later; the zero time leaves out
	// none. Scheduler.DropRuns moves it back to ten minutes ago where it is later.
	EndedBefore time.Time
	// DryRun counts what would be deleted, and deletes nothing.
	DryRun bool
	// After is where to go on: Next of what the call before has returned.
	After DropMark
	// Limit is how many runs are looked at, at most 10,000; zero means 1,000.
	Limit int
}

// Validate returns what is wrong with the question: a FieldError each, joined.
func (q *RunDrop) Validate() error {
	f := Faults{Of: "runs to be deleted"}
	f.most("Apps", len(q.Apps), mostChoices)
	f.most("JobIDs", len(q.JobIDs), mostChoices)
	for _, app := range q.Apps[:min(len(q.Apps), mostChoices)] {
		f.Text("Apps", app, 1, 64)
	}
	f.moment("Before", q.Before)
	f.moment("EndedBefore", q.EndedBefore)
	switch {
	case q.KeepNewest < 0 || q.KeepNewest > mostKeptRuns:
		f.Add("KeepNewest", q.KeepNewest, fmt.Errorf("want 1 to %d, or 0 for no such bound", mostKeptRuns))
	case q.KeepNewest > 0 && len(q.JobIDs) == 0:
		f.Add("JobIDs", "", coded{"required", errors.New("name the jobs of which KeepNewest is to keep some")})
	}
	bounded := !q.Before.IsZero() || q.KeepNewest != 0
	switch {
	case !bounded && !q.All:
		f.Add("All", false, coded{"required", errors.New("give Before or KeepNewest, or set All to delete runs of any age")})
	case bounded && q.All:
		f.Add("All", true, errors.New("is given together with Before or KeepNewest"))
	}
	if q.Limit < 0 || q.Limit > mostDropped {
		f.Add("Limit", q.Limit, fmt.Errorf("want 0 to %d", mostDropped))
	}
	return f.Err()
}

// Complete, for authors of stores, fills in what zero stands for.
func (q *RunDrop) Complete() { q.Limit = cmp.Or(q.Limit, dropped) }

// most checks how many entries a list has.
func (f *Faults) most(field string, n, most int) {
	if n > most {
		f.Add(field, n, coded{"too-long", fmt.Errorf("has %d entries, at most %d", n, most)})
	}
}

// DropMark is where a walk through ended runs goes on. The zero value is its beginning; any
// other is what the store itself has returned, and means nothing to another one.
type DropMark struct{ JobID, RunID int64 }

// Dropped is what a call of RunDropper has come to.
type Dropped struct {
	// Runs is how many runs were deleted. In a dry run it is how many would have been.
	Runs int
	// Kept is how many of those that were chosen were not, since something still needs them.
	Kept int
	// Examined is how many runs were looked at.
	Examined int
	// More says that there is more to look at, from Next on.
	More bool
	// Next is the After of a call that goes on. It is the zero value where More is false.
	Next DropMark
}

// KeepQuery asks for ended runs to be deleted that their jobs do not keep for any longer.
type KeepQuery struct {
	// Now is what ages of runs are counted to.
	Now time.Time
	// EndedBefore leaves out runs that ended at that time or later.
	EndedBefore time.Time
	// After is where to go on, the zero value for the beginning.
	After DropMark
	// Limit is how many runs are looked at, at most 10,000; zero means 1,000.
	Limit int
}
