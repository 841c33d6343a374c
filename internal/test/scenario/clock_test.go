package scenario_test

// Stores that go by a clock of their own.

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// otherClock is a store that goes by a clock of its own.
type otherClock struct {
	st  xxljob.Store
	now func() time.Time
}

func (s otherClock) Join(ctx context.Context, n xxljob.Node) (xxljob.View, error) {
	v, err := s.st.Join(ctx, n)
	v.Now, v.Alone = s.now(), false
	return v, err
}

func (s otherClock) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	v, err := s.st.Beat(ctx, inc, attached)
	v.Now, v.Alone = s.now(), false
	return v, err
}

func (s otherClock) Now(context.Context) (time.Time, error) { return s.now(), nil }

func (s otherClock) AddJob(ctx context.Context, job xxljob.Job, first store.FirstInstant) (xxljob.Job, error) {
	return s.st.AddJob(ctx, job, func(job xxljob.Job, _ time.Time) (time.Time, error) { return first(job, s.now()) })
}

// goingBy is a store that goes by the clock.
func goingBy(now func() time.Time) xxljob.Store {
	st := memory.New()
	return bent.StoreOf(st, otherClock{st, now})
}

// TestDueByTheStoresClock runs a one-second job and a one-off one on stores whose
// clocks are ahead of the local one, behind, faster and slower: what is due is due by
// the store's clock, and nothing starts early by it.
func TestDueByTheStoresClock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		store func(local time.Duration) time.Duration
		late  time.Duration // the estimate is a lower bound that drifts between two beats, and while a start is waited for
	}{
		{"an hour ahead", func(d time.Duration) time.Duration { return d + time.Hour }, time.Millisecond},
		{"an hour behind", func(d time.Duration) time.Duration { return d - time.Hour }, time.Millisecond},
		{"faster by 0.1 %", func(d time.Duration) time.Duration { return d + d/1000 }, 3 * time.Millisecond},
		{"faster by 1 %, and ahead", func(d time.Duration) time.Duration { return time.Hour + d + d/100 }, 21 * time.Millisecond},
		{"slower by 0.05 %", func(d time.Duration) time.Duration { return d - d/2000 }, time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zero := time.Now()
				now := func() time.Time { return zero.Add(tt.store(time.Since(zero))) }
				s, err := xxljob.New(goingBy(now), xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog()})
				stage.Must(t, err)
				var mu sync.Mutex
				seen := map[int64]int{}
				once := 0
				var earliest, latest time.Duration
				stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
					mu.Lock()
					defer mu.Unlock()
					if task.Param == "once" {
						once++
					} else {
						seen[task.ScheduledAt.Unix()]++
					}
					late := now().Sub(task.ScheduledAt)
					earliest, latest = min(earliest, late), max(latest, late)
					return nil
				}))
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(time.Second + 500*time.Millisecond)
				_, err = s.AddJob(t.Context(), xxljob.Job{Name: "seconds", Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
				stage.Must(t, err)
				_, err = s.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work", Param: "once", Schedule: xxljob.At(now().Add(100 * time.Second))})
				stage.Must(t, err)
				from := now()
				time.Sleep(5 * time.Minute)
				to := now().Add(-tt.late)
				stage.Must(t, s.Stop(t.Context()))
				if earliest < 0 || latest > tt.late {
					t.Errorf("by the store's clock, runs are %v early and %v late at most, want 0 and %v", -earliest, latest, tt.late)
				}
				for at := from.Unix() + 1; at <= to.Unix(); at++ {
					if seen[at] != 1 {
						t.Errorf("%v was run %d times", time.Unix(at, 0).UTC(), seen[at])
					}
				}
				if once != 1 {
					t.Errorf("the one-off job was run %d times", once)
				}
			})
		})
	}
}

// TestAddedBeforeStart adds a job to a store whose clock is an hour behind, before
// any beat has told so: its first instant is by the store's clock all the same.
func TestAddedBeforeStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zero := time.Now()
		now := func() time.Time { return zero.Add(time.Since(zero) - time.Hour) }
		s, err := xxljob.New(goingBy(now), xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog()})
		stage.Must(t, err)
		j := &stage.Journal{}
		stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error { j.Note("a", task); return nil }))
		_, err = s.AddJob(t.Context(), xxljob.Job{Name: "seconds", Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(5*time.Minute + 500*time.Millisecond)
		stage.Must(t, s.Stop(t.Context()))
		if n := len(j.All()); n != 300 {
			t.Errorf("%d runs in five minutes", n)
		}
	})
}
