package xxljob_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
)

// TestAddedJobIsNotEnsured: Job.Ensured is the library's, "empty for jobs made
// otherwise" than by EnsureJob, and EnsureJobs stops only jobs that it once made.
// AddJob keeps the digest of a job that was read, changed and added under another
// key, and Prune then stops that job.
func TestAddedJobIsNotEnsured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		e, err := s.EnsureJob(t.Context(), xxljob.Job{Name: "model", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)})
		noErr(t, err)
		copied := e.Job
		copied.Key, copied.Name = "copy", "copy"
		added, err := s.AddJob(t.Context(), copied)
		noErr(t, err)
		if added.Ensured != "" {
			t.Errorf("AddJob stores Ensured %q", added.Ensured)
		}
		all, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{{Name: "model", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}}, xxljob.Prune)
		noErr(t, err)
		for _, e := range all {
			if e.Job.ID == added.ID {
				t.Errorf("the added job was %s", e.Outcome)
			}
		}
		noErr(t, s.Stop(t.Context()))
	})
}
