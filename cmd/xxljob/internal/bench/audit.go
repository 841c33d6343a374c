package bench

import (
	"context"
	"math"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// Audit is what became of all that was to run: each instant of each job, from the first to the
// last, or each run that was planned.
type Audit struct {
	// Expected is how many there are, and Once how many of them have run as they are to: one
	// run is recorded as succeeded, and its handler was called once.
	Expected int `json:"expected"`
	Once     int `json:"once"`
	// Lost is how many have no run that has succeeded, or none whose handler was called.
	Lost int `json:"lost"`
	// Double is how many successes and calls there are beyond one each, and Stray how many
	// there are of what was not to run at all.
	Double int `json:"double"`
	Stray  int `json:"stray"`
	// Early is how many handlers were called before their time.
	Early int `json:"early"`
	// Unended, Failed and Skipped say why some are lost: runs that had not ended when patience
	// had, that have ended otherwise, and instants that are recorded as skipped.
	Unended int `json:"unended"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// Clean reports whether each has run once, and none before its time.
func (a Audit) Clean() bool {
	return a.Once == a.Expected && a.Lost+a.Double+a.Stray+a.Early+a.Unended+a.Failed+a.Skipped == 0
}

// auditor compares what was to run with the calls and with what the store has.
type auditor struct {
	units units
	ended []uint8 // of each unit, how many runs have succeeded
	calls []uint8 // and how many calls there were
	audit Audit
}

func newAuditor(u units) *auditor {
	return &auditor{units: u, ended: make([]uint8, u.count()), calls: make([]uint8, u.count())}
}

func more(n *uint8) {
	if *n < math.MaxUint8 {
		*n++
	}
}

// called takes a call of a handler; base is what its instant is counted from.
func (a *auditor) called(base time.Time, c call) {
	if c.Late < 0 {
		a.audit.Early++
	}
	n, ok := a.units.of(int64(c.Job), c.Run, base.Add(time.Duration(c.At)*time.Millisecond))
	if !ok {
		a.audit.Stray++
		return
	}
	more(&a.calls[n])
}

// ran takes a run of the store.
func (a *auditor) ran(r *xxljob.Run) {
	n, ok := a.units.of(r.JobID, r.ID, r.Scheduled)
	switch {
	case r.State == xxljob.StateSkipped:
		a.audit.Skipped += max(r.Count, 1)
	case !ok:
		a.audit.Stray++
	case r.State == xxljob.StateSucceeded:
		more(&a.ended[n])
	case r.State == xxljob.StatePlanned || r.State == xxljob.StateStarted || r.State == xxljob.StateDispatched:
		a.audit.Unended++
	default:
		a.audit.Failed++
	}
}

// verdict is the audit of all that was taken.
func (a *auditor) verdict() Audit {
	out := a.audit
	out.Expected = len(a.ended)
	for i, ended := range a.ended {
		switch most := max(ended, a.calls[i]); {
		case min(ended, a.calls[i]) == 0:
			out.Lost++
		case most > 1:
			out.Double += int(most) - 1
		default:
			out.Once++
		}
	}
	return out
}

// pageSize is how many runs are read at once.
const pageSize = 10_000

// eachRun reads all runs of the app that is due, the newest first. What is passed is valid
// until f returns.
func eachRun(ctx context.Context, st store.RunStore, f func(*xxljob.Run)) error {
	for before := int64(0); ; {
		page, err := st.Runs(ctx, xxljob.RunFilter{App: appDue, Before: before, Limit: pageSize})
		if err != nil {
			return err
		}
		for i := range page {
			f(&page[i])
		}
		if len(page) < pageSize {
			return nil
		}
		before = page[len(page)-1].ID
	}
}
