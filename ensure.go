package xxljob

import "github.com/xxljob/xxljob/internal/engine/catalog"

// What Scheduler.EnsureJobs takes and returns.

// Outcome is what EnsureJob did.
type Outcome string

// The outcomes of EnsureJob and EnsureJobs.
const (
	Created   Outcome = "created"
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	// Superseded: another list applies, of a greater generation or a later one of the
	// same, and this one has not changed the job.
	Superseded Outcome = "superseded"
)

// Ensured is a job after EnsureJob, and what was done to it. Of a superseded job it is
// the one that is stored, and where there is none the one that was given.
type Ensured struct {
	Job     Job
	Outcome Outcome
}

// EnsureOptions says what a list of EnsureJobs means. The zero value is complete.
type EnsureOptions struct {
	// Prune stops jobs that lists of the app have named and that are gone from them. It is
	// not done at once: see EnsureJobs.
	Prune bool
	// Generation orders the lists of different releases of a program: a build number, for
	// example, or the time of the commit in seconds. Zero or greater. Lists of one
	// generation should be equal; where they are not, the one that came to the store last
	// applies, and a warning names the nodes.
	Generation int64
	// Rollback makes the list apply at once, whatever generation applies by then. A later
	// call of that generation, as by a replica of the release that starts once more,
	// applies its list again: take those replicas away before.
	Rollback bool
	// ApplyStopped makes Stopped part of what the list says: each time it is applied, jobs
	// that it has as stopped are stopped, and those that it has not are started if somebody
	// had stopped them. Without it Stopped counts for new jobs only. A job that has stopped
	// by itself is left alone.
	ApplyStopped bool
}

func ensured(e catalog.Ensured) Ensured { return Ensured{Job: e.Job, Outcome: Outcome(e.Outcome)} }
