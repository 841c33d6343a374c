package scenario_test

// What a run costs the process, the store in memory included, is bounded here: a copy, a map or
// a string more for each run is seen when it is made, and not when it has become slow.

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// budgets are the bounds. What scheduled runs allocate differs by one in a hundred from one run
// of the test to the next. What is drained is gathered as it comes, so its objects differ more.
// Who makes a run cheaper lowers the bounds, and who raises one says why: 128 bytes of each run
// are what its handler is told of its times, its trigger and its zone.
func budgets() []stage.Budget {
	return []stage.Budget{
		{What: "a waiting run that is drained, bytes", Measured: 3010, Most: 3220, Heap: true},
		{What: "a waiting run that is drained, objects", Measured: 6.9, Most: 7.4, Heap: true},
		{What: "a run of a second that many jobs share, bytes", Measured: 1380, Most: 1475, Heap: true},
		{What: "a run of a second that many jobs share, objects", Measured: 6.4, Most: 6.8, Heap: true},
		{What: "a run of a second over which the jobs are spread, bytes", Measured: 2640, Most: 2820, Heap: true},
		{What: "a run of a second over which the jobs are spread, objects", Measured: 33.1, Most: 35, Heap: true},
	}
}

// TestWhatARunAllocates: from the plan to the recorded end, of all parts of a scheduler.
func TestWhatARunAllocates(t *testing.T) {
	if stage.Detector {
		t.Skip("bounds of what is allocated, which is another amount under the race detector")
	}
	load := budgetLoad{jobs: 1000, each: 10}
	stage.CheckBudgets(t, budgets(), stage.LeastOf(3, func() map[string]float64 {
		figures := map[string]float64{}
		for what, measure := range map[string]func(*testing.T) (bytes, objects float64){
			"a waiting run that is drained":                    load.drain,
			"a run of a second that many jobs share":           load.shared,
			"a run of a second over which the jobs are spread": load.spread,
		} {
			synctest.Test(t, func(t *testing.T) {
				figures[what+", bytes"], figures[what+", objects"] = measure(t)
			})
		}
		return figures
	}))
}

// budgetLoad is how many jobs there are, and how many runs of each are measured.
type budgetLoad struct{ jobs, each int }

// drain measures runs that waited in the store when the scheduler was started.
func (l budgetLoad) drain(t *testing.T) (bytes, objects float64) {
	st := memory.New()
	s := startIdler(t, st)
	var ids []int64
	for i := range l.jobs {
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("job ", i), Handler: "work"})
		stage.Must(t, err)
		ids = append(ids, job.ID)
	}
	s.stop(t)
	for range l.each {
		for _, id := range ids {
			_, err := st.AddRun(t.Context(), id, xxljob.Trigger{})
			stage.Must(t, err)
		}
	}
	before := stage.AllocatedNow()
	s = startIdler(t, st)
	time.Sleep(10 * time.Second)
	synctest.Wait()
	bytes, objects = stage.AllocatedNow().Since(before)
	s.stop(t)
	n := l.jobs * l.each
	if got := len(stage.Succeeded(t, st, 0)); got != n || s.calls.Load() != int64(n) {
		t.Errorf("%d of %d runs are recorded as succeeded, %d handlers were called", got, n, s.calls.Load())
	}
	return bytes / float64(n), objects / float64(n)
}

// shared measures runs of jobs that are due every second, all of them at once.
func (l budgetLoad) shared(t *testing.T) (bytes, objects float64) {
	return l.scheduled(t, xxljob.Cron("* * * * * ?"), 0)
}

// spread measures runs of jobs that are due every second, one after the other.
func (l budgetLoad) spread(t *testing.T) (bytes, objects float64) {
	return l.scheduled(t, xxljob.FixedRate(time.Second), time.Second/time.Duration(l.jobs))
}

// scheduled measures runs of jobs that are due every second, and are added with a gap between
// two of them, once the scheduler is in its stride.
func (l budgetLoad) scheduled(t *testing.T, schedule xxljob.Schedule, gap time.Duration) (bytes, objects float64) {
	s := startIdler(t, memory.New())
	for i := range l.jobs {
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("job ", i), Handler: "work", Schedule: schedule})
		stage.Must(t, err)
		time.Sleep(gap)
	}
	time.Sleep(10*time.Second + gap/2) // no run is due at the very moment that ends the measurement
	synctest.Wait()
	called, before := s.calls.Load(), stage.AllocatedNow()
	time.Sleep(time.Duration(l.each) * time.Second)
	synctest.Wait()
	bytes, objects = stage.AllocatedNow().Since(before)
	n := s.calls.Load() - called
	s.stop(t)
	if n != int64(l.jobs*l.each) {
		t.Errorf("%d handlers were called in %d seconds, want %d", n, l.each, l.jobs*l.each)
	}
	return bytes / float64(n), objects / float64(n)
}

// idler is a scheduler whose handlers do nothing but count.
type idler struct {
	xxljob.Scheduler
	calls atomic.Int64
}

func startIdler(t *testing.T, st xxljob.Store) *idler {
	t.Helper()
	s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
	stage.Must(t, err)
	c := &idler{Scheduler: s}
	stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error {
		c.calls.Add(1)
		return nil
	}))
	stage.Must(t, s.Start(context.Background()))
	return c
}

func (c *idler) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stage.Must(t, c.Stop(ctx))
}
