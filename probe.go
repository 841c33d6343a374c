package xxljob

// Probes of FAILOVER and BUSYOVER. The strategies say in which order to ask; the
// asking is I/O and is done here, by few goroutines, beside the path of the
// other runs.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/wire"
)

const (
	// probeWorkers bounds the probes that are under way at once.
	probeWorkers = 32
	// probeWidth is how many addresses of one job are asked at the same time.
	probeWidth = 4
	// probeTimeout is how long an address has to answer.
	probeTimeout = 3 * time.Second
	// probeTTL is how long an answer is good for.
	probeTTL = time.Second
	// probeGrace is how long a run waits for the rest of the answers once it has a
	// good one: so that it has where to go on to after a refusal.
	probeGrace = 50 * time.Millisecond
)

// probes asks executors whether they are there and idle, and keeps the answers
// for a moment.
type probes struct {
	s        *shared
	attached *attachedSet
	remotes  *remotes
	engine   *engine
	workers  chan struct{} // a token for each probe under way

	mu      sync.Mutex
	answers map[probeKey]probeAnswer // guarded by mu
	asking  map[int64]*asking        // guarded by mu, and all in it: jobs whose probes are under way
	calling map[probeKey]*probeCall  // guarded by mu: calls that have not returned
}

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

func newProbes(s *shared, attached *attachedSet, remotes *remotes, e *engine) *probes {
	return &probes{s: s, attached: attached, remotes: remotes, engine: e, workers: make(chan struct{}, probeWorkers), answers: map[probeKey]probeAnswer{}, asking: map[int64]*asking{}, calling: map[probeKey]*probeCall{}}
}

func keyOf(job *Job, address string) probeKey {
	if job.Route == route.Busyover {
		return probeKey{job.App, address, job.ID}
	}
	return probeKey{job.App, address, 0}
}

// choose takes the first address, in order, that has answered well; the others
// that did are where the run goes on to after a refusal. Where an answer that
// matters is missing it asks, and says so: the run waits.
func (p *probes) choose(_ context.Context, job *Job, order []string) routed {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var log strings.Builder
	var good []string
	for _, addr := range order {
		a, ok := p.answers[keyOf(job, addr)]
		if !ok || now.Sub(a.from) >= probeTTL {
			if len(good) > 0 && !p.asking[job.ID].settling(now) {
				break // an earlier one is good: the later ones need not be asked
			}
			p.ask(job, order)
			return routed{probing: true}
		}
		if log.Len() < maxStartMsg {
			fmt.Fprintf(&log, "%s: %s\n", addr, a.text)
		}
		if a.ok {
			good = append(good, addr)
		}
	}
	probed := "probed:\n" + strings.TrimSuffix(log.String(), "\n")
	if len(good) == 0 {
		return routed{refused: "no address answered well; " + probed}
	}
	if job.Route == route.Busyover {
		// What was idle is busy from now on: the next run asks again.
		delete(p.answers, keyOf(job, good[0]))
	}
	return routed{address: good[0], choices: good[1:], msg: probed}
}

// forgetOld keeps the memory bounded. Caller holds mu.
func (p *probes) forgetOld() {
	if len(p.answers) < 10_000 {
		return
	}
	oldest := time.Now().Add(-probeTTL)
	for _, a := range p.asking {
		if a.order != nil && a.since.Before(oldest) {
			oldest = a.since
		}
	}
	for k, a := range p.answers {
		if !a.from.After(oldest) {
			delete(p.answers, k)
		}
	}
}

// probe asks one address; false when there is no answer to keep.
func (p *probes) probe(ctx context.Context, job *Job, addr string) (probeAnswer, bool) {
	p.workers <- struct{}{}
	defer func() { <-p.workers }()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ret, err := p.answer(ctx, job, addr)
	if errors.Is(err, errStore) {
		// Not the executor's answer: none is kept, and the next run asks again.
		sleep(ctx, backoffFirst)
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
	a.text = plainText(shorten(a.text, maxAnswer))
	return a, true
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

// answer gets an answer within ctx, even from an executor that ignores it: its
// goroutine is left behind then, and ends when the executor answers. One that hangs is
// not given one goroutine after the other.
func (p *probes) answer(ctx context.Context, job *Job, addr string) (wire.Return, error) {
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
func (p *probes) callOnce(ctx context.Context, job *Job, addr string) *probeCall {
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
func (p *probes) call(ctx context.Context, job *Job, addr string) (wire.Return, error) {
	inc, local := LocalIncarnation(addr)
	if !local {
		return p.callRemote(ctx, job, addr)
	}
	exec := p.attached.get(job.App)
	switch {
	case inc == p.s.incarnation && exec == nil:
		return wire.Return{}, errors.New("not attached any more")
	case inc == p.s.incarnation && job.Route == route.Failover:
		return exec.Beat(ctx)
	case inc == p.s.incarnation:
		return exec.IdleBeat(ctx, wire.IdleBeatRequest{JobID: job.ID})
	case !p.s.leases.isLive(inc) || p.s.leases.isDoubted(addr):
		return wire.Return{}, errors.New("the node is gone, or has missed its beats")
	case job.Route == route.Failover:
		return wire.Success(), nil
	}
	runs, err := p.s.store.Runs(ctx, RunFilter{JobID: job.ID, States: []State{StateStarted}, Limit: storeBatch})
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
func (p *probes) callRemote(ctx context.Context, job *Job, addr string) (wire.Return, error) {
	exec, err := p.remotes.get(job.App, addr)
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
