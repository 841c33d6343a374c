package xxljob_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// shiftStore is a store whose clock is another than this process's.
type shiftStore struct {
	xxljob.Store
	now func() time.Time
}

func (s shiftStore) Join(ctx context.Context, n xxljob.Node) (xxljob.View, error) {
	v, err := s.Store.Join(ctx, n)
	v.Now, v.Alone = s.now(), false
	return v, err
}
func (s shiftStore) Beat(ctx context.Context, inc string, at []xxljob.Attachment) (xxljob.View, error) {
	v, err := s.Store.Beat(ctx, inc, at)
	v.Now, v.Alone = s.now(), false
	return v, err
}

func (s shiftStore) Now(context.Context) (time.Time, error) { return s.now(), nil }

// runOnClock runs a job that is due every second on a store with another clock.
func runOnClock(t *testing.T, beforeStart bool, clock func(time.Duration) time.Duration) (runs, early int64, worst time.Duration) {
	zero := time.Now()
	now := func() time.Time { return zero.Add(clock(time.Since(zero))) }
	var n, ahead, most atomic.Int64
	s, err := xxljob.New(shiftStore{memory.New(), now}, xxljob.Config{App: "app", Node: "a", Logger: quietLog()})
	must(t, err)
	must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
		n.Add(1)
		if d := task.ScheduledAt.Sub(now()); d > 0 {
			ahead.Add(1)
			most.Store(max(most.Load(), int64(d)))
		}
		return nil
	}))
	job := xxljob.Job{Name: "j", Handler: "work", Schedule: xxljob.Cron("* * * * * ?")}
	if beforeStart {
		_, err = s.AddJob(t.Context(), job)
		must(t, err)
	}
	must(t, s.Start(t.Context()))
	time.Sleep(time.Second)
	if !beforeStart {
		_, err = s.AddJob(t.Context(), job)
		must(t, err)
	}
	time.Sleep(5 * time.Minute)
	must(t, s.Stop(t.Context()))
	return n.Load(), ahead.Load(), time.Duration(most.Load())
}

// A store whose clock is slower by 0.05 %, the most that NTP slews: every run is early.
func TestEarlyByDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, early, worst := runOnClock(t, false, func(d time.Duration) time.Duration { return d - d/2000 })
		if early > 0 {
			t.Errorf("%d of %d runs were early by the store's clock, by up to %v", early, runs, worst)
		}
	})
}

// A job added before Start gets its first instant by the local clock.
func TestAddedBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if runs, _, _ := runOnClock(t, true, func(d time.Duration) time.Duration { return d - time.Hour }); runs < 295 {
			t.Errorf("%d runs in five minutes", runs)
		}
	})
}
