package xxljob_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store/memory"
)

// TestAttachedAcrossNodes routes over executors attached to three nodes.
func TestAttachedAcrossNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a, b, c := startNode(t, st, "a", j), startNode(t, st, "b", j), startNode(t, st, "c", j)
		time.Sleep(10 * time.Second)
		ctx := t.Context()

		t.Log("a broadcast makes runs 0/3, 1/3, 2/3, one on each node")
		all, err := a.AddJob(ctx, xxljob.Job{Name: "all", Handler: "work", Route: "SHARDING_BROADCAST"})
		must(t, err)
		ids, err := a.Trigger(ctx, all.ID, xxljob.Trigger{})
		must(t, err)
		time.Sleep(2 * time.Second)
		parts, err := st.Runs(ctx, xxljob.RunFilter{TriggerID: ids[0]})
		must(t, err)
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
		for _, n := range []*node{a, b, c} {
			if got := j.by(n.name); got != 1 {
				t.Errorf("node %s ran %d parts", n.name, got)
			}
		}

		t.Log("nine ROUND triggers give three each")
		round, err := b.AddJob(ctx, xxljob.Job{Name: "round", Handler: "work", Route: "ROUND"})
		must(t, err)
		for range 9 {
			_, err := c.Trigger(ctx, round.ID, xxljob.Trigger{})
			must(t, err)
			time.Sleep(time.Second)
		}
		for _, n := range []*node{a, b, c} {
			if got := j.by(n.name); got != 4 {
				t.Errorf("node %s ran %d, want 1 part and 3 in turn", n.name, got)
			}
		}
		stop(t, a, b, c)
	})
}

// TestAppsOnDifferentNodes runs each job where its app and handler are.
func TestAppsOnDifferentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		ctx := t.Context()
		var nodes []*node
		for _, name := range []string{"a", "b", "c"} {
			n := startNode(t, st, name, j)
			nodes = append(nodes, n)
			e, err := executor.New(executor.Config{App: "app-" + name})
			must(t, err)
			must(t, e.Handle("only-"+name, func(_ context.Context, task *xxljob.Task) error { j.note("only-"+name, task); return nil }))
			must(t, n.Attach(e))
		}
		time.Sleep(10 * time.Second)
		for _, route := range []string{"FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED", "FAILOVER", "BUSYOVER", "SHARDING_BROADCAST", "NEAREST"} {
			for _, name := range []string{"a", "b", "c"} {
				for i := range 4 {
					job, err := nodes[i%3].AddJob(ctx, xxljob.Job{App: "app-" + name, Name: fmt.Sprint(route, i), Handler: "only-" + name, Route: route})
					must(t, err)
					ids, err := nodes[0].Trigger(ctx, job.ID, xxljob.Trigger{})
					must(t, err)
					run, err := nodes[1].Wait(ctx, ids[0])
					must(t, err)
					if run.State != xxljob.StateSucceeded {
						t.Errorf("%s on app-%s: %v\n%s", route, name, run.State, run.TriggerMsg)
					}
				}
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			if got := j.by("only-" + name); got != 44 {
				t.Errorf("app-%s ran %d jobs, want 44", name, got)
			}
		}
		stop(t, nodes...)
	})
}

// TestHandlerOnOneNode never chooses a node without the handler.
func TestHandlerOnOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		ctx := t.Context()
		a, b := startNode(t, st, "a", j), startNode(t, st, "b", j)
		must(t, b.Handle("rare", func(_ context.Context, task *xxljob.Task) error { j.note("b", task); return nil }))
		time.Sleep(10 * time.Second)
		for i := range 20 {
			job, err := a.AddJob(ctx, xxljob.Job{Name: fmt.Sprint(i), Handler: "rare", Route: []string{"ROUND", "FIRST", "RANDOM", "SHARDING_BROADCAST"}[i%4]})
			must(t, err)
			ids, err := a.Trigger(ctx, job.ID, xxljob.Trigger{})
			must(t, err)
			run, err := a.Wait(ctx, ids[0])
			must(t, err)
			if run.State != xxljob.StateSucceeded {
				t.Errorf("run %d: %v\n%s", i, run.State, run.TriggerMsg)
			}
		}
		if j.by("b") != 20 {
			t.Errorf("node b ran %d of 20", j.by("b"))
		}
		stop(t, a, b)
	})
}
