package scenario_test

// One call of EnsureJobs: large lists, lists that change nothing, stores that fail, and
// lists that come again.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestManyJobsWithoutHandlers: a list of jobs that nobody has handlers for is one
// warning, and asks the store about addresses once.
func TestManyJobsWithoutHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := &lockedLines{}
		faults := storetest.Wrap(memory.New())
		s, err := xxljob.New(faults, xxljob.Config{App: "app", Logger: slog.New(slog.NewTextHandler(lines, nil))})
		stage.Must(t, err)
		var jobs []xxljob.Job
		for i := range 2000 {
			jobs = append(jobs, xxljob.Job{Name: fmt.Sprint("job ", i), Handler: fmt.Sprint("handler", i%100)})
		}
		done, err := s.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{})
		stage.Must(t, err)
		if len(done) != len(jobs) || done[1999].Outcome != xxljob.Created || done[1999].Job.Name != "job 1999" {
			t.Errorf("%d results", len(done))
		}
		warned := lines.with("level=WARN")
		if len(warned) != 1 || !strings.Contains(warned[0], "jobs=2000") || !strings.Contains(warned[0], "handlers=100") {
			t.Errorf("%d warnings: %s", len(warned), strings.Join(warned, "\n"))
		}
		if calls := faults.Calls(storetest.All); calls > 20 {
			t.Errorf("%d calls of the store", calls)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestEnsureJobsUnchangedWritesNothing: the same list again reads, and writes nothing.
func TestEnsureJobsUnchangedWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(1, "x", "y"))
		before := stage.ContentsOf(t, st)
		done, err := a.EnsureJobs(t.Context(), "", releaseOf(1, "y", "x").jobs, xxljob.EnsureOptions{Prune: true, Generation: 1})
		stage.Must(t, err)
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Unchanged, xxljob.Unchanged}) || done[0].Job.Key != "y" {
			t.Errorf("%v, first %s", got, done[0].Job.Key)
		}
		stage.RequireSame(t, "the same list in another order", before, stage.ContentsOf(t, st))
		stage.Stop(t, a)
	})
}

// TestEnsureJobsWithFaultyStore: an error of the store is returned, and the same call
// again comes to its end.
func TestEnsureJobsWithFaultyStore(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"PutList", "NameJobs", "AddJobs", "EnsureGroup"} {
		for _, f := range []storetest.Fault{{Before: true, Calls: 1}, {After: true, Calls: 1}} {
			synctest.Test(t, func(t *testing.T) {
				faults := storetest.Wrap(memory.New())
				s, err := xxljob.New(faults, xxljob.Config{App: "app", Logger: stage.QuietLog()})
				stage.Must(t, err)
				r := releaseOf(3, "x", "y")
				faults.Inject(method, f)
				if _, err := s.EnsureJobs(t.Context(), "", r.jobs, r.opts); !errors.Is(err, storetest.ErrInjected) {
					t.Errorf("%s: %v", method, err)
				}
				done, err := s.EnsureJobs(t.Context(), "", r.jobs, r.opts)
				if err != nil || len(done) != 2 || done[1].Job.ID == 0 {
					t.Errorf("%s, again: %+v, %v", method, done, err)
				}
				stage.Must(t, s.Stop(t.Context()))
			})
		}
	}
}

// TestAListThatIsEnsuredAgain: a host that ensures its list again and again, and not at its
// start only, has what is gone from it pruned all the same.
func TestAListThatIsEnsuredAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n, _ := startRelease(t, st, "n", releaseOf(1, "a", "b"))
		time.Sleep(time.Minute)
		v2 := releaseOf(2, "a")
		for range 6 {
			_, err := n.EnsureJobs(t.Context(), "", v2.jobs, v2.opts)
			stage.Must(t, err)
			time.Sleep(5 * time.Minute)
		}
		requireJobs(t, st, "after half an hour", "a v2")
		stage.Stop(t, n)
	})
}

// TestEnsureJobsBeforeTheStoreIsThere: where the very first call of a process finds the store
// away, once the list is checked, a node that is started all the same does what it says.
func TestEnsureJobsBeforeTheStoreIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		faults := storetest.Wrap(st)
		s, err := xxljob.New(faults, xxljob.Config{App: "app", Node: "n", Logger: stage.QuietLog()})
		stage.Must(t, err)
		faults.Inject("SetShards", storetest.Fault{Before: true, Calls: 1})
		r := releaseOf(1, "x", "y")
		if _, err := s.EnsureJobs(t.Context(), "", r.jobs, r.opts); !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("EnsureJobs: %v", err)
		}
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(5 * time.Minute)
		requireJobs(t, st, "a while after the start", "x v1", "y v1")
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestEnsureJobsIsFinished: where the store fails in the middle of EnsureJobs, which says
// so, a started node applies the rest of its list by itself.
func TestEnsureJobsIsFinished(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"PutList", "NameJobs", "EditJob", "EnsureGroup", "AddJobs"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				n, _ := startRelease(t, st, "n", releaseOf(1, "x", "y"))
				other, _ := startRelease(t, st, "other", releaseOf(1, "x", "y"))
				defer stage.Stop(t, other)
				time.Sleep(time.Minute)
				n.Faults.Inject(method, storetest.Fault{Before: true, Calls: 1})
				r := releaseOf(2, "x", "y", "z")
				if _, err := n.EnsureJobs(t.Context(), "", r.jobs, r.opts); !errors.Is(err, storetest.ErrInjected) {
					t.Errorf("EnsureJobs: %v", err)
				}
				time.Sleep(time.Minute)
				requireJobs(t, st, "a minute later", "x v2", "y v2", "z v2")
				calls := n.Faults.Calls("NameJobs")
				time.Sleep(10 * time.Minute)
				if more := n.Faults.Calls("NameJobs") - calls; more > 0 {
					t.Errorf("%d calls of NameJobs after that", more)
				}
				stage.Stop(t, n)
			})
		})
	}
}

// TestALateJobOfAList: a job that has no instant any more when a list is applied again, or an
// error is made good, is left as it is. The rest of the list applies.
func TestALateJobOfAList(t *testing.T) {
	t.Parallel()
	once := func(r release) release {
		r.jobs[1].Schedule = xxljob.At(time.Now().Add(time.Minute))
		return r
	}
	t.Run("applied again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			two, _ := startRelease(t, st, "two", releaseOf(2, "x", "y"))
			one, _ := startRelease(t, st, "one", once(releaseOf(1, "x", "once", "z", "y")))
			time.Sleep(5 * time.Minute)
			stage.Stop(t, two)
			time.Sleep(time.Hour)
			requireJobs(t, st, "applied again", "x v1", "y v1", "z v1")
			stage.Stop(t, one)
		})
	})
	t.Run("made good", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			n, _ := startRelease(t, st, "n", releaseOf(1, "x"))
			r := once(releaseOf(2, "x", "once", "z", "y"))
			mend := n.Faults.Inject("AddJobs", storetest.Fault{Before: true})
			if _, err := n.EnsureJobs(t.Context(), "", r.jobs, r.opts); !errors.Is(err, storetest.ErrInjected) {
				t.Errorf("EnsureJobs: %v", err)
			}
			time.Sleep(5 * time.Minute)
			mend()
			time.Sleep(time.Hour)
			requireJobs(t, st, "made good", "x v2", "y v2", "z v2")
			stage.Stop(t, n)
		})
	})
}

// TestOvertakenInABatch: of a batch in the middle of which another list came, the outcome
// says what was done before.
func TestOvertakenInABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n, _ := startRelease(t, st, "one", releaseOf(1, "a", "b", "c"))
		other, _ := startRelease(t, st, "other", releaseOf(1, "a", "b", "c"))
		n.Faults.Inject("EditJob", storetest.Fault{Late: time.Second})
		var g sync.WaitGroup
		g.Go(func() {
			time.Sleep(1500 * time.Millisecond) // between the effects of the second and the third edit
			r := releaseOf(3, "a")
			_, err := other.EnsureJobs(context.Background(), "", r.jobs, r.opts)
			stage.Must(t, err)
		})
		r := releaseOf(2, "a", "b", "c")
		done, err := n.EnsureJobs(t.Context(), "", r.jobs, r.opts)
		stage.Must(t, err)
		g.Wait()
		updated := 0
		for _, d := range done {
			if changed := d.Job.Param == "v2"; changed != (d.Outcome == xxljob.Changed) {
				t.Errorf("%s has %s, and the outcome is %s", d.Job.Key, d.Job.Param, d.Outcome)
			}
			updated += stage.One(d.Outcome == xxljob.Changed)
		}
		if updated == 0 || updated == len(done) {
			t.Errorf("%d of %d jobs were updated", updated, len(done))
		}
		stage.Stop(t, n, other)
	})
}
