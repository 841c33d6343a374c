package console

// What is wrong with a job, as its newest runs tell.

import (
	"time"

	"github.com/xxljob/xxljob"
)

// lateFrom is how long a run has waited that is said to be late.
const lateFrom = 5 * time.Second

// jobHealth is how many runs in a row have ended badly, and how many are late.
type jobHealth struct {
	Failed    int
	More      bool      // than are looked at
	Since     time.Time // when the first of them was due
	Last      int64     // the newest of them
	Cause     string    // why that one did
	Late      int
	LateSince time.Time // when the first of these was due
	LateFirst int64     // that one
}

// jobHealthOf is what runs of a job, the newest first, tell, but for the Cause.
func jobHealthOf(runs []xxljob.Run, now time.Time) (a jobHealth) {
	counts := true // no run before this one has succeeded
	for i := range runs {
		switch r := &runs[i]; {
		case r.State == xxljob.StatePlanned && now.Sub(r.Scheduled) > lateFrom:
			if a.Late++; a.LateFirst == 0 || r.Scheduled.Before(a.LateSince) {
				a.LateFirst, a.LateSince = r.ID, r.Scheduled
			}
		case isBad(r.State) && counts:
			if a.Failed++; a.Last == 0 {
				a.Last = r.ID
			}
			a.Since = r.Scheduled
		case r.State == xxljob.StateSucceeded:
			counts = false
		}
	}
	a.More = counts && a.Failed > 0 && len(runs) >= mostPlanned
	return a
}
