package registry

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/wire"
)

// Executors elsewhere, which are called over HTTP. A token goes to the addresses of
// its own app and nowhere else: addresses.go says which these are.

// maxRemotes bounds what is remembered of remote executors. What is forgotten is
// learned again by the next call.
const maxRemotes = 20_000

// Remotes are the clients of this node. It is safe for concurrent use.
type Remotes struct {
	cfg  *core.Config
	Dial func(app, address, token string) (wire.Executor, error) // wire.NewExecutorClient; another one in tests

	mu    sync.Mutex
	peers map[SiteKey]*remote // guarded by mu: nil for an address that can be called and was not yet
}

func NewRemotes(cfg *core.Config) *Remotes {
	r := &Remotes{cfg: cfg, peers: map[SiteKey]*remote{}}
	transport := cfg.HTTP.Transport
	if transport == nil {
		transport = wire.NewTransport(wire.TransportConfig{})
	}
	r.Dial = func(app, address, token string) (wire.Executor, error) {
		return wire.NewExecutorClient(address, wire.ClientConfig{Transport: transport, App: app, Token: token, Secrets: cfg.TokensOf(app), Timeout: cfg.HTTP.CallTimeout})
	}
	return r
}

// Get returns the client for an address of an app. The error says what is wrong with
// the address.
func (r *Remotes) Get(app, address string) (*remote, error) {
	key := SiteKey{app, address}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.peers[key]; p != nil {
		return p, nil
	}
	p, err := r.dial(key)
	if err == nil {
		r.keep(key, p)
	}
	return p, err
}

// IsCallable reports whether there can be a client for an address of an app. None is kept: of ten
// thousand addresses of an app few are called.
func (r *Remotes) IsCallable(app, address string) bool {
	key := SiteKey{app, address}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.peers[key]; known {
		return true
	}
	_, err := r.dial(key)
	if err == nil {
		r.keep(key, nil)
	}
	return err == nil
}

func (r *Remotes) dial(key SiteKey) (*remote, error) {
	p := &remote{}
	for _, token := range r.cfg.TokensOf(key.App) {
		c, err := r.Dial(key.App, key.Address, token)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, c)
	}
	return p, nil
}

// keep remembers an address; r.mu is held.
func (r *Remotes) keep(key SiteKey, p *remote) {
	if _, known := r.peers[key]; !known && len(r.peers) >= maxRemotes {
		clear(r.peers)
	}
	r.peers[key] = p
}

// remote is an executor elsewhere. Of the two tokens that are valid while one takes
// the place of the other, it uses the one that the executor has accepted last.
type remote struct {
	clients []wire.Executor // one a token
	good    atomic.Int32
}

var _ wire.Executor = (*remote)(nil)

func (r *remote) Beat(ctx context.Context) (wire.Return, error) {
	return withToken(r, wire.Return.Unauthorized, func(e wire.Executor) (wire.Return, error) { return e.Beat(ctx) })
}

func (r *remote) IdleBeat(ctx context.Context, req wire.IdleBeatRequest) (wire.Return, error) {
	return withToken(r, wire.Return.Unauthorized, func(e wire.Executor) (wire.Return, error) { return e.IdleBeat(ctx, req) })
}

func (r *remote) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	return withToken(r, wire.Return.Unauthorized, func(e wire.Executor) (wire.Return, error) { return e.Run(ctx, req) })
}

func (r *remote) Kill(ctx context.Context, req wire.KillRequest) (wire.Return, error) {
	return withToken(r, wire.Return.Unauthorized, func(e wire.Executor) (wire.Return, error) { return e.Kill(ctx, req) })
}

func (r *remote) Log(ctx context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	return withToken(r, wire.LogReturn.Unauthorized, func(e wire.Executor) (wire.LogReturn, error) { return e.Log(ctx, req) })
}

// withToken asks with one token after the other. An executor that refuses a token has
// done nothing with the request.
func withToken[R any](r *remote, unauthorized func(R) bool, ask func(wire.Executor) (R, error)) (ret R, err error) {
	first := int(r.good.Load())
	for i := range r.clients {
		at := (first + i) % len(r.clients)
		ret, err = ask(r.clients[at])
		if err != nil {
			break // the request may have been looked at
		}
		if !unauthorized(ret) {
			r.good.Store(int32(at))
			break
		}
	}
	return ret, err
}

// Generation returns what the executor at an address speaks, as far as it has shown in calls
// of this node; "" where it has not, or is not remembered any more.
func (r *Remotes) Generation(app, address string) string {
	r.mu.Lock()
	p := r.peers[SiteKey{app, address}]
	r.mu.Unlock()
	if p == nil {
		return ""
	}
	if c, ok := p.clients[p.good.Load()].(interface{ Generation() string }); ok {
		return c.Generation()
	}
	return ""
}
