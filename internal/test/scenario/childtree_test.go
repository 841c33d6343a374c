package scenario_test

// A tree of children, over nodes that fail and die, and what is owed when nobody is there.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// grown is a tree of jobs: each leads to three, some by id and some by key; some run in parts,
// and some fail at first.
type grown struct {
	parent map[int64]int64 // of each job but the root
	depth  map[int64]int
	wide   map[int64]bool // runs in parts
}

// grow adds a job with all that is below it, and returns the job.
func (g *grown) grow(t *testing.T, s xxljob.Scheduler, name string, depth, most int) xxljob.Job {
	t.Helper()
	job := xxljob.Job{Name: name, OnLost: xxljob.OnLostRerun}
	var below []int64
	for i := range 3 {
		if depth == most {
			break
		}
		child := g.grow(t, s, fmt.Sprintf("%s.%d", name, i), depth+1, most)
		below = append(below, child.ID)
		if i == 0 {
			job.Children = append(job.Children, child.ID)
		} else {
			job.ChildKeys = append(job.ChildKeys, "app/"+child.Key)
		}
	}
	switch len(g.depth) % 5 {
	case 1:
		job.Route = xxljob.RouteShardingBroadcast
	case 2:
		job.Name, job.Retries = name+"!", 3
	case 3:
		job.Name, job.Route, job.Retries = name+"!", xxljob.RouteShardingBroadcast, 3
	}
	job = addJob(t, s, job)
	g.depth[job.ID], g.wide[job.ID] = depth, job.Route == xxljob.RouteShardingBroadcast
	for _, id := range below {
		g.parent[id] = job.ID
	}
	return job
}

func newGrown() *grown {
	return &grown{parent: map[int64]int64{}, depth: map[int64]int{}, wide: map[int64]bool{}}
}

// atFirst is a handler: jobs whose names end in "!" fail at first, in one of the parts where
// there are several.
func atFirst(_ context.Context, task *xxljob.Task) error {
	if strings.HasSuffix(task.JobName, "!") && task.Attempt == 0 && task.ShardIndex == 0 {
		return errBoom
	}
	return nil
}

// requireGrown checks that each job has run for one trigger, with all its parts, for the time of
// the root; soon says that a child starts at once.
func (g *grown) requireGrown(t *testing.T, st xxljob.Store, soon bool) {
	t.Helper()
	ended := map[int64]time.Time{} // when the trigger of a job had succeeded
	succeeded := map[int64]bool{}  // runs
	began := map[int64]xxljob.Run{}
	var business time.Time
	for id, depth := range g.depth {
		parts, triggers := 0, map[int64]bool{}
		for _, r := range runsOf(t, st, id) {
			triggers[r.TriggerID] = true
			if first, is := began[id]; !is || r.Started.Before(first.Started) {
				began[id] = r
			}
			if business.IsZero() {
				business = r.BusinessTime()
			}
			if r.Depth != depth || !r.BusinessTime().Equal(business) {
				t.Errorf("run %d of a job at depth %d has depth %d, and is for %v, want %v", r.ID, depth, r.Depth, r.BusinessTime(), business)
			}
			switch {
			case r.State == xxljob.StateSucceeded:
				parts++
				succeeded[r.ID] = true
				if r.Ended.After(ended[id]) {
					ended[id] = r.Ended
				}
			case !r.State.Ended():
				t.Errorf("run %d is %s", r.ID, r.State)
			}
		}
		want := 1
		if g.wide[id] {
			want = 2
		}
		if len(triggers) != 1 || parts != want {
			t.Errorf("a job at depth %d has run for %d triggers, and %d of %d parts have succeeded", depth, len(triggers), parts, want)
		}
	}
	for id, parent := range g.parent {
		r := began[id]
		if !succeeded[r.ParentID] {
			t.Errorf("run %d has the parent %d, which has not succeeded", r.ID, r.ParentID)
		}
		if late := r.Started.Sub(ended[parent]); late < 0 || soon && late > 100*time.Millisecond {
			t.Errorf("run %d was started %v after its parent had succeeded", r.ID, late)
		}
	}
}

// TestATreeOfChildren: 364 jobs, each of which runs once.
func TestATreeOfChildren(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, b := startFailing(t, st, "a", atFirst), startFailing(t, st, "b", atFirst)
		time.Sleep(time.Minute)
		g := newGrown()
		root := g.grow(t, a, "root", 0, 5)
		stage.Trigger(t, a, root)
		time.Sleep(time.Minute)
		g.requireGrown(t, st, true)
		if calls, runs := len(a.calls)+len(b.calls), len(stage.AllRuns(t, st)); calls != runs {
			t.Errorf("handlers were called %d times for %d runs", calls, runs)
		}
		if len(g.depth) != 364 {
			t.Errorf("%d jobs, want 364", len(g.depth))
		}
		stage.Stop(t, a.Node, b.Node)
	})
}

// TestATreeOfChildrenOverFaults: calls of the store fail at random, before and after they have
// taken effect.
func TestATreeOfChildrenOverFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, b := startFailing(t, st, "a", atFirst), startFailing(t, st, "b", atFirst)
		time.Sleep(time.Minute)
		g := newGrown()
		root := g.grow(t, a, "root", 0, 4)
		for _, n := range []*failing{a, b} {
			for _, method := range []string{"PayOwed", "ExpireWindows", "Finish", "Scan", "Start"} {
				n.Faults.Inject(method, storetest.Fault{Before: true, Rate: 0.2})
				n.Faults.Inject(method, storetest.Fault{After: true, Rate: 0.2})
			}
		}
		stage.Must(t, ignoreInjected(a.Trigger(t.Context(), root.ID, xxljob.Trigger{Key: "once"})))
		time.Sleep(30 * time.Minute)
		a.Faults.Clear()
		b.Faults.Clear()
		time.Sleep(5 * time.Minute)
		g.requireGrown(t, st, false)
		if n := a.Faults.Calls("PayOwed") + b.Faults.Calls("PayOwed"); n < 15 {
			t.Errorf("PayOwed was called %d times: hardly a fault", n)
		}
		stage.Stop(t, a.Node, b.Node)
	})
}

func ignoreInjected(_ []int64, err error) error { return err }

// TestAnotherNodePays: a node dies between the success of its runs and the payment.
func TestAnotherNodePays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, b := startFailing(t, st, "a", atFirst), startFailing(t, st, "b", atFirst)
		time.Sleep(time.Minute)
		a.Faults.Inject("PayOwed", storetest.Fault{Before: true})
		mend := b.Faults.Inject("PayOwed", storetest.Fault{Before: true})
		var parents, children []xxljob.Job
		for i := range 10 {
			child := addJob(t, a, xxljob.Job{Name: fmt.Sprint("child", i)})
			parent := addJob(t, a, xxljob.Job{Name: fmt.Sprint("parent", i), Children: []int64{child.ID}})
			stage.Trigger(t, a, parent)
			parents, children = append(parents, parent), append(children, child)
		}
		time.Sleep(5 * time.Second)
		ofA, owners := 0, stage.Observe(t, st).Shards
		for i, parent := range parents {
			if owners[parent.Shard].Owner == stage.IncarnationOf(t, st, a.Node) {
				ofA++
			}
			if runs := runsOf(t, st, parent.ID); len(runs) != 1 || runs[0].State != xxljob.StateSucceeded {
				t.Errorf("parent %d has not succeeded", i)
			}
			if runs := runsOf(t, st, children[i].ID); len(runs) != 0 {
				t.Errorf("child %d has %d runs while nobody can pay", i, len(runs))
			}
		}
		if ofA == 0 {
			t.Fatal("none of the parents lives in a shard of the node that is to die")
		}
		a.Pause()
		mend()
		time.Sleep(5 * time.Minute)
		requireOneEach(t, st, children)
		a.Resume()
		time.Sleep(5 * time.Minute)
		requireOneEach(t, st, children)
		stage.StopShort(a.Node)
		stage.Stop(t, b.Node)
	})
}

// requireOneEach checks that each job has run once.
func requireOneEach(t *testing.T, st xxljob.Store, jobs []xxljob.Job) {
	t.Helper()
	for _, job := range jobs {
		if runs := runsOf(t, st, job.ID); len(runs) != 1 || runs[0].State != xxljob.StateSucceeded {
			t.Errorf("%s has the runs %+v, want one that has succeeded", job.Name, runs)
		}
	}
}

// TestStopWhileSomethingIsOwed: the next node pays.
func TestStopWhileSomethingIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a := startFailing(t, st, "a", atFirst)
		a.Faults.Inject("PayOwed", storetest.Fault{Before: true})
		child := addJob(t, a, xxljob.Job{Name: "child"})
		stage.TriggerNew(t, a, xxljob.Job{Name: "parent", Handler: "try", Children: []int64{child.ID}})
		time.Sleep(time.Second)
		stage.Stop(t, a.Node)
		time.Sleep(time.Hour)
		if runs := runsOf(t, st, child.ID); len(runs) != 0 {
			t.Errorf("%d runs of the child while no node is there", len(runs))
		}
		began := time.Now()
		b := startFailing(t, st, "b", atFirst)
		time.Sleep(time.Minute)
		requireOneEach(t, st, []xxljob.Job{child})
		if late := runsOf(t, st, child.ID)[0].Started.Sub(began); late > 5*time.Second {
			t.Errorf("the child was started %v after a node had come", late)
		}
		stage.Stop(t, b.Node)
	})
}
