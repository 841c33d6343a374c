package xxljob_test

// Runs between two owners, two nodes or two places of the books.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestOpenRunWhoseShardHasMoved: nobody knows whether an executor has a run, and its shard
// moves from the live node that asks about it to another one. That one asks, and starts the
// run anew when it was not sent.
func TestOpenRunWhoseShardHasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		faults := storetest.Wrap(st)
		triggered, hang := make(chan struct{}), make(chan struct{})
		defer close(hang)
		var reachable atomic.Bool
		p := &peer{}
		p.run = func(n int, _ wire.TriggerRequest) (wire.Return, error) {
			if n > 1 {
				return wire.Success(), nil
			}
			<-triggered
			faults.Pause(true) // it dies while it waits for the answer
			<-hang
			return wire.Return{}, errHungUp
		}
		p.ask = func(wire.IdleBeatRequest) (wire.Return, error) {
			if !reachable.Load() {
				return wire.Return{}, errNoRoute
			}
			return wire.Return{Code: wire.CodeSuccess, RunState: wire.RunUnknown, BootID: bootOfPeer}, nil
		}
		peers := map[string]*peer{at1: p}
		a := newElsewhere(t, faults, xxljob.Config{Node: "a"}, peers)
		a.registerOurs("far", at1, bootOfPeer)
		id := stage.Trigger(t, a, addLastShard(t, a))
		close(triggered)
		b := newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		beats := func(n *elsewhere, d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
				n.registerOurs("far", at1, bootOfPeer)
			}
		}
		beats(b, 25*time.Second) // b has adopted the run
		c := newElsewhere(t, st, xxljob.Config{Node: "c"}, peers)
		beats(c, 25*time.Second)
		run := b.mustBe(id, xxljob.StateStarted)
		if owner := stage.Observe(t, st).Shards[run.Shard].Owner; owner[:2] != "c-" {
			t.Fatalf("the shard is %s's", owner)
		}
		reachable.Store(true)
		beats(c, time.Minute)
		if run := b.mustBe(id, xxljob.StateDispatched); len(p.sent()) != 2 {
			t.Errorf("sent %d times: %s", len(p.sent()), run.TriggerMsg)
		}
		faults.Resume()
	})
}

// TestUnsentRunOfAMovedShard: as before, but the shard moves while the trigger is on its way.
// Who has sent it goes on asking, and cannot put it back: the run ends as lost.
func TestUnsentRunOfAMovedShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		p := &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) {
			time.Sleep(5 * time.Second)
			return wire.Return{}, errHungUp
		}}
		p.ask = func(wire.IdleBeatRequest) (wire.Return, error) {
			return wire.Return{Code: wire.CodeSuccess, RunState: wire.RunUnknown, BootID: bootOfPeer}, nil
		}
		peers := map[string]*peer{at1: p}
		a := newElsewhere(t, st, xxljob.Config{Node: "a"}, peers)
		beats := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
				a.registerOurs("far", at1, bootOfPeer)
			}
		}
		beats(5 * time.Second)
		id := stage.Trigger(t, a, addLastShard(t, a))
		time.Sleep(time.Second) // a has sent it
		newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		beats(10 * time.Minute) // it is sent again for five; with its shard it would be put back
		if run := a.mustBe(id, xxljob.StateLost); !strings.Contains(run.HandleMsg, "did not have the run") {
			t.Error(run.HandleMsg)
		}
	})
}

// addLastShard adds a job in one of the shards that a node gives up when another joins.
func addLastShard(t *testing.T, e *elsewhere) xxljob.Job {
	t.Helper()
	for i := range 1000 {
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: fmt.Sprint("job ", i), Handler: "work"})
		stage.Must(t, err)
		if job.Shard >= 26 {
			return job
		}
	}
	t.Fatal("no job in such a shard")
	return xxljob.Job{}
}

// TestSerialRunsFollowEachOther: runs of a serial job that go to several nodes are each
// started as soon as the one before was taken, and not when that has ended.
func TestSerialRunsFollowEachOther(t *testing.T) {
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
			at = []string{xxljob.LocalAddress(stage.IncarnationOf(t, st, n))}
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

// otherServer is a store whose server is another one with each beat while it says so, and
// whose Planned takes its time to answer then.
type otherServer struct {
	xxljob.Store
	mu    *sync.Mutex
	n     *int
	slow  *atomic.Bool
	reads *atomic.Int64
}

func (s otherServer) Beat(ctx context.Context, inc string, attached []xxljob.Attachment) (xxljob.View, error) {
	v, err := s.Store.Beat(ctx, inc, attached)
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Alone = false
	if s.slow.Load() {
		*s.n++
	}
	v.Server = fmt.Sprint("server ", *s.n)
	return v, err
}

func (s otherServer) Planned(ctx context.Context, q xxljob.PlannedQuery) ([]xxljob.Run, error) {
	runs, err := s.Store.Planned(ctx, q)
	if s.slow.Load() {
		s.reads.Add(int64(len(runs)))
		time.Sleep(1500 * time.Millisecond)
	}
	return runs, err
}

// TestStaleReadingKeepsPlaces: planned runs are read again while one of them is being
// sent. The reading shows it planned; its place at the address stays its own.
func TestStaleReadingKeepsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := otherServer{memory.New(), &sync.Mutex{}, new(int), &atomic.Bool{}, &atomic.Int64{}}
		var mu sync.Mutex
		under, most := 0, 0
		p := &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) {
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			time.Sleep(4 * time.Second)
			mu.Lock()
			under--
			mu.Unlock()
			return wire.Success(), nil
		}}
		e := newElsewhere(t, st, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "job", Handler: "work", Block: "SERIAL_EXECUTION"})
		stage.Must(t, err)
		time.Sleep(10 * time.Second)
		due := time.Now().Add(4 * time.Second)
		for i := range 3 {
			_, err := e.Trigger(t.Context(), job.ID, xxljob.Trigger{At: due.Add(time.Duration(i) * 100 * time.Millisecond)})
			stage.Must(t, err)
		}
		time.Sleep(2800 * time.Millisecond)
		st.slow.Store(true)
		time.Sleep(1200 * time.Millisecond)
		st.slow.Store(false)
		time.Sleep(30 * time.Second)
		if st.reads.Load() == 0 {
			t.Fatal("nothing was read again")
		}
		mu.Lock()
		defer mu.Unlock()
		if n := len(p.sent()); n != 3 || most != 1 {
			t.Errorf("%d runs were sent, %d at once; want one after the other", n, most)
		}
		for _, fault := range xxljob.BadBooks(e.Scheduler) {
			t.Error(fault)
		}
	})
}

// TestMovedRunIsNotPassed: a run of a serial job is refused here and goes to another node,
// which does not take it. The next run waits until it was put back and was started again.
func TestMovedRunIsNotPassed(t *testing.T) {
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
		a, b := start("a", st, here), start("b", blindInbox{st}, &stage.UserExecutor{Of: "far"})
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
