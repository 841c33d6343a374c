package xxljob_test

// Executors elsewhere, for tests: what they answer is scripted, and what they are asked
// is kept. They report through the scheduler's Handler, as real ones do.

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// tokensOf has the token of the tests be that of one app, which it needs where it is
// attached as well.
func tokensOf(app string) map[string][]string { return map[string][]string{app: {stage.Token}} }

var (
	errHungUp  = &wire.CallError{URL: "http://peer", Sent: true, Err: errors.New("connection reset")}
	errNoRoute = &wire.CallError{URL: "http://peer", Err: errors.New("connection refused")}
)

// peer is an executor elsewhere. A nil function answers 200, and that of idle beats busy where
// they are about a run that it has accepted.
type peer struct {
	token string // the one it accepts; empty for stage.Token
	run   func(n int, r wire.TriggerRequest) (wire.Return, error)
	beat  func() (wire.Return, error)
	idle  func() (wire.Return, error)
	ask   func(wire.IdleBeatRequest) (wire.Return, error) // in place of idle
	kill  func(wire.KillRequest) (wire.Return, error)
	log   func(wire.LogRequest) (wire.LogReturn, error)

	mu    sync.Mutex
	runs  []wire.TriggerRequest
	kills []wire.KillRequest
	asked int // idle beats
	about int // those of them that were about a run

	accepted []int64 // runs
}

func (p *peer) sent() []wire.TriggerRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.runs)
}

func (p *peer) killed() []wire.KillRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kills)
}

func (p *peer) idleBeats() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// probes are the idle beats that were about no run.
func (p *peer) probes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked - p.about
}

// peerClient is what a scheduler holds of a peer.
type peerClient struct {
	*peer
	token string
}

func (c peerClient) refuses() bool { return c.token != cmpOr(c.peer.token, stage.Token) }

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c peerClient) Beat(context.Context) (wire.Return, error) {
	switch {
	case c.refuses():
		return wire.Failf(wire.MsgTokenWrong), nil
	case c.peer.beat != nil:
		return c.peer.beat()
	}
	return wire.Success(), nil
}

func (c peerClient) IdleBeat(_ context.Context, r wire.IdleBeatRequest) (wire.Return, error) {
	if c.refuses() {
		return wire.Failf(wire.MsgTokenWrong), nil
	}
	c.mu.Lock()
	c.asked++
	c.about += stage.One(r.LogID != 0)
	c.mu.Unlock()
	if c.peer.ask != nil {
		return c.peer.ask(r)
	}
	if c.peer.idle != nil {
		return c.peer.idle()
	}
	if c.has(r.LogID) {
		return wire.Failf(wire.MsgBusy), nil // with it: nobody has heard of its end
	}
	return wire.Success(), nil
}

// has reports whether the peer has accepted a run.
func (p *peer) has(run int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.accepted, run)
}

func (c peerClient) Run(_ context.Context, r wire.TriggerRequest) (wire.Return, error) {
	if c.refuses() {
		return wire.Failf(wire.MsgTokenWrong), nil
	}
	c.mu.Lock()
	c.runs = append(c.runs, r)
	n := len(c.runs)
	c.mu.Unlock()
	ret, err := wire.Success(), error(nil)
	if c.peer.run != nil {
		ret, err = c.peer.run(n, r)
	}
	if err == nil && ret.OK() {
		c.mu.Lock()
		c.accepted = append(c.accepted, r.LogID)
		c.mu.Unlock()
	}
	return ret, err
}

func (c peerClient) Kill(_ context.Context, r wire.KillRequest) (wire.Return, error) {
	if c.refuses() {
		return wire.Failf(wire.MsgTokenWrong), nil
	}
	c.mu.Lock()
	c.kills = append(c.kills, r)
	c.mu.Unlock()
	if c.peer.kill != nil {
		return c.peer.kill(r)
	}
	return wire.Success(), nil
}

func (c peerClient) Log(_ context.Context, r wire.LogRequest) (wire.LogReturn, error) {
	switch {
	case c.refuses():
		return wire.LogReturn{Code: wire.CodeFail, Msg: wire.MsgTokenWrong}, nil
	case c.peer.log != nil:
		return c.peer.log(r)
	}
	return wire.LogReturn{Code: wire.CodeSuccess}, nil
}

// elsewhere is a scheduler with peers.
type elsewhere struct {
	xxljob.Scheduler
	t     *testing.T
	store xxljob.Store
	admin http.Handler
	peers map[string]*peer // by address
}

// newElsewhere makes a scheduler whose remote executors are the peers; none of them is
// registered. It is started, and stopped at the end of the test.
func newElsewhere(t *testing.T, st xxljob.Store, cfg xxljob.Config, peers map[string]*peer) *elsewhere {
	t.Helper()
	if st == nil {
		st = memory.New()
	}
	cfg.App = cmp.Or(cfg.App, "here")
	if cfg.HTTP.Tokens == nil {
		cfg.HTTP.Tokens = map[string][]string{"": {stage.Token}}
	}
	if cfg.Logger == nil {
		cfg.Logger = stage.QuietLog()
	}
	s, err := xxljob.New(st, cfg)
	stage.Must(t, err)
	xxljob.DialWith(s, func(_, address, token string) (wire.Executor, error) {
		if _, err := wire.ParseAddress(address); err != nil {
			return nil, err
		}
		p := peers[address]
		if p == nil {
			p = &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) { return wire.Return{}, errNoRoute }}
		}
		return peerClient{p, token}, nil
	})
	h, err := s.AdminHandler()
	stage.Must(t, err)
	stage.Must(t, s.Start(context.Background()))
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return &elsewhere{Scheduler: s, t: t, store: st, admin: h, peers: peers}
}

// call is post with the token of the tests, and must be answered 200.
func (e *elsewhere) call(endpoint string, msg stage.Message) {
	e.t.Helper()
	if ret := stage.Post(e.t, e.admin, stage.Token, "", endpoint, msg.Encode(nil)); !ret.OK() {
		e.t.Errorf("%s: %+v", endpoint, ret)
	}
}

// register registers addresses of third-party executors.
func (e *elsewhere) register(app string, addresses ...string) {
	e.t.Helper()
	for _, a := range addresses {
		e.call("registry", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: a})
	}
}

// registerOurs registers an executor of this module.
func (e *elsewhere) registerOurs(app, address, boot string) {
	e.t.Helper()
	e.call("registry", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: address,
		BootID: boot, Capabilities: []string{wire.CapRepeat}})
}

func (e *elsewhere) deregister(app, address string) {
	e.t.Helper()
	e.call("registryRemove", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: address})
}

// callback reports results.
func (e *elsewhere) callback(results ...wire.CallbackRequest) wire.Return {
	e.t.Helper()
	return stage.Post(e.t, e.admin, stage.Token, "", "callback", wire.EncodeCallback(nil, wire.CallbackList, results))
}

// report reports one result, which must be acknowledged.
func (e *elsewhere) report(run int64, code int, msg string) {
	e.t.Helper()
	if ret := e.callback(wire.CallbackRequest{LogID: run, HandleCode: code, HandleMsg: msg}); !ret.OK() {
		e.t.Errorf("callback: %+v", ret)
	}
}

// trigger adds a job and runs it once.
func (e *elsewhere) trigger(job xxljob.Job) int64 {
	e.t.Helper()
	if job.Name == "" {
		job.Name = "job"
	}
	if job.Handler == "" {
		job.Handler = "work"
	}
	return stage.TriggerNew(e.t, e.Scheduler, job)
}

// state returns a run as it is.
func (e *elsewhere) state(id int64) xxljob.Run {
	e.t.Helper()
	run, err := e.store.Run(context.Background(), id)
	stage.Must(e.t, err)
	return run
}

// mustBe checks a run's state.
func (e *elsewhere) mustBe(id int64, want xxljob.State) xxljob.Run {
	e.t.Helper()
	run := e.state(id)
	if run.State != want {
		e.t.Errorf("run %d is %v, want %v: %q %q", id, run.State, want, run.TriggerMsg, run.HandleMsg)
	}
	return run
}
