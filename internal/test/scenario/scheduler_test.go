package scenario_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

func TestRunsOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s, err := xxljob.New(memory.New(), xxljob.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var at []time.Time
		if err := s.Handle("report", func(ctx context.Context, task *xxljob.Task) error {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
			if !task.ScheduledAt.Equal(time.Now()) {
				t.Errorf("scheduled %v, run %v", task.ScheduledAt, time.Now())
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.EnsureJob(ctx, xxljob.Job{Name: "nightly", Handler: "report", Schedule: xxljob.Cron("0/5 * * * * ?")}); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		mu.Lock()
		if len(at) != 0 {
			t.Fatalf("after 4 s: %d runs", len(at))
		}
		mu.Unlock()
		time.Sleep(56 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(at) != 12 {
			t.Errorf("after 60 s: %d runs", len(at))
		}
		if err := s.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	})
}
