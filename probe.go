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

	"golang.org/x/sync/errgroup"

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
)

// probes asks executors whether they are there and idle, and keeps the answers
// for a moment.
type probes struct {
	s       *scheduler
	workers chan struct{} // a token for each probe under way

	mu      sync.Mutex
	answers map[probeKey]probeAnswer // guarded by mu
	asking  map[int64]bool           // guarded by mu: jobs whose probes are under way
	calling map[probeKey]bool        // guarded by mu: calls that have not returned
}

// probeKey is what was asked: beats are of an address, idle beats of a job there.
type probeKey struct {
	app, address string
	jobID        int64 // zero for a beat
}

type probeAnswer struct {
	ok   bool
	text string
	at   time.Time
}

func newProbes(s *scheduler) *probes {
	return &probes{s: s, workers: make(chan struct{}, probeWorkers), answers: map[probeKey]probeAnswer{}, asking: map[int64]bool{}, calling: map[probeKey]bool{}}
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
func (p *probes) choose(ctx context.Context, job *Job, order []string) routed {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var log strings.Builder
	var good []string
	for _, addr := range order {
		a, ok := p.answers[keyOf(job, addr)]
		if !ok || now.Sub(a.at) >= probeTTL {
			if len(good) > 0 {
				break // an earlier one is good: the later ones need not be asked
			}
			p.ask(job, order)
			return routed{probing: true}
		}
		fmt.Fprintf(&log, "%s: %s\n", addr, a.text)
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

// ask probes all addresses of a job, unless that is under way; the runs that
// wait for it go on when it is done. Caller holds mu. Stop waits for the
// goroutine.
func (p *probes) ask(job *Job, order []string) {
	if p.asking[job.ID] {
		return
	}
	p.asking[job.ID] = true
	p.s.life.plan.run(func(ctx context.Context) {
		group := errgroup.Group{}
		group.SetLimit(probeWidth)
		for _, addr := range order {
			group.Go(func() error { p.probe(ctx, job, addr); return nil })
		}
		_ = group.Wait() // the probes keep their errors as answers
		p.mu.Lock()
		// The answers are good from now on: a quick one must not grow old while a
		// slow one is waited for.
		for _, addr := range order {
			if a, ok := p.answers[keyOf(job, addr)]; ok {
				a.at = time.Now()
				p.answers[keyOf(job, addr)] = a
			}
		}
		delete(p.asking, job.ID)
		p.forgetOld()
		p.mu.Unlock()
		p.s.engine.admitAll(lot{kind: lotProbe, jobID: job.ID})
		p.s.startWake.poke()
	})
}

// pending reports whether probes for the job are under way: a run may wait for
// them.
func (p *probes) pending(jobID int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asking[jobID]
}

// forgetOld keeps the memory bounded. Caller holds mu.
func (p *probes) forgetOld() {
	if len(p.answers) < 10_000 {
		return
	}
	for k, a := range p.answers {
		if time.Since(a.at) >= probeTTL {
			delete(p.answers, k)
		}
	}
}

// probe asks one address and keeps the answer.
func (p *probes) probe(ctx context.Context, job *Job, addr string) {
	p.workers <- struct{}{}
	defer func() { <-p.workers }()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ret, err := p.answer(ctx, job, addr)
	if errors.Is(err, errStore) {
		// Not the executor's answer: none is kept, and the next round asks again.
		sleep(ctx, backoffFirst)
		return
	}
	a := probeAnswer{ok: err == nil && ret.OK(), at: time.Now()}
	switch {
	case err != nil:
		a.text = "error: " + err.Error()
	case a.ok:
		a.text = "ok"
	default:
		a.text = ret.Msg
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[keyOf(job, addr)] = a
}

// answer gets an answer within ctx, even from an executor that ignores it: its
// goroutine is left behind then, and ends when the executor answers.
func (p *probes) answer(ctx context.Context, job *Job, addr string) (wire.Return, error) {
	type reply struct {
		ret wire.Return
		err error
	}
	key := keyOf(job, addr)
	if !p.begin(key) {
		return wire.Return{}, errors.New("no answer in time, and an earlier call still hangs")
	}
	got := make(chan reply, 1)
	go func() {
		ret, err := p.call(ctx, job, addr)
		p.end(key)
		got <- reply{ret, err}
	}()
	select {
	case r := <-got:
		return r.ret, r.err
	case <-ctx.Done():
		return wire.Return{}, errors.New("no answer in time")
	}
}

// begin notes a call; false while an earlier one has not returned: an executor
// that hangs is not given one goroutine after the other.
func (p *probes) begin(k probeKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calling[k] {
		return false
	}
	p.calling[k] = true
	return true
}

func (p *probes) end(k probeKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calling, k)
}

// call asks an executor of this process directly. Of an executor at another
// node the lease tells that it is there, and the store whether the job runs.
func (p *probes) call(ctx context.Context, job *Job, addr string) (wire.Return, error) {
	inc, local := LocalIncarnation(addr)
	if !local {
		return p.callRemote(ctx, job, addr)
	}
	exec := p.s.attached.get(job.App)
	switch {
	case inc == p.s.incarnation && exec == nil:
		return wire.Return{}, errors.New("not attached any more")
	case inc == p.s.incarnation && job.Route == route.Failover:
		return exec.Beat(ctx)
	case inc == p.s.incarnation:
		return exec.IdleBeat(ctx, wire.IdleBeatRequest{JobID: job.ID})
	case !p.s.leases.isLive(inc):
		return wire.Return{}, errors.New("the node is gone")
	case job.Route == route.Failover:
		return wire.Success(), nil
	}
	runs, err := p.s.store.Runs(ctx, RunFilter{JobID: job.ID, States: []State{StateStarted}, Limit: startBatch})
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
	exec, err := p.s.remotes.get(job.App, addr)
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
