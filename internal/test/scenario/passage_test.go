package scenario_test

// Which run follows which over several nodes, and what becomes of those in shards that were taken.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestSerialRunsFollowEachOther: runs of a serial job that go to several nodes are each
// started as soon as the one before was taken, and not when that has ended.
func TestSerialRunsFollowEachOther(t *testing.T) {
	t.Parallel()
	for name, route := range map[string]string{"addresses are given": "FIRST", "each has its turn": "ROUND"} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { followEachOther(t, route) }) })
	}
}

func followEachOther(t *testing.T, route string) {
	st, j := memory.New(), &stage.Journal{}
	var nodes []*stage.Node
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		n := stage.StartNode(t, st, name, j)
		nodes = append(nodes, n)
		if name == "e" {
			continue // schedules only
		}
		n.Faults.Inject("Take", storetest.Fault{Delay: 30 * time.Millisecond})
		stage.Must(t, n.Handle("long", func(_ context.Context, task *xxljob.Task) error {
			j.Note(name, task)
			time.Sleep(20 * time.Second)
			return nil
		}))
	}
	time.Sleep(20*time.Second + 500*time.Millisecond)
	e := nodes[4]
	e.Faults.Inject("Start", storetest.Fault{Delay: 100 * time.Millisecond})
	var job xxljob.Job
	for i := range 1000 {
		var err error
		job, err = e.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("long ", i), Handler: "long", Route: route, Block: "SERIAL_EXECUTION"})
		stage.Must(t, err)
		if owner := stage.Observe(t, st).Shards[job.Shard].Owner; owner[:2] == "e-" {
			break
		}
	}
	began := time.Now()
	for _, n := range nodes[:4] {
		var at []string
		if route == "FIRST" {
			at = []string{store.LocalAddress(stage.IncarnationOf(t, st, n))}
		}
		_, err := e.Trigger(t.Context(), job.ID, xxljob.Trigger{Addresses: at})
		stage.Must(t, err)
	}
	time.Sleep(10 * time.Second)
	for _, s := range j.All() {
		if late := s.At.Sub(began); late > time.Second {
			t.Errorf("run %d began after %v", s.Run, late)
		}
	}
	if n := len(j.All()); n != 4 {
		t.Errorf("%d runs have begun, want 4", n)
	}
	time.Sleep(time.Minute)
	stage.Stop(t, nodes...)
}

// TestShardTriggersAreNotSerial: two triggers for one part of a job each are two runs: the
// block strategy decides about them as about others.
func TestShardTriggersAreNotSerial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		stage.Must(t, n.Handle("long", func(ctx context.Context, task *xxljob.Task) error {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}))
		time.Sleep(time.Second)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long", Route: "SHARDING_BROADCAST", Block: "COVER_EARLY"})
		stage.Must(t, err)
		var ids []int64
		for range 2 {
			id, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{Shard: xxljob.Sharding{Index: 0, Total: 3}})
			stage.Must(t, err)
			ids = append(ids, id...)
			time.Sleep(time.Second)
		}
		runs, err := st.RunsByID(t.Context(), ids)
		stage.Must(t, err)
		if runs[0].State != xxljob.StateKilled || runs[1].State != xxljob.StateStarted {
			t.Errorf("the first run is %v, the second one %v; want it covered", runs[0].State, runs[1].State)
		}
		stage.StopShort(n)
	})
}

// TestMovedRunIsNotPassed: a run of a serial job is refused here and goes to another node,
// which does not take it. The next run waits until it was put back and was started again.
func TestMovedRunIsNotPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var mu sync.Mutex
		var got []int64
		here := &stage.UserExecutor{Of: "far"}
		here.OnRun = func(ctx context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error) {
			mu.Lock()
			defer mu.Unlock()
			if got = append(got, r.LogID); len(got) == 1 {
				return wire.Failf("full"), nil
			}
			go admin.Callback(context.WithoutCancel(ctx), []wire.CallbackRequest{{LogID: r.LogID, HandleCode: 200}})
			return wire.Success(), nil
		}
		start := func(name string, st xxljob.Store, e *stage.UserExecutor) xxljob.Scheduler {
			s, err := xxljob.New(st, xxljob.Config{App: "own-" + name, Node: name, Logger: stage.QuietLog()})
			stage.Must(t, err)
			stage.Must(t, s.Attach(e))
			stage.Must(t, s.Start(context.Background()))
			return s
		}
		a, b := start("a", st, here), start("b", stage.BlindInbox{Store: st}, &stage.UserExecutor{Of: "far"})
		time.Sleep(20 * time.Second)
		var job xxljob.Job
		for i := range 1000 {
			var err error
			job, err = a.AddJob(t.Context(), xxljob.Job{App: "far", Name: fmt.Sprint("job ", i), Handler: "work", Route: "FAILOVER", Block: "SERIAL_EXECUTION"})
			stage.Must(t, err)
			if owner := stage.Observe(t, st).Shards[job.Shard].Owner; owner[:2] == "a-" {
				break
			}
		}
		first := stage.Trigger(t, a, job)
		time.Sleep(time.Second)
		if run, err := st.Run(t.Context(), first); err != nil || run.Address[:10] != "local://b-" || !run.Taken.IsZero() {
			t.Fatalf("the run is at %s, taken %v: %v", run.Address, run.Taken, err)
		}
		second := stage.Trigger(t, a, job)
		time.Sleep(3 * time.Second)
		stage.Must(t, b.Stop(t.Context())) // what it has not taken is put back
		time.Sleep(20 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if want := []int64{first, first, second}; !slices.Equal(got, want) {
			t.Errorf("the executor was sent %v, want %v", got, want)
		}
		stage.Must(t, a.Stop(t.Context()))
	})
}

// TestSweepFails: where the jobs of shards that were taken cannot be mended, their runs
// are started all the same, and it is tried again with each beat.
func TestSweepFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a := stage.StartNode(t, st, "a", j)
		time.Sleep(5 * time.Second)
		jobs := stage.AddSeconds(t, a, 20)
		b := stage.StartNode(t, st, "b", j)
		b.Faults.Inject("Sweep", storetest.Fault{Before: true})
		time.Sleep(10 * time.Second)
		from := time.Now()
		if n := b.Faults.Calls("Sweep"); n < 5 {
			t.Errorf("%d attempts in ten seconds", n)
		}
		time.Sleep(20 * time.Second)
		to := time.Now()
		b.Faults.Clear()
		time.Sleep(5 * time.Second)
		n := b.Faults.Calls("Sweep")
		time.Sleep(20 * time.Second)
		if more := b.Faults.Calls("Sweep") - n; more != 0 {
			t.Errorf("%d attempts after one that was good", more)
		}
		if got := stage.AuditSeconds(t, st, j, jobs, from, to); got != (stage.Audit{}) {
			t.Errorf("audit: %+v", got)
		}
		stage.Stop(t, a, b)
	})
}
