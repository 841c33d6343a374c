package scenario_test

// What goes together into one call of the store, and what does not wait for that.

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// calls counts the calls of a store, and how early each run was marked started.
type calls struct {
	st               xxljob.Store
	mu               sync.Mutex
	starts, finishes int           // guarded by mu
	earliest         time.Duration // guarded by mu
	due              map[int64]time.Time
}

func (c *calls) Claim(ctx context.Context, dst []xxljob.Run, plans []store.Plan) ([]xxljob.Run, error) {
	runs, err := c.st.Claim(ctx, nil, plans)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range runs {
		c.due[r.ID] = r.Scheduled
	}
	return runs, err
}

func (c *calls) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	c.mu.Lock()
	if len(starts) > 0 && starts[0].RunID != 0 {
		c.starts++
	}
	for _, s := range starts {
		if at, known := c.due[s.RunID]; known {
			c.earliest = max(c.earliest, time.Until(at))
		}
	}
	c.mu.Unlock()
	return c.st.Start(ctx, dst, starts)
}

func (c *calls) Finish(ctx context.Context, dst []xxljob.Run, results []store.Result) ([]xxljob.Run, error) {
	c.mu.Lock()
	c.finishes++
	c.mu.Unlock()
	return c.st.Finish(ctx, dst, results)
}

// TestStartsGather: where a run is due every millisecond and the store takes two to answer, ten
// of them go into a call, and so do their results. Each is run at its instant all the same, and
// none is marked started more than 20 ms before.
func TestStartsGather(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it counts the calls of ten thousand runs; leave out -short")
	}
	synctest.Test(t, func(t *testing.T) {
		seen := &calls{st: memory.New(), due: map[int64]time.Time{}}
		st := bent.StoreOf(seen.st, seen)
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		for _, method := range []string{"Start", "Finish"} {
			n.Faults.Inject(method, storetest.Fault{Delay: 2 * time.Millisecond})
		}
		var mu sync.Mutex
		ran, wrong := 0, 0
		stage.Must(t, n.Handle("count", func(_ context.Context, task *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if ran++; !time.Now().Equal(task.ScheduledAt) {
				wrong++
			}
			return nil
		}))
		synctest.Wait()
		first := time.Now().Add(30 * time.Second).Truncate(time.Second)
		for i := range 1000 {
			_, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: fmt.Sprint(i), Name: "j", Handler: "count", Route: "NEAREST", Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.FixedRate(time.Second), Next: first.Add(time.Duration(i) * time.Millisecond)}, nil)
			stage.Must(t, err)
		}
		time.Sleep(time.Until(first.Add(5*time.Second + time.Minute/2)))
		seen.mu.Lock()
		mu.Lock()
		starts, finishes, began := seen.starts, seen.finishes, ran
		wrong = 0 // by now it is known how long the store takes
		mu.Unlock()
		seen.mu.Unlock()
		time.Sleep(10 * time.Second)
		stage.Stop(t, n)
		runs := ran - began
		if calls := seen.starts - starts; runs < 9_900 || calls > runs/9 {
			t.Errorf("%d runs were started by %d calls", runs, calls)
		}
		if calls := seen.finishes - finishes; calls > runs/4 {
			t.Errorf("%d results were stored by %d calls", runs, calls)
		}
		if wrong > 0 || seen.earliest > 20*time.Millisecond || seen.earliest <= 0 {
			t.Errorf("%d runs were not run at their instants; the earliest start was %v before it", wrong, seen.earliest)
		}
	})
}

// TestAloneIsNotKept: a run that is due alone, and its result, do not wait for others to come.
func TestAloneIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &calls{st: memory.New(), due: map[int64]time.Time{}}
		st := bent.StoreOf(seen.st, seen)
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		for _, method := range []string{"Start", "Finish"} {
			n.Faults.Inject(method, storetest.Fault{Delay: 2 * time.Millisecond})
		}
		stage.AddSeconds(t, n, 1)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "asked for", Handler: "work"})
		stage.Must(t, err)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		began := time.Now()
		run := stage.WaitFor(t, n, stage.Trigger(t, n, job), time.Second)
		if took := time.Since(began); run.State != xxljob.StateSucceeded || took > 6*time.Millisecond {
			t.Errorf("the run is %v after %v", run.State, took)
		}
		stage.Stop(t, n)
	})
}

// slowPages is a store that takes a second for each page of planned runs.
type slowPages struct {
	st    xxljob.Store
	mu    sync.Mutex
	pages int // guarded by mu
}

func (s *slowPages) Planned(ctx context.Context, dst []xxljob.Run, q store.PlannedQuery) ([]xxljob.Run, error) {
	s.mu.Lock()
	s.pages++
	s.mu.Unlock()
	time.Sleep(time.Second)
	return s.st.Planned(ctx, dst, q)
}

// TestABacklogStartsWhileItIsRead: runs of a node that takes over more than a page start as soon
// as those before them are read, and those of serial jobs in their order.
func TestABacklogStartsWhileItIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const page = 5000 // of planned runs, as a node reads them
		const jobs, each = 7, 3 * page / 7
		inner := memory.New()
		a := stage.StartNode(t, inner, "a", &stage.Journal{})
		stage.Must(t, a.Handle("order", stage.NothingToDo))
		var ids []int64
		for i := range jobs {
			job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "order"})
			stage.Must(t, err)
			ids = append(ids, job.ID)
		}
		stage.Stop(t, a)
		at := time.Now()
		for i := range each {
			for _, id := range ids {
				_, err := inner.AddRun(t.Context(), id, xxljob.Trigger{At: at.Add(time.Duration(i) * time.Millisecond)})
				stage.Must(t, err)
			}
		}
		time.Sleep(time.Minute)
		slow := &slowPages{st: inner}
		st := bent.StoreOf(slow.st, slow)
		var mu sync.Mutex
		last, ran, disorder, firstAfter := map[int64]time.Time{}, 0, 0, 0
		b := stage.NewNode(t, st, "b", &stage.Journal{})
		stage.Must(t, b.Handle("order", func(_ context.Context, task *xxljob.Task) error {
			slow.mu.Lock()
			pages := slow.pages
			slow.mu.Unlock()
			mu.Lock()
			defer mu.Unlock()
			if ran++; ran == 1 {
				firstAfter = pages
			}
			if task.ScheduledAt.Before(last[task.JobID]) {
				disorder++
			}
			last[task.JobID] = task.ScheduledAt
			return nil
		}))
		stage.Must(t, b.Start(context.Background()))
		time.Sleep(2 * time.Minute)
		stage.Stop(t, b)
		if ran != jobs*each || disorder > 0 || firstAfter > 2 || slow.pages < 3 {
			t.Errorf("%d of %d runs were run, %d of them before earlier ones of their jobs; the first when page %d of %d was read", ran, jobs*each, disorder, firstAfter, slow.pages)
		}
	})
}
