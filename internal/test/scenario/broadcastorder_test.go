package scenario_test

// The order of a serial job's broadcasts and of parts that are triggered by themselves.

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

// holdUp has the next start of each node take a second: what comes meanwhile is due together.
func holdUp(t *testing.T, nodes ...*stage.Node) {
	for _, n := range nodes {
		n.Faults.Inject("Start", storetest.Fault{Delay: time.Second, Calls: 1})
		stage.Trigger(t, n, broadcast(t, n, "first "+n.Name))
	}
}

// serialBroadcasts makes jobs, some in shards of either of two nodes.
func serialBroadcasts(t *testing.T, n *stage.Node) (jobs []xxljob.Job) {
	for i := range 8 {
		jobs = append(jobs, broadcast(t, n, fmt.Sprint("serial ", i)))
	}
	return jobs
}

// triggerSecond triggers the second part of a job by itself.
func triggerSecond(t *testing.T, n *stage.Node, job xxljob.Job) int64 {
	ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{Shard: xxljob.Sharding{Index: 1, Total: 2}})
	stage.Must(t, err)
	return ids[0]
}

// requireSecondParts checks that two second parts of each job have begun, and which was the
// one at a place in their order.
func requireSecondParts(t *testing.T, parts *stage.Journal, at int, want map[int64]int64) {
	t.Helper()
	order := map[int64][]int64{}
	for _, s := range parts.All() {
		if s.Shard == "1/2" {
			order[s.Job] = append(order[s.Job], s.Run)
		}
	}
	for job, run := range want {
		if runs := order[job]; len(runs) != 2 || runs[at] != run {
			t.Errorf("the second parts of job %d ran as %v, want two, and %d at place %d", job, runs, run, at)
		}
	}
}

// TestAPartBehindABroadcastApart: a broadcast of a serial job waits for its turn, or starts
// behind other runs, and a later trigger of one part of that job does not overtake it.
func TestAPartBehindABroadcastApart(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{0, 40} {
		t.Run(fmt.Sprint(ahead, " others ahead"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, parts := slowOneByOne(100*time.Millisecond), &stage.Journal{}
				a, b := stage.StartNode(t, st, "a", &stage.Journal{}), stage.StartNode(t, st, "b", &stage.Journal{})
				handleParts(t, parts, a, b)
				time.Sleep(10 * time.Second)
				jobs := serialBroadcasts(t, a)
				for i := range ahead {
					jobs = append(jobs, broadcast(t, a, fmt.Sprint("part ", i)))
				}
				holdUp(t, a, b)
				for _, job := range jobs[8:] {
					stage.Trigger(t, a, job)
				}
				second := map[int64]int64{}
				for _, job := range jobs[:8] {
					stage.Trigger(t, a, job)
					second[job.ID] = triggerSecond(t, a, job)
				}
				time.Sleep(30 * time.Second)
				requireSecondParts(t, parts, 1, second)
				stage.Stop(t, a, b)
			})
		})
	}
}

// TestABroadcastBehindAPart: one part of a serial job cannot be started at first, for its
// start fails, or there is no room. A later broadcast of the job does not overtake it.
func TestABroadcastBehindAPart(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprint("no room ", full), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, parts := memory.New(), &stage.Journal{}
				few := func(c *xxljob.Config) { c.Executor.Places = 1 }
				a, b := stage.StartNode(t, st, "a", &stage.Journal{}, few), stage.StartNode(t, st, "b", &stage.Journal{}, few)
				handleParts(t, parts, a, b)
				stage.Must(t, b.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(8 * time.Second); return nil }))
				time.Sleep(10 * time.Second)
				jobs := serialBroadcasts(t, a)
				if full {
					long, err := a.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long"})
					stage.Must(t, err)
					stage.Trigger(t, a, long)
					time.Sleep(time.Second)
				} else {
					holdUp(t, a, b)
					time.Sleep(time.Second / 2)
					for _, n := range []*stage.Node{a, b} {
						n.Faults.Inject("Start", storetest.Fault{Before: true, Calls: 1})
					}
				}
				first := map[int64]int64{}
				for _, job := range jobs {
					first[job.ID] = triggerSecond(t, a, job)
				}
				for _, job := range jobs {
					stage.Trigger(t, a, job)
				}
				time.Sleep(40 * time.Second)
				requireSecondParts(t, parts, 0, first)
				stage.Stop(t, a, b)
			})
		})
	}
}
