package xxljob_test

// Runs between two owners, two nodes or two places of the books.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// otherServer is a store whose server is another one with each beat while it says so, and
// whose Planned takes its time to answer then.
type otherServer struct {
	xxljob.Store
	mu    *sync.Mutex
	n     *int
	slow  *atomic.Bool
	reads *atomic.Int64
}

func (s otherServer) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
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

func (s otherServer) Planned(ctx context.Context, dst []xxljob.Run, q store.PlannedQuery) ([]xxljob.Run, error) {
	runs, err := s.Store.Planned(ctx, nil, q)
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
