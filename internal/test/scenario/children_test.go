package scenario_test

// What follows a success, seen from outside: children, and jobs that run behind several.

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// addJob adds a job whose handler is "try".
func addJob(t *testing.T, s xxljob.Scheduler, job xxljob.Job) xxljob.Job {
	t.Helper()
	job.Handler = "try"
	added, err := s.AddJob(context.Background(), job)
	stage.Must(t, err)
	return added
}

// runsOf are the runs of a job, oldest first.
func runsOf(t *testing.T, st xxljob.Store, job int64) []xxljob.Run {
	t.Helper()
	return stage.AllOf(t, st, xxljob.RunFilter{JobID: job})
}

// requireSorted is requireCalls for those that may come in any order.
func (f *failing) requireSorted(t *testing.T, what string, want ...string) {
	t.Helper()
	f.mu.Lock()
	slices.Sort(f.calls)
	f.mu.Unlock()
	f.requireCalls(t, what, want...)
}

// TestChildren: by id and by key, with each kind of parameter, at once and once.
func TestChildren(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		param xxljob.ChildParam
		want  string
	}{{"", "own"}, {xxljob.ChildParamOwn, "own"}, {xxljob.ChildParamParent, "parent"}, {xxljob.ChildParamResult, "result"}} {
		t.Run(string("param "+tt.param), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
					task.SetResult("result")
					return nil
				})
				child := addJob(t, f, xxljob.Job{Name: "child", Param: "own"})
				other := addJob(t, f, xxljob.Job{Name: "other", Param: "own"})
				id := stage.TriggerNew(t, f, xxljob.Job{Name: "parent", Handler: "try", Param: "parent", ChildParam: tt.param, Children: []int64{child.ID, other.ID}, ChildKeys: []string{"app/child"}})
				time.Sleep(time.Second)
				f.requireSorted(t, "children", "child/0@0s", "other/0@0s", "parent/0@0s")
				parent := stage.WaitFor(t, f, id, time.Second)
				for _, job := range []int64{child.ID, other.ID} {
					runs := runsOf(t, st, job)
					if len(runs) != 1 {
						t.Fatalf("%d runs of a child, want 1", len(runs))
					}
					r := runs[0]
					if r.Type != xxljob.TriggerParent || r.ParentID != id || r.Depth != 1 || r.Param != tt.want || r.State != xxljob.StateSucceeded || r.Scheduled.Sub(parent.Ended) > 100*time.Millisecond {
						t.Errorf("the child is %s of %d, depth %d, parameter %q, %s, due %v after its parent", r.Type, r.ParentID, r.Depth, r.Param, r.State, r.Scheduled.Sub(parent.Ended))
					}
					if !r.Business.Equal(parent.Scheduled) {
						t.Errorf("the child is for %v, its parent for %v", r.Business, parent.Scheduled)
					}
				}
				stage.Stop(t, f.Node)
			})
		})
	}
}

// TestChildrenThatAreNotThere: the parent says so, and all else goes on.
func TestChildrenThatAreNotThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return nil })
		gone := addJob(t, f, xxljob.Job{Name: "gone"})
		there := addJob(t, f, xxljob.Job{Name: "there"})
		parent := addJob(t, f, xxljob.Job{Name: "parent", Children: []int64{gone.ID, there.ID}, ChildKeys: []string{"app/never"}})
		stage.Must(t, f.RemoveJob(context.Background(), gone.ID))
		ids, err := f.Trigger(context.Background(), parent.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(time.Second)
		f.requireCalls(t, "those that are there", "parent/0@0s", "there/0@0s")
		r, err := st.Run(context.Background(), ids[0])
		stage.Must(t, err)
		stage.RequireText(t, "the parent", r.TriggerMsg, store.IDRef(gone.ID))
		stage.RequireText(t, "the parent", r.TriggerMsg, "app/never")
		if _, err := f.AddJob(context.Background(), xxljob.Job{Name: "x", Handler: "try", Children: []int64{gone.ID}}); !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("a job that names an id which no job has: %v", err)
		}
		stage.Stop(t, f.Node)
	})
}

// halfPaid is a store whose first payment of what is owed fails when it has paid something.
type halfPaid struct {
	st     store.Store
	failed *atomic.Bool
}

func (h halfPaid) PayOwed(ctx context.Context, q store.OwedQuery) (store.Paid, error) {
	paid, err := h.st.PayOwed(ctx, q)
	if err == nil && paid.Owed > 0 && h.failed.CompareAndSwap(false, true) {
		err = errors.New("the next ones could not be paid")
	}
	return paid, err
}

// TestPaidBeforeAnError: what was paid before an error is told all the same, and its runs are started at once.
func TestPaidBeforeAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, failed := memory.New(), new(atomic.Bool)
		f := startFailing(t, bent.StoreOf(st, halfPaid{st, failed}), "a", func(context.Context, *xxljob.Task) error { return nil })
		gone := addJob(t, f, xxljob.Job{Name: "gone"})
		there := addJob(t, f, xxljob.Job{Name: "there"})
		parent := addJob(t, f, xxljob.Job{Name: "parent", Children: []int64{gone.ID, there.ID}})
		stage.Must(t, f.RemoveJob(context.Background(), gone.ID))
		_, err := f.Trigger(context.Background(), parent.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(time.Second)
		f.requireCalls(t, "those that are there", "parent/0@0s", "there/0@0s")
		if n := f.Stats().Absent; n != 1 || !failed.Load() {
			t.Errorf("%d children that are not there, want one; a payment has failed: %t", n, failed.Load())
		}
		stage.Stop(t, f.Node)
	})
}

// TestCyclesAreRefused: by id and by key, through joins, in lists, by another key.
func TestCyclesAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, ctx := memory.New(), context.Background()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return nil })
		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, xxljob.ErrCycle) {
				t.Errorf("%s: %v, want ErrCycle", what, err)
			}
		}
		a := addJob(t, f, xxljob.Job{Name: "a"})
		b := addJob(t, f, xxljob.Job{Name: "b", Children: []int64{a.ID}})
		a.Children = []int64{a.ID}
		_, err := f.UpdateJob(ctx, a)
		refused("itself", err)
		a.Children = []int64{b.ID}
		_, err = f.UpdateJob(ctx, a)
		refused("by id", err)
		a.Children, a.ChildKeys = nil, []string{"app/b"}
		_, err = f.UpdateJob(ctx, a)
		refused("by key", err)
		_, err = f.EnsureJob(ctx, xxljob.Job{App: "app", Key: "a", Name: "a", Handler: "try", ChildKeys: []string{"app/b"}})
		refused("ensured", err)
		_, err = f.AddJob(ctx, xxljob.Job{Name: "self", Handler: "try", ChildKeys: []string{"app/self"}})
		refused("itself, by key", err)
		// a join: c behind a, with b as its child, which has a as its child
		_, err = f.AddJob(ctx, xxljob.Job{Name: "c", Handler: "try", After: []int64{a.ID}, Children: []int64{b.ID}})
		refused("through a join", err)
		_, err = f.EnsureJobs(ctx, "app", []xxljob.Job{{Name: "x", Handler: "try", ChildKeys: []string{"app/y"}}, {Name: "y", Handler: "try", AfterKeys: []string{"app/z"}, ChildKeys: []string{"app/z"}}, {Name: "z", Handler: "try"}}, xxljob.EnsureOptions{})
		refused("in a list", err)
		// what is not there yet counts, and so does another key
		addJob(t, f, xxljob.Job{Name: "behind", AfterKeys: []string{"app/later"}, Children: []int64{b.ID}})
		a.ChildKeys, a.Key = nil, "later"
		_, err = f.UpdateJob(ctx, a)
		refused("by another key", err)
		if jobs, err := st.Links(ctx); err != nil || len(jobs) != 2 {
			t.Errorf("%d jobs name others, want 2: %v", len(jobs), err)
		}
		stage.Stop(t, f.Node)
	})
}
