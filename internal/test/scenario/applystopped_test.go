package scenario_test

// Lists that say which of their jobs are stopped.

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

func TestListsThatStopAndStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		ensure := func(what string, opts xxljob.EnsureOptions, stopped [3]bool, outcomes ...xxljob.Outcome) []xxljob.Ensured {
			t.Helper()
			var jobs []xxljob.Job
			for i, key := range []string{"a", "b", "manual"} {
				j := xxljob.Job{Key: key, Name: key, Handler: "h", Schedule: xxljob.FixedRate(time.Minute), Stopped: stopped[i]}
				if key == "manual" {
					j.Schedule = xxljob.Manual()
				}
				jobs = append(jobs, j)
			}
			all, err := s.EnsureJobs(t.Context(), "", jobs, opts)
			stage.Must(t, err)
			var got []xxljob.Outcome
			for i, e := range all {
				got = append(got, e.Outcome)
				has, err := st.Job(t.Context(), e.Job.ID)
				stage.Must(t, err)
				if opts.ApplyStopped && (has.Stopped != stopped[i] || e.Job.Stopped != has.Stopped || has.StopReason != "") {
					t.Errorf("%s: %s is stopped: %v %q, as returned: %v", what, has.Key, has.Stopped, has.StopReason, e.Job.Stopped)
				}
				if has.Next.IsZero() != (has.Stopped || has.Key == "manual") {
					t.Errorf("%s: %s has next %v", what, has.Key, has.Next)
				}
			}
			if !slices.Equal(got, outcomes) {
				t.Errorf("%s: outcomes %v, want %v", what, got, outcomes)
			}
			return all
		}
		created, changed, unchanged := xxljob.Created, xxljob.Changed, xxljob.Unchanged
		says, silent := xxljob.EnsureOptions{ApplyStopped: true}, xxljob.EnsureOptions{}
		all := ensure("the first time", says, [3]bool{true, false, false}, created, created, created)
		ensure("once more", says, [3]bool{true, false, false}, unchanged, unchanged, unchanged)
		ensure("the other way round", says, [3]bool{false, true, true}, changed, changed, changed)
		ensure("a list that says nothing", silent, [3]bool{true, false, false}, unchanged, unchanged, unchanged)
		stage.Must(t, s.StopJob(t.Context(), all[0].Job.ID))
		ensure("what somebody has stopped", says, [3]bool{false, true, true}, changed, unchanged, unchanged)
		ensure("all are running", says, [3]bool{}, unchanged, changed, changed)
	})
}

// TestListsLeaveFinishedJobs: a job that has stopped by itself is not started again and again.
func TestListsLeaveFinishedJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, s.Handle("h", stage.NothingToDo))
		stage.Must(t, s.Start(t.Context()))
		list := []xxljob.Job{{Key: "once", Name: "once", Handler: "h", Schedule: xxljob.At(time.Now().Add(time.Minute))}}
		_, err = s.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{ApplyStopped: true})
		stage.Must(t, err)
		time.Sleep(2 * time.Minute)
		all, err := s.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{ApplyStopped: true})
		stage.Must(t, err)
		if e := all[0]; e.Outcome != xxljob.Unchanged || !e.Job.Stopped || e.Job.StopReason != xxljob.StopFinished {
			t.Errorf("it is %s, %+v", e.Outcome, e.Job)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}
