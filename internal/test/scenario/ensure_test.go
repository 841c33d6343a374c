package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestEnsureStoresNothing: an error of EnsureJob or EnsureJobs that is about the
// input stores nothing: not the group of a new app, and of a list not the jobs
// before the bad one.
func TestEnsureStoresNothing(t *testing.T) {
	t.Parallel()
	never := xxljob.Job{App: "fresh", Name: "never", Handler: "work", Schedule: xxljob.Cron("0 0 0 30 2 ?")}
	good := xxljob.Job{Name: "good", Handler: "work"}
	unknown := xxljob.Job{Name: "unknown", Handler: "nobody"}
	for name, call := range map[string]func(ctx context.Context, s xxljob.Scheduler) error{
		"EnsureJob, never firing, new app": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJob(ctx, never)
			return err
		},
		"EnsureJob, unknown handler, new app": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJob(ctx, xxljob.Job{App: "fresh", Name: "unknown", Handler: "nobody"})
			return err
		},
		"EnsureJobs, unknown handler": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJobs(ctx, "", []xxljob.Job{good, unknown}, xxljob.EnsureOptions{})
			return err
		},
		"EnsureJob, change to an unknown handler": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJob(ctx, xxljob.Job{Name: "ensured", Handler: "nobody"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st := refuseWorld(t, xxljob.Config{StrictHandlers: true})
				before := stage.ContentsOf(t, st)
				if err := call(t.Context(), s); err == nil {
					t.Error("no error")
				}
				stage.RequireSame(t, name, before, stage.ContentsOf(t, st))
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}

// TestAddedJobIsNotEnsured: Job.Ensured is the library's. A job that was read from
// an ensured one and added under another key is not pruned.
func TestAddedJobIsNotEnsured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		e, err := s.EnsureJob(t.Context(), xxljob.Job{Name: "model", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)})
		stage.Must(t, err)
		copied := e.Job
		copied.Key, copied.Name = "copy", "copy"
		if _, err := s.AddJob(t.Context(), copied); err == nil || !strings.Contains(err.Error(), "Ensured") {
			t.Errorf("AddJob of a job of the store: %v", err)
		}
		added, err := s.AddJob(t.Context(), xxljob.Job{Name: "copy", Handler: "work", Schedule: copied.Schedule})
		stage.Must(t, err)
		if added.Ensured != "" {
			t.Errorf("AddJob stores Ensured %q", added.Ensured)
		}
		all, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{{Name: "model", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}}, xxljob.EnsureOptions{Prune: true})
		stage.Must(t, err)
		for _, e := range all {
			if e.Job.ID == added.ID {
				t.Errorf("the added job was %s", e.Outcome)
			}
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestUpdateLeavesNoKey: a job that came by import may have no Key, and UpdateJob
// gives it none.
func TestUpdateLeavesNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		imported := stage.GoodJob()
		imported.App, imported.Key, imported.Name = "app", "", "one" // there is a job with this Key
		imported, err := st.AddJob(t.Context(), imported, nil)
		stage.Must(t, err)
		imported.Author = "me"
		if job, err := s.UpdateJob(t.Context(), imported); err != nil || job.Key != "" {
			t.Errorf("Key %q, %v", job.Key, err)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestManyJobsThatHaveRun: one-off jobs whose instant is past are asked for together, and
// not each by itself. Those that the store has stay, one with another schedule and one
// that is new are refused, and where the store does not answer that is what is said.
func TestManyJobsThatHaveRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 2500
		faults := storetest.Wrap(memory.New())
		s, err := xxljob.New(faults, xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		at := time.Now().Add(time.Hour)
		jobs := make([]xxljob.Job, n)
		for i := range jobs {
			jobs[i] = xxljob.Job{Name: fmt.Sprint("once ", i), Handler: "work", Schedule: xxljob.At(at)}
		}
		ensure := func(jobs []xxljob.Job) ([]xxljob.Ensured, error) {
			return s.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{})
		}
		_, err = ensure(jobs)
		stage.Must(t, err)
		time.Sleep(2 * time.Hour)
		before := faults.Calls(storetest.All)
		done, err := ensure(jobs)
		stage.Must(t, err)
		for _, d := range done {
			if d.Outcome != xxljob.Unchanged {
				t.Fatalf("%s is %s", d.Job.Key, d.Outcome)
			}
		}
		if calls := faults.Calls(storetest.All) - before; calls > 20 {
			t.Errorf("%d calls of the store for %d jobs that have run", calls, n)
		}

		other := slices.Clone(jobs)
		other[7].Schedule = xxljob.At(at.Add(-time.Minute))
		other = append(other, xxljob.Job{Name: "new", Handler: "work", Schedule: xxljob.At(at)})
		_, err = ensure(other)
		if !errors.Is(err, xxljob.ErrNeverFires) || strings.Count(err.Error(), "the instant is past") != 2 ||
			!strings.Contains(err.Error(), `"once 7"`) || !strings.Contains(err.Error(), `"new"`) {
			t.Errorf("another instant that is past, and a new job: %v", err)
		}
		faults.Inject("Jobs", storetest.Fault{Before: true})
		faults.Inject("JobByKey", storetest.Fault{Before: true})
		if _, err := ensure(jobs); !errors.Is(err, storetest.ErrInjected) || errors.Is(err, xxljob.ErrNeverFires) {
			t.Errorf("a store that fails: %.200v", fmt.Sprint(err))
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestEnsureJobOfAJobOfLists: who ensures a job by itself wants it: it is started again
// where lists have pruned it, and they prune it no more until one names it. A stop by
// somebody is left alone.
func TestEnsureJobOfAJobOfLists(t *testing.T) {
	t.Parallel()
	minutely := func(name string) xxljob.Job {
		return xxljob.Job{Name: name, Handler: "work", Param: "v1", Schedule: xxljob.FixedRate(time.Minute)}
	}
	for name, c := range map[string]struct {
		before  func(t *testing.T, n *stage.Node, id int64) // while the former release's job is there
		outcome xxljob.Outcome
		enabled bool
	}{
		"before it is pruned": {func(*testing.T, *stage.Node, int64) {}, xxljob.Unchanged, true},
		"pruned":              {func(*testing.T, *stage.Node, int64) { time.Sleep(2 * pruneAfter) }, xxljob.Changed, true},
		"stopped by somebody": {func(t *testing.T, n *stage.Node, id int64) { stage.Must(t, n.StopJob(t.Context(), id)) }, xxljob.Unchanged, false},
		"pruned, and then stopped by somebody": {func(t *testing.T, n *stage.Node, id int64) {
			time.Sleep(2 * pruneAfter)
			stage.Must(t, n.StopJob(t.Context(), id))
		}, xxljob.Unchanged, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				v1, v2 := releaseOf(1, "x", "y"), releaseOf(1, "x")
				old, done := startRelease(t, st, "old", v1)
				stage.Stop(t, old)
				n, _ := startRelease(t, st, "n", v2)
				c.before(t, n, done[1].Job.ID)
				e, err := n.EnsureJob(t.Context(), minutely("y"))
				stage.Must(t, err)
				if e.Outcome != c.outcome || e.Job.ID != done[1].Job.ID || e.Job.Stopped == c.enabled {
					t.Errorf("%s, stopped %v: want %s, enabled %v", e.Outcome, e.Job.Stopped, c.outcome, c.enabled)
				}
				if c.enabled == e.Job.Next.IsZero() {
					t.Errorf("Next %v", e.Job.Next)
				}
				want := []string{"x v1", "y v1"}
				if !c.enabled {
					want = want[:1]
				}
				time.Sleep(3 * pruneAfter)
				requireJobs(t, st, "later", want...)

				_, err = n.EnsureJobs(t.Context(), "", v1.jobs, v1.opts) // a list names it again
				stage.Must(t, err)
				_, err = n.EnsureJobs(t.Context(), "", v2.jobs, v2.opts)
				stage.Must(t, err)
				time.Sleep(2 * pruneAfter)
				requireJobs(t, st, "a list has named it, and none does", "x v1")
				stage.Stop(t, n)
			})
		})
	}
}

// TestPauseSurvivesDeploys: a NotBefore that somebody has given a job stays where a definition says
// nothing of it; what a definition has set itself goes with it, and one that says something is taken.
func TestPauseSurvivesDeploys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		ctx := t.Context()
		until := time.Now().Add(72 * time.Hour).UTC()
		list := func(name string, change func(*xxljob.Job)) xxljob.Job {
			j := xxljob.Job{Key: "paused", Name: name, Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}
			change(&j)
			_, err := s.EnsureJobs(ctx, "", []xxljob.Job{j}, xxljob.EnsureOptions{})
			stage.Must(t, err)
			got, err := st.JobByKey(ctx, "app", "paused")
			stage.Must(t, err)
			return got
		}
		want := func(what string, got xxljob.Job, notBefore time.Time) {
			t.Helper()
			if !got.NotBefore.Equal(notBefore) || got.Next.Before(notBefore) {
				t.Errorf("%s: NotBefore %v, Next %v, want %v", what, got.NotBefore, got.Next, notBefore)
			}
		}
		nothing := func(*xxljob.Job) {}
		job := list("first", nothing)
		job.NotBefore = until
		_, err := s.UpdateJob(ctx, job)
		stage.Must(t, err)
		want("the same list", list("first", nothing), until)
		want("another list", list("second", nothing), until)
		want("another schedule", list("second", func(j *xxljob.Job) { j.Schedule = xxljob.FixedRate(2 * time.Hour) }), until)
		_, err = s.EnsureJob(ctx, xxljob.Job{Key: "paused", Name: "alone", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)})
		stage.Must(t, err)
		want("alone", list("third", nothing), until)
		want("a bound before it", list("fourth", func(j *xxljob.Job) { j.NotAfter = until.Add(-time.Hour) }), time.Time{})
		want("set by the list", list("fifth", func(j *xxljob.Job) { j.NotBefore = until.Add(time.Hour) }), until.Add(time.Hour))
		want("taken back by the list", list("sixth", nothing), time.Time{})
		stage.Must(t, s.Stop(ctx))
	})
}
