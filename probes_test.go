package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// hangs answers when nobody waits any more.
func hangs() (wire.Return, error) { time.Sleep(6 * time.Second); return wire.Return{}, errHungUp }

// hungAddresses are n addresses whose executors hang, added to peers.
func hungAddresses(n int, peers map[string]*peer) (addrs []string) {
	for i := range n {
		a := fmt.Sprintf("http://10.9.0.%d:1/", i)
		addrs = append(addrs, a)
		peers[a] = &peer{beat: hangs, idle: hangs}
	}
	return addrs
}

// probing is a scheduler with an app of these addresses.
func probing(t *testing.T, st xxljob.Store, peers map[string]*peer, addrs ...string) *elsewhere {
	t.Helper()
	e := newElsewhere(t, st, xxljob.Config{}, peers)
	stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: addrs}))
	return e
}

// runsAt is how many runs a peer was sent.
func runsAt(p *peer) int { return len(p.sent()) }

// TestProbesInOrderDecide: a run goes on as soon as the first address of the order has
// answered well, however many hang behind it, and so do later ones.
func TestProbesInOrderDecide(t *testing.T) {
	for _, route := range []string{"FAILOVER", "BUSYOVER"} {
		t.Run(route, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				beats := 0
				good := &peer{beat: func() (wire.Return, error) { mu.Lock(); defer mu.Unlock(); beats++; return wire.Success(), nil }}
				peers := map[string]*peer{at1: good}
				e := probing(t, nil, peers, append([]string{at1}, hungAddresses(40, peers)...)...)
				var jobs []xxljob.Job
				for i := range 2 {
					job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: fmt.Sprint(i), Handler: "work", Route: route})
					stage.Must(t, err)
					jobs = append(jobs, job)
				}
				const runs = 12
				for i := range runs { // while probes of the first ones hang
					began := time.Now()
					_, err := e.Trigger(t.Context(), jobs[i%2].ID, xxljob.Trigger{})
					stage.Must(t, err)
					for runsAt(good) <= i && time.Since(began) < time.Minute {
						time.Sleep(time.Millisecond)
					}
					if d := time.Since(began); d > 100*time.Millisecond {
						t.Errorf("run %d was sent after %v", i, d)
					}
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				}
				mu.Lock()
				if asked := beats + good.probes(); asked > runs {
					t.Errorf("it was asked %d times for %d runs", asked, runs)
				}
				mu.Unlock()
				stage.Must(t, e.Stop(context.Background()))
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestProbesOfOneJob: the runs of one job that come while its probes hang are sent, and
// no more addresses are asked at a time than should be.
func TestProbesOfOneJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		at, most := 0, 0
		hang := func() (wire.Return, error) {
			mu.Lock()
			at++
			most = max(most, at)
			mu.Unlock()
			time.Sleep(3 * time.Second)
			mu.Lock()
			at--
			mu.Unlock()
			return wire.Return{}, errHungUp
		}
		good := &peer{}
		peers := map[string]*peer{at1: good}
		addrs := append([]string{at1}, hungAddresses(40, peers)...)
		for _, a := range addrs[1:] {
			peers[a].idle = hang
		}
		e := probing(t, nil, peers, addrs...)
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "busyover", Handler: "work", Route: "BUSYOVER"})
		stage.Must(t, err)
		const runs = 50
		began := time.Now()
		for range runs {
			_, err := e.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
		}
		for runsAt(good) < runs && time.Since(began) < 10*time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if d := time.Since(began); d > runs*100*time.Millisecond {
			t.Errorf("the last one was sent after %v", d)
		}
		if n := good.idleBeats(); n < runs {
			t.Errorf("%d idle beats for %d runs: an answer was used twice", n, runs)
		}
		stage.Must(t, e.Stop(context.Background()))
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most > 5 {
			t.Errorf("%d addresses of a job were asked at once", most)
		}
	})
}

// TestProbesBehindOneThatHangs: the second address has answered long ago when it turns
// out that the first one does not.
func TestProbesBehindOneThatHangs(t *testing.T) {
	for _, route := range []string{"FAILOVER", "BUSYOVER"} {
		t.Run(route, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := &peer{}
				peers := map[string]*peer{at1: {beat: hangs, idle: hangs}, at2: good}
				e := probing(t, nil, peers, append([]string{at1, at2}, hungAddresses(40, peers)...)...)
				began := time.Now()
				id := e.trigger(xxljob.Job{App: "far", Route: route})
				for runsAt(good) == 0 && time.Since(began) < time.Minute {
					time.Sleep(time.Millisecond)
				}
				if d := time.Since(began); d > 3*time.Second+100*time.Millisecond {
					t.Errorf("it was sent after %v", d)
				}
				if msg := e.state(id).TriggerMsg; !strings.Contains(msg, at1+": error: no answer within 3s\n"+at2+": ok") {
					t.Errorf("trigger_msg %q", msg)
				}
				stage.Must(t, e.Stop(context.Background()))
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestProbeGrace: a run that has a good address waits a moment for the answers of the
// others, so that it has where to go on to.
func TestProbeGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := func(int, wire.TriggerRequest) (wire.Return, error) { return wire.Failf("not today"), nil }
		slow := func() (wire.Return, error) { time.Sleep(20 * time.Millisecond); return wire.Success(), nil }
		first, second := &peer{run: refuses}, &peer{beat: slow}
		peers := map[string]*peer{at1: first, at2: second}
		e := probing(t, nil, peers, append([]string{at1, at2}, hungAddresses(2, peers)...)...)
		id := e.trigger(xxljob.Job{App: "far", Route: "FAILOVER"})
		time.Sleep(100 * time.Millisecond)
		if a, b := runsAt(first), runsAt(second); a != 1 || b != 1 {
			t.Errorf("sent to the first %d times, to the second %d times: %q", a, b, e.state(id).TriggerMsg)
		}
		stage.Must(t, e.Stop(context.Background()))
		time.Sleep(time.Minute)
	})
}

// TestProbesAreShared: jobs of one app that are due at the same time ask for the same,
// and none takes the other's question for one that hangs.
func TestProbesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := &peer{beat: func() (wire.Return, error) { time.Sleep(20 * time.Millisecond); return wire.Success(), nil }}
		e := probing(t, nil, map[string]*peer{at1: good}, at1)
		var ids []int64
		for i := range 5 {
			ids = append(ids, e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint(i), Route: "FAILOVER"}))
		}
		time.Sleep(time.Second)
		for _, id := range ids {
			e.mustBe(id, xxljob.StateDispatched)
		}
	})
}

// TestProbedAgainAfterStoreError is in a store that hangs up on the question whether a
// node is busy: the run waits, and is sent when the store is back.
func TestProbedAgainAfterStoreError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		j := &stage.Journal{}
		one := func(c *xxljob.Config) { c.Cluster.Shards = 1 }
		a := stage.StartNode(t, bent.StoreOf(st, deafStore{st, time.Now().Add(time.Minute)}), "a", j, one)
		time.Sleep(time.Second)
		b := stage.StartNode(t, st, "b", j, one)
		stage.Must(t, b.Attach(&stage.SlowExecutor{Of: "x", Delay: func(wire.TriggerRequest) time.Duration { return 0 }}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "probed", Handler: "work", Route: "BUSYOVER"})
		stage.Must(t, err)
		ids, err := a.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(30 * time.Second)
		if run, err := st.Run(t.Context(), ids[0]); err != nil || run.State != xxljob.StatePlanned {
			t.Errorf("%v %v", run.State, err)
		}
		time.Sleep(time.Minute)
		if run, err := st.Run(t.Context(), ids[0]); err != nil || run.State != xxljob.StateSucceeded {
			t.Errorf("%v %v", run.State, err)
		}
		stage.Stop(t, a, b)
	})
}

// deafStore does not list started runs of a job before a time.
type deafStore struct {
	st    xxljob.Store
	until time.Time
}

func (s deafStore) Runs(ctx context.Context, f xxljob.RunFilter) ([]xxljob.Run, error) {
	if f.JobID != 0 && slices.Equal(f.States, []xxljob.State{xxljob.StateStarted}) && time.Now().Before(s.until) {
		return nil, errors.New("hung up")
	}
	return s.st.Runs(ctx, f)
}

// strictStore refuses what Postgres does, and keeps the longest Msg.
type strictStore struct {
	st      xxljob.Store
	mu      *sync.Mutex
	longest *string
}

func newStrictStore() strictStore { return strictStore{memory.New(), new(sync.Mutex), new(string)} }

func (s strictStore) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	for _, st := range starts {
		if strings.Contains(st.Msg, "\x00") || !utf8.ValidString(st.Msg) {
			return nil, errors.New("invalid byte sequence")
		}
		s.mu.Lock()
		if len(st.Msg) > len(*s.longest) {
			*s.longest = st.Msg
		}
		s.mu.Unlock()
	}
	return s.st.Start(ctx, dst, starts)
}

// TestProbedTextIsPlain: whatever an executor answers to a probe, the store can take it,
// and the runs of other apps start in time.
func TestProbedTextIsPlain(t *testing.T) {
	for name, beat := range map[string]func() (wire.Return, error){
		"answer": func() (wire.Return, error) { return wire.Failf("no\x00, \xff"), nil },
		"error":  func() (wire.Return, error) { return wire.Return{}, errors.New("no\x00, \xff") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := &peer{}
				strict := newStrictStore()
				e := probing(t, bent.StoreOf(strict.st, strict), map[string]*peer{at1: {beat: beat}, at2: good}, at1)
				stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "good", Manual: true, Addresses: []string{at2}}))
				bad := e.trigger(xxljob.Job{App: "far", Route: "FAILOVER"})
				e.trigger(xxljob.Job{App: "good", Name: "good"})
				time.Sleep(time.Second)
				if runsAt(good) != 1 {
					t.Error("one app's words keep the other from starting")
				}
				if run := e.mustBe(bad, xxljob.StateRefused); !strings.Contains(run.TriggerMsg, "no\uFFFD, \uFFFD") {
					t.Errorf("trigger_msg %q", run.TriggerMsg)
				}
			})
		})
	}
}

// TestStartMsgIsBounded has executors, and a router of the user's, that say very much.
func TestStartMsgIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStrictStore()
		long := strings.Repeat("\x00é", 1<<20)
		peers := map[string]*peer{}
		addrs := hungAddresses(100, peers)
		for _, p := range peers {
			p.beat = func() (wire.Return, error) { return wire.Failf("%s", long), nil }
		}
		e := newElsewhere(t, bent.StoreOf(st.st, st), xxljob.Config{Routers: map[string]xxljob.Router{"WORDY": wordy{long + "\xff"}}}, peers)
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: addrs}))
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "one", Manual: true, Addresses: addrs[:1]}))
		single := e.trigger(xxljob.Job{App: "one", Name: "one", Route: "FAILOVER"})
		ids := []int64{single, e.trigger(xxljob.Job{App: "far", Route: "FAILOVER"}), e.trigger(xxljob.Job{App: "far", Name: "wordy", Route: "WORDY"})}
		time.Sleep(time.Second)
		for _, id := range ids {
			e.mustBe(id, xxljob.StateRefused)
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		if n := len(*st.longest); n > 16<<10 || n < 15<<10 {
			t.Errorf("a start of %d bytes", n)
		}
		if n := len(e.state(single).TriggerMsg); n > 5000 {
			t.Errorf("%d bytes of one executor's words", n)
		}
	})
}

// wordy is a router that refuses in many words.
type wordy struct{ words string }

func (r wordy) Route(context.Context, int64, []string) ([]string, error) {
	return nil, errors.New(r.words)
}
