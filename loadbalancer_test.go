package xxljob_test

// An address that stands for several processes: a balancer, or a Service of Kubernetes, before
// executors that register its address as theirs.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/wire"
)

// pod is a process behind a balancer. One of ours has a boot id.
type pod struct {
	boot string
	old  bool // of ours, and before its answers to triggers said who gives them

	mu   sync.Mutex
	dead bool           // guarded by mu
	runs map[int64]bool // guarded by mu: that it has accepted, and that have not ended, by id
	jobs map[int64]int  // guarded by mu: how many of them, by job
}

// balancer sends each request to one of its pods, by chance.
type balancer struct {
	e   *elsewhere
	at  string
	app string

	hangUp atomic.Bool // what is accepted is answered by no answer

	mu     sync.Mutex
	rand   *rand.Rand     // guarded by mu
	pods   []*pod         // guarded by mu
	has    map[int64]*pod // guarded by mu: which accepted a run
	ends   map[int64]*time.Timer
	starts map[int64]int // guarded by mu: how often a run was accepted
	quiet  atomic.Bool   // nobody registers
}

// one chooses a pod that lives.
func (b *balancer) one() *pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	live := slices.DeleteFunc(slices.Clone(b.pods), func(p *pod) bool { p.mu.Lock(); defer p.mu.Unlock(); return p.dead })
	if len(live) == 0 {
		return nil
	}
	return live[b.rand.IntN(len(live))]
}

// toOne is a request to one of the pods.
func toOne[Q, R any](b *balancer, call func(*pod, *balancer, Q) (R, error), q Q) (ret R, err error) {
	if p := b.one(); p != nil {
		return call(p, b, q)
	}
	return ret, errNoRoute
}

func (p *pod) run(b *balancer, r wire.TriggerRequest) (wire.Return, error) {
	ret := wire.Success()
	if p.boot != "" && !p.old {
		ret.BootID = p.boot
	}
	if p.boot != "" && r.BootID != "" && r.BootID != p.boot {
		ret.Code, ret.Msg = wire.CodeFail, wire.MsgOtherBoot
		return ret, nil
	}
	p.mu.Lock()
	if p.runs[r.LogID] {
		p.mu.Unlock()
		ret.Msg = fmt.Sprintf(wire.MsgRepeat, r.LogID)
		return ret, nil
	}
	p.runs[r.LogID] = true
	p.jobs[r.JobID]++
	p.mu.Unlock()
	takes, err := time.ParseDuration(r.ExecutorParams)
	if err != nil {
		takes = 4 * time.Minute
	}
	b.mu.Lock()
	b.has[r.LogID] = p
	b.ends[r.LogID] = time.AfterFunc(takes, func() { b.end(p, r, 200) })
	b.starts[r.LogID]++
	b.mu.Unlock()
	if b.hangUp.Load() && r.AgainAfter == 0 {
		return wire.Return{}, errHungUp
	}
	return ret, nil
}

// end ends a run, which is reported where its process lives.
func (b *balancer) end(p *pod, r wire.TriggerRequest, code int) {
	p.mu.Lock()
	report := p.runs[r.LogID] && !p.dead
	delete(p.runs, r.LogID)
	p.jobs[r.JobID]--
	p.mu.Unlock()
	if report {
		b.e.callback(wire.CallbackRequest{LogID: r.LogID, HandleCode: code, HandleMsg: "done", Killed: code != 200, Exact: p.boot != ""})
	}
}

func (p *pod) ask(b *balancer, r wire.IdleBeatRequest) (wire.Return, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ret := wire.Success()
	if p.jobs[r.JobID] > 0 {
		ret = wire.Failf(wire.MsgBusy)
	}
	if p.boot != "" && r.LogID != 0 {
		ret.RunState, ret.BootID = wire.RunUnknown, p.boot
		if p.runs[r.LogID] {
			ret.RunState = wire.RunHeld
		}
	}
	return ret, nil
}

func (p *pod) killRun(b *balancer, r wire.KillRequest) (wire.Return, error) {
	p.mu.Lock()
	has := p.runs[r.LogID]
	p.mu.Unlock()
	ret := wire.Noted(wire.MsgAlreadyKilled)
	if has {
		ret = wire.Success()
		go b.end(p, wire.TriggerRequest{LogID: r.LogID, JobID: r.JobID}, 500)
	}
	if p.boot != "" && !p.old {
		ret.BootID = p.boot
	}
	return ret, nil
}

func (p *pod) logOf(b *balancer, r wire.LogRequest) (wire.LogReturn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ret := wire.LogReturn{Code: wire.CodeSuccess, Result: wire.LogResult{FromLineNum: r.FromLineNum, LogContent: wire.MsgNoLog, IsEnd: true}}
	if p.runs[r.LogID] {
		ret.Result = wire.LogResult{FromLineNum: 1, ToLineNum: 1, LogContent: "a line\n"}
	}
	return ret, nil
}

// registers has all pods that live register every 30 s, one after the other.
func (b *balancer) registers() {
	b.mu.Lock()
	pods := slices.Clone(b.pods)
	b.mu.Unlock()
	for _, p := range pods {
		p.mu.Lock()
		dead := p.dead
		p.mu.Unlock()
		switch {
		case dead, b.quiet.Load():
		case p.boot == "":
			b.e.register(b.app, b.at)
		default:
			b.e.registerOurs(b.app, b.at, p.boot)
		}
		time.Sleep(3 * time.Second)
	}
}

// kill kills a pod with all of its runs, which nobody reports.
func (b *balancer) kill(p *pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// revive has a pod live again.
func (b *balancer) revive(p *pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = false
}

// of returns which pod has a run.
func (b *balancer) of(run int64) *pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.has[run]
}

// behindABalancer starts a scheduler, and pods of these boot ids at at1, empty for those of others.
func behindABalancer(t *testing.T, seed uint64, boots ...string) *balancer {
	t.Helper()
	b := &balancer{at: at1, app: "far", rand: rand.New(rand.NewPCG(seed, 1)), has: map[int64]*pod{}, ends: map[int64]*time.Timer{}, starts: map[int64]int{}}
	for _, boot := range boots {
		name, old := strings.CutSuffix(boot, ", old")
		b.pods = append(b.pods, &pod{boot: name, old: old, runs: map[int64]bool{}, jobs: map[int64]int{}})
	}
	b.e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {
		run:  func(_ int, r wire.TriggerRequest) (wire.Return, error) { return toOne(b, (*pod).run, r) },
		ask:  func(r wire.IdleBeatRequest) (wire.Return, error) { return toOne(b, (*pod).ask, r) },
		kill: func(r wire.KillRequest) (wire.Return, error) { return toOne(b, (*pod).killRun, r) },
		log:  func(r wire.LogRequest) (wire.LogReturn, error) { return toOne(b, (*pod).logOf, r) },
	}})
	done := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		for {
			b.registers()
			select {
			case <-time.After(21 * time.Second):
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() { close(done); beats.Wait() })
	time.Sleep(10 * time.Second)
	return b
}

// start triggers so many runs, each of a job of its own.
func (b *balancer) start(n int, takes time.Duration) (ids []int64) {
	b.e.t.Helper()
	for range n {
		ids = append(ids, b.e.trigger(xxljob.Job{App: b.app, Name: fmt.Sprint("k", rand.Int64()), Param: takes.String(), Route: xxljob.RouteRound}))
	}
	time.Sleep(time.Second)
	for _, id := range ids {
		b.e.mustBe(id, xxljob.StateDispatched)
	}
	return ids
}

// kinds are which processes are behind a balancer.
var kinds = map[string][]string{
	"of others":    {"", ""},
	"of ours":      {"one", "two"},
	"of ours, old": {"one, old", "two, old"},
	"three":        {"", "", ""},
}

// seeds is how many courses of chance are tried: one under the race detector.
func seeds(n uint64) uint64 {
	if stage.Detector {
		return 1
	}
	return n
}

// TestBalanced: runs behind a balancer end by their results, and the address is named as a trouble.
func TestBalanced(t *testing.T) {
	for name, boots := range kinds {
		for seed := range seeds(5) {
			bubble(t, fmt.Sprint(name, " ", seed), func(t *testing.T) {
				b := behindABalancer(t, seed, boots...)
				ids := b.start(10, 4*time.Minute)
				time.Sleep(3 * time.Minute)
				all := b.e.Troubles()
				if len(all) != 1 || all[0].Cause != xxljob.TroubleSharedAddress || all[0].App != "far" || all[0].Address != at1 || all[0].Remedy == "" {
					t.Errorf("troubles %v", all)
				}
				time.Sleep(2 * time.Minute)
				for _, id := range ids {
					b.e.mustBe(id, xxljob.StateSucceeded)
				}
			})
		}
	}
}

// TestBalancedForLong: neither are those lost that take hours.
func TestBalancedForLong(t *testing.T) {
	if stage.Detector {
		t.Skip("hours that are all as the first, which TestBalanced has: the race detector has nothing more to say of them")
	}
	for name, boots := range kinds {
		bubble(t, name, func(t *testing.T) {
			b := behindABalancer(t, 7, boots...)
			// Of three processes of others the wrong ones answer forty times in a row once in twenty
			// thousand of such tests; with five runs of eight hours it was once in fifteen hundred.
			ids := b.start(1, 3*time.Hour)
			time.Sleep(3*time.Hour + time.Minute)
			for _, id := range ids {
				b.e.mustBe(id, xxljob.StateSucceeded)
			}
		})
	}
}

// TestBalancedLoss: one of the processes dies. Its runs are found to be lost, and no others.
func TestBalancedLoss(t *testing.T) {
	for name, boots := range kinds {
		for seed := range seeds(5) {
			bubble(t, fmt.Sprint(name, " ", seed), func(t *testing.T) {
				b := behindABalancer(t, seed, boots...)
				ids := b.start(10, time.Hour)
				time.Sleep(10 * time.Minute)
				b.kill(b.pods[0])
				time.Sleep(3*dead + lostAfter + 2*lookedAt)
				for _, id := range ids {
					want := xxljob.StateDispatched
					if b.of(id) == b.pods[0] {
						want = xxljob.StateLost
					}
					b.e.mustBe(id, want)
				}
				time.Sleep(time.Hour)
				for _, id := range ids {
					if b.of(id) != b.pods[0] {
						b.e.mustBe(id, xxljob.StateSucceeded)
					}
				}
			})
		}
	}
}

// TestBalancedByBootID: a run is that of the process which has said that it has accepted it.
func TestBalancedByBootID(t *testing.T) {
	bubble(t, "stored", func(t *testing.T) {
		b := behindABalancer(t, 1, "one", "two")
		for _, id := range b.start(10, time.Hour) {
			if run, has := b.e.state(id), b.of(id).boot; run.BootID != has {
				t.Errorf("run %d is of %q, and at %q", id, run.BootID, has)
			}
		}
	})
}

// TestBalancedKill: that a process which does not have the run agrees to its kill is not believed.
func TestBalancedKill(t *testing.T) {
	for name, boots := range kinds {
		for seed := range seeds(5) {
			bubble(t, fmt.Sprint(name, " ", seed), func(t *testing.T) {
				b := behindABalancer(t, seed, boots...)
				ids := b.start(10, time.Hour)
				time.Sleep(5 * time.Minute)
				for _, id := range ids {
					p := b.of(id)
					err := b.e.Kill(t.Context(), id)
					synctest.Wait()
					p.mu.Lock()
					runs := p.runs[id]
					p.mu.Unlock()
					run := b.e.state(id)
					if ended := run.State == xxljob.StateKilled; ended == runs || ended != (err == nil) {
						t.Errorf("run %d is %v: %v; it runs: %t", id, run.State, err, runs)
					}
				}
				time.Sleep(2 * time.Hour)
				for _, id := range ids { // one that was not killed has its result
					if run := b.e.state(id); !run.State.Ended() || run.State == xxljob.StateLost {
						t.Errorf("run %d is %v: %q", id, run.State, run.HandleMsg)
					}
				}
			})
		}
	}
}

// TestBalancedLog: that a process which does not have the run has no log of it is not believed.
func TestBalancedLog(t *testing.T) {
	for name, boots := range kinds {
		bubble(t, name, func(t *testing.T) {
			b := behindABalancer(t, 3, boots...)
			ids := b.start(10, time.Hour)
			time.Sleep(5 * time.Minute)
			for range 5 {
				for _, id := range ids {
					res, err := b.e.Log(t.Context(), id, 1)
					if err == nil && (res.IsEnd || res.LogContent != "a line\n") || err != nil && !strings.Contains(err.Error(), "several processes") {
						t.Errorf("run %d: %+v, %v", id, res, err)
					}
				}
			}
		})
	}
}

// podExecutor is a pod as its server has it.
type podExecutor struct {
	b *balancer
	p *pod
}

func (e podExecutor) Beat(context.Context) (wire.Return, error) { return wire.Success(), nil }
func (e podExecutor) IdleBeat(_ context.Context, r wire.IdleBeatRequest) (wire.Return, error) {
	return e.p.ask(e.b, r)
}
func (e podExecutor) Run(_ context.Context, r wire.TriggerRequest) (wire.Return, error) {
	return e.p.run(e.b, r)
}
func (e podExecutor) Kill(_ context.Context, r wire.KillRequest) (wire.Return, error) {
	return e.p.killRun(e.b, r)
}
func (e podExecutor) Log(_ context.Context, r wire.LogRequest) (wire.LogReturn, error) {
	return e.p.logOf(e.b, r)
}

// pipes is a listener in memory.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	if c, open := <-l; open {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l pipes) Close() error   { return nil }
func (l pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// byConnection has the balancer choose a pod for each connection, as a Service of Kubernetes does,
// and not for each request.
func (b *balancer) byConnection(t *testing.T) {
	at := map[*pod]pipes{}
	for _, p := range b.pods {
		h, err := wire.NewExecutorHandler(podExecutor{b, p}, wire.HandlerConfig{Authorize: wire.Insecure, Logger: stage.QuietLog()})
		stage.Must(t, err)
		l, srv := make(pipes), &http.Server{Handler: h}
		at[p] = l
		go func() { _ = srv.Serve(l) }()
		t.Cleanup(func() { close(l); _ = srv.Close() })
	}
	transport := wire.NewTransport(wire.TransportConfig{DialContext: func(context.Context, string, string) (net.Conn, error) {
		p := b.one()
		if p == nil {
			return nil, errNoRoute
		}
		mine, theirs := net.Pipe()
		at[p] <- theirs
		return mine, nil
	}})
	t.Cleanup(transport.CloseIdle)
	xxljob.DialWith(b.e.Scheduler, func(app, address, token string) (wire.Executor, error) {
		return wire.NewExecutorClient(address, wire.ClientConfig{Transport: transport, App: app, Token: token})
	})
}

// TestBalancedByConnection: that a connection which is kept leads to the same process each time does
// not make a run be lost that is at another one, and a kill comes to that.
func TestBalancedByConnection(t *testing.T) {
	for name, boots := range kinds {
		for seed := range seeds(5) {
			bubble(t, fmt.Sprint(name, " ", seed), func(t *testing.T) {
				b := behindABalancer(t, seed, boots...)
				b.byConnection(t)
				ids := b.start(10, 20*time.Minute)
				time.Sleep(15 * time.Minute)
				for _, id := range ids {
					b.e.mustBe(id, xxljob.StateDispatched)
				}
				if err := b.e.Kill(t.Context(), ids[0]); err != nil {
					t.Error(err)
				}
				b.e.mustBe(ids[0], xxljob.StateKilled)
				time.Sleep(6 * time.Minute)
				for _, id := range ids[1:] {
					b.e.mustBe(id, xxljob.StateSucceeded)
				}
			})
		}
	}
}

// TestBalancedInDoubt: a run whose trigger was accepted, and not answered, is neither lost nor run
// twice.
func TestBalancedInDoubt(t *testing.T) {
	for name, boots := range kinds {
		for seed := range seeds(5) {
			bubble(t, fmt.Sprint(name, " ", seed), func(t *testing.T) {
				b := behindABalancer(t, seed, boots...)
				for _, id := range b.start(5, 10*time.Minute) { // so that it shows
					defer b.e.mustBe(id, xxljob.StateSucceeded)
				}
				time.Sleep(2 * time.Minute)
				b.hangUp.Store(true)
				var ids []int64
				for i := range 10 {
					ids = append(ids, b.e.trigger(xxljob.Job{App: b.app, Name: fmt.Sprint("d", i), Param: "8m", Route: xxljob.RouteRound}))
				}
				time.Sleep(9 * time.Minute)
				for _, id := range ids {
					b.e.mustBe(id, xxljob.StateSucceeded)
					b.mu.Lock()
					if n := b.starts[id]; n != 1 {
						t.Errorf("run %d was accepted %d times", id, n)
					}
					b.mu.Unlock()
				}
			})
		}
	}
}

// TestBalancedUnnamed: processes of ours whose address was given by hand, or is registered by somebody who
// does not name them, are told apart by their answers. Where there is one, its successor is found
// out as soon as one of others.
func TestBalancedUnnamed(t *testing.T) {
	for name, arrange := range map[string]func(*balancer){
		"by hand": func(b *balancer) {
			stage.Must(b.e.t, b.e.SaveGroup(b.e.t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		},
		"by another": func(b *balancer) {
			done := make(chan struct{})
			b.e.t.Cleanup(func() { close(done) })
			b.e.deregister("far", at1)
			b.e.register("far", at1)
			go func() {
				for {
					select {
					case <-time.After(20 * time.Second):
						b.e.register("far", at1)
					case <-done:
						return
					}
				}
			}()
		},
	} {
		unnamed := func(t *testing.T, seed uint64, boots ...string) *balancer {
			b := behindABalancer(t, seed, boots...)
			b.quiet.Store(true)
			arrange(b)
			time.Sleep(10 * time.Minute)
			return b
		}
		for seed := range seeds(10) {
			bubble(t, fmt.Sprint(name, " ", seed), func(t *testing.T) {
				b := unnamed(t, seed, "one", "two")
				ids := b.start(10, time.Hour)
				time.Sleep(10 * time.Minute)
				b.kill(b.pods[0])
				time.Sleep(3*dead + lostAfter + 3*lookedAt + dead)
				for _, id := range ids {
					want := xxljob.StateDispatched
					if b.of(id) == b.pods[0] {
						want = xxljob.StateLost
					}
					b.e.mustBe(id, want)
				}
			})
		}
		bubble(t, name+", replaced", func(t *testing.T) {
			b := unnamed(t, 1, "one", "two")
			b.kill(b.pods[1])
			ids := b.start(3, time.Hour)
			time.Sleep(10 * time.Minute)
			b.kill(b.pods[0])
			b.revive(b.pods[1])
			time.Sleep(dead - 5*time.Second)
			for _, id := range ids {
				b.e.mustBe(id, xxljob.StateDispatched)
			}
			time.Sleep(lostAfter + 5*time.Second)
			for _, id := range ids {
				b.e.mustBe(id, xxljob.StateLost)
			}
		})
	}
}
