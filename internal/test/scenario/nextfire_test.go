package scenario_test

// When a job runs next, and what does.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestNextFireIsWhatRuns asks at odd moments, and then waits for the next run: it is the one
// of that instant.
func TestNextFireIsWhatRuns(t *testing.T) {
	t.Parallel()
	for name, schedule := range map[string]xxljob.Schedule{
		"every second":   xxljob.Cron("* * * * * ?"),
		"every 7 s":      xxljob.FixedRate(7 * time.Second),
		"every minute":   xxljob.Crontab("* * * * *"),
		"once an hour":   xxljob.Cron("0 0 * * * ?"),
		"a day from now": xxljob.At(time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				s, err := xxljob.New(st, xxljob.Config{App: "here", Logger: stage.QuietLog()})
				stage.Must(t, err)
				ran := make(chan time.Time, 100_000)
				stage.Must(t, s.Handle("h", func(_ context.Context, t *xxljob.Task) error {
					ran <- t.ScheduledAt
					return nil
				}))
				job, err := s.AddJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "h", Schedule: schedule})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				defer s.Stop(context.Background())
				for i := range 20 {
					time.Sleep(time.Duration(i) * 1234 * time.Millisecond)
					synctest.Wait()
					for len(ran) > 0 {
						<-ran
					}
					next, err := s.NextFire(t.Context(), job.ID)
					stage.Must(t, err)
					if next.IsZero() {
						if schedule.Type != xxljob.ScheduleOnce {
							t.Fatal("no next instant")
						}
						break
					}
					if got := <-ran; !got.Equal(next) {
						t.Fatalf("at %v: NextFire %v, then %v ran", time.Now(), next, got)
					}
				}
			})
		})
	}
}

// TestNextFireOfJobsAtRest: nothing runs of a job that is stopped, manual, finished or absent,
// nor of one that waits for its own end. Long after the last scan, misfire decides.
func TestNextFireOfJobsAtRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "here", Logger: stage.QuietLog()})
		stage.Must(t, err)
		end := make(chan struct{})
		stage.Must(t, s.Handle("h", func(context.Context, *xxljob.Task) error { <-end; return nil }))
		add := func(key string, j xxljob.Job) int64 {
			j.Key, j.Name, j.Handler = key, key, "h"
			job, err := s.AddJob(t.Context(), j)
			stage.Must(t, err)
			return job.ID
		}
		want := func(what string, id int64, at time.Time) {
			t.Helper()
			got, err := s.NextFire(t.Context(), id)
			stage.Must(t, err)
			if !got.Equal(at) {
				t.Errorf("%s: %v, want %v", what, got, at)
			}
		}
		minutely := xxljob.Cron("0 * * * * ?")
		manual, stopped := add("manual", xxljob.Job{}), add("stopped", xxljob.Job{Schedule: minutely, Stopped: true})
		idle := add("idle", xxljob.Job{Schedule: minutely})
		fires := add("fires", xxljob.Job{Schedule: minutely, Misfire: xxljob.MisfireFireOnceNow})
		delay := add("delay", xxljob.Job{Schedule: xxljob.FixedDelay(time.Minute), Misfire: xxljob.MisfireFireOnceNow})
		begin := time.Now()
		want("manual", manual, time.Time{})
		want("stopped", stopped, time.Time{})
		want("idle", idle, begin.Add(time.Minute))
		if _, err := s.NextFire(t.Context(), 1<<20); !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("absent: %v", err)
		}
		time.Sleep(10*time.Minute + 30*time.Second) // no node runs
		want("missed, nothing to be done", idle, begin.Add(11*time.Minute))
		want("missed, to be run once", fires, begin.Add(10*time.Minute))
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(time.Second)
		want("a delay while its run is under way", delay, time.Time{})
		close(end)
		time.Sleep(time.Second)
		synctest.Wait()
		if next, err := s.NextFire(t.Context(), delay); err != nil || time.Until(next) > time.Minute || next.Before(time.Now()) {
			t.Errorf("a delay after its run: %v %v", next, err)
		}
		stage.Must(t, s.Stop(context.Background()))
	})
}
