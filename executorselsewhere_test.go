package xxljob_test

// What a review of executors elsewhere has found.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

func registration(app, addr, boot string) wire.RegistryRequest {
	r := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: addr, BootID: boot}
	if boot != "" {
		r.Capabilities = []string{wire.CapRepeat}
	}
	return r
}

// TestSentAgainToTheSameProcess: the executor is replaced while the call is under way; its
// successor, which has registered by then, is not sent the run.
func TestSentAgainToTheSameProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *elsewhere
		p := &peer{}
		var first int64
		p.run = func(n int, r wire.TriggerRequest) (wire.Return, error) {
			if n > 1 {
				return wire.Success(), nil
			}
			first = r.LogID
			time.Sleep(2 * time.Second) // the one process has it, and its host hangs
			e.registerOurs("far", at1, "boot-2")
			e.trigger(xxljob.Job{Name: "other", App: "far"}) // the book reads
			time.Sleep(2 * time.Second)
			return wire.Return{}, errHungUp
		}
		e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.registerOurs("far", at1, "boot-1")
		e.trigger(xxljob.Job{App: "far"})
		time.Sleep(20 * time.Second)
		var boots []string
		for _, r := range p.sent() {
			if r.LogID == first {
				boots = append(boots, r.BootID)
			}
		}
		if len(boots) != 1 {
			t.Errorf("run %d was sent to %q", first, boots)
		}
	})
}

// TestLateGoodbye: the good-bye of a process, in the same batch as the first beat of its
// successor at the address, does not take that away.
func TestLateGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, nil)
		e.call("registry", registration("far", at1, "boot-1"))
		time.Sleep(time.Second)
		for _, c := range []struct {
			endpoint string
			msg      wire.RegistryRequest
		}{{"registry", registration("far", at2, "x")}, {"registry", registration("far", at1, "boot-2")}, {"registryRemove", registration("far", at1, "boot-1")}} {
			go e.call(c.endpoint, c.msg)
			synctest.Wait()
		}
		time.Sleep(time.Second)
		regs, err := e.store.Addresses(context.Background(), "far", time.Minute)
		stage.Must(t, err)
		if len(regs) != 2 || regs[0].BootID != "boot-2" {
			t.Errorf("%+v", regs)
		}
	})
}

// lockedRun is a store in which somebody has the row of one run locked.
type lockedRun struct {
	st     xxljob.Store
	locked atomic.Int64
}

func (s *lockedRun) Finish(ctx context.Context, dst []xxljob.Run, results []store.Result) ([]xxljob.Run, error) {
	var rest []store.Result
	for _, r := range results {
		if r.RunID != s.locked.Load() {
			rest = append(rest, r)
		}
	}
	got, err := s.st.Finish(ctx, nil, rest)
	if err == nil && len(rest) < len(results) {
		time.Sleep(400 * time.Millisecond)
		err = fmt.Errorf("%w: 1 run", store.ErrLocked)
	}
	return got, err
}

// TestOneLockedRow: a run that somebody has locked fails its own callback and no other.
func TestOneLockedRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &lockedRun{st: memory.New()}
		e := newElsewhere(t, bent.StoreOf(st.st, st), xxljob.Config{}, map[string]*peer{at1: {}})
		e.register("far", at1)
		e.register("near", at1)
		bad := e.trigger(xxljob.Job{App: "far"})
		var ids []int64
		for i := range 100 {
			ids = append(ids, e.trigger(xxljob.Job{App: "near", Name: fmt.Sprint("n", i)}))
		}
		time.Sleep(2 * time.Second)
		st.locked.Store(bad)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if e.callback(wire.CallbackRequest{LogID: bad, HandleCode: 200}).OK() {
						t.Error("the locked run's result was acknowledged")
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		for _, id := range ids {
			if ret := e.callback(wire.CallbackRequest{LogID: id, HandleCode: 200}); !ret.OK() {
				t.Errorf("another app's result: %+v", ret)
			}
		}
		cancel()
		wg.Wait()
		st.locked.Store(0)
		e.report(bad, 200, "")
		e.mustBe(bad, xxljob.StateSucceeded)
	})
}

// TestSlowAddressHoldsUpNobody: fifty open runs of an executor that answers slowly do not
// keep another app's run waiting.
func TestSlowAddressHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &peer{run: hangsUp, idle: func() (wire.Return, error) { time.Sleep(5 * time.Second); return wire.Success(), nil }}
		quick := &peer{run: func(n int, _ wire.TriggerRequest) (wire.Return, error) {
			if n == 1 {
				return wire.Return{}, errHungUp
			}
			return wire.Success(), nil
		}}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: slow, at2: quick})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "slow", Manual: true, Addresses: []string{at1}}))
		e.registerOurs("quick", at2, "b1")
		for i := range 50 {
			e.trigger(xxljob.Job{App: "slow", Name: fmt.Sprint("s", i)})
		}
		time.Sleep(3 * time.Second)
		id := e.trigger(xxljob.Job{App: "quick", Name: "q"})
		time.Sleep(5 * time.Second)
		e.mustBe(id, xxljob.StateDispatched)
	})
}

// TestKillOfUnknown: a run is killed while its trigger is under way, whose outcome is then
// unknown. The handler that has got it all the same does not run on.
func TestKillOfUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived, killed atomic.Bool
		p := &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) {
			time.Sleep(2 * time.Second)
			arrived.Store(true)
			return wire.Return{}, errHungUp
		}}
		p.kill = func(wire.KillRequest) (wire.Return, error) {
			if killed.Store(arrived.Load()); killed.Load() {
				return wire.Success(), nil
			}
			return wire.Noted(wire.MsgAlreadyKilled), nil
		}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(time.Second)
		stage.Must(t, e.Kill(t.Context(), id))
		time.Sleep(time.Minute)
		e.mustBe(id, xxljob.StateKilled)
		if !killed.Load() || xxljob.RunsInDoubt(e.Scheduler) != 0 {
			t.Errorf("killed %t, %d open", killed.Load(), xxljob.RunsInDoubt(e.Scheduler))
		}
	})
}

// TestKillOfUnknownOnce: a run that is killed after its trigger has failed is killed once:
// a second kill would hit the job's next run at a third-party executor.
func TestKillOfUnknownOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{run: hangsUp}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(500 * time.Millisecond)
		stage.Must(t, e.Kill(t.Context(), id))
		time.Sleep(time.Minute)
		e.mustBe(id, xxljob.StateKilled)
		if n := len(p.killed()); n != 1 || xxljob.RunsInDoubt(e.Scheduler) != 0 {
			t.Errorf("%d kills, %d open", n, xxljob.RunsInDoubt(e.Scheduler))
		}
	})
}

// TestKillAtDrainingExecutor: an executor that has said good-bye lets its handlers end, and
// can still be told to kill one, by nodes that knew it.
func TestKillAtDrainingExecutor(t *testing.T) {
	for _, elsewhereToo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, st := &peer{}, memory.New()
			e := newElsewhere(t, st, xxljob.Config{Node: "a"}, map[string]*peer{at1: p})
			by := e
			if elsewhereToo { // another node hears of it
				by = newElsewhere(t, st, xxljob.Config{Node: "b"}, map[string]*peer{at1: p})
				time.Sleep(10 * time.Second)
			}
			e.registerOurs("far", at1, "b1")
			id := by.trigger(xxljob.Job{App: "far"}) // so it knows the address, whoever owns the shard
			time.Sleep(2 * time.Second)
			e.mustBe(id, xxljob.StateDispatched)
			by.deregister("far", at1)
			if err := by.Kill(t.Context(), id); err != nil || len(p.killed()) != 1 {
				t.Errorf("%v; killed %d", err, len(p.killed()))
			}
		})
	}
}

// readCounter counts reads of addresses.
type readCounter struct {
	st    xxljob.Store
	reads atomic.Int64
}

func (s *readCounter) Addresses(ctx context.Context, app string, d time.Duration) ([]xxljob.Registration, error) {
	s.reads.Add(1)
	return s.st.Addresses(ctx, app, d)
}

// TestReadsOfAddresses: an app's addresses are read once a second, however many handlers
// it has.
func TestReadsOfAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &readCounter{st: memory.New()}
		e := newElsewhere(t, bent.StoreOf(st.st, st), xxljob.Config{}, map[string]*peer{at1: {}})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far"}))
		e.register("far", at1)
		for i := range 100 {
			_, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: fmt.Sprint("j", i), Handler: fmt.Sprint("h", i), Schedule: xxljob.FixedRate(time.Second)})
			stage.Must(t, err)
		}
		time.Sleep(5 * time.Second)
		before := st.reads.Load()
		time.Sleep(10 * time.Second)
		if n := st.reads.Load() - before; n > 15 {
			t.Errorf("%d reads in ten seconds", n)
		}
	})
}

// mostAtOnce counts how many calls are under way at once.
type mostAtOnce struct{ now, most atomic.Int64 }

func (m *mostAtOnce) call() (wire.Return, error) {
	m.most.Store(max(m.most.Load(), m.now.Add(1)))
	time.Sleep(5 * time.Second)
	m.now.Add(-1)
	return wire.Success(), nil
}

// TestBroadcastWithinBounds: the parts of a broadcast do not all call at once.
func TestBroadcastWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls mostAtOnce
		peers := map[string]*peer{}
		var addrs []string
		for i := range 100 {
			a := fmt.Sprintf("http://10.2.0.%d:1/", i)
			addrs = append(addrs, a)
			peers[a] = &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) { return calls.call() }}
		}
		e := newElsewhere(t, nil, xxljob.Config{Limits: xxljob.Limits{FastLane: 8}}, peers)
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: addrs}))
		id := e.trigger(xxljob.Job{App: "far", Route: "SHARDING_BROADCAST"})
		time.Sleep(5 * time.Minute)
		if n := calls.most.Load(); n > 8 {
			t.Errorf("%d calls at once, the lane has 8", n)
		}
		for _, r := range stage.AllOf(t, e.store, xxljob.RunFilter{TriggerID: id}) {
			e.mustBe(r.ID, xxljob.StateDispatched)
		}
		for a, p := range peers {
			if len(p.sent()) != 1 {
				t.Errorf("%s was sent %d", a, len(p.sent()))
			}
		}
	})
}

// TestOtherProcessWithinBounds: the second call to an executor that was restarted holds the
// place of the first.
func TestOtherProcessWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls mostAtOnce
		var mu sync.Mutex
		seen := map[int64]bool{}
		p := &peer{run: func(_ int, r wire.TriggerRequest) (wire.Return, error) {
			mu.Lock()
			again := seen[r.LogID]
			seen[r.LogID] = true
			mu.Unlock()
			if !again {
				return wire.Failf(wire.MsgOtherBoot), nil
			}
			return calls.call()
		}}
		e := newElsewhere(t, nil, xxljob.Config{Limits: xxljob.Limits{FastLane: 8}}, map[string]*peer{at1: p})
		e.registerOurs("far", at1, "b1")
		for i := range 50 {
			e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint("j", i)})
		}
		time.Sleep(time.Minute)
		if n := calls.most.Load(); n > 2 {
			t.Errorf("%d calls at once, the address has 2 places", n)
		}
	})
}

// TestOtherProcessAfterGoodbye: where the address is gone by the time that the executor
// says that it was restarted, it is not sent the run, nor the token.
func TestOtherProcessAfterGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *elsewhere
		p := &peer{}
		p.run = func(int, wire.TriggerRequest) (wire.Return, error) {
			e.deregister("far", at1)
			return wire.Failf(wire.MsgOtherBoot), nil
		}
		e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.registerOurs("far", at1, "b1")
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(5 * time.Second)
		e.mustBe(id, xxljob.StateRefused)
		if n := len(p.sent()); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestOtherProcessesInTurns: where each process behind an address says that the other was meant,
// since they register in turns, the run is sent to whichever is called.
func TestOtherProcessesInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *elsewhere
		p := &peer{}
		p.run = func(_ int, r wire.TriggerRequest) (wire.Return, error) {
			if r.BootID == "" {
				return wire.Success(), nil
			}
			e.registerOurs("far", at1, "b2")
			return wire.Failf(wire.MsgOtherBoot), nil
		}
		e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.registerOurs("far", at1, "b1")
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(5 * time.Second)
		e.mustBe(id, xxljob.StateDispatched)
		if all := p.sent(); len(all) != 3 || all[0].BootID != "b1" || all[1].BootID != "b2" || all[2].BootID != "" {
			t.Errorf("sent %+v", all)
		}
	})
}

// poisoned is a registry of a user's that fails for one app.
type poisoned struct{ plain.Registry }

func (p *poisoned) Register(ctx context.Context, app, address string) error {
	if app == "bad" {
		return errors.New("not this one")
	}
	return p.Registry.Register(ctx, app, address)
}

// TestUserRegistryFailsForOne: what a registry of the user's says of one app is nothing to
// another.
func TestUserRegistryFailsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{Registry: &poisoned{}}, map[string]*peer{at1: {}})
		for i := range 20 {
			go func() {
				if ret := stage.Post(t, e.admin, stage.Token, "", "registry", registration("bad", at2, "").Encode(nil)); ret.OK() {
					t.Error("the bad app is registered")
				}
			}()
			e.register(fmt.Sprint("good", i), at1)
		}
		id := e.trigger(xxljob.Job{App: "good7"})
		synctest.Wait()
		e.mustBe(id, xxljob.StateDispatched)
	})
}

// TestWordsOfOurs: an executor of this module says whether it has killed a run; a text that
// reads like that is its handler's own, at whatever node it arrives.
func TestWordsOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}})
		e.register("far", at1)
		text := fmt.Sprintf(wire.MsgKilledRunning, wire.StopKill)
		for i, c := range []struct {
			exact bool
			want  xxljob.State
		}{{true, xxljob.StateFailed}, {false, xxljob.StateKilled}} {
			id := e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint(i)})
			synctest.Wait()
			e.callback(wire.CallbackRequest{LogID: id, HandleCode: 500, HandleMsg: text, Exact: c.exact})
			e.mustBe(id, c.want)
		}
	})
}

// TestBeatsBehindBalancer: a balancer gives each node every third beat of an executor, and
// they are answered at once all the same.
func TestBeatsBehindBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var nodes []*elsewhere
		for _, n := range []string{"a", "b", "c"} {
			nodes = append(nodes, newElsewhere(t, st, xxljob.Config{Node: n}, nil))
		}
		time.Sleep(time.Second)
		slow, n := 0, 0
		for round := range 20 {
			for x := range 20 {
				node := nodes[(round+x)%3]
				go node.call("registry", registration("noise", "http://10.0.3.1:1/", fmt.Sprint(round, x)))
				synctest.Wait()
				began := time.Now()
				node.call("registry", registration("far", fmt.Sprintf("http://10.0.2.1:%d/", x+1), ""))
				if round < 4 {
					continue // they come to know each other
				}
				if n++; time.Since(began) > 50*time.Millisecond {
					slow++
				}
			}
			time.Sleep(30 * time.Second)
		}
		if slow > n/100 {
			t.Errorf("%d of %d beats took over 50 ms", slow, n)
		}
	})
}

// partitioned is a node's view of a store that it does not reach.
type partitioned struct {
	st   xxljob.Store
	down *atomic.Bool
}

var errDown = errors.New("partitioned")

func (p partitioned) Beat(ctx context.Context, i string, a []store.Attachment) (xxljob.View, error) {
	if p.down.Load() {
		return xxljob.View{}, errDown
	}
	return p.st.Beat(ctx, i, a)
}
func (p partitioned) RunsByID(ctx context.Context, ids []int64) ([]xxljob.Run, error) {
	if p.down.Load() {
		return nil, errDown
	}
	return p.st.RunsByID(ctx, ids)
}
func (p partitioned) Finish(ctx context.Context, dst []xxljob.Run, r []store.Result) ([]xxljob.Run, error) {
	if p.down.Load() {
		return nil, errDown
	}
	return p.st.Finish(ctx, dst, r)
}
func (p partitioned) Dispatched(ctx context.Context, r []store.Dispatch) ([]xxljob.Run, error) {
	if p.down.Load() {
		return nil, errDown
	}
	return p.st.Dispatched(ctx, r)
}
func (p partitioned) Addresses(ctx context.Context, app string, d time.Duration) ([]xxljob.Registration, error) {
	if p.down.Load() {
		return nil, errDown
	}
	return p.st.Addresses(ctx, app, d)
}

// TestFormerOwnerSendsNothing: a node that is cut off from the store in the middle of its
// questions sends nothing again: others may have decided about the run.
func TestFormerOwnerSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		down := &atomic.Bool{}
		var cut atomic.Bool
		var first, late sync.Map // by run: the moment it was sent
		pa := &peer{}
		pa.run = func(n int, r wire.TriggerRequest) (wire.Return, error) {
			if _, again := first.LoadOrStore(r.LogID, time.Now()); !again {
				return wire.Return{}, errHungUp
			}
			if !cut.Swap(true) { // the process is paused (SIGSTOP), or 40 calls ran into their 6 s
				down.Store(true)
				time.Sleep(240 * time.Second)
				return wire.Return{}, nil
			}
			late.Store(r.LogID, time.Now())
			return wire.Success(), nil
		}
		a := newElsewhere(t, bent.StoreOf(st, partitioned{st, down}), xxljob.Config{Node: "a"}, map[string]*peer{at1: pa})
		stage.Must(t, a.SaveGroup(t.Context(), xxljob.Group{App: "far"}))
		a.registerOurs("far", at1, "b1")
		time.Sleep(time.Second)
		r1 := a.trigger(xxljob.Job{App: "far", Name: "1"})
		r2 := a.trigger(xxljob.Job{App: "far", Name: "2"})
		synctest.Wait()
		b := newElsewhere(t, st, xxljob.Config{Node: "b"}, map[string]*peer{at1: {}})
		for range 60 {
			time.Sleep(5 * time.Second)
			b.registerOurs("far", at1, "b1")
		}
		if !cut.Load() {
			t.Error("nothing was sent again, so nobody was cut off")
		}
		for _, id := range []int64{r1, r2} {
			run := b.state(id)
			if at, sent := late.Load(id); sent && run.State == xxljob.StateLost && at.(time.Time).After(run.Ended) {
				t.Errorf("run %d was recorded lost at %v, and sent by its former owner at %v", id, run.Ended, at)
			}
		}
		down.Store(false)
	})
}
