package scenario_test

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
)

// busyJobs is a store that finds yet another run of some jobs under way, and takes its time
// to tell of it.
type busyJobs struct {
	st xxljob.Store
	by time.Duration

	mu   sync.Mutex
	busy map[int64]bool // guarded by mu: by job
	read int            // guarded by mu
}

func (s *busyJobs) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	var free []store.Start
	s.mu.Lock()
	for _, st := range starts {
		if !s.busy[st.JobID] {
			free = append(free, st)
		}
	}
	s.mu.Unlock()
	got, err := s.st.Start(ctx, nil, free)
	if err != nil {
		return nil, err
	}
	answers := make([]store.Started, 0, len(starts))
	for i := range starts {
		if len(free) > 0 && free[0].RunID == starts[i].RunID {
			answers, free, got = append(answers, got[0]), free[1:], got[1:]
			continue
		}
		answers = append(answers, store.Started{Status: store.StartBusy})
	}
	return answers, nil
}

func (s *busyJobs) Runs(ctx context.Context, f xxljob.RunFilter) ([]xxljob.Run, error) {
	s.mu.Lock()
	busy := s.busy[f.JobID]
	if busy {
		s.read++
		if s.read > 4 {
			delete(s.busy, f.JobID)
		}
	}
	s.mu.Unlock()
	if busy {
		time.Sleep(s.by)
	}
	return s.st.Runs(ctx, f)
}

// TestBusyJobsHoldUpNoOther: what the store says is started is called at once, and not when
// it has been found out what some other runs of the batch have to wait for.
func TestBusyJobsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := &busyJobs{st: memory.New(), by: 3 * time.Second, busy: map[int64]bool{}}
		st := bent.StoreOf(busy.st, busy)
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		at := time.Now().Add(time.Minute).Truncate(time.Second)
		var late []int64
		for i := range 8 {
			job, err := s.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("job ", i), Handler: "work", Schedule: xxljob.At(at)})
			stage.Must(t, err)
			if i%2 == 0 {
				busy.busy[job.ID] = true
			} else {
				late = append(late, job.ID)
			}
		}
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(2 * time.Minute)
		stage.Must(t, s.Stop(t.Context()))
		for _, id := range late {
			for _, r := range stage.Succeeded(t, busy.st, id) {
				if r.Lateness() > 20*time.Millisecond || r.Ended.Sub(at) > 20*time.Millisecond {
					t.Errorf("job %d began %v after its instant, and ended %v after it", id, r.Lateness(), r.Ended.Sub(at))
				}
			}
		}
		if got := stage.CountStates(stage.AllRuns(t, busy.st)); got[xxljob.StateSucceeded] != 8 {
			t.Errorf("runs by state: %v, want 8 successes", got)
		}
	})
}
