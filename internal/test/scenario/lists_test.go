package scenario_test

// When lists of jobs count: what comes between two looks at them, and what they leave
// alone.

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestListAtTheLastMoment: a list comes after a node has seen that it may prune a job, or
// that it may apply its own list again, and before the store has heard of it.
func TestListAtTheLastMoment(t *testing.T) {
	t.Parallel()
	const late = 4 * time.Second
	await := func(t *testing.T, n *stage.Node, method string) {
		t.Helper()
		for was, i := n.Faults.Calls(method), 0; n.Faults.Calls(method) == was; i++ {
			if i > 3600 {
				t.Fatalf("no call of %s", method)
			}
			time.Sleep(time.Second)
		}
	}
	t.Run("prune", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			old, _ := startRelease(t, st, "old", releaseOf(1, "x", "y"))
			stage.Stop(t, old)
			a, _ := startRelease(t, st, "a", releaseOf(1, "x"))
			a.Faults.Inject("EditJob", storetest.Fault{Delay: late})
			await(t, a, "EditJob")
			b, _ := startRelease(t, st, "b", releaseOf(1, "x", "y"))
			time.Sleep(time.Hour)
			y, err := st.JobByKey(t.Context(), "app", "y")
			stage.Must(t, err)
			if y.Stopped || y.Version != 1 {
				t.Errorf("the job of the list that came between: stopped %v, version %d", y.Stopped, y.Version)
			}
			stage.Stop(t, a, b)
		})
	})
	t.Run("apply again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			two, _ := startRelease(t, st, "two", releaseOf(2, "x"))
			one, _ := startRelease(t, st, "one", releaseOf(1, "x"))
			time.Sleep(time.Minute)
			stage.Stop(t, two)
			one.Faults.Inject("PutList", storetest.Fault{Delay: late})
			await(t, one, "PutList")
			three, _ := startRelease(t, st, "three", releaseOf(3, "x"))
			time.Sleep(time.Hour)
			requireJobs(t, st, "with a third release", "x v3")
			stage.Stop(t, one, three)
		})
	})
}

// TestApplyAgainAtAStoreThatHangs: while a list is applied again, the store does not answer
// one call, of whatever kind. It is given up, and the whole list applies all the same; a
// call of EnsureJobs meanwhile waits for no longer than a call of the store may take.
func TestApplyAgainAtAStoreThatHangs(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"PutList", "NameJobs", "EditJob", "EnsureGroup", "AddJobs"} {
		for _, f := range []storetest.Fault{{Delay: 24 * time.Hour, Calls: 1}, {Late: 24 * time.Hour, Calls: 1}} {
			t.Run(fmt.Sprint(method, " after ", f.Late > 0), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := memory.New()
					two, _ := startRelease(t, st, "two", releaseOf(2, "x", "y"))
					one, _ := startRelease(t, st, "one", releaseOf(1, "x", "y", "z"))
					time.Sleep(time.Minute)
					stage.Stop(t, two)
					one.Faults.Inject(method, f)
					for calls := one.Faults.Calls(method); one.Faults.Calls(method) == calls; time.Sleep(time.Second) {
					}
					asked := time.Now()
					_, err := one.EnsureJobs(t.Context(), "other", nil, xxljob.EnsureOptions{})
					stage.Must(t, err)
					if waited := time.Since(asked); waited > 10*time.Second {
						t.Errorf("EnsureJobs waited %v", waited)
					}
					time.Sleep(time.Minute)
					requireJobs(t, st, "applied again", "x v1", "y v1", "z v1")
					stage.Stop(t, one)
				})
			})
		}
	}
}

// TestPruneNeedsLooks: what a node has seen before its looks failed for a while counts for
// nothing: somebody may have named the job meanwhile.
func TestPruneNeedsLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		old, _ := startRelease(t, st, "old", releaseOf(1, "x", "y"))
		stage.Stop(t, old)
		a, _ := startRelease(t, st, "a", releaseOf(1, "x"))
		time.Sleep(pruneAfter / 2)
		a.Faults.Inject("Lists", storetest.Fault{Before: true})
		time.Sleep(time.Hour)
		a.Faults.Clear()
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "shortly after it looks again", "x v1", "y v1")
		time.Sleep(3 * time.Minute)
		requireJobs(t, st, "after PruneAfter of looks", "x v1")
		stage.Stop(t, a)
	})
}

// TestListComesBetween: a list that comes while jobs of it are about to be pruned wins:
// also when its node has ensured it before it starts. Meanwhile it applies, and no other
// list of its generation prunes; one that is ensured once more does, and what it has
// pruned by then is brought back.
func TestListComesBetween(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("the other is ensured again: ", again), func(t *testing.T) { listComesBetween(t, again) })
	}
}

func listComesBetween(t *testing.T, again bool) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(0, "x", "y"))
		_, err := a.EnsureJobs(t.Context(), "", releaseOf(0, "x").jobs, xxljob.EnsureOptions{Prune: true})
		stage.Must(t, err)
		time.Sleep(pruneAfter - time.Second)
		requireJobs(t, st, "before", "x v0", "y v0")
		n := &stage.Node{Name: "b", Faults: storetest.Wrap(st)}
		s, err := xxljob.New(n.Faults, xxljob.Config{App: "app", Node: "b", Logger: stage.QuietLog()})
		stage.Must(t, err)
		n.Scheduler = s
		r := releaseOf(0, "x", "y")
		_, err = s.EnsureJobs(t.Context(), "", r.jobs, r.opts)
		stage.Must(t, err)
		meanwhile := []string{"x v0", "y v0"}
		if again {
			_, err := a.EnsureJobs(t.Context(), "", releaseOf(0, "x").jobs, xxljob.EnsureOptions{Prune: true})
			stage.Must(t, err)
			meanwhile = meanwhile[:1]
		}
		time.Sleep(2 * time.Minute) // it is slow to start
		requireJobs(t, st, "meanwhile", meanwhile...)
		stage.Must(t, s.Start(context.Background()))
		time.Sleep(time.Second)
		requireJobs(t, st, "started", "x v0", "y v0")
		time.Sleep(3 * pruneAfter)
		requireJobs(t, st, "later", "x v0", "y v0")
		stage.Stop(t, a, n)
	})
}

// TestBuriedNodeIsBack: a node that was paused for so long that the others have buried it
// puts its lists again.
func TestBuriedNodeIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(0, "x", "y"))
		b, _ := startRelease(t, st, "b", releaseOf(0, "x"))
		time.Sleep(time.Minute)
		a.Pause()
		time.Sleep(5 * time.Minute)
		a.Resume()
		time.Sleep(time.Hour)
		requireJobs(t, st, "back", "x v0", "y v0")
		a.Pause()
		time.Sleep(20 * time.Minute)
		requireJobs(t, st, "away for long", "x v0")
		a.Resume()
		time.Sleep(2 * time.Minute)
		requireJobs(t, st, "back again", "x v0", "y v0")
		stage.Stop(t, a, b)
	})
}

// TestPruneLeavesOthersAlone: jobs that no list has named are not pruned.
func TestPruneLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(1, "x"))
		_, err := a.EnsureJob(t.Context(), xxljob.Job{Name: "single", Handler: "work", Schedule: xxljob.FixedRate(time.Minute)})
		stage.Must(t, err)
		_, err = a.AddJob(t.Context(), xxljob.Job{Name: "added", Handler: "work", Schedule: xxljob.FixedRate(time.Minute)})
		stage.Must(t, err)
		time.Sleep(3 * pruneAfter)
		requireJobs(t, st, "in the end", "added ", "single ", "x v1")
		stage.Stop(t, a)
	})
}
