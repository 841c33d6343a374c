package scenario_test

// Concurrent jobs: side by side over the executors of an app, up to a maximum at each.

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// benches counts how many runs are at each node at once.
type benches struct {
	mu   sync.Mutex
	now  map[string]int
	most map[string]int
	all  map[string]int
}

func newBenches() *benches {
	return &benches{now: map[string]int{}, most: map[string]int{}, all: map[string]int{}}
}

// handler is at a node for a while.
func (b *benches) handler(node string, d time.Duration) xxljob.Handler {
	return func(ctx context.Context, _ *xxljob.Task) error {
		b.mu.Lock()
		b.now[node]++
		b.all[node]++
		b.most[node] = max(b.most[node], b.now[node])
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.now[node]--
		}()
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return nil
	}
}

// mosts is a copy of the most runs that were at each node at once.
func (b *benches) mosts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.most)
}

// replicas starts nodes whose handler "slow" takes 100 ms.
func replicas(t *testing.T, st xxljob.Store, b *benches, names ...string) []*stage.Node {
	t.Helper()
	var nodes []*stage.Node
	for _, name := range names {
		n := stage.StartNode(t, st, name, &stage.Journal{})
		stage.Must(t, n.Handle("slow", b.handler(name, 100*time.Millisecond)))
		nodes = append(nodes, n)
	}
	time.Sleep(time.Minute)
	return nodes
}

// triggerMany runs a job many times at once and returns how long it took until all have ended.
func triggerMany(t *testing.T, s xxljob.Scheduler, job int64, n int) time.Duration {
	t.Helper()
	began := time.Now()
	var ids []int64
	for range n {
		id, err := s.TriggerOne(t.Context(), job, xxljob.Trigger{})
		stage.Must(t, err)
		ids = append(ids, id)
	}
	for _, id := range ids {
		if run := stage.WaitFor(t, s, id, time.Minute); run.State != xxljob.StateSucceeded {
			t.Errorf("run %d: %v", id, run.Err())
		}
	}
	return time.Since(began)
}

// TestConcurrentOverReplicas: 20 triggers of a handler of 100 ms over three replicas are done
// within a second, which a serial job does not manage.
func TestConcurrentOverReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		block, route string
		max          int
		within       time.Duration
	}{
		{xxljob.BlockConcurrent, xxljob.RouteRound, 0, time.Second},
		{xxljob.BlockConcurrent, xxljob.RouteRound, 2, time.Second},
		{xxljob.BlockConcurrent, xxljob.RouteRound, 1, time.Second},
		{xxljob.BlockConcurrent, xxljob.RouteNearest, 0, time.Second},
		{xxljob.BlockConcurrent, xxljob.RouteFirst, 5, time.Second},
	} {
		t.Run(fmt.Sprint(c.route, " ", c.max), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, b := memory.New(), newBenches()
				nodes := replicas(t, st, b, "a", "b", "c")
				job, err := nodes[0].AddJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "slow", Block: c.block, Route: c.route, MaxPerExecutor: c.max})
				stage.Must(t, err)
				if took := triggerMany(t, nodes[0], job.ID, 20); took >= c.within {
					t.Errorf("20 runs took %v", took)
				}
				for node, most := range b.mosts() {
					if c.max > 0 && most > c.max {
						t.Errorf("%d ran side by side at %s, at most %d may", most, node, c.max)
					}
				}
				if c.route == xxljob.RouteRound && len(b.all) != 3 {
					t.Errorf("runs by node: %v", b.all)
				}
				if c.route == xxljob.RouteFirst && !maps.Equal(b.mosts(), map[string]int{"a": 5}) {
					t.Errorf("the first node ran %v side by side, want 5", b.mosts())
				}
				stage.Stop(t, nodes...)
			})
		})
	}
}

// TestConcurrentBacklogWaits: what is above the maximum waits in the store, however much it is,
// and goes on when a node that ran some of it is gone.
func TestConcurrentBacklogWaits(t *testing.T) {
	t.Parallel()
	const runs = 1000
	synctest.Test(t, func(t *testing.T) {
		st, b := memory.New(), newBenches()
		nodes := replicas(t, st, b, "a", "b")
		job, err := nodes[0].AddJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "slow", Block: xxljob.BlockConcurrent, Route: xxljob.RouteRound, MaxPerExecutor: 4})
		stage.Must(t, err)
		for range runs {
			_, err := nodes[0].Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
		}
		time.Sleep(5 * time.Second)
		stage.Stop(t, nodes[1])
		time.Sleep(time.Minute)
		synctest.Wait()
		if states := stage.CountStates(stage.AllRuns(t, st)); states[xxljob.StateSucceeded] != runs {
			t.Errorf("runs by state: %v", states)
		}
		if most := b.mosts(); !maps.Equal(most, map[string]int{"a": 4, "b": 4}) {
			t.Errorf("at most %v ran side by side, want 4 at each", most)
		}
		stage.Stop(t, nodes[0])
	})
}

// TestConcurrentSchedule: a schedule whose runs last longer than its period runs them beside
// each other; the parts of a broadcast go to each address.
func TestConcurrentSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, b := memory.New(), newBenches()
		nodes := replicas(t, st, b, "a", "b")
		for _, n := range nodes {
			stage.Must(t, n.Handle("long", b.handler(n.Name, 3500*time.Millisecond)))
		}
		job, err := nodes[0].AddJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "long", Block: xxljob.BlockConcurrent,
			Route: xxljob.RouteShardingBroadcast, Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		time.Sleep(20 * time.Second)
		if most := b.mosts(); !maps.Equal(most, map[string]int{"a": 4, "b": 4}) {
			t.Errorf("at most %v ran side by side, want 4 at each", most)
		}
		stage.Must(t, nodes[0].StopJob(t.Context(), job.ID))
		time.Sleep(10 * time.Second)
		stage.Stop(t, nodes...)
	})
}

// TestConcurrentAtOthers: a manual group is refused such jobs, and executors that do not say
// that they run them side by side are warned of.
func TestConcurrentAtOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &stage.LogLines{}
		st := memory.New()
		cfg := xxljob.Config{App: "app"}
		log.LogTo(&cfg)
		s, err := xxljob.New(st, cfg)
		stage.Must(t, err)
		job := xxljob.Job{App: "far", Key: "j", Name: "far job", Handler: "h", Block: xxljob.BlockConcurrent}
		refused := func(what string, err error, words ...string) {
			t.Helper()
			for _, w := range words {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %v, want %q in it", what, err, w)
				}
			}
		}
		manual := xxljob.Group{App: "far", Manual: true, Addresses: []string{"http://10.0.0.1:9999/"}}
		stage.Must(t, s.SaveGroup(t.Context(), manual))
		_, err = s.AddJob(t.Context(), job)
		refused("AddJob", err, `job "far job"`, "CONCURRENT", "manual group")
		_, err = s.EnsureJob(t.Context(), job)
		refused("EnsureJob", err, `job "far job"`, "manual group")
		_, err = s.EnsureJobs(t.Context(), "far", []xxljob.Job{{Key: "k", Name: "k", Handler: "h"}, job}, xxljob.EnsureOptions{})
		refused("EnsureJobs", err, "job 2 of the list", `job "far job"`, "manual group")
		serial := job
		serial.Block = ""
		added, err := s.AddJob(t.Context(), serial)
		stage.Must(t, err)
		added.Block = xxljob.BlockConcurrent
		_, err = s.UpdateJob(t.Context(), added)
		refused("UpdateJob", err, "manual group")

		stage.Must(t, s.SaveGroup(t.Context(), xxljob.Group{App: "far"}))
		if lines := log.With("one after the other"); len(lines) != 0 {
			t.Errorf("warned without executors: %q", lines)
		}
		stage.Must(t, st.PutAddresses(t.Context(), []xxljob.Registration{
			{App: "far", Address: "http://10.0.0.1:9999/"},
			{App: "far", Address: "http://10.0.0.2:9999/", BootID: "x", Capabilities: []string{wire.CapRepeat, wire.CapConcurrent}},
		}))
		_, err = s.UpdateJob(t.Context(), added)
		stage.Must(t, err)
		if lines := log.With("one after the other", "executors=1", "one=http://10.0.0.1:9999/"); len(lines) != 1 {
			t.Errorf("the log says %q", log.With("CONCURRENT"))
		}
		refused("SaveGroup", s.SaveGroup(t.Context(), manual), "Manual", `job "far job"`, "CONCURRENT")
	})
}

// TestConcurrentFaults: MaxPerExecutor is for this strategy, and bounded.
func TestConcurrentFaults(t *testing.T) {
	for want, job := range map[string]xxljob.Job{
		`MaxPerExecutor "-1": want 1 to 10000`:        {Block: xxljob.BlockConcurrent, MaxPerExecutor: -1},
		`MaxPerExecutor "10001": want 1 to 10000`:     {Block: xxljob.BlockConcurrent, MaxPerExecutor: 10_001},
		`MaxPerExecutor "2": is for Block CONCURRENT`: {MaxPerExecutor: 2},
		`Block "PARALLEL": unknown block strategy: `:  {Block: "PARALLEL"},
		`COVER_EARLY, CONCURRENT`:                     {Block: "PARALLEL"},
		`did you mean CONCURRENT?`:                    {Block: "concurrent"},
	} {
		job.Name, job.Handler = "j", "h"
		if err := job.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
