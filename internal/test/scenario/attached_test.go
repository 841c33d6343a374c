package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestAttachedAcrossNodes routes over executors attached to three nodes.
func TestAttachedAcrossNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
		time.Sleep(10 * time.Second)
		ctx := t.Context()

		t.Log("a broadcast makes runs 0/3, 1/3, 2/3, one on each node")
		all, err := a.AddJob(ctx, xxljob.Job{Name: "all", Handler: "work", Route: "SHARDING_BROADCAST"})
		stage.Must(t, err)
		ids, err := a.Trigger(ctx, all.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(2 * time.Second)
		parts, err := st.Runs(ctx, xxljob.RunFilter{TriggerID: ids[0]})
		stage.Must(t, err)
		var shards []string
		for _, r := range parts {
			shards = append(shards, r.Sharding.String())
			if r.State != xxljob.StateSucceeded {
				t.Errorf("part %v: %v %s", r.Sharding, r.State, r.TriggerMsg)
			}
		}
		slices.Sort(shards)
		if !slices.Equal(shards, []string{"0/3", "1/3", "2/3"}) {
			t.Errorf("parts: %v", shards)
		}
		for _, n := range []*stage.Node{a, b, c} {
			if got := j.By(n.Name); got != 1 {
				t.Errorf("node %s ran %d parts", n.Name, got)
			}
		}

		t.Log("nine ROUND triggers give three each")
		round, err := b.AddJob(ctx, xxljob.Job{Name: "round", Handler: "work", Route: "ROUND"})
		stage.Must(t, err)
		for range 9 {
			_, err := c.Trigger(ctx, round.ID, xxljob.Trigger{})
			stage.Must(t, err)
			time.Sleep(time.Second)
		}
		for _, n := range []*stage.Node{a, b, c} {
			if got := j.By(n.Name); got != 4 {
				t.Errorf("node %s ran %d, want 1 part and 3 in turn", n.Name, got)
			}
		}
		stage.Stop(t, a, b, c)
	})
}

// TestAppsOnDifferentNodes runs each job where its app and handler are.
func TestAppsOnDifferentNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		ctx := t.Context()
		var nodes []*stage.Node
		for _, name := range []string{"a", "b", "c"} {
			n := stage.StartNode(t, st, name, j)
			nodes = append(nodes, n)
			e, err := executor.New(executor.Config{App: "app-" + name})
			stage.Must(t, err)
			stage.Must(t, e.Handle("only-"+name, func(_ context.Context, task *xxljob.Task) error { j.Note("only-"+name, task); return nil }))
			stage.Must(t, n.Attach(e))
		}
		time.Sleep(10 * time.Second)
		for _, route := range []string{"FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED", "FAILOVER", "BUSYOVER", "SHARDING_BROADCAST", "NEAREST"} {
			for _, name := range []string{"a", "b", "c"} {
				for i := range 4 {
					job, err := nodes[i%3].AddJob(ctx, xxljob.Job{App: "app-" + name, Name: fmt.Sprint(route, i), Handler: "only-" + name, Route: route})
					stage.Must(t, err)
					ids, err := nodes[0].Trigger(ctx, job.ID, xxljob.Trigger{})
					stage.Must(t, err)
					run, err := nodes[1].Wait(ctx, ids[0])
					stage.Must(t, err)
					if run.State != xxljob.StateSucceeded {
						t.Errorf("%s on app-%s: %v\n%s", route, name, run.State, run.TriggerMsg)
					}
				}
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			if got := j.By("only-" + name); got != 44 {
				t.Errorf("app-%s ran %d jobs, want 44", name, got)
			}
		}
		stage.Stop(t, nodes...)
	})
}

// TestHandlerOnOneNode never chooses a node without the handler.
func TestHandlerOnOneNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		ctx := t.Context()
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		stage.Must(t, b.Handle("rare", func(_ context.Context, task *xxljob.Task) error { j.Note("b", task); return nil }))
		time.Sleep(10 * time.Second)
		for i := range 20 {
			job, err := a.AddJob(ctx, xxljob.Job{Name: fmt.Sprint(i), Handler: "rare", Route: []string{"ROUND", "FIRST", "RANDOM", "SHARDING_BROADCAST"}[i%4]})
			stage.Must(t, err)
			ids, err := a.Trigger(ctx, job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			run, err := a.Wait(ctx, ids[0])
			stage.Must(t, err)
			if run.State != xxljob.StateSucceeded {
				t.Errorf("run %d: %v\n%s", i, run.State, run.TriggerMsg)
			}
		}
		if j.By("b") != 20 {
			t.Errorf("node b ran %d of 20", j.By("b"))
		}
		stage.Stop(t, a, b)
	})
}
