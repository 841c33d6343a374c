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
	"github.com/xxljob/xxljob/internal/test/bent"
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

// TestUnsentRunOfAMovedShard: as before, but the shard moves while the trigger is on its way, and the
// executor cannot be reached for longer than who has sent it may send it again. The next owner starts the
// run anew, which the executor says that it was not sent.
func TestUnsentRunOfAMovedShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var reachable atomic.Bool
		p := &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) {
			if reachable.Load() {
				return wire.Success(), nil
			}
			time.Sleep(5 * time.Second)
			return wire.Return{}, errHungUp
		}}
		p.ask = func(wire.IdleBeatRequest) (wire.Return, error) {
			if !reachable.Load() {
				return wire.Return{}, errNoRoute
			}
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
		b := newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		beats(time.Minute)
		reachable.Store(true)
		tried := len(p.sent())
		beats(time.Minute)
		run := b.mustBe(id, xxljob.StateDispatched)
		if !strings.HasPrefix(run.Owner, "b-") || len(p.sent()) != tried+1 || !strings.Contains(run.TriggerMsg, "was not sent the run") {
			t.Errorf("sent %d times, %d of them before, by %s: %s", len(p.sent()), tried, run.Owner, run.TriggerMsg)
		}
		noBadBooks(t, a)
		noBadBooks(t, b)
	})
}

// addLastShard adds a job in one of the shards that a node gives up when another joins.
func addLastShard(t *testing.T, e *elsewhere) xxljob.Job {
	t.Helper()
	return addJobIn(t, e, xxljob.Job{App: "far", Handler: "work"}, isLastShard)
}

func isLastShard(shard int) bool { return shard >= 26 }

// addJobIn adds a job in such a shard.
func addJobIn(t *testing.T, e *elsewhere, job xxljob.Job, is func(shard int) bool) xxljob.Job {
	t.Helper()
	for i := range 1000 {
		job.Name = fmt.Sprint("job ", i)
		added, err := e.AddJob(t.Context(), job)
		stage.Must(t, err)
		if is(added.Shard) {
			return added
		}
	}
	t.Fatal("no job in such a shard")
	return xxljob.Job{}
}

// awaitOwner waits until a shard is a node's.
func awaitOwner(t *testing.T, st xxljob.Store, shard int, node string) {
	t.Helper()
	for range 300 {
		if strings.HasPrefix(stage.Observe(t, st).Shards[shard].Owner, node+"-") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("after three seconds shard %d is not that of node %s", shard, node)
}

// calledAt is a call of a peer, from its beginning to its end.
type calledAt struct {
	run      int64
	from, to time.Duration
}

// callsOf are the calls of a peer that answers as it is told, from now on, in the order of their beginnings.
func callsOf(p *peer, answer func(n int, r wire.TriggerRequest) (time.Duration, error)) (calls func() []calledAt) {
	var mu sync.Mutex
	var all []calledAt
	began := time.Now()
	p.run = func(n int, r wire.TriggerRequest) (wire.Return, error) {
		lasts, err := answer(n, r)
		mu.Lock()
		from := time.Since(began)
		all = append(all, calledAt{r.LogID, from, from + lasts})
		mu.Unlock()
		time.Sleep(lasts)
		if err != nil {
			return wire.Return{}, err
		}
		return wire.Success(), nil
	}
	return func() []calledAt {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// sentInOrder are the block strategies whose runs are sent to executors elsewhere one after the other.
var sentInOrder = []string{xxljob.BlockSerial, xxljob.BlockDiscardLater, xxljob.BlockCoverEarly}

// TestOrderAcrossOwners: a shard moves between two live nodes while an executor elsewhere takes its
// time to answer the former owner. The next run of the job, which the new owner sends, arrives behind
// that, whatever its block strategy.
func TestOrderAcrossOwners(t *testing.T) {
	const slow = 4500 * time.Millisecond
	for _, block := range sentInOrder {
		for _, move := range []string{"a node joins", "the owner stops"} {
			for _, what := range []string{"run", "run behind one in doubt", "part of a broadcast"} {
				t.Run(block+", "+move+", "+what, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						st, p := memory.New(), &peer{}
						inDoubt := what == "run behind one in doubt"
						calls := callsOf(p, func(n int, _ wire.TriggerRequest) (time.Duration, error) {
							switch {
							case inDoubt && n == 1:
								return 0, errHungUp
							case inDoubt && n == 2, n == 1:
								return slow, nil
							}
							return 0, nil
						})
						peers, addresses := map[string]*peer{at1: p}, []string{at1}
						job := xxljob.Job{App: "far", Handler: "work", Route: "FIRST", Block: block}
						if what == "part of a broadcast" {
							peers, addresses, job.Route = map[string]*peer{at1: {}, at2: p}, []string{at1, at2}, "SHARDING_BROADCAST"
						}
						a := newElsewhere(t, st, xxljob.Config{Node: "a"}, peers)
						stage.Must(t, a.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: addresses}))
						var b *elsewhere
						moves := isLastShard
						if move == "the owner stops" {
							b = newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
							time.Sleep(10 * time.Second)
							moves = func(shard int) bool {
								return strings.HasPrefix(stage.Observe(t, st).Shards[shard].Owner, "a-")
							}
						}
						job = addJobIn(t, a, job, moves)
						if inDoubt {
							stage.Trigger(t, a, job)
							time.Sleep(100 * time.Millisecond)
						}
						stage.Trigger(t, a, job)
						time.Sleep(500 * time.Millisecond)
						if b == nil {
							b = newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
						} else {
							go func() { _ = a.Stop(context.Background()) }()
						}
						awaitOwner(t, st, job.Shard, "b")
						stage.Trigger(t, b, job)
						time.Sleep(time.Minute)
						sent := calls()
						if want := 2 + stage.One(inDoubt); len(sent) != want {
							t.Fatalf("sent %+v, want %d calls", sent, want)
						}
						for i, c := range sent[1:] {
							if before := sent[i]; c.run <= before.run || c.from < before.to {
								t.Errorf("run %d was sent at %v, while run %d was not answered until %v", c.run, c.from, before.run, before.to)
							}
						}
						last := sent[len(sent)-1]
						if at := last.from - sent[0].from; !inDoubt && at > slow+time.Second || at > 18*time.Second {
							t.Errorf("the last run was sent %v after the first", at)
						}
						b.mustBe(last.run, xxljob.StateDispatched)
						if move == "a node joins" {
							noBadBooks(t, a)
						}
						noBadBooks(t, b)
					})
				})
			}
		}
	}
}

func noBadBooks(t *testing.T, e *elsewhere) {
	t.Helper()
	for _, fault := range xxljob.BadBooks(e.Scheduler) {
		t.Error(fault)
	}
}

// TestNothingIsSentAgainBehindANewOwner: a run is in doubt at an executor of this module, and is sent
// again, when its shard moves to another live node. From when that one sends the next run of the job
// the former owner only asks. A concurrent job has no order: its run is sent again for as long as ever.
func TestNothingIsSentAgainBehindANewOwner(t *testing.T) {
	var after []time.Duration
	for d := 500 * time.Millisecond; d < 20*time.Second; d += 1500 * time.Millisecond {
		after = append(after, d, d+time.Minute)
	}
	for _, block := range append(sentInOrder, xxljob.BlockConcurrent) {
		for _, d := range after {
			t.Run(fmt.Sprint(block, ", moved after ", d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began, st, p := time.Now(), memory.New(), &peer{}
					var doubted atomic.Int64
					calls := callsOf(p, func(_ int, r wire.TriggerRequest) (time.Duration, error) {
						if doubted.CompareAndSwap(0, r.LogID) || doubted.Load() == r.LogID {
							return 1500 * time.Millisecond, errHungUp
						}
						return 0, nil
					})
					p.ask = func(wire.IdleBeatRequest) (wire.Return, error) {
						return wire.Return{Code: wire.CodeFail, Msg: wire.MsgBusy, RunState: wire.RunHeld, BootID: bootOfPeer}, nil
					}
					peers := map[string]*peer{at1: p}
					a := newElsewhere(t, st, xxljob.Config{Node: "a"}, peers)
					beats := func(d time.Duration) {
						for ; d > 0; d -= 20 * time.Second {
							a.registerOurs("far", at1, bootOfPeer)
							time.Sleep(min(d, 20*time.Second))
						}
					}
					beats(time.Second)
					job := addJobIn(t, a, xxljob.Job{App: "far", Handler: "work", Route: "FIRST", Block: block}, isLastShard)
					first := stage.Trigger(t, a, job)
					beats(d)
					b := newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
					awaitOwner(t, st, job.Shard, "b")
					second := stage.Trigger(t, b, job)
					asked := time.Now()
					beats(2 * time.Minute)
					sent := calls()
					i := slices.IndexFunc(sent, func(c calledAt) bool { return c.run == second })
					if i < 0 {
						t.Fatalf("run %d was not sent: %+v", second, sent)
					}
					behind := slices.ContainsFunc(sent, func(c calledAt) bool { return c.run == first && c.from > sent[i].from })
					if block != xxljob.BlockConcurrent && behind {
						t.Errorf("run %d was sent again behind %d: %+v", first, second, sent)
					} else if block == xxljob.BlockConcurrent && !behind && d < 10*time.Second { // older ones the new owner takes over
						t.Errorf("run %d was not sent again: %+v", first, sent)
					}
					if waited := sent[i].from - asked.Sub(began); waited > 20*time.Second {
						t.Errorf("run %d was sent %v after it was asked for", second, waited)
					}
					if block != xxljob.BlockConcurrent {
						a.mustBe(first, xxljob.StateDispatched)
					}
					b.mustBe(second, xxljob.StateDispatched)
					noBadBooks(t, a)
					noBadBooks(t, b)
				})
			})
		}
	}
}

// otherServer is a store whose server is another one with each beat while it says so, and
// whose Planned takes its time to answer then.
type otherServer struct {
	st    xxljob.Store
	mu    *sync.Mutex
	n     *int
	slow  *atomic.Bool
	reads *atomic.Int64
}

func (s otherServer) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	v, err := s.st.Beat(ctx, inc, attached)
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
	runs, err := s.st.Planned(ctx, nil, q)
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
		e := newElsewhere(t, bent.StoreOf(st.st, st), xxljob.Config{}, map[string]*peer{at1: p})
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
