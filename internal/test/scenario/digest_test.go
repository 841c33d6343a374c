package scenario_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestDigestsStay: what EnsureJob remembers of a definition does not change with the library,
// or each upgrade would look like a change of every job.
func TestDigestsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := xxljob.New(memory.New(), xxljob.Config{Logger: stage.QuietLog()})
		stage.Must(t, err)
		e, err := s.EnsureJob(t.Context(), xxljob.Job{App: "a", Key: "k", Name: "n", Handler: "h",
			Schedule: xxljob.Cron("0 0 3 * * ?").In("Europe/Berlin"), Timeout: 5 * time.Second})
		stage.Must(t, err)
		if want := "f757da8fd6ae1165adad21e73bb46791"; e.Job.Ensured != want {
			t.Errorf("the digest is %s, want %s", e.Job.Ensured, want)
		}
	})
}
