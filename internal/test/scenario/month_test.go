package scenario_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestMonth: one daily job for 31 simulated days makes its 31 runs, each at its
// instant.
func TestMonth(t *testing.T) { synctest.Test(t, month) }

// BenchmarkMonth is TestMonth with the wall time it takes. A bubble wants a
// *testing.T, and RunTests is what makes one in a benchmark.
func BenchmarkMonth(b *testing.B) {
	for b.Loop() {
		all := func(string, string) (bool, error) { return true, nil }
		if !testing.RunTests(all, []testing.InternalTest{{Name: "month", F: TestMonth}}) {
			b.Fatal("the month went wrong")
		}
	}
}

// month runs in a bubble, which begins at midnight UTC.
func month(t *testing.T) {
	var mu sync.Mutex
	var runs []time.Time
	began := time.Now()
	st := memory.New()
	s, err := xxljob.New(st, xxljob.Config{App: "here", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stage.Must(t, s.Handle("report", func(_ context.Context, task *xxljob.Task) error {
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, time.Now())
		if !task.ScheduledAt.Equal(time.Now()) {
			t.Errorf("the run for %v is at %v", task.ScheduledAt, time.Now())
		}
		return nil
	}))
	job, err := s.AddJob(t.Context(), xxljob.Job{Name: "daily", Handler: "report", Schedule: xxljob.Cron("0 30 6 * * ?")})
	stage.Must(t, err)
	stage.Must(t, s.Start(t.Context()))
	time.Sleep(31 * 24 * time.Hour)
	synctest.Wait()
	stage.Must(t, s.Stop(t.Context()))

	stored, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID, States: []xxljob.State{xxljob.StateSucceeded}})
	stage.Must(t, err)
	if len(runs) != 31 || len(stored) != 31 {
		t.Fatalf("%d runs, %d recorded as succeeded, want 31", len(runs), len(stored))
	}
	for day := range runs {
		want := began.AddDate(0, 0, day).Add(6*time.Hour + 30*time.Minute)
		if row := stored[30-day]; !runs[day].Equal(want) || !row.Scheduled.Equal(want) || !row.Started.Equal(want) {
			t.Errorf("day %d: run at %v, recorded for %v, started %v, want %v", day, runs[day], row.Scheduled, row.Started, want)
		}
	}
}
