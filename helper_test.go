package xxljob_test

// What several files of the tests need.

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// must ends the test on an error that should not be there.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func nothingToDo(context.Context, *xxljob.Task) error { return nil }

// allOf pages through all runs of a filter, oldest first.
func allOf(t testing.TB, st xxljob.Store, f xxljob.RunFilter) []xxljob.Run {
	t.Helper()
	f.Limit = 1000
	var all []xxljob.Run
	for {
		page, err := st.Runs(context.Background(), f)
		must(t, err)
		all = append(all, page...)
		if len(page) < f.Limit {
			slices.SortFunc(all, func(a, b xxljob.Run) int { return cmp.Compare(a.ID, b.ID) })
			return all
		}
		f.Before = page[len(page)-1].ID
	}
}

// allRuns returns all runs of a store, oldest first.
func allRuns(t testing.TB, st xxljob.Store) []xxljob.Run {
	t.Helper()
	return allOf(t, st, xxljob.RunFilter{})
}

// succeeded returns the job's recorded successes, oldest first; of all jobs where
// the job is 0.
func succeeded(t testing.TB, st xxljob.Store, job int64) []xxljob.Run {
	t.Helper()
	return allOf(t, st, xxljob.RunFilter{JobID: job, States: []xxljob.State{xxljob.StateSucceeded}})
}

// countStates counts runs by their states.
func countStates(runs []xxljob.Run) map[xxljob.State]int {
	states := map[xxljob.State]int{}
	for _, r := range runs {
		states[r.State]++
	}
	return states
}

// waitFor is Wait with a bound.
func waitFor(t *testing.T, s xxljob.Scheduler, id int64, d time.Duration) xxljob.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	run, err := s.Wait(ctx, id)
	if err != nil {
		now, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		run, _ = s.Wait(now, id) // as it is by now
		t.Errorf("run %d is %v after %v: %v", id, run.State, d, err)
	}
	return run
}

// trigger triggers a job by hand.
func trigger(t *testing.T, s xxljob.Scheduler, job xxljob.Job) int64 {
	t.Helper()
	ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
	must(t, err)
	return ids[0]
}

// triggerNew adds a job and triggers it once.
func triggerNew(t *testing.T, s xxljob.Scheduler, job xxljob.Job) int64 {
	t.Helper()
	job, err := s.AddJob(t.Context(), job)
	must(t, err)
	return trigger(t, s, job)
}
