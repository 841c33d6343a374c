package xxljob_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// TestOnceBelowMillisecond: times are kept to the millisecond, and a schedule is
// never due twice for one instant. The conf of a ONCE schedule is not cut to the
// millisecond, but the job's Next is: the planner finds the same instant again
// behind it.
func TestOnceBelowMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(10*time.Second + 300*time.Microsecond).UTC()
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "h",
			Schedule: xxljob.Schedule{Type: xxljob.ScheduleOnce, Conf: at.Format(time.RFC3339Nano)}})
		if err != nil {
			return // refusing it is as good
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		runs, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID})
		if err != nil || len(runs) != 1 {
			t.Errorf("%d runs, want 1 (%v)", len(runs), err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
