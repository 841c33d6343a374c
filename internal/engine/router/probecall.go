package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// One probe of one address.

// probeCalls asks executors, one call at a time about one question.
type probeCalls struct {
	s        *core.Core
	attached *registry.AttachedSet
	remotes  *registry.Remotes
	workers  chan struct{} // a token for each probe under way

	mu      sync.Mutex
	calling map[probeKey]*probeCall // guarded by mu: calls that have not returned
}

func newProbeCalls(s *core.Core, attached *registry.AttachedSet, remotes *registry.Remotes) *probeCalls {
	return &probeCalls{s: s, attached: attached, remotes: remotes, workers: make(chan struct{}, probeWorkers), calling: map[probeKey]*probeCall{}}
}

// probe asks one address; false when there is no answer to keep.
func (p *probeCalls) probe(ctx context.Context, job *store.Job, addr string) (probeAnswer, bool) {
	p.workers <- struct{}{}
	defer func() { <-p.workers }()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ret, err := p.answer(ctx, job, addr)
	if errors.Is(err, errStore) {
		// Not the executor's answer: none is kept, and the next run asks again.
		loop.Sleep(ctx, loop.BackoffFirst)
		return probeAnswer{}, false
	}
	now := time.Now()
	a := probeAnswer{ok: err == nil && ret.OK(), at: now, from: now}
	switch {
	case err != nil:
		a.text = "error: " + err.Error()
	case a.ok:
		a.text = "ok"
	default:
		a.text = ret.Msg
	}
	a.text = errs.PlainText(errs.Shorten(a.text, core.MaxAnswer))
	return a, true
}

// answer gets an answer within ctx, even from an executor that ignores it: its
// goroutine is left behind then, and ends when the executor answers. One that hangs is
// not given one goroutine after the other.
func (p *probeCalls) answer(ctx context.Context, job *store.Job, addr string) (wire.Return, error) {
	c := p.callOnce(ctx, job, addr)
	if ctx.Err() == nil && c.hangs() {
		return wire.Return{}, fmt.Errorf("no answer within %v, and an earlier call still hangs", probeTimeout)
	}
	select {
	case <-c.done:
		return c.ret, c.err
	case <-ctx.Done():
		return wire.Return{}, fmt.Errorf("no answer within %v", probeTimeout)
	}
}

// callOnce returns the call that is under way, perhaps for another job, or makes one.
func (p *probeCalls) callOnce(ctx context.Context, job *store.Job, addr string) *probeCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := keyOf(job, addr)
	if c := p.calling[key]; c != nil {
		return c
	}
	c := &probeCall{ctx: ctx, done: make(chan struct{})}
	p.calling[key] = c
	go func() {
		c.ret, c.err = p.call(ctx, job, addr)
		p.mu.Lock()
		delete(p.calling, key)
		p.mu.Unlock()
		close(c.done)
	}()
	return c
}

// call asks an executor of this process directly. Of an executor at another
// node the lease tells that it is there, and the store whether the job runs.
func (p *probeCalls) call(ctx context.Context, job *store.Job, addr string) (wire.Return, error) {
	inc, local := store.LocalIncarnation(addr)
	if !local {
		return p.callRemote(ctx, job, addr)
	}
	exec := p.attached.Get(job.App)
	switch {
	case inc == p.s.Leases.Incarnation && exec == nil:
		return wire.Return{}, errors.New("not attached any more")
	case inc == p.s.Leases.Incarnation && job.Route == route.Failover:
		return exec.Beat(ctx)
	case inc == p.s.Leases.Incarnation:
		return exec.IdleBeat(ctx, wire.IdleBeatRequest{JobID: job.ID})
	case !p.s.Leases.IsLive(inc) || p.s.Leases.IsDoubted(addr):
		return wire.Return{}, errors.New("the node is gone, or has missed its beats")
	case job.Route == route.Failover:
		return wire.Success(), nil
	}
	runs, err := p.s.Store.Runs(ctx, store.RunFilter{JobID: job.ID, States: []store.State{store.StateStarted}, Limit: loop.StoreBatch})
	if err != nil {
		return wire.Return{}, fmt.Errorf("%w: %w", errStore, err)
	}
	for _, r := range runs {
		if r.Address == addr {
			return wire.Failf("%s", wire.MsgBusy), nil
		}
	}
	return wire.Success(), nil
}

// callRemote asks a remote executor.
func (p *probeCalls) callRemote(ctx context.Context, job *store.Job, addr string) (wire.Return, error) {
	exec, err := p.remotes.Get(job.App, addr)
	switch {
	case err != nil:
		return wire.Return{}, err
	case job.Route == route.Failover:
		return exec.Beat(ctx)
	}
	return exec.IdleBeat(ctx, wire.IdleBeatRequest{JobID: job.ID})
}

// errStore marks a probe that the store, not the executor, has failed.
var errStore = errors.New("xxljob: the store did not answer")

const (
	// probeWorkers bounds the probes that are under way at once.
	probeWorkers = 32
	// probeTimeout is how long an address has to answer.
	probeTimeout = 3 * time.Second
)

// probeKey is what was asked: beats are of an address, idle beats of a job there.
type probeKey struct {
	app, address string
	jobID        int64 // zero for a beat
}

type probeAnswer struct {
	ok   bool
	text string
	at   time.Time // when it came
	from time.Time // it is good for probeTTL from then on
}

func keyOf(job *store.Job, address string) probeKey {
	if job.Route == route.Busyover {
		return probeKey{job.App, address, job.ID}
	}
	return probeKey{job.App, address, 0}
}

// probeCall is a call to an executor, whose answer is for all who ask the same.
type probeCall struct {
	ctx  context.Context
	done chan struct{} // closed when there are ret and err
	ret  wire.Return
	err  error
}

// hangs reports whether a call has not returned in its time. Who made it ends its
// context then, or else after done.
func (c *probeCall) hangs() bool {
	if c.ctx.Err() == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}
