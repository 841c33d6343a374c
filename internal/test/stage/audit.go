package stage

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// notAgain is what CI looks for in the output of a failure. With it no test is run again in the
// hope that it passes: a run that was lost or doubled once is a fault, however often it is not.
const notAgain = "audited: not run again"

// Audited runs the tests of a package whose failures are of that kind, for its TestMain.
func Audited(m *testing.M) (code int) {
	if code = m.Run(); code != 0 {
		fmt.Println(notAgain)
	}
	return code
}

// Audits is Audited for one test.
func Audits(t testing.TB) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(notAgain)
		}
	})
}

// Audit compares what handlers saw, and what the store recorded as interrupted
// or skipped, with every instant of the jobs in (from, to]. It shares nothing
// with the scheduler but the jobs' ids.
type Audit struct{ Lost, Double, Early, Interrupted, Skipped int }

// AuditSeconds is an audit of jobs that are due every second. A test with one that fails is not
// run again.
func AuditSeconds(t *testing.T, st xxljob.Store, j *Journal, jobs []xxljob.Job, from, to time.Time) Audit {
	t.Helper()
	Audits(t)
	var a Audit
	type instant struct {
		job int64
		at  int64
	}
	seen := map[instant]int{}
	runs := map[int64]int{}
	for _, s := range j.All() {
		if s.At.Before(s.Due) {
			a.Early++
		}
		seen[instant{s.Job, s.Due.Unix()}]++
		runs[s.Run]++
	}
	for id, n := range runs {
		if n > 1 {
			a.Double++
			t.Errorf("run %d was started %d times", id, n)
		}
	}
	var gaps []xxljob.Run
	for _, r := range AllRuns(t, st) {
		switch r.State {
		case xxljob.StateLost:
			a.Interrupted++
			gaps = append(gaps, r)
		case xxljob.StateSkipped:
			a.Skipped++
			gaps = append(gaps, r)
		}
	}
	for _, job := range jobs {
		for at := from.Truncate(time.Second).Add(time.Second); !at.After(to); at = at.Add(time.Second) {
			n := seen[instant{job.ID, at.Unix()}]
			if n > 1 {
				a.Double++
				t.Errorf("job %d at %v was run %d times", job.ID, at, n)
			}
			if n == 0 && !explained(gaps, job.ID, at) {
				a.Lost++
				if a.Lost < 5 {
					t.Errorf("job %d at %v is lost", job.ID, at)
				}
			}
		}
	}
	return a
}

func explained(gaps []xxljob.Run, job int64, at time.Time) bool {
	for _, r := range gaps {
		if r.JobID == job && (r.Scheduled.Equal(at) || r.Count > 0 && !at.Before(r.First) && !at.After(r.Last)) {
			return true
		}
	}
	return false
}
